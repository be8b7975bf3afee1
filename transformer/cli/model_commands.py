"""The commands for a finished model: translate, evaluate, inspect, heads."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, get_args

import tyro
from tqdm import tqdm

from transformer.analysis.heads.published import SURVEY_FILE, publish_survey
from transformer.checkpoints.store import CheckpointError
from transformer.config import DecodeConfig
from transformer.data.batches import fits
from transformer.data.cleaning import REASONS, CleaningReport, Reason
from transformer.data.corpus_snapshot import AbsentCorpus, load_own
from transformer.data.pair_files import PairFile, read_parallel
from transformer.data.unpacking import CorpusError
from transformer.inspection.inspection import idle_notes
from transformer.interventions import merged, parse_intervention, superseded_notes
from transformer.interventions.names import plural
from transformer.lab import GREEDY, Lab, load
from transformer.runs.status import RunError
from transformer.text.pairs import Pair, Split, clean_text, split_of, words
from transformer.text.tokenizer import TokenizerError
from transformer.training.evaluation import evaluate as evaluate_pairs
from transformer.training.events import TrainingError
from transformer.training.metrics import NO_BLEU, Score

EXPECTED_ERRORS = (CheckpointError, CorpusError, RunError, TokenizerError, TrainingError, ValueError, OSError)
"""The errors of a wrong argument, file or setting; shown as one sentence."""


_LOST: tuple[Reason, ...] = ("malformed", "too_long")
"""The reasons for which a line of a file cannot be scored; blank and repeated ones have nothing to score."""


class LinesLost(Exception):
    """Some lines could not be translated or scored; all others were."""


ModelName = Annotated[str, tyro.conf.arg(help="A shipped checkpoint's name, a run's id, or a folder.")]


def translate(
    text: tyro.conf.Positional[tuple[str, ...]] = (),
    *,
    model: ModelName,
    settings: Annotated[DecodeConfig, tyro.conf.arg(name="")] = GREEDY,
) -> None:
    """Translate each TEXT, one line each; without TEXT, each line of standard input.

    With --n-best above 1, each text gets that many lines: score, tab, translation. A blank line of standard input gives
    a blank line. One that cannot be read or is too long gives a blank line too, its number and the reason are told on
    the error stream, the others go on, and the exit status at the end is 1.
    """
    lab = load(model)
    if not text:
        _translate_lines(lab, settings)
    for one in text:
        _print_translations(lab, one, settings)


def _translate_lines(lab: Lab, settings: DecodeConfig) -> None:
    """Translates each line of standard input in its place; LinesLost at the end where some could not be."""
    lost = number = 0
    for number, line in enumerate(tqdm(sys.stdin.buffer, unit=" lines", disable=sys.stdout.isatty() or None), start=1):
        text = ""
        try:
            text = _readable(lab, line)
        except ValueError as error:
            lost += 1
            print(f"line {number}: {error}", file=sys.stderr)
        if text:
            _print_translations(lab, text, settings)
        else:
            print("\n" * settings.n_best, end="", flush=True)
    if lost:
        raise LinesLost(f"{lost:,} of {number:,} {plural(number, 'line')} could not be translated")


def _readable(lab: Lab, line: bytes) -> str:
    """Returns the text of a line, "" of a blank one; ValueError where the model cannot read it."""
    try:
        text = clean_text(line.decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 text (byte {error.start:,}): save the file as UTF-8") from error
    if text:
        lab.sentence(text)
    return text


def _print_translations(lab: Lab, text: str, settings: DecodeConfig) -> None:
    if unseen := lab.unknown(text):
        print(f"note: {lab.name} never saw {', '.join(unseen)}", file=sys.stderr)
    for found in lab.translations([text], settings)[0]:
        print(found.text if settings.n_best == 1 else f"{found.score:.4f}\t{found.text}", flush=True)


def evaluate(
    *,
    model: ModelName,
    pairs: tuple[Path, ...] = (),
    columns: str | None = None,
    split: str | None = None,
    longest_words: int | None = None,
    limit: int | None = None,
    settings: Annotated[DecodeConfig, tyro.conf.arg(name="")] = GREEDY,
) -> None:
    """Score a model on sentence pairs and print one JSON object; of several outputs the first is scored.

    Args:
        pairs: A file of source and target, or two parallel files, as `train` takes them; without it, the model's own
            held-out pairs. A pair that is too long for the model is left out, and its line told on the error stream;
            where lines were left out so, or cannot be read, the exit status at the end is 1.
        columns: The columns of that file that hold them, such as en,fr or 2,4; without it, found by name and content.
        split: Which pairs: validation, random (held out; the default), or what else the corpus holds out, such as
            combinations. Of a file all pairs are taken unless train, validation or random is named: those that a run
            on any file would train on or hold out.
        longest_words: Only pairs with at most this many words of source, punctuation not counted.
        limit: Score at most this many pairs, the first ones.
    """
    lab, lost = load(model), 0
    if not pairs:
        chosen = _own_split(lab, split or "random")
    else:
        file = read_parallel(pairs, columns)
        usable, report = file.clean()
        print(f"{file.name}: {report}", file=sys.stderr)
        chosen, lost = _short_enough(lab, file, report, _of_split(usable, split))
    if longest_words is not None:
        chosen = [pair for pair in chosen if _n_words(pair.source) <= longest_words]
    chosen = chosen[:limit] if limit is not None else chosen
    decoding = None if settings == GREEDY else settings
    with tqdm(total=len(chosen), unit=" pairs", disable=None) as bar:
        found = evaluate_pairs(
            lab.model, chosen, lab.tokenizer, overlap_scores=True, decoding=decoding, progress=bar.update
        )
    assert found.chrf is not None, "overlap scores were asked for"
    _print_json(
        {
            "model": lab.name,
            "pairs": " ".join(map(str, pairs)) or None,
            "split": split if pairs else split or "random",
            "longest_words": longest_words,
            "decoding": settings.in_force,
            "count": found.count,
            "exact_match": found.exact_match,
            **_bleu(found.bleu),
            "chrf": found.chrf.value,
            "chrf_signature": found.chrf.signature,
            "perplexity": found.perplexity,
        }
    )
    if lost:
        raise LinesLost(f"{lost:,} {plural(lost, 'line')} could not be scored")


def inspect(
    text: tyro.conf.Positional[str],
    *,
    model: ModelName,
    switch: Annotated[tuple[str, ...], tyro.conf.arg(metavar="SWITCH ...")] = (),
) -> None:
    """Print the attention of every layer and head behind one translation, as JSON.

    Args:
        switch: Changes of the pass, such as off:decoder.0.cross:1,3 or scale:decoder.0.cross:1:0.5 or mask:causal;
            of two for one thing, as for one head, the last counts.
    """
    lab, switches = load(model), [parse_intervention(item) for item in switch]
    seen = lab.inspect(text, merged(switches))
    idle = idle_notes(seen, causal_mask=not lab.model.needs_recomputation())
    _print_json(
        {
            "model": seen.model_name,
            "text": seen.text,
            "translation": seen.translation,
            "source_tokens": seen.source_tokens,
            "target_tokens": seen.target_tokens,
            "probabilities": seen.probabilities.tolist(),
            "switches": [str(spec) for spec in seen.interventions],
            "notes": [*superseded_notes(switches), *idle],
            "cached": seen.cached,
            "attention": {
                attention.kind: {
                    "axes": ["layer", "head", "query", "key"],
                    "queries": attention.queries,
                    "keys": attention.keys,
                    "weights": attention.weights.tolist(),
                    "mask": attention.mask.tolist(),
                }
                for attention in seen.attentions.values()
            },
        }
    )


def heads(*, model: ModelName) -> None:
    """Measure every head over all validation pairs, into a file beside the weights that the Heads page then opens with.
    It counts until the weights, the tokenizer or the pairs change."""
    lab = load(model)
    with tqdm(total=1.0, disable=None, bar_format="{l_bar}{bar}| {remaining} left") as bar:
        found = publish_survey(lab.checkpoint, tell=lambda share: bar.update(share - bar.n))
    print(f"{found.n_pairs:,} pairs: {lab.checkpoint.folder / SURVEY_FILE}")


def _own_split(lab: Lab, split: str) -> Sequence[Pair]:
    try:
        corpus = load_own(lab.checkpoint.corpus_config, lab.checkpoint.folder)
    except AbsentCorpus as error:
        raise AbsentCorpus(f"{error}; name a file of pairs with --pairs") from None
    splits = {"validation": corpus.validation, **corpus.held_out}
    if split not in splits:
        raise ValueError(f"{lab.name} has no split {split!r}; choose one of: {', '.join(splits)}")
    return splits[split]


def _short_enough(
    lab: Lab, file: PairFile, report: CleaningReport, pairs: Sequence[Pair]
) -> tuple[Sequence[Pair], int]:
    """Returns the pairs of a file that fit into the model, and how many lines cannot be scored, each told with its
    number."""
    most = lab.model.config.max_length
    overlong = {pair for pair in pairs if not fits(pair, lab.tokenizer, most)}
    told = dict.fromkeys(file.lines_of(overlong), f"longer than the {most:,} tokens that {lab.name} takes")
    for reason in _LOST:
        told |= dict.fromkeys(report.lines.get(reason, ()), REASONS[reason])
    for line in sorted(told):
        print(f"line {line:,}: {told[line]}, left out", file=sys.stderr)
    lost = len(overlong) + sum(report.dropped.get(reason, 0) for reason in _LOST)
    return [pair for pair in pairs if pair not in overlong], lost


def _bleu(found: Score | None) -> dict[str, float | str | None]:
    """Returns the entries of BLEU, or why there is none."""
    if found is None:
        return {"bleu": None, "bleu_reason": NO_BLEU}
    return {"bleu": found.value, "bleu_signature": found.signature}


def _n_words(text: str) -> int:
    """Words without punctuation."""
    return sum(any(map(str.isalnum, word)) for word in words(text))


def _of_split(pairs: Sequence[Pair], split: str | None) -> Sequence[Pair]:
    if split not in (None, *get_args(Split)):
        raise ValueError(f"a file has no split {split!r}; choose one of: {', '.join(get_args(Split))}")
    return [pair for pair in pairs if split is None or split_of(pair.source) == split]


def _print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False))
