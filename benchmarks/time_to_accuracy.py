"""Measures how soon each task is learned: steps and seconds to 99 % exact match, today's recipes against earlier ones.

    python benchmarks/time_to_accuracy.py [--seeds 5] [--steps N] [CORPUS ...]

Both train in turn, each seed in a process of its own with two threads. A model counts as right at the first of two
evaluations in a row with at least 99 % of the validation pairs translated exactly; the seconds, of the clock and of the
processor, are those of training and evaluating up to there. Pairs held out at random are scored with the final weights.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from arguments import read_options

from transformer.config import CorpusConfig, TrainConfig
from transformer.data.corpora import corpus_tokenizer, load_corpus
from transformer.data.recipes import RECIPES
from transformer.training.evaluation import evaluate
from transformer.training.events import Evaluated
from transformer.training.loop import train_steps
from transformer.training.state import new_state

RIGHT = 0.99
_ADAM = TrainConfig(
    max_steps=600, schedule="cosine", learning_rate=3e-3, warmup_steps=50, beta2=0.99, evaluate_every=25
)
EARLIER: dict[str, TrainConfig] = {
    "copy": _ADAM,
    "reverse": _ADAM,
    "sort": _ADAM,
    "addition": replace(_ADAM, max_steps=1_500),
    "dates": replace(_ADAM, max_steps=800),
    "pronouns-en-fr": replace(
        _ADAM,
        max_steps=1_000,
        learning_rate=2e-3,
        warmup_steps=100,
        beta2=0.98,
        batch_tokens=2_048,
        evaluate_every=50,
    ),
}
"""The recipes with Adam and a cosine, up to November 2026, evaluated as often as today's; the models were the same."""
FIGURES = ("steps", "seconds", "processor_s", "whole_s", "held_out")


def learned(corpus: str, config: TrainConfig, n_pairs: int | None) -> dict[str, Any]:
    """Trains once; the figures, where steps and seconds are None if the model was never right."""
    text = load_corpus(corpus)
    tokenizer = corpus_tokenizer(text, CorpusConfig(name=corpus))
    model = replace(RECIPES[corpus].model, vocab_size=tokenizer.vocab_size)
    config = replace(config, precision="float32", device="cpu", evaluate_pairs=n_pairs or config.evaluate_pairs)
    state = new_state(model, config, torch.device("cpu"))
    begin, began = time.monotonic(), _processor_s()
    before: dict[str, Any] = {}
    found: dict[str, Any] = {"steps": None, "seconds": None, "processor_s": None}
    for event in train_steps(state, config, text, tokenizer):
        if not isinstance(event, Evaluated):
            continue
        right = event.exact_match >= RIGHT
        if right and before and found["steps"] is None:
            found = before
        spent = {"seconds": time.monotonic() - begin, "processor_s": _processor_s() - began}
        before = {"steps": event.step, **spent} if right else {}
    held_out = evaluate(state.model, text.held_out["random"][:n_pairs], tokenizer).exact_match
    return {**found, "whole_s": spent["seconds"], "held_out": held_out}


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _in_a_process(corpus: str, which: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    arguments = [sys.executable, __file__, corpus, "--only", which, "--seed", str(seed)]
    for name in ("steps", "pairs"):
        if (number := getattr(options, name)) is not None:
            arguments += [f"--{name}", str(number)]
    return json.loads(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)


def _text(values: list[float | None]) -> str:
    """The median and the spread; how many are missing."""
    there = [value for value in values if value is not None]
    missing = f", {len(values) - len(there)} never" if len(there) < len(values) else ""
    if not there:
        return "never"
    digits = 3 if max(there) <= 1 else 1 if max(there) < 100 else 0
    return f"{median(there):.{digits}f} ({min(there):.{digits}f} to {max(there):.{digits}f}){missing}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="*", metavar="CORPUS", default=list(EARLIER))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", choices=("earlier", "today"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, help="steps of training; without it, those of each recipe")
    parser.add_argument("--pairs", type=int, help="pairs of each evaluation; without it, those of the recipe")
    options = read_options(parser, smoke={"corpora": ["reverse"], "seeds": 1, "steps": 1, "pairs": 10})
    if options.only:
        (corpus,) = options.corpora
        config = EARLIER[corpus] if options.only == "earlier" else RECIPES[corpus].train
        if options.steps is not None:
            config = replace(config, max_steps=options.steps)
        torch.set_num_threads(2)
        print(json.dumps(learned(corpus, replace(config, seed=options.seed), options.pairs)))
        return
    print(f"| corpus | recipe | {' | '.join(FIGURES)} |\n|---|---|{'---|' * len(FIGURES)}")
    for corpus in options.corpora:
        found: dict[str, list[dict[str, Any]]] = {"earlier": [], "today": []}
        for seed in range(options.seeds):
            for which, runs in found.items():
                runs.append(_in_a_process(corpus, which, seed, options))
        for which, runs in found.items():
            cells = [_text([run[figure] for run in runs]) for figure in FIGURES]
            print(f"| {corpus} | {which} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
