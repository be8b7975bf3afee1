"""Checks of a plan before it is started: its corpus counted again, its model built, its schedule evaluated."""

import math
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor
from torch.nn.functional import cross_entropy

from transformer.analysis.checks import Check, agree
from transformer.analysis.training.memory import Memory
from transformer.analysis.training.run_checks import schedule_share
from transformer.config import AnyModelConfig, TrainConfig
from transformer.data.cleaning import MAX_CHARACTERS, Malformed, Row
from transformer.data.corpora import Corpus
from transformer.data.pair_files import PairFile
from transformer.data.statistics import MOST_PAIRS, spaced
from transformer.model.families import AnyModel, build_model, count_parameters
from transformer.text.pairs import words
from transformer.text.tokenizer import Tokenizer
from transformer.training.optimizer import build_optimizer

_LOOKED_AT = 10_000
LARGEST = 20_000_000
"""The most parameters of a model that is built for a check; a larger one would take seconds and gigabytes."""


def check_lengths(
    corpus: Corpus,
    n_pairs: int,
    tokenizer: Tokenizer,
    bars: Sequence[Mapping[str, float]],
    means: Float[ndarray, " side"],
    longest: Int[ndarray, " side"],
) -> Iterator[Check]:
    """Checks each side's bars, by the lengths that they stand for ("3" or "3 to 4"), with mean and longest length."""
    pairs = spaced(corpus.train, n_pairs)
    how = "training pairs taken again, evenly spaced; difference"
    yield agree("The number of counted pairs is right", n_pairs, min(len(corpus.train), MOST_PAIRS), 0, how)
    for index, (name, shown) in enumerate(zip((corpus.source_name, corpus.target_name), bars, strict=True)):
        side = ("source", "target")[index]
        lengths = [len(tokenizer.encode(getattr(pair, side))) + 1 for pair in pairs]
        counts = Counter(lengths)
        again = [100 * sum(counts[length] for length in _lengths(label)) / len(pairs) for label in shown]
        how = f"{len(pairs):,} sentences tokenized again and counted one by one; largest difference, per cent"
        yield agree(f"The bars of {name} are the shares of each length", list(shown.values()), again, 1e-9, how)
        how = "the heights added up; distance from 100 per cent"
        yield Check(f"The bars of {name} hold every sentence", abs(math.fsum(shown.values()) - 100), 1e-9, how)
        own, how = [math.fsum(lengths) / len(lengths), max(lengths)], "the same lengths; tokens"
        yield agree(f"{name} has this mean and longest length", [means[index], longest[index]], own, 1e-9, how)


def _lengths(label: str) -> range:
    first, _, last = label.partition(" to ")
    return range(int(first), int(last or first) + 1)


def check_splits(corpus: Corpus) -> Iterator[Check]:
    """Checks that no source sentence of training is in another split."""
    trained = {pair.source for pair in spaced(corpus.train, _LOOKED_AT)}
    for split, pairs in {"validation": corpus.validation, **corpus.held_out}.items():
        others = spaced(pairs, _LOOKED_AT)
        how = f"{len(trained):,} training sources looked for among {len(others):,}; found"
        common = sum(pair.source in trained for pair in others)
        yield Check(f"No source sentence of training is in {split}", common, 0, how)


def check_file(file: PairFile, sizes: Mapping[str, int], rows: Mapping[str, int]) -> Iterator[Check]:
    """Checks how many rows of a file were used and dropped for each reason, and how many pairs each split has.

    Cleans its rows once more by rules written out here; splits by CRC-32 as `corpus_snapshot.SPLIT_RULE` has it.
    """
    counts, splits = _counted(file.rows)
    how = f"{file.name} read again row by row"
    if rows:
        again = [counts[name] for name in rows]
        yield agree("Rows read, used and dropped", list(rows.values()), again, 0, how)
    names = ("train", "validation", "random")
    shown, again = [sizes.get(split, 0) for split in names], [splits[split] for split in names]
    yield agree("Pairs in each split of the file", shown, again, 0, f"{how}; each source's CRC-32 modulo 20")


def _counted(rows: Iterable[Row]) -> tuple[Counter[str], Counter[str]]:
    counts, splits, seen = Counter[str](), Counter[str](), Counter[tuple[str, str]]()
    for row in rows:
        counts["read"] += 1
        reason = "malformed"
        if not isinstance(row, Malformed):
            source, target = (
                " ".join(unicodedata.normalize("NFC", side[:100_000].replace("\ufeff", "")).split()) for side in row
            )
            seen[source, target] += 1
            reason = (
                "too_long"
                if max(len(source), len(target)) > MAX_CHARACTERS
                else "empty"
                if not words(source) or not words(target)
                else "duplicate"
                if seen[source, target] > 1
                else "kept"
            )
            if reason == "kept":
                rest = zlib.crc32(source.encode()) % 20
                splits["validation" if rest == 0 else "random" if rest == 1 else "train"] += 1
        counts[reason] += 1
    return counts, splits


def check_sizes(config: AnyModelConfig, train: TrainConfig, parameters: int, memory: Memory) -> Iterator[Check]:
    """Checks that a model of these settings, built for this alone, has so many parameters and takes so many bytes.

    It takes one step of the optimiser on a short sentence; its tensors are then measured. A model over LARGEST is built
    without numbers, and its gradients and means are taken to be as large as the weights that they belong to.
    """
    is_small = count_parameters(config) <= LARGEST
    with torch.device("cpu" if is_small else "meta"):
        model = build_model(config).train()
    own = list(model.parameters())  # a shared one is listed once
    how = "a model built for this check; each number of it counted once"
    yield agree("Parameters", parameters, sum(parameter.numel() for parameter in own), 0, how)
    gradients, means = own, [*own, *_squared(model, train)]
    how = f"a model without numbers, as it has over {LARGEST:,} parameters; bytes"
    if is_small:
        optimizer = build_optimizer(model, train)
        ids = torch.full((1, min(8, config.max_length)), 3)
        mask = torch.ones_like(ids, dtype=torch.bool)
        cross_entropy(model(ids, ids, mask, mask).flatten(0, 1), ids.flatten()).backward()
        optimizer.step()
        gradients = [parameter.grad for parameter in own if parameter.grad is not None]
        means = [mean for state in optimizer.state.values() for name, mean in state.items() if name != "step"]
        how = "the tensors of that model measured after a step of the optimiser; bytes"
    for name, shown, tensors in (
        ("Weights", memory.weights, own),
        ("Gradients", memory.gradients, gradients),
        ("The optimiser's means", memory.optimizer, means),
    ):
        again = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        yield agree(f"{name} take so much memory", shown, again, 0, how)


def _squared(model: AnyModel, train: TrainConfig) -> list[Tensor]:
    """Lists the parameters whose squared gradients the optimiser averages too, by their names."""
    named = model.named_parameters()
    if train.optimizer == "adamw":
        return [parameter for _, parameter in named]
    layers = (".query.weight", ".key.weight", ".value.weight", ".output.weight", ".inner.weight", ".outer.weight")
    layers += ("start.weight", "combine.weight", ".mix.weight")  # of recurrent and convolutional models
    return [parameter for name, parameter in named if not name.endswith(layers)]


def check_schedule(steps: Int[ndarray, " point"], rates: Float[ndarray, " point"], train: TrainConfig) -> Check:
    """Checks that a learning rate is the schedule's, written as a minimum of two curves."""
    again = np.array([train.learning_rate * schedule_share(train, int(step)) for step in steps])
    how = f"the schedule's formula at {len(steps)} steps"
    return agree("The learning rate follows its schedule", rates, again, 1e-6 * train.learning_rate, how)
