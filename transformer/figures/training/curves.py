"""Curves of training: the quantities of one run, a panel each, or one quantity of several runs in one picture."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.axes import panel as axis_end
from transformer.figures.lines import line
from transformer.figures.theme import RUN_COLOURS, run_colour

Against = Literal["step", "elapsed_s"]
X_TITLES: dict[Against, str] = {"step": "step", "elapsed_s": "seconds of training"}
LOSS_TITLE = "loss, nats per token"
EXACT_MATCH_TITLE = "exact match, %"

_FEWEST_TICKS = 3
"""The fewest labels of a logarithmic axis: with fewer its scale cannot be read."""
_DASHES = ("solid", "dash", "dot")
_GAP = 24
"""The gap between two panels, on the scale of their heights."""
_MARKED = 60
"""The number of points from which on they are not marked one by one."""


@dataclass(frozen=True)
class Curve:
    """One line: its name and its points."""

    name: str
    x: Float[ndarray, " point"]
    y: Float[ndarray, " point"]


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One set of axes. The main curves are heavy, with a mark at each point; the noisy ones thin and quiet."""

    title: str
    """The title of the y axis, with its unit."""
    thin: Sequence[Curve] = ()
    main: Sequence[Curve] = ()
    percent: bool = False
    """Values are given as 0..1 and shown as 0..100 on a fixed axis."""
    range: tuple[float, float] | None = None
    """A fixed axis from one value to another."""
    log: bool = True
    """A logarithmic axis, else one that begins at 0; ignored on a fixed axis."""
    height: int = 160
    overlay: bool = False
    """The main curves are several runs, each in its own colour."""


def panels_figure(panels: Sequence[Panel], *, against: Against = "step", dark: bool = False) -> go.Figure:
    """Draws the panels of one run below each other, over one x axis; a panel of several curves names them."""
    colours = theme.palette(dark)
    total = sum(panel.height for panel in panels) + _GAP * (len(panels) - 1)
    traces, axes = [], {}
    top = total
    for number, panel in enumerate(panels, start=1):
        end = axis_end(number)
        own = {"yaxis": f"y{end}", "showlegend": len(panel.thin) + len(panel.main) > 1}  # one curve: its axis names it
        for curve in panel.thin:
            traces.append(_line(curve, colours.quiet, width=1.25) | own)
        for curve in panel.main:
            traces.append(_line(curve, colours.accent, percent=panel.percent, marked=True) | own)
        place = {"domain": [max(0.0, top - panel.height) / total, top / total], "anchor": "x"}
        axes[f"yaxis{end}"] = _panel_axis(panel) | place | {"automargin": True}
        top -= panel.height + _GAP
    across = {"anchor": f"y{axis_end(len(panels))}", "rangemode": "tozero"}
    return theme.figure(traces, dark, **axes, **_framed(against, height=max(260, int(1.6 * total) + 90), **across))


def _panel_axis(panel: Panel) -> dict[str, Any]:
    grid = {"showgrid": True, "title": {"text": panel.title}}
    fixed = (0.0, 100.0) if panel.percent else panel.range
    if fixed is not None:
        low, high = fixed
        spare = 0.03 * (high - low)
        return grid | {"range": [low - spare, high + spare], "tickvals": [low, (low + high) / 2, high]}
    return grid | (_logarithmic(*panel.thin, *panel.main) if panel.log else {"rangemode": "tozero"})


def overlay_figure(
    curves: Sequence[Curve], *, title: str, against: Against = "step", log: bool = False, percent: bool = False,
    dark: bool = False,
) -> go.Figure:  # fmt: skip
    """Draws one line and one legend entry for each run. `percent` takes 0..1 and shows 0..100; `log` leaves out values
    of 0."""
    lines = [
        _line(curve, run_colour(index, dark), percent=percent, marked=True, dash=_dash(index))
        for index, curve in enumerate(curves)
    ]
    if log:
        scale = _logarithmic(*curves)
    else:
        scale = {"range": [-3, 103]} if percent else {"rangemode": "tozero"}
    up = {"title": {"text": title}, "showgrid": True, "automargin": True, **scale}
    framed = _framed(against, height=420, rangemode="tozero")
    return theme.figure(lines, dark, yaxis=up, showlegend=True, **framed)


def thinned(curve: Curve, most: int = 400) -> Curve:
    """Returns the line through about `most` points at most: both ends, and of each stretch the lowest and the highest
    value, so that no spike is lost."""
    n = len(curve.x)
    if n <= most:
        return curve
    kept = {0, n - 1}
    for stretch in np.array_split(np.arange(n), max(1, most // 2)):
        kept |= {int(stretch[np.argmin(curve.y[stretch])]), int(stretch[np.argmax(curve.y[stretch])])}
    index = np.array(sorted(kept))
    return Curve(curve.name, curve.x[index], curve.y[index])


def _line(
    curve: Curve, colour: str, *, width: float = 2, percent: bool = False, marked: bool = False, dash: str = "solid"
) -> dict[str, Any]:
    """Returns the trace of a curve; `percent` shows 0..1 as 0..100, and `marked` draws its points if they are few."""
    y, says = (curve.y * 100, "%{y:.3g} %") if percent else (curve.y, "%{y:.3g}")
    mode = "lines+markers" if marked and len(curve.x) < _MARKED else "lines"
    return line(curve.x, y, colour, name=curve.name, width=width, dash=dash, mode=mode, hovertemplate=says)


def _dash(index: int) -> str:
    return _DASHES[index // len(RUN_COLOURS) % len(_DASHES)]


def _logarithmic(*curves: Curve) -> dict[str, Any]:
    """Returns a logarithmic axis that is labelled at 1, 2 and 5 of each decade that the values touch."""
    values = np.concatenate([curve.y for curve in curves]) if curves else np.ones(1)
    values = values[np.isfinite(values) & (values > 0)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.1, 1.0)
    ticks = [digit * 10.0**decade for decade in range(-9, 7) for digit in (1, 2, 5)]
    low, high = low / 1.15, high * 1.15
    ticks = [tick for tick in ticks if low <= tick <= high]
    decades = [tick for tick in ticks if f"{tick:e}"[0] == "1"]
    if len(ticks) < _FEWEST_TICKS:
        ticks = _even_ticks(low, high)
    elif len(ticks) > 7 and len(decades) >= _FEWEST_TICKS:
        ticks = decades
    return {
        "type": "log",
        "range": [float(np.log10(low)), float(np.log10(high))],
        "tickvals": ticks,
        "ticktext": [f"{tick:g}" for tick in ticks],
    }


def _even_ticks(low: float, high: float) -> list[float]:
    """Returns the fewest round numbers at even distances between the two, but at least three."""
    power = math.floor(math.log10(high - low))
    for step in (digit * 10.0**decade for decade in (power, power - 1) for digit in (5, 2, 1)):
        ticks = [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]
        if len(ticks) >= _FEWEST_TICKS:
            return ticks
    raise AssertionError("ten steps of a tenth of the distance lie between")


def _framed(against: Against, *, height: int, **across: Any) -> dict[str, Any]:
    """Returns the layout of curves over the steps or the seconds of a run."""
    return {
        "xaxis": {"title": {"text": X_TITLES[against]}, "showline": True, "automargin": True, **across},
        "height": height,
        "hovermode": "x unified",
        "margin": {"l": 8, "r": 8, "t": 36, "b": 8},
    }
