"""Maps of all heads at once, of their distances to each other, and of the cost of hiding each source token."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.axes import framed
from transformer.figures.heads.labels import Sublayer, head_name
from transformer.figures.heatmap import Limits, Side, Texts, check_labels, square_matrix, square_size
from transformer.figures.labels import hover_label, typeset
from transformer.figures.lines import points
from transformer.model.kinds import KindName

_EFFECT_WIDTH, _NUMBERED_BRIEFLY = 440.0, 26.0
"""Pixels that the cells of an effect map share, and those of a cell into which a number with one decimal fits."""
_NEGLIGIBLE = 0.05
"""A smaller effect has no number."""


def head_map(
    values: Float[ndarray, "block head"],
    sublayers: Sequence[Sublayer],
    hover_lines: Sequence[Sequence[str]] | None = None,
    *,
    quantity: str,
    limits: Limits,
    diverging: bool = False,
    chosen: tuple[int, int] | None = None,
    dark: bool = False,
) -> go.Figure:
    """Draws a cell for each head, sublayers being rows; NaN leaves a cell empty. A selected point's x is the head, its
    y the row. `diverging` centres the colours on 0. Without `hover_lines` a cell says its number.
    """
    n_heads = values.shape[1]
    names = [sublayer.name for sublayer in sublayers]
    check_labels(values, names, range(n_heads))
    lines = hover_lines or [[f"{quantity} {value:.6g}" for value in row] for row in values.tolist()]
    colours = [theme.kind_colour(sublayer.kind, dark) for sublayer in sublayers]
    texts = [
        [f"<b>{name} · head {head}</b><br>{line[head]}" for head in range(n_heads)]
        for name, line in zip(names, lines, strict=True)
    ]
    labels = [f'<span style="color:{colour}">{name}</span>' for name, colour in zip(names, colours, strict=True)]
    return square_matrix(
        values,
        texts,
        Side(labels, max(map(len, names))),
        Side([str(head) for head in range(n_heads)], 1, "head"),
        scale=theme.diverging(dark) if diverging else theme.sequential(dark),
        limits=limits,
        legend=quantity,
        above=[_click_targets(texts)],
        shapes=[] if chosen is None else [framed(*chosen, colour=colours[chosen[0]])],
        dark=dark,
    )


def similarity_map(
    distances: Float[ndarray, "head head"],
    names: Sequence[str],
    *,
    kind: KindName,
    sizes: Sequence[int],
    dark: bool = False,
) -> go.Figure:
    """Draws the distance of every two heads, 0 dark to 1 light; heads stand group by group, of these `sizes`."""
    check_labels(distances, names, names)
    texts = [
        [f"<b>{a}</b> and <b>{b}</b><br>distance {distances[i, j]:.3f}" for j, b in enumerate(names)]
        for i, a in enumerate(names)
    ]
    groups = [
        framed(start, start, rows=size, columns=size, colour=theme.kind_colour(kind, dark))
        for start, size in zip(accumulate(sizes, initial=0), sizes, strict=False)
        if size > 1
    ]
    longest = max(map(len, names))
    return square_matrix(
        distances, texts, Side(names, longest), Side(names, longest, "layer·head"), scale=theme.distances(dark),
        limits=(0.0, 1.0), legend="distance", shapes=groups, dark=dark,
    )  # fmt: skip


def matching_figure(
    distances: Float[ndarray, "head other"],
    heads: Sequence[tuple[int, int]],
    others: Sequence[tuple[int, int]],
    partners: Sequence[int | None],
    *,
    chosen: int | None = None,
    kind: KindName,
    names: tuple[str, str],
    dark: bool = False,
) -> go.Figure:
    """Draws the first model's heads as rows, the second's as columns; pairs are framed, the chosen row's boldly."""
    rows, columns = ([f"{layer}.{head}" for layer, head in side] for side in (heads, others))
    check_labels(distances, rows, columns)
    texts = [
        [
            f"{names[0]}: layer {a}, head {b}<br>{names[1]}: layer {c}, head {d}<br>distance {distances[i, j]:.6g}"
            + ("<br>paired" if partners[i] == j else "")
            for j, (c, d) in enumerate(others)
        ]
        for i, (a, b) in enumerate(heads)
    ]
    frames = [
        framed(row, column, colour=theme.kind_colour(kind, dark), width=3.5 if row == chosen else 1.5)
        for row, column in enumerate(partners)
        if column is not None
    ]
    sides = (
        Side(labels, max(map(len, labels), default=0), f"{name}: layer.head")
        for labels, name in zip((rows, columns), names, strict=True)
    )
    return square_matrix(
        distances, texts, *sides, scale=theme.distances(dark), limits=(0.0, 1.0), legend="distance", shapes=frames,
        dark=dark,
    )  # fmt: skip


def effect_map(
    effect: Float[ndarray, "target source"], targets: Sequence[str], sources: Sequence[str], *, dark: bool = False
) -> go.Figure:
    """Draws what each output token's log-probability loses without each source token: vermilion where it loses, blue
    where it gains."""
    check_labels(effect, targets, sources)
    reach = float(np.abs(effect).max(initial=0.0)) or 1.0
    texts = [
        [
            f"without <b>{hover_label(source)}</b><br><b>{hover_label(target)}</b> {loses(effect[row, column])}"
            for column, source in enumerate(sources)
        ]
        for row, target in enumerate(targets)
    ]
    written = [["" if abs(value) < _NEGLIGIBLE else typeset(f"{value:.1f}") for value in row] for row in effect]
    return square_matrix(
        effect, texts, Side.of_tokens(targets, "output token", dark),
        Side.of_tokens(sources, "hidden source token", dark), scale=theme.diverging(dark),
        limits=(-reach, reach), legend="nats lost", width=_EFFECT_WIDTH, written=written, room=_NUMBERED_BRIEFLY,
        dark=dark,
    )  # fmt: skip


def column_map(
    values: Float[ndarray, "head column"],
    heads: Sequence[str],
    columns: Sequence[str],
    *,
    quantity: str,
    limits: Limits = (0.0, 1.0),
    dark: bool = False,
) -> go.Figure:
    """Draws a row for each head (by its address) and a column for each quantity; NaN leaves a cell empty."""
    check_labels(values, heads, columns)
    names = [head_name(head) for head in heads]
    texts = [
        [f"<b>{name}</b><br>{column}: {value:.6g}" for column, value in zip(columns, line, strict=True)]
        for name, line in zip(names, values.tolist(), strict=True)
    ]
    scale = theme.diverging(dark) if limits[0] < 0 else theme.sequential(dark)
    rows, above = Side(names, max(map(len, names))), Side(columns, max(map(len, columns)))
    return square_matrix(values, texts, rows, above, scale=scale, limits=limits, legend=quantity, dark=dark)


def loses(nats: float) -> str:
    """Returns a loss in words, as in "loses 2 nats"; a negative loss is a gain."""
    return f"loses {nats:.3g} nats" if nats >= 0 else f"gains {-nats:.3g} nats"


def _click_targets(texts: Texts) -> dict[str, Any]:
    """Returns invisible points above the cells, since heatmaps report no clicks."""
    rows, columns = np.mgrid[: len(texts), : len(texts[0])]
    hidden = {"marker": {"opacity": 0}}
    square = {"symbol": "square", "size": square_size(len(texts[0])), "opacity": 0}
    said = [text for row in texts for text in row]
    return points(columns.ravel(), rows.ravel(), said, marker=square, selected=hidden, unselected=hidden)
