"""The bottleneck: how much of a sentence can be read back from the one vector that a recurrent encoder makes of it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.checks import Check, agree
from transformer.analysis.positions.checks import check_interval
from transformer.analysis.positions.lengths import wilson
from transformer.analysis.reach.vector_probe import LengthProbe, VectorProbe
from transformer.analysis.reach.vector_probe_checks import check_probe
from transformer.figures import theme
from transformer.figures.heatmap import Side, square_matrix
from transformer.figures.lines import band, line
from transformer.figures.tables import column_table, matrix_table
from transformer.lab import Lab
from transformer.views.view import OF_FIGURE

Shows = Literal["positions", "lengths", "written"]


@dataclass(frozen=True)
class BottleneckData:
    """Counts of tested sentences, with Wilson's 95 % intervals for their shares; NaN and 0 past a sentence's end."""

    lengths: Int[ndarray, " length"]
    fitted: Int[ndarray, " length"]
    """Sentences that the probes were fitted on."""
    tested: Int[ndarray, " length"]
    right: Int[ndarray, "length position"]
    """Sentences whose token at a position was read back."""
    low: Float[ndarray, "length position"]
    high: Float[ndarray, "length position"]
    guessed: Int[ndarray, "length position"]
    """Sentences with the token that is most frequent at that position."""
    sentences: Int[ndarray, "2 length"]
    """Sentences that were read back whole, and those that the model wrote without a mistake."""
    sentences_low: Float[ndarray, "2 length"]
    sentences_high: Float[ndarray, "2 length"]


@dataclass(frozen=True, kw_only=True)
class Bottleneck:
    """The accuracy of linear probes on the fixed vector by the length of the sentence and the token's position, and
    beside it the model's own exact match by length, or that alone."""

    shows: Shows = field(default="positions", metadata=OF_FIGURE)
    name = "bottleneck"

    @property
    def explained(self) -> str:
        """The meaning of cells, or of lines."""
        if self.shows == "positions":
            return (
                "A linear probe is a small classifier that guesses from the vector alone which token stood at one "
                "position. A cell says how often it was right on sentences that it was not fitted on. It finds only "
                "what lies in the vector in a straight line, so the decoder may know more."
            )
        probes = "" if self.shows == "written" else "Beside it, the sentences that linear probes read back whole. "
        return (
            "A dot is the share of sentences of that length that the model writes without a mistake (exact match). "
            f"{probes}The band says how far off the share may be, as so few sentences were tested (Wilson's 95 % "
            "interval)."
        )

    def data(self, lab: Lab, found: VectorProbe) -> BottleneckData:
        """Takes the counts of every length, and their intervals."""
        lengths = np.array([each.length for each in found.lengths])
        tested = np.array([len(each.tested) for each in found.lengths])
        right, guessed = np.zeros((2, len(lengths), lengths.max()), dtype=int)
        low, high = np.full((2, *right.shape), np.nan)
        for row, each in enumerate(found.lengths):
            right[row, : each.length] = each.right
            guessed[row, : each.length] = [_guessed(each, place) for place in range(each.length)]
            low[row, : each.length], high[row, : each.length] = _intervals(each.right, len(each.tested))
        sentences = np.array([[each.whole for each in found.lengths], [each.exact for each in found.lengths]])
        ends = np.array([[wilson(int(k), int(n)) for k, n in zip(counts, tested, strict=True)] for counts in sentences])
        fitted = np.array([len(each.fitted) for each in found.lengths])
        return BottleneckData(lengths, fitted, tested, right, low, high, guessed, sentences, ends[..., 0], ends[..., 1])

    def figure(self, data: BottleneckData, *, dark: bool = False) -> go.Figure:
        """Draws a row of cells for each length, or sentences by their length."""
        return _cells(data, dark) if self.shows == "positions" else _lines(data, dark, self.shows == "lengths")

    def tables(self, data: BottleneckData) -> tuple[DataFrame, ...]:
        """Returns the counts and intervals, a row for each length."""
        rows = [f"length {length}" for length in data.lengths]
        places = [f"position {place}" for place in range(data.right.shape[1])]
        by_position = {"read back": data.right, "low 95 %": data.low, "high 95 %": data.high, "guessed": data.guessed}
        ends = np.column_stack((*data.sentences_low, *data.sentences_high))
        titles = ["read back", "written"]
        shares = dict(zip(titles, data.sentences, strict=True))
        return (
            column_table("sentences", rows, {"fitted": data.fitted, "tested": data.tested, **shares}),
            matrix_table(
                "sentences 95 %", ends, rows, [f"{title}, {end}" for end in ("low", "high") for title in titles]
            ),
            *(matrix_table(name, values, rows, places) for name, values in by_position.items()),
        )

    def checks(self, lab: Lab, found: VectorProbe, data: BottleneckData) -> Iterator[Check]:
        """Records the vectors again, applies the probes by other code, and solves the equation of each interval."""
        whole, exact = data.sentences
        counts = {"right": data.right, "guessed": data.guessed, "whole": whole, "exact": exact}
        yield from check_probe(lab.model, found, **counts)
        sizes = [(len(each.fitted[0][0]), len(each.fitted), len(each.tested)) for each in found.lengths]
        shown = np.column_stack((data.lengths, data.fitted, data.tested))
        yield agree("So many sentences of each length were read", shown, sizes, 0, "counted again")
        inside = np.array([[place < n for place in range(data.right.shape[1])] for n, _, _ in sizes])
        shown = np.isnan((data.low, data.high))
        yield agree("Each token has an interval", ~shown, [inside, inside], 0, "the tokens of each length counted out")
        tested = np.repeat(data.tested, inside.sum(axis=1))
        yield check_interval(data.right[inside], tested, data.low[inside], data.high[inside])
        both = np.tile(data.tested, 2)
        ends = data.sentences_low.ravel(), data.sentences_high.ravel()
        yield check_interval(data.sentences.ravel(), both, *ends)


def _cells(data: BottleneckData, dark: bool) -> go.Figure:
    """Draws the share read back at each position as a row of cells for each length."""
    share = np.where(np.isnan(data.low), np.nan, data.right / data.tested[:, None])
    texts = [
        [
            f"{length} tokens, position {place}<br>{data.right[row, place]} of {data.tested[row]} read back: "
            f"{share[row, place]:.0%}<br>95 %: {data.low[row, place]:.0%} to {data.high[row, place]:.0%}<br>"
            f"guessing: {data.guessed[row, place] / data.tested[row]:.0%}"
            if place < length
            else ""
            for place in range(data.right.shape[1])
        ]
        for row, length in enumerate(data.lengths.tolist())
    ]
    written = [["" if np.isnan(value) else f"{100 * value:.0f}" for value in row] for row in share.tolist()]
    labels = [str(length) for length in data.lengths]
    places = [str(place) for place in range(data.right.shape[1])]
    return square_matrix(
        share,
        texts,
        Side(labels, max(map(len, labels)), "tokens in the sentence"),
        Side(places, max(map(len, places)), "position in the sentence"),
        scale=theme.sequential(dark),
        limits=(0.0, 1.0),
        legend="share read back; in cells, %",
        written=written,
        dark=dark,
    )


def _lines(data: BottleneckData, dark: bool, with_probes: bool) -> go.Figure:
    """Draws sentences that the model wrote, and those that were read back whole, by their length."""
    traces = []
    names = ("read back whole by linear probes", "written by the model without a mistake")
    for index, name in enumerate(names):
        if index == 0 and not with_probes:
            continue
        style = index if with_probes else 0
        colour = theme.run_colour(style, dark)
        right, low, high = data.sentences[index], data.sentences_low[index], data.sentences_high[index]
        says = (
            f"%{{x}} tokens<br>%{{customdata[0]:.0f}} of %{{customdata[1]:.0f}} {name}: %{{y:.1f}} %<br>"
            "95 %: %{customdata[2]:.1f} to %{customdata[3]:.1f} %<extra></extra>"
        )
        numbers = np.stack((right, data.tested, 100 * low, 100 * high), axis=1)
        drawn = line(
            data.lengths, 100 * right / data.tested, colour, name=name, dash=("solid", "dash")[style],
            mode="lines+markers", hovertemplate=says, customdata=numbers,
        )  # fmt: skip
        traces += [band(data.lengths, 100 * low, 100 * high, colour), drawn]
    colours = theme.palette(dark)
    return theme.figure(
        traces,
        dark,
        xaxis={"title": {"text": "tokens in the sentence"}, "dtick": 1 if len(data.lengths) < 16 else None},
        yaxis={"title": {"text": "sentences, %"}, "range": [-2, 102], "showgrid": True, "gridcolor": colours.line},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        height=360,
        margin={"l": 56, "r": 12, "t": 56, "b": 48},
    )


def _intervals(right: Int[ndarray, " position"], count: int) -> Float[ndarray, "2 position"]:
    return np.array([wilson(int(each), count) for each in right]).T


def _guessed(each: LengthProbe, place: int) -> int:
    """Returns how often a tested sentence has the token at a place that is the most frequent one there in training."""
    fitted = Counter(sorted(source[place] for source, _ in each.fitted))
    ((frequent, _),) = fitted.most_common(1)
    return sum(source[place] == frequent for source, _ in each.tested)
