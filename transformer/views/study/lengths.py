"""Exact match by the length of the sentence: of the paired study's kinds of positions, and of one model."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.checks import Check, agree
from transformer.analysis.positions.checks import check_interval
from transformer.analysis.positions.lengths import LengthScore, scores_by_length, wilson
from transformer.checkpoints.settings import CONFIG_FILE
from transformer.data.batches import encode_sources
from transformer.data.tasks import MAX_SYMBOLS, pairs_of_length
from transformer.decoding.greedy import greedy, outputs
from transformer.experiments.plan import LENGTH_TASKS, Study
from transformer.experiments.study import STUDY_FILE, study_folder
from transformer.experiments.verdict import JUST_BEYOND, Share, length_curves, share_of
from transformer.figures.positions.study import ByLength, lengths_figure
from transformer.figures.tables import column_table
from transformer.lab import Lab
from transformer.model.position_extension import Extension, extended
from transformer.model.precise import in_double
from transformer.text.pairs import words

Edges = Sequence[tuple[int, int]]
"""The first and the last length of some ranges; one that ends before it begins is left out."""


@dataclass(frozen=True)
class LengthRange:
    """Exact match over a range of lengths, for each curve."""

    first: int
    last: int
    shares: tuple[Share, ...]


@dataclass(frozen=True)
class LengthsData:
    """Exact match by the length of the sentence."""

    kinds: tuple[str, ...]
    """All kinds of positions, in the order of their colours."""
    curves: tuple[ByLength, ...]
    trained_to: int
    """Symbols in the longest training sentence."""
    ranges: tuple[LengthRange, ...]


class _Lengths:
    """The figure and the tables of exact match by length; subclasses measure it."""

    def figure(self, data: LengthsData, *, dark: bool = False) -> go.Figure:
        """A line with its interval for each curve; the lengths of training are shaded."""
        return lengths_figure(data.curves, data.kinds, trained_to=data.trained_to, dark=dark)

    def tables(self, data: LengthsData) -> tuple[DataFrame, ...]:
        """Counts and intervals, by length and by range."""
        by_length = (
            column_table(
                curve.name,
                [f"length {length}" for length in curve.length],
                _columns(curve.right, curve.count, curve.low, curve.high),
            )
            for curve in data.curves
        )
        names = [curve.name for curve in data.curves]
        by_range = (
            column_table(
                f"lengths {each.first} to {each.last}",
                names,
                _columns(*map(np.array, zip(*map(astuple, each.shares), strict=True))),
            )
            for each in data.ranges
        )
        return (*by_length, *by_range)


def _columns(right: ndarray, count: ndarray, low: ndarray, high: ndarray) -> dict[str, ndarray]:
    """Returns the columns of a table of counts and their intervals."""
    return {"right": right, "of": count, "low 95 %": low, "high 95 %": high}


@dataclass(frozen=True, kw_only=True)
class StudyLengths(_Lengths):
    """Exact match by length for each kind of positions, all seeds together."""

    corpus: str
    past: Extension
    """The extension of a learned table past its last trained row."""
    name = "{corpus}-lengths-{past}"

    def data(self, study: Study) -> LengthsData:
        """Counts and Wilson's intervals; ValueError where no run has tested lengths."""
        found = {curve.positions: curve.scores for curve in length_curves(study, self.corpus, self.past)}
        if not found:
            raise ValueError(f"no run on {self.corpus} has tested lengths yet")
        first, last = study.plan.trained_to, study.plan.tested_to
        edges = [(1, first), (first + 1, min(first + JUST_BEYOND, last)), (first + 1, last)]
        return _lengths(study.plan.positions, found, first, edges)

    def checks(self, study: Study, data: LengthsData) -> Iterator[Check]:
        """Counts again from the study's file, and solves the equation of each interval."""
        content = study_content(study)
        trained_to, tested_to = content["plan"]["trained_to"], content["plan"]["tested_to"]
        yield agree("Training went up to this length", data.trained_to, trained_to, 0, "file read again")
        counted = {curve.name: counts_in_file(content, self.corpus, curve.name, self.past) for curve in data.curves}
        near = min(trained_to + JUST_BEYOND, tested_to)
        edges = [(1, trained_to), (trained_to + 1, near), (trained_to + 1, tested_to)]
        yield from _check_lengths(data, counted, edges, "runs in the study's file summed again")


@dataclass(frozen=True, kw_only=True)
class ModelLengths(_Lengths):
    """One model's exact match by length, on strings that it was not trained on."""

    past: Extension
    """The extension of a learned table past its last trained row."""
    longest: int
    """Symbols in the longest strings."""
    pairs: int
    """Strings of each length, where there are so many."""
    name = "lengths-{past}"
    explained = (
        "How many strings of each length the model gets right. Shaded are the lengths that training showed it. What "
        "happens beyond them depends on its positions: it has never seen those numbers, or never learned those rows of "
        "its table. Whiskers are 95 % intervals."
    )

    def data(self, lab: Lab) -> LengthsData:
        """Counts and Wilson's intervals; ValueError for a model whose sentences have no given lengths."""
        corpus, config = lab.checkpoint.settings.corpus, lab.transformer.config
        if corpus.name not in LENGTH_TASKS:
            raise ValueError(f"sentences of {corpus.name} cannot be generated at a given length")
        trained_to = corpus.longest or MAX_SYMBOLS
        pairs = {n: pairs_of_length(corpus.name, n, self.pairs) for n in range(1, self.longest + 1)}
        found = scores_by_length(lab.transformer, lab.tokenizer, pairs, self._how(lab), trained=trained_to + 1)
        edges = [(1, min(trained_to, self.longest)), (trained_to + 1, self.longest)]
        return _lengths((config.positions,), {config.positions: found}, trained_to, edges)

    def checks(self, lab: Lab, data: LengthsData) -> Iterator[Check]:
        """Translates every string again, in double precision and without a cache."""
        settings = json.loads((lab.checkpoint.folder / CONFIG_FILE).read_text(encoding="utf-8"))
        trained_to = settings["corpus"]["longest"] or MAX_SYMBOLS
        yield agree("Training went up to this length", data.trained_to, trained_to, 0, "settings read again")
        counted = {n: self._translated(lab, n, trained_to) for n in range(1, self.longest + 1)}
        edges = [(1, min(trained_to, self.longest)), (trained_to + 1, self.longest)]
        how = "every string translated again, in double precision and without a cache"
        yield from _check_lengths(data, {curve.name: counted for curve in data.curves}, edges, how)

    def _how(self, lab: Lab) -> Extension:
        return self.past if lab.transformer.config.positions == "learned" else "noise"

    def _translated(self, lab: Lab, length: int, trained_to: int) -> tuple[int, int]:
        """Returns (right, count) of the strings of a length."""
        pairs = pairs_of_length(lab.checkpoint.settings.corpus.name, length, self.pairs)
        if not pairs:
            return 0, 0
        try:
            model = in_double(extended(lab.transformer, length + 1, self._how(lab), trained=trained_to + 1))
        except ValueError:
            return 0, 0
        source, mask = encode_sources([pair.source for pair in pairs], lab.tokenizer, max_length=length + 1)
        written = outputs(model, greedy(model, source, mask, max_length=length + 1, cache=False))
        answers = [words(lab.tokenizer.decode(ids)) for ids in written]
        return sum(answer == words(pair.target) for answer, pair in zip(answers, pairs, strict=True)), len(pairs)


def _lengths(
    kinds: Sequence[str], found: dict[Any, tuple[LengthScore, ...]], trained_to: int, edges: Edges
) -> LengthsData:
    curves = []
    for name, scores in found.items():
        length, right, count = (np.array([getattr(s, field) for s in scores]) for field in ("length", "right", "count"))
        low, high = np.array([wilson(score.right, score.count) for score in scores]).T
        curves.append(ByLength(name, length, right, count, low, high))
    ranges = tuple(
        LengthRange(first, last, tuple(share_of(scores, first, last) for scores in found.values()))
        for first, last in _nonempty(edges)
    )
    return LengthsData(tuple(kinds), tuple(curves), trained_to, ranges)


def _check_lengths(
    data: LengthsData, counted: dict[str, dict[int, tuple[int, int]]], edges: Edges, how: str
) -> Iterator[Check]:
    """Compares counts with those made again, by length and by range, and solves the equation of each interval."""
    for curve in data.curves:
        shown = np.column_stack((curve.length, curve.right, curve.count))
        again = [(length, *pair) for length, pair in counted[curve.name].items()]
        yield agree(f"{curve.name}: as many strings of each length are right", shown, again, 0, how)
        yield check_interval(curve.right, curve.count, curve.low, curve.high)
    for each in data.ranges:
        again = [
            [sum(pair[i] for length, pair in counts.items() if each.first <= length <= each.last) for i in (0, 1)]
            for counts in (counted[curve.name] for curve in data.curves)
        ]
        right, count, low, high = np.array(list(map(astuple, each.shares))).T
        yield agree(f"Right of lengths {each.first} to {each.last}", np.stack((right, count), axis=1), again, 0, how)
        yield check_interval(right, count, low, high)
    shown = [(each.first, each.last) for each in data.ranges]
    yield agree("The ranges meet where training ended", shown, _nonempty(edges), 0, "lengths counted")


def _nonempty(edges: Edges) -> list[tuple[int, int]]:
    return [(first, last) for first, last in edges if first <= last]


def study_content(study: Study) -> dict[str, Any]:
    """Reads the study's file again, as it is."""
    return json.loads((study_folder(study.name) / STUDY_FILE).read_text(encoding="utf-8"))


def counts_in_file(content: dict[str, Any], corpus: str, positions: str, past: Extension) -> dict[int, tuple[int, int]]:
    """Returns (right, count) at each length of a kind's finished runs, from the content of a study's file."""
    found: dict[int, tuple[int, int]] = {}
    for run in content["runs"]:
        if (run["corpus"], run["positions"], run["state"]) != (corpus, positions, "done"):
            continue
        name = "" if positions != "learned" else "noise" if past == "refuse" else past
        for length, right, count in run["lengths"].get(name, ()):
            if positions == "learned" and past == "refuse" and length > content["plan"]["trained_to"]:
                right = count = 0
            before = found.get(length, (0, 0))
            found[length] = before[0] + right, before[1] + count
    return found
