"""Compares the Train page's estimate for a run with the time the run then takes, on an idle machine.

    python benchmarks/estimate.py [CORPUS ...] [--steps N]

Each corpus with its recipe (reverse: tiny, pronouns-en-fr: small), trained to its end in a detached process as from
the page. The estimate holds where the last column lies within 25 %.
"""

import argparse
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from arguments import read_options

from pages.shared.background import Watcher
from pages.train import measuring
from pages.training.durations import Estimate, estimate_of
from transformer.config import CorpusConfig, TrainConfig
from transformer.data.corpora import corpus_tokenizer, load_corpus
from transformer.data.file_recipes import recipe_for
from transformer.runs import run_folder
from transformer.runs.benchmark import Benchmark
from transformer.runs.status import status


def settings(corpus: str, steps: int | None) -> TrainConfig:
    """Returns the corpus's recipe, with so many steps if a number is given."""
    train = recipe_for(CorpusConfig(name=corpus)).train
    return train if steps is None else replace(train, max_steps=steps)


def estimated(corpus: str, train: TrainConfig) -> Estimate:
    """Estimates a run from a few steps with these settings; raises RuntimeError if they cannot be measured."""
    config = CorpusConfig(name=corpus)
    text = load_corpus(config)
    tokenizer = corpus_tokenizer(text, config)
    model = replace(recipe_for(CorpusConfig(name=corpus)).model, vocab_size=tokenizer.vocab_size)
    work = measuring.work_of(model, train, config, text.examples[:3], alone=True)
    watcher = Watcher()
    measuring.begin(work, tokenizer, watcher)
    while (found := measuring.find(work)) is None:
        time.sleep(0.2)
    if not isinstance(found, Benchmark):
        raise RuntimeError(found)
    return estimate_of(found, train)


def taken(corpus: str, train: TrainConfig) -> tuple[float, float]:
    """Seconds of training, and seconds from the first step to the end of scoring."""
    run = run_folder.create_run(recipe_for(CorpusConfig(name=corpus)).model, train, CorpusConfig(name=corpus))
    run_folder.start(run)
    began = 0.0
    while (now := status(run)).active:
        if not began and now.phase == "training":
            began = time.monotonic()
        time.sleep(0.1)
    if now.state != "finished":
        raise RuntimeError(f"{run} {now.state}: {now.error}")
    return now.elapsed_s, time.monotonic() - began


def main(arguments: list[str]) -> None:
    """Prints a line a corpus."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="*", metavar="CORPUS", default=["reverse", "pronouns-en-fr"])
    parser.add_argument("--steps", type=int, help="steps of each run; without it, those of its recipe")
    options = read_options(parser, arguments, smoke={"corpora": ["reverse"], "steps": 10})
    measuring.LONGEST_S *= 10  # there is time
    print(f"{'corpus':16} {'training, s':>24} {'with scoring, s':>24} {'off by':>8}")
    for corpus in options.corpora:
        train = settings(corpus, options.steps)
        with tempfile.TemporaryDirectory() as folder:
            os.environ["ATTENTION_LAB_RUNS"] = folder
            foreseen = estimated(corpus, train)
            training, whole = taken(corpus, train)
        both = f"{foreseen.training_s:.1f} / {training:.1f}", f"{foreseen.total_s:.1f} / {whole:.1f}"
        print(
            f"{corpus:16} {both[0]:>24} {both[1]:>24} {100 * (foreseen.training_s / training - 1):>+7.0f}%", flush=True
        )


if __name__ == "__main__":
    main(sys.argv[1:])
