"""Measures decoding against transformers' Marian `generate` and CTranslate2, with the same weights, on a quiet machine.

    python benchmarks/decoding.py [--model NAME] [--threads 1 2] [--repeats N]

The model is exported to both libraries and all three write the same number of tokens for the same sentences (no end
before --length). Rounds alternate; a row gives each one's best round and the ratios. Also printed: seconds of processor
time, which a busy machine disturbs less, and what a step of ours consists of.
"""

import argparse
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")

import ctranslate2
import torch
from arguments import read_options
from torch import Tensor
from transformers import MarianMTModel
from transformers.utils import logging as their_logging

from transformer.checkpoints.engines import ctranslate2 as to_ctranslate2
from transformer.checkpoints.engines import marian
from transformer.decoding.beam import beam_search
from transformer.decoding.greedy import Constraints, greedy
from transformer.lab import Lab, load

SENTENCES = (
    "The animal did not cross the street because it was too tired.",
    "The animal did not cross the street because it was too wide.",
)
SETTINGS = ((1, 1), (32, 1), (8, 4))
"""Batch and beam."""


def main() -> None:
    """Prints a table for each number of threads, and what a step consists of."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="pronouns-en-fr")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--length", type=int, default=20)
    asked = read_options(parser, smoke={"threads": [1], "repeats": 1, "length": 3})
    logging.disable(logging.WARNING)
    their_logging.set_verbosity_error()
    lab = load(asked.model)
    with tempfile.TemporaryDirectory() as folder:
        marian.export(lab.checkpoint, Path(folder) / "marian")
        to_ctranslate2.export(lab.checkpoint, Path(folder) / "ct2")
        theirs = MarianMTModel.from_pretrained(Path(folder) / "marian").eval()
        for threads in asked.threads:
            torch.set_num_threads(threads)
            translator = ctranslate2.Translator(
                str(Path(folder) / "ct2"), compute_type="float32", intra_threads=threads, inter_threads=1
            )
            print(
                f"{asked.model}, {asked.length} tokens each, threads: {threads}, best of {asked.repeats}; milliseconds"
            )
            race(lab, theirs, translator, asked)
    torch.set_num_threads(asked.threads[0])
    explain(lab, asked.length)


def race(lab: Lab, theirs: MarianMTModel, translator: ctranslate2.Translator, asked: argparse.Namespace) -> None:
    """Prints a line for each setting."""
    print(
        f"{'batch':>5} {'beam':>4} {'ours':>8} {'Marian':>8} {'CT2':>8} {'Marian/ours':>12} {'CT2/ours':>9}   processor"
    )
    for batch, beam in SETTINGS:
        ids = [[*lab.tokenizer.encode(SENTENCES[row % 2]), lab.model.config.eos_id] for row in range(batch)]
        runs = (
            ours_of(lab, torch.tensor(ids), beam, asked.length),
            marian_of(theirs, torch.tensor(ids), beam, asked.length),
            ctranslate2_of(translator, [[lab.tokenizer.piece(t) for t in row] for row in ids], beam, asked.length),
        )
        wall, processor = fastest(runs, asked.repeats)
        print(
            f"{batch:5} {beam:4} {1e3 * wall[0]:8.2f} {1e3 * wall[1]:8.2f} {1e3 * wall[2]:8.2f} "
            f"{wall[1] / wall[0]:12.2f} {wall[2] / wall[0]:9.3f}   "
            f"{processor[1] / processor[0]:.2f} {processor[2] / processor[0]:.3f}",
            flush=True,
        )


def ours_of(lab: Lab, source: Tensor, beam: int, length: int) -> Callable[[], object]:
    """Our greedy or beam search, no end before `length` tokens."""
    rules = Constraints(min_length=length)
    if beam == 1:
        return lambda: list(greedy(lab.model, source, max_length=length, constraints=rules))
    return lambda: list(
        beam_search(lab.model, source, size=beam, max_length=length, alpha=1.0, norm="length", constraints=rules)
    )


def marian_of(theirs: MarianMTModel, source: Tensor, beam: int, length: int) -> Callable[[], object]:
    """`generate`, cached, to the same length."""
    options = dict(num_beams=beam, min_length=length + 1, max_length=length + 1, do_sample=False, early_stopping=True)
    return lambda: theirs.generate(source, attention_mask=torch.ones_like(source), **options)


def ctranslate2_of(
    translator: ctranslate2.Translator, pieces: list[list[str]], beam: int, length: int
) -> Callable[[], object]:
    """CTranslate2's search to the same length."""
    options = dict(beam_size=beam, min_decoding_length=length, max_decoding_length=length)
    return lambda: translator.translate_batch(pieces, max_batch_size=len(pieces), **options)


def fastest(runs: tuple[Callable[[], object], ...], repeats: int) -> tuple[list[float], list[float]]:
    """The best wall time and the best processor time of each, rounds alternating; one round warms up."""
    wall, processor = [[float("inf")] * len(runs) for _ in range(2)]
    for round_ in range(repeats + 1):
        for index, run in enumerate(runs):
            start, used = time.perf_counter(), time.process_time()
            run()
            if round_:
                wall[index] = min(wall[index], time.perf_counter() - start)
                processor[index] = min(processor[index], time.process_time() - used)
    return wall, processor


def explain(lab: Lab, length: int) -> None:
    """Prints what limits a step at batch 1: the operators called per step, and the share of CPU time in products."""
    source = torch.tensor([[*lab.tokenizer.encode(SENTENCES[0]), lab.model.config.eos_id]])
    run = ours_of(lab, source, 1, length)
    run()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
        run()
    events = seen.key_averages()
    total = sum(event.self_cpu_time_total for event in events)
    products = sum(
        event.self_cpu_time_total for event in events if event.key in ("aten::addmm", "aten::mm", "aten::bmm")
    )
    calls = sum(event.count for event in events)
    print(f"a step at batch 1: {calls / length:.0f} operators; {products / total:.0%} of their time is in products")
    for event in sorted(events, key=lambda event: -event.self_cpu_time_total)[:8]:
        print(f"  {event.key:32} {event.count / length:6.1f} calls {event.self_cpu_time_total / total:6.1%}")


if __name__ == "__main__":
    main()
