"""Experiments in figures: a metric over a factor with intervals, and findings against what a claim allows."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.axes import hover, panel, row_axis
from transformer.figures.labels import hover_label
from transformer.figures.lines import line
from transformer.figures.theme import run_colour

_DASHES = ("solid", "dash", "solid", "dot", "dashdot", "solid")
_ROW, _GAP, _EDGE = 26, 84, 8
"""Pixels of a finding's row, between two panels, and at the ends."""
_WIDEST = 1.15
"""The end of the axis of claims, on which an interval ends at 1."""
_CLAIM, _LINE = 48, 33
"""Pixels of a claim's row, and letters of a line below its title."""
_NAME, _MORE = 28, 14
"""Letters of a line of a finding's name, so that a phone has room for the numbers, and pixels of one more line."""
_EQUALS = "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"
"""Keeps "d_k = 64" on one line."""
SYMBOLS = ("circle", "x", "diamond-open", "square-open")
"""The marks of a finding that holds, fails, cannot be told, and is of models that have not learned."""


@dataclass(frozen=True)
class Curve:
    """A metric over a factor: the mean of the seeds at each level, with its interval (NaN where there is none)."""

    name: str
    x: Float[ndarray, " level"]
    mean: Float[ndarray, " level"]
    low: Float[ndarray, " level"]
    high: Float[ndarray, " level"]


@dataclass(frozen=True)
class Estimates:
    """Findings of one unit: each with its interval, what the claim allows, and its outcome as an index of SYMBOLS."""

    unit: str
    names: tuple[str, ...]
    estimate: Float[ndarray, " finding"]
    low: Float[ndarray, " finding"]
    high: Float[ndarray, " finding"]
    least: Float[ndarray, " finding"]
    most: Float[ndarray, " finding"]
    outcome: tuple[int, ...]


def curves_figure(
    curves: Sequence[Curve],
    names: Sequence[str],
    *,
    x_label: str,
    y_label: str,
    by_label: str,
    ticks: Sequence[str],
    joined: bool = True,
    log_x: bool = False,
    log_y: bool = False,
    dark: bool = False,
) -> go.Figure:
    """Draws points with whiskers for their intervals, joined by a line for each curve unless x has no order.

    `names` are all curves there may be, in their colours.
    """
    traces: list[dict[str, Any]] = []
    for curve in curves:
        place = names.index(curve.name)
        colour, name = run_colour(place, dark), curve.name
        known = ~np.isnan(curve.low) & ~np.isnan(curve.high)
        low = np.maximum(curve.low, curve.mean / 10) if log_y else curve.low  # a logarithm has no 0
        up, down = (np.where(known, ends, 0.0) for ends in (curve.high - curve.mean, curve.mean - low))
        says = f"{hover_label(name)}<br>{x_label}: %{{x}}<br>{y_label}: %{{y:.3g}}<extra></extra>"
        drawn = line(curve.x, curve.mean, colour, name=name, dash=_DASHES[place % len(_DASHES)], hovertemplate=says)
        bars = {"array": up, "arrayminus": down, "color": colour, "thickness": 1, "width": 4}
        traces.append(drawn | {"mode": "lines+markers" if joined else "markers", "error_y": bars})
    places = sorted({float(x) for curve in curves for x in curve.x})
    angles = [0, -30, -90]  # a name that ends at its tick: one that begins there may leave the figure, and is not drawn
    across = {
        "tickvals": places,
        "ticktext": list(ticks),
        "autotickangles": angles,
        "type": "log" if log_x else "linear",
    }
    return theme.figure(
        traces,
        dark,
        xaxis={"title": {"text": x_label}, "showline": True, "automargin": True, **across},
        yaxis={
            "title": {"text": y_label},
            "showgrid": True,
            "automargin": True,
            **({"type": "log", "dtick": 1, "exponentformat": "power"} if log_y else {}),
        },
        height=420,
        hovermode="closest",
        showlegend=by_label != x_label,
        legend={"title": {"text": f"{by_label}:"}},
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
    )


def findings_figure(panels: Sequence[Estimates], outcomes: Sequence[str], *, dark: bool = False) -> go.Figure:
    """Draws a row for each finding: its interval over the shaded range that the claim allows; a panel for each unit.

    The first row, which decides, has its name in bold.
    """
    colours = theme.palette(dark)
    inks = _inks(dark)
    found = sorted({outcome for each in panels for outcome in each.outcome})
    traces: list[dict[str, Any]] = []
    shapes: list[dict[str, Any]] = []
    layout: dict[str, Any] = {}
    wrapped = [[wrap(name.replace(" = ", _EQUALS), _NAME) for name in each.names] for each in panels]
    heights = [len(names) * (_ROW + _MORE * (max(map(len, names)) - 1)) for names in wrapped]
    inner = sum(heights) + _GAP * (len(panels) - 1)
    top = inner
    for number, (each, height) in enumerate(zip(panels, heights, strict=True), start=1):
        end = panel(number)
        low, high = _ends(each)
        for row, (least, most) in enumerate(zip(each.least, each.most, strict=True)):
            shapes.append(
                {
                    "type": "rect", "xref": f"x{end}", "yref": f"y{end}", "x0": max(least, low), "x1": min(most, high),
                    "y0": row - 0.36, "y1": row + 0.36, "fillcolor": colours.line, "opacity": 0.55, "layer": "below",
                    "line": {"width": 0},
                }
            )  # fmt: skip
        for index in found:
            rows = [row for row, outcome in enumerate(each.outcome) if outcome == index]
            dots = _dots(each, rows, inks[index], SYMBOLS[index], outcomes[index], end)
            traces.append(dots | {"showlegend": number == 1})
        domain = [max(0.0, (top - height) / inner), top / inner]
        names = ["<br>".join(parts) for parts in wrapped[number - 1]]
        if number == 1:
            names[0] = f"<b>{names[0]}</b>"
        layout[f"yaxis{end}"] = row_axis(names, domain=domain, automargin=True)
        layout[f"xaxis{end}"] = {
            "title": {"text": each.unit}, "range": [low, high], "anchor": f"y{end}", "showline": True,
            "showgrid": True, "automargin": True,
        }  # fmt: skip
        top -= height + _GAP
    margin = {"l": _EDGE, "r": _EDGE, "t": 36, "b": 44}
    height = inner + margin["t"] + margin["b"]
    return theme.figure(traces, dark, shapes=shapes, height=height, margin=margin, showlegend=True, **layout)


def claims_figure(
    titles: Sequence[str], units: Sequence[str], rows: Estimates, outcomes: Sequence[str], *, dark: bool = False
) -> go.Figure:
    """Draws a row for each claim: its deciding finding against the border of what the claim allows, which is 0.

    Each row has its own scale: the farther end of its interval lies at 1 or -1, what is allowed to the right of 0.
    """
    colours = theme.palette(dark)
    inks = _inks(dark)
    places = _scaled(rows)
    traces: list[dict[str, Any]] = []
    for index in sorted(set(rows.outcome)):
        says, own = outcomes[index], [row for row, outcome in enumerate(rows.outcome) if outcome == index]
        middle, low, high = (numbers[own] for numbers in places)
        texts = [
            f"{titles[row]}: {rows.names[row]}<br>{units[row]}<br>"
            f"{_short(rows.estimate[row])} ({_interval(rows, row)})<br>"
            f"the claim: {_allowed(rows.least[row], rows.most[row])}<br>{says}"
            for row in own
        ]
        traces.append(
            {
                "type": "scatter", "mode": "markers", "x": middle, "y": own, "name": says,
                "marker": {"color": inks[index], "symbol": SYMBOLS[index], "size": 9},
                "error_x": {"array": high - middle, "arrayminus": middle - low, "color": inks[index], "width": 4},
                **hover(texts),
            }
        )  # fmt: skip
    allowed = {
        "type": "rect", "xref": "x", "yref": "paper", "x0": 0, "x1": _WIDEST, "y0": 0, "y1": 1,
        "fillcolor": colours.line, "opacity": 0.35, "layer": "below", "line": {"width": 0},
    }  # fmt: skip
    border = {
        "type": "line", "xref": "x", "yref": "paper", "x0": 0, "x1": 0, "y0": 0, "y1": 1,
        "line": {"width": 1, "color": colours.quiet},
    }  # fmt: skip
    quiet = f'<span style="color:{colours.quiet};font-size:11px">{{}}</span>'.format
    labels = [
        f"<b>{title}</b><br>{quiet('<br>'.join(wrap(f'{name}: {_short(rows.estimate[row])}', _LINE)))}"
        for row, (title, name) in enumerate(zip(titles, rows.names, strict=True))
    ]
    plain = {"showarrow": False, "font": {"size": 12, "color": colours.text}}
    notes = [
        {
            "text": f"{_interval(rows, row)}<br>{quiet('claim: ' + _allowed(rows.least[row], rows.most[row]))}",
            "x": 1, "xshift": 8, "xref": "paper", "y": row, "yref": "y", "xanchor": "left", "align": "left", **plain,
        }
        for row in range(len(titles))
    ]  # fmt: skip
    sides = [
        {
            "text": text, "x": 0, "xref": "x", "xshift": shift, "xanchor": anchor, "y": 1, "yref": "paper",
            "yanchor": "bottom", **plain,
        }
        for text, anchor, shift in (("against the claim", "right", -6), ("as the claim says", "left", 6))
    ]  # fmt: skip
    widest = max((len(_interval(rows, row)) for row in range(len(titles))), default=0)
    return theme.figure(
        traces,
        dark,
        shapes=[allowed, border],
        annotations=[*notes, *sides],
        xaxis={"range": [-_WIDEST, _WIDEST], "showticklabels": False, "ticks": "", "fixedrange": True},
        yaxis=row_axis(labels, automargin=True, tickfont={"size": 12}),
        height=_CLAIM * len(titles) + 80,
        margin={"l": _EDGE, "r": max(104, 18 + 7 * widest), "t": 32, "b": 8},
        showlegend=True,
        legend={"orientation": "h", "y": 0, "yanchor": "top"},
        meta={"smallest_width": 480},
    )


def _inks(dark: bool) -> tuple[str, ...]:
    """Returns the colour of each of SYMBOLS."""
    quiet = theme.palette(dark).quiet
    return run_colour(0, dark), run_colour(1, dark), quiet, quiet


def _scaled(rows: Estimates) -> tuple[Float[ndarray, " finding"], ...]:
    """Returns estimates and both ends as distances from the border of what is allowed, in units of the farther end."""
    above = np.where(np.isfinite(rows.least), rows.estimate - rows.least, np.inf)
    below = np.where(np.isfinite(rows.most), rows.most - rows.estimate, np.inf)
    sign = np.where(above <= below, 1.0, -1.0)
    border = np.where(above <= below, rows.least, rows.most)
    ends = np.sort([sign * (rows.low - border), sign * (rows.high - border)], axis=0)
    unit = np.maximum(np.nanmax(np.abs([*ends, rows.estimate - border]), axis=0), 1e-12)
    return sign * (rows.estimate - border) / unit, ends[0] / unit, ends[1] / unit


def _interval(rows: Estimates, row: int) -> str:
    return f"{_short(rows.low[row])} to {_short(rows.high[row])}"


def _short(value: float) -> str:
    return f"{value:.2g}".replace("-", "−")


def _dots(each: Estimates, rows: list[int], colour: str, symbol: str, says: str, end: str) -> dict[str, Any]:
    """Returns the trace of the findings with one outcome; an empty one still has its place in the legend."""
    at, low, high = each.estimate[rows], each.low[rows], each.high[rows]
    numbers = zip(at, low, high, each.least[rows], each.most[rows], strict=True)
    texts = [f"{a:.3g} ({b:.3g} to {c:.3g})<br>the claim: {_allowed(*ends)}<br>{says}" for a, b, c, *ends in numbers]
    return {
        "type": "scatter", "mode": "markers", "x": at if rows else [None], "y": rows or [None], "name": says,
        "legendgroup": says, "marker": {"color": colour, "symbol": symbol, "size": 9},
        "error_x": {"array": high - at, "arrayminus": at - low, "color": colour, "width": 4},
        **hover(texts), "xaxis": f"x{end}", "yaxis": f"y{end}",
    }  # fmt: skip


def _allowed(least: float, most: float) -> str:
    """Returns what a claim allows, in words."""
    if np.isinf(least):
        return f"at most {most:.3g}"
    return f"at least {least:.3g}" if np.isinf(most) else f"{least:.3g} to {most:.3g}"


def _ends(each: Estimates) -> tuple[float, float]:
    """Returns the ends of a panel's axis: all that is finite, with a margin."""
    numbers = np.concatenate((each.estimate, each.low, each.high, each.least, each.most))
    finite = numbers[np.isfinite(numbers)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    margin = 0.06 * (high - low or 1.0)
    return low - margin, high + margin
