"""Measures how a recipe learns a part of a file of pairs, for comparisons between recipes.

    python benchmarks/file_recipes.py FILE --pairs 2000 [model.dropout=0.1 train.learning_rate=1e-3 ...]

Takes that many training pairs of the file at random (seed 0), the recipe that suits so many, and the changes named on
the command line; trains in one thread. Prints at each evaluation the step, seconds of processor time, validation loss
and BLEU, the rise of the loss when sources are exchanged between sentences, and the mean cosine between the encoder's
vectors of a sentence: near 1 and without a rise, the model ignores what it reads.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from arguments import read_options

from transformer.analysis.training.source_use import source_use
from transformer.config import CorpusConfig
from transformer.data.corpora import Corpus, corpus_tokenizer, load_corpus, suited_vocabulary
from transformer.data.file_recipes import file_recipe
from transformer.training.evaluation import fitting
from transformer.training.events import Evaluated
from transformer.training.loop import measured_precision, train_steps
from transformer.training.state import new_state


def main() -> None:
    """Prints a line for each evaluation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", metavar="FILE", nargs="?", help="a file of pairs; --smoke writes one if none is given")
    parser.add_argument("changes", nargs="*", metavar="SETTING=VALUE", default=[])
    parser.add_argument("--pairs", type=int)
    parser.add_argument("--steps", type=int, help="steps of training; without it, those of the recipe")
    options = read_options(parser, smoke={"pairs": 60, "steps": 2})
    torch.set_num_threads(1)
    if options.file is not None:
        _train(load_corpus(options.file), options)
    elif options.smoke:
        with tempfile.TemporaryDirectory() as folder:
            _train(load_corpus(_written(Path(folder) / "pairs.tsv")), options)
    else:
        parser.error("name a FILE of pairs")


def _written(path: Path) -> str:
    path.write_text("".join(f"the word{number} is here\tle mot{number} est ici\n" for number in range(400)))
    return str(path)


def _train(corpus: Corpus, options: argparse.Namespace) -> None:
    if options.pairs is not None:
        pairs = random.Random(0).sample(corpus.train, options.pairs)
        corpus = replace(corpus, train=tuple(pairs), vocab_size=suited_vocabulary(len(pairs)))
    changes = dict(change.split("=") for change in options.changes)
    tokenizer = corpus_tokenizer(corpus, CorpusConfig(**_changed("corpus", changes)))
    recipe = file_recipe(corpus, tokenizer)
    model = replace(recipe.model, vocab_size=tokenizer.vocab_size, **_changed("model", changes))
    train = replace(recipe.train, device="cpu", threads=1, **_changed("train", changes))
    if options.steps is not None:
        train = replace(train, max_steps=options.steps)
    state = new_state(model, train, torch.device("cpu"))
    precision = measured_precision(state, train, corpus, tokenizer)
    print(f"{state.model.n_parameters():,} parameters, {len(corpus.train):,} pairs, {precision}")
    pairs, began = fitting(corpus.validation, tokenizer, model.max_length, 64), time.process_time()
    for event in train_steps(state, train, corpus, tokenizer, precision=precision):
        if isinstance(event, Evaluated):
            state.model.eval()
            used = source_use(state.model, pairs, tokenizer)
            state.model.train()
            assert used is not None, "sources differ"
            print(
                f"step {event.step:6,} {time.process_time() - began:6.0f} s  loss {event.loss:.3f}  "
                f"BLEU {event.bleu or 0:4.1f}  rise {used.rise:.3f}  cosine {used.cosine:.4f}",
                flush=True,
            )


def _changed(section: str, changes: dict[str, str]) -> dict[str, object]:
    found = {name.split(".")[1]: text for name, text in changes.items() if name.startswith(f"{section}.")}
    return {name: _value(text) for name, text in found.items()}


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


if __name__ == "__main__":
    main()
