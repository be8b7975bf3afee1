"""What a sweep found: a quantity against the setting that was varied, a mark for each run in the run's own colour."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from transformer.figures import theme
from transformer.figures.training.curves import run_colour

_WIDE = 8.0
"""Values that span more than this many times the smallest stand on a logarithmic axis."""


@dataclass(frozen=True)
class Mark:
    """One run of a sweep."""

    value: float | str
    """Of the setting; a text stands in a place of its own."""
    y: float | None
    """What the run reached; None before it was measured."""
    run: str
    done: bool
    """Whether the run has ended; else its mark is hollow."""
    place: int
    """Among the curves beside the chart: it has the same colour."""


def sweep_figure(
    marks: Sequence[Mark], *, setting: str, title: str, unit: str = "", percent: bool = False, dark: bool = False
) -> go.Figure:
    """The marks over the setting, joined where its values are numbers. `percent` fixes the axis to 0..100."""
    colours = theme.palette(dark)
    fig = theme.apply(go.Figure(), dark)
    measured = [mark for mark in marks if mark.y is not None]
    numeric = all(isinstance(mark.value, int | float) for mark in marks)
    ordered = sorted(measured, key=lambda mark: mark.value) if numeric else measured
    if numeric:
        line = {"color": colours.quiet, "width": 1.25}
        fig.add_scatter(
            x=[mark.value for mark in ordered],
            y=[mark.y for mark in ordered],
            mode="lines",
            line=line,
            hoverinfo="skip",
        )
    for mark in measured:
        colour = run_colour(mark.place, dark)
        fig.add_scatter(
            x=[mark.value],
            y=[mark.y],
            mode="markers",
            name=mark.run,
            marker={
                "size": 11,
                "color": colour if mark.done else colours.background,
                "line": {"color": colour, "width": 2},
            },
            hovertemplate=f"{setting} %{{x}}<br>%{{y:.3g}}{unit}<extra>%{{fullData.name}}</extra>",
        )
    values = sorted({mark.value for mark in marks}) if numeric else [mark.value for mark in marks]
    fig.update_xaxes(title_text=setting, showline=True, automargin=True, **_axis(values, numeric=numeric))
    fig.update_yaxes(title_text=title, showgrid=True, gridcolor=colours.line, ticks="", automargin=True)
    fig.update_yaxes(range=[-3, 103]) if percent else fig.update_yaxes(rangemode="tozero")
    return fig.update_layout(height=360, showlegend=False, margin={"l": 8, "r": 8, "t": 12, "b": 8})


def _axis(values: Sequence[float | str], *, numeric: bool) -> dict[str, Any]:
    """Labelled at the values themselves."""
    if not numeric:
        return {"type": "category", "categoryorder": "array", "categoryarray": list(values)}
    numbers = [float(value) for value in values]
    labels = {"tickvals": numbers, "ticktext": [f"{value:g}" for value in numbers]}
    if len(numbers) > 1 and min(numbers) > 0 and max(numbers) / min(numbers) >= _WIDE:
        return {"type": "log", **labels}
    return labels
