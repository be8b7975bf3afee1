"""How runs went: the quantities of one over its steps, a panel each, or one quantity of several in one picture."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray

from transformer.figures import theme

Against = Literal["step", "elapsed_s"]
X_TITLES: dict[Against, str] = {"step": "step", "elapsed_s": "seconds of training"}
LOSS_TITLE = "loss, nats per token"
EXACT_MATCH_TITLE = "exact match, %"

# Attention's colours mean attention and stay out of here. Told apart by lightness too; the dash helps after the sixth.
RUN_COLOURS = ("#314c7e", "#b0306a", "#5d7c15", "#2f86c1", "#7d5a3c", "#1e1f25")
RUN_COLOURS_DARK = ("#98b8f2", "#ff86b3", "#b7d65c", "#4fa9e0", "#caa079", "#e8e7e3")
_FEWEST_TICKS = 3
"""Labelled, on a logarithmic axis: with fewer its scale cannot be read."""
_DASHES = ("solid", "dash", "dot")
_GAP = 24
"""Between two panels, on the scale of their heights."""
_MARKED = 60
"""Points of a curve from which on they are not marked one by one."""


@dataclass(frozen=True)
class Curve:
    """One line: what it is called, and its points."""

    name: str
    x: Float[ndarray, "point"]
    y: Float[ndarray, "point"]


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One set of axes. The main curves are heavy, with a mark at each point; the noisy ones thin and quiet."""

    title: str
    """The y axis with its unit."""
    thin: Sequence[Curve] = ()
    main: Sequence[Curve] = ()
    percent: bool = False
    """Values are given as 0..1 and shown as 0..100 on a fixed axis."""
    range: tuple[float, float] | None = None
    """A fixed axis from one value to another."""
    log: bool = True
    """Whether the axis is logarithmic; else it begins at 0. Not on a fixed axis."""
    height: int = 160
    overlay: bool = False
    """Whether the main curves are several runs, each in its own colour."""


def panels_figure(panels: Sequence[Panel], *, against: Against = "step", dark: bool = False) -> go.Figure:
    """The panels of one run below each other, over one x axis; a panel of several curves names them in the legend."""
    colours = theme.palette(dark)
    fig = theme.apply(go.Figure(), dark)
    heights = [panel.height for panel in panels]
    total = sum(heights) + _GAP * (len(heights) - 1)
    top = total
    for index, panel in enumerate(panels):
        axis = "y" if index == 0 else f"y{index + 1}"
        for curve in panel.thin:
            _line(fig, curve, colours.quiet, hover="%{y:.3g}", width=1.25, axis=axis)
        for curve in panel.main:
            hover, shown = ("%{y:.3g} %", _percent(curve)) if panel.percent else ("%{y:.3g}", curve)
            _line(fig, shown, colours.accent, hover=hover, width=2, markers=len(curve.x) < _MARKED, axis=axis)
        if len(panel.thin) + len(panel.main) == 1:
            fig.data[-1].showlegend = False  # its axis names it
        name = f"yaxis{axis[1:]}"
        fig.update_layout({name: {"domain": [max(0.0, top - panel.height) / total, top / total], "anchor": "x"}})
        fig.layout[name].update(_panel_axis(panel, colours.line))
        top -= panel.height + _GAP
    last = "y" if len(panels) == 1 else f"y{len(panels)}"
    fig.update_xaxes(title_text=X_TITLES[against], showgrid=False, showline=True, anchor=last, rangemode="tozero")
    return _framed(fig, height=max(260, int(1.6 * total) + 90))


def _panel_axis(panel: Panel, line: str) -> dict[str, Any]:
    grid = {"showgrid": True, "gridcolor": line, "gridwidth": 1, "showline": False, "ticks": "", "zeroline": False}
    grid["title"] = {"text": panel.title, "font": {"size": 13}}
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
    """One line and one legend entry a run. `percent` takes 0..1 and shows 0..100; `log` leaves out values of 0."""
    colours = theme.palette(dark)
    fig = theme.apply(go.Figure(), dark)
    for index, curve in enumerate(curves):
        shown = _percent(curve) if percent else curve
        hover = f"%{{y:.3g}}{' %' if percent else ''}"
        _line(fig, shown, run_colour(index, dark), hover=hover, width=2, markers=len(curve.x) < _MARKED)
        fig.data[-1].line.dash = _DASHES[index // len(RUN_COLOURS) % len(_DASHES)]
    fig.update_xaxes(title_text=X_TITLES[against], rangemode="tozero", showline=True)
    fig.update_yaxes(title_text=title, showgrid=True, gridcolor=colours.line, showline=False, ticks="")
    fig.update_layout(showlegend=True)
    if log:
        fig.update_yaxes(**_logarithmic(*curves))
    elif percent:
        fig.update_yaxes(range=[-3, 103])
    else:
        fig.update_yaxes(rangemode="tozero")
    return _framed(fig, height=420)


def run_colour(index: int, dark: bool = False) -> str:
    """The colour of the run at this place in an overlay."""
    colours = RUN_COLOURS_DARK if dark else RUN_COLOURS
    return colours[index % len(colours)]


def thinned(curve: Curve, most: int = 400) -> Curve:
    """The same line through at most about this many points: of each stretch the lowest and the highest, so that no
    spike is lost, and both ends."""
    n = len(curve.x)
    if n <= most:
        return curve
    kept = {0, n - 1}
    for stretch in np.array_split(np.arange(n), max(1, most // 2)):
        kept |= {int(stretch[np.argmin(curve.y[stretch])]), int(stretch[np.argmax(curve.y[stretch])])}
    index = np.array(sorted(kept))
    return Curve(curve.name, curve.x[index], curve.y[index])


def _line(
    fig: go.Figure, curve: Curve, colour: str, *, hover: str, width: float, markers: bool = False, axis: str = "y"
) -> None:
    fig.add_scatter(
        x=curve.x,
        y=curve.y,
        name=curve.name,
        mode="lines+markers" if markers else "lines",
        line={"color": colour, "width": width},
        marker={"color": colour, "size": 5},
        hovertemplate=hover,
        yaxis=axis,
    )


def _percent(curve: Curve) -> Curve:
    return Curve(curve.name, curve.x, curve.y * 100)


def _logarithmic(*curves: Curve) -> dict[str, Any]:
    """A logarithmic axis that is labelled at 1, 2 and 5 of each decade that the values touch."""
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
    """The fewest round numbers at even distances, at least three of them, between the two."""
    power = math.floor(math.log10(high - low))
    for step in (digit * 10.0**decade for decade in (power, power - 1) for digit in (5, 2, 1)):
        ticks = [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]
        if len(ticks) >= _FEWEST_TICKS:
            return ticks
    raise AssertionError("ten steps of a tenth of the distance lie between")


def _framed(fig: go.Figure, *, height: int) -> go.Figure:
    fig.update_xaxes(automargin=True)
    fig.update_yaxes(automargin=True)
    return fig.update_layout(
        height=height,
        hovermode="x unified",
        margin={"l": 8, "r": 8, "t": 36, "b": 8, "autoexpand": True},
        legend={"orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom", "title": {"text": ""}},
    )
