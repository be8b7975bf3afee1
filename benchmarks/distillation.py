"""Writes a file of pairs whose targets larger models wrote, for a small model to learn from.

    python benchmarks/distillation.py FILE --teachers RUN RUN --out distilled.tsv [--sources OTHER ...] [--part 1/4]

Sequence-level distillation (Kim and Rush 2016) with several teachers: each one's four best translations of a source, by
beam search; the one kept is that which the teachers together find likeliest, by the mean of their log-probabilities,
divided as in the search. Teachers are runs that learned from FILE. Sources are those of FILE's training pairs and of
the training pairs of every OTHER file, of which targets are not read. FILE's own pairs come too: those held out, which
stay held out in whatever learns from the new file, since a split follows from the source alone; and the training pairs,
unless --own none. --joined 0.1 adds a tenth as many pairs of two sentences in a row, as few files have.

Of --part 1/4 a quarter of the sources is translated; `cat` joins the parts.
"""

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from arguments import read_options
from torch import Tensor

from transformer.config import CorpusConfig, DecodeConfig, ModelConfig, TrainConfig
from transformer.data.batches import encode_sources, fits, pair_batches
from transformer.data.pair_files import read_pairs
from transformer.decoding.beam import length_norm
from transformer.decoding.greedy import teacher_forced_log_probs
from transformer.decoding.methods import decode
from transformer.lab import Lab, load
from transformer.runs.run_folder import create_run
from transformer.runs.worker import train_run
from transformer.text.pairs import Pair, split_of
from transformer.training.devices import resolve_device

SEARCH = DecodeConfig(method="beam", beam=4, n_best=4)
SENTENCES = 512
"""Sentences that are translated at a time."""
SCORED_TOKENS = 16_384
"""Tokens that are scored at a time, padding included."""


def main() -> None:
    """Writes the file, and prints how many pairs of each kind it holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", metavar="FILE", type=Path, nargs="?", help="a file of pairs; --smoke writes one")
    parser.add_argument("--teachers", nargs="+", metavar="RUN", default=[], help="runs or folders of models")
    parser.add_argument("--sources", nargs="+", metavar="OTHER", type=Path, default=[])
    parser.add_argument("--out", type=Path, default=Path("distilled.tsv"))
    parser.add_argument("--own", choices=["all", "none"], default="all", help="FILE's own training pairs")
    parser.add_argument("--joined", type=float, default=0.0)
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--device", default="auto")
    options = read_options(parser, smoke={})
    if options.smoke:
        with tempfile.TemporaryDirectory() as folder:
            _smoke(Path(folder), options)
    elif options.file is None or not options.teachers:
        parser.error("name a FILE of pairs and its --teachers")
    else:
        _write(options)


def _smoke(folder: Path, options: argparse.Namespace) -> None:
    os.environ["ATTENTION_LAB_RUNS"] = str(folder / "runs")
    options.file, options.out, options.joined = folder / "pairs.tsv", folder / "distilled.tsv", 0.1
    options.teachers, options.sources = [], []
    lines = (f"the word{number} is here\tle mot{number} est ici\n" for number in range(200))
    options.file.write_text("".join(lines))
    tiny = ModelConfig(d_model=32, n_heads=2, d_ff=32, n_encoder_layers=1, n_decoder_layers=1, max_length=16)
    brief = TrainConfig(max_steps=40, learning_rate=1e-2, warmup_steps=5, evaluate_pairs=1, test_pairs=1, device="cpu")
    for seed in range(2):
        options.teachers.append(create_run(tiny, replace(brief, seed=seed), CorpusConfig(name=str(options.file))))
        train_run(options.teachers[-1])
    _write(options)


def _write(options: argparse.Namespace) -> None:
    own, _ = read_pairs(options.file, None).clean()
    part, parts = map(int, options.part.split("/"))
    sources = {pair.source for pair in own}
    for file in options.sources:
        sources |= {pair.source for pair in read_pairs(file, None).clean()[0]}
    asked = sorted(source for source in sources if split_of(source) == "train")[part - 1 :: parts]
    teachers = [load(name) for name in options.teachers]
    for teacher in teachers:
        teacher.model.to(resolve_device(options.device)).requires_grad_(False)
    taught = list(_taught(asked, teachers))
    kept = [pair for pair in own if split_of(pair.source) != "train" or options.own == "all"] if part == 1 else []
    joined = _joined([*taught, *kept], int(options.joined * len(taught)))
    with options.out.open("w", encoding="utf-8") as file:
        for pair in (*kept, *taught, *joined):
            file.write(f"{pair.source}\t{pair.target}\n")
    print(f"{options.out}: {len(taught):,} pairs taught, {len(kept):,} of the file, {len(joined):,} joined", flush=True)


def _taught(sources: Sequence[str], teachers: Sequence[Lab]) -> Iterator[Pair]:
    """Yields each source that the teachers can read, with the translation that they together find likeliest."""
    sources = sorted(sources, key=len)
    for start in range(0, len(sources), SENTENCES):
        texts = [text for text in sources[start : start + SENTENCES] if _is_readable(text, teachers)]
        if not texts:
            continue
        found = dict.fromkeys(pair for teacher in teachers for pair in _translations(texts, teacher))
        pairs = [pair for pair in found if all(fits(pair, t.tokenizer, t.model.config.max_length) for t in teachers)]
        scores = sum(_scores(pairs, teacher) for teacher in teachers)
        best: dict[str, tuple[float, str]] = {}
        for pair, score in zip(pairs, scores.tolist(), strict=True):
            best[pair.source] = max(best.get(pair.source, (score, pair.target)), (score, pair.target))
        yield from (Pair(source, target) for source, (_, target) in best.items())


def _is_readable(text: str, teachers: Sequence[Lab]) -> bool:
    return all(0 < len(t.tokenizer.encode(text)) < t.model.config.max_length for t in teachers)


def _translations(texts: Sequence[str], teacher: Lab) -> Iterator[Pair]:
    """Yields the best translations of each text, those that ended and are not empty."""
    model, tokenizer = teacher.model, teacher.tokenizer
    device = next(model.parameters()).device
    source, mask = encode_sources(texts, tokenizer, max_length=model.config.max_length)
    for text, found in zip(texts, decode(model, source.to(device), mask.to(device), SEARCH), strict=True):
        written = (tokenizer.decode(output.ids[:-1]) for output in found if output.ended)
        yield from (Pair(text, target) for target in written if target)


def _scores(pairs: Sequence[Pair], teacher: Lab) -> Tensor:
    """Returns the log-probability of each target, divided as the search divides it. Shape [pair]."""
    model, scores = teacher.model, torch.zeros(len(pairs))
    device = next(model.parameters()).device
    for rows, batch in pair_batches(pairs, teacher.tokenizer, SCORED_TOKENS, max_length=model.config.max_length):
        on = batch.to(device)
        every = teacher_forced_log_probs(model, on.source, on.target_out, on.source_mask)
        chosen = every.gather(2, on.target_out[..., None])[..., 0].masked_fill(~on.target_mask, 0.0)
        norms = [length_norm(n, SEARCH.alpha, SEARCH.length_norm) for n in batch.target_mask.sum(dim=1).tolist()]
        scores[rows] = chosen.sum(dim=1).cpu() / torch.tensor(norms)
    return scores


def _joined(pairs: Sequence[Pair], count: int) -> list[Pair]:
    """Returns so many pairs of two neighbours in a random order, each a training pair of both."""
    drawn = random.Random(0)
    trained = [pair for pair in pairs if split_of(pair.source) == "train"]
    made = (
        Pair(f"{first.source} {second.source}", f"{first.target} {second.target}")
        for first, second in (drawn.sample(trained, 2) for _ in range(count))
    )
    return [pair for pair in made if split_of(pair.source) == "train"]


if __name__ == "__main__":
    main()
