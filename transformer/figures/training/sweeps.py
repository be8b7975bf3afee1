"""Results of a sweep: a quantity against the setting that was varied, a mark for each run in the run's own colour."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from transformer.figures import theme
from transformer.figures.labels import hover_label
from transformer.figures.lines import line
from transformer.figures.theme import run_colour

_WIDE = 8.0
"""The ratio of the largest value to the smallest from which on the axis is logarithmic."""


@dataclass(frozen=True)
class Mark:
    """One run of a sweep."""

    value: float | str
    """The value of the setting; a string has a place of its own on the axis."""
    y: float | None
    """The quantity that the run reached; None before it was measured."""
    run: str
    done: bool
    """The run has ended; else its mark is hollow."""
    place: int
    """The index among the curves beside the chart, which gives the colour."""


def sweep_figure(
    marks: Sequence[Mark], *, setting: str, title: str, unit: str = "", percent: bool = False, dark: bool = False
) -> go.Figure:
    """Draws the marks over the setting, joined where its values are numbers. `percent` fixes the axis to 0..100."""
    colours = theme.palette(dark)
    measured = [mark for mark in marks if mark.y is not None]
    numeric = all(isinstance(mark.value, int | float) for mark in marks)
    traces = []
    if numeric:
        ordered = sorted(measured, key=lambda mark: mark.value)
        x, y = [mark.value for mark in ordered], [mark.y for mark in ordered]
        traces.append(line(x, y, colours.quiet, width=1.25, hoverinfo="skip"))
    for mark in measured:
        colour = run_colour(mark.place, dark)
        fill = colour if mark.done else colours.background
        says = f"{setting} %{{x}}<br>%{{y:.3g}}{unit}<extra>%{{fullData.name}}</extra>"
        traces.append(
            {
                "type": "scatter", "mode": "markers", "x": [mark.value], "y": [mark.y], "name": hover_label(mark.run),
                "marker": {"size": 11, "color": fill, "line": {"color": colour, "width": 2}}, "hovertemplate": says,
            }
        )  # fmt: skip
    values = sorted({mark.value for mark in marks}) if numeric else [mark.value for mark in marks]
    bounds = {"range": [-3, 103]} if percent else {"rangemode": "tozero"}
    return theme.figure(
        traces,
        dark,
        xaxis={"title": {"text": setting}, "showline": True, "automargin": True, **_axis(values, numeric=numeric)},
        yaxis={"title": {"text": title}, "showgrid": True, "automargin": True, **bounds},
        height=360,
        showlegend=False,
        margin={"l": 8, "r": 8, "t": 12, "b": 8},
    )


def _axis(values: Sequence[float | str], *, numeric: bool) -> dict[str, Any]:
    """Returns an axis that is labelled at the values themselves."""
    if not numeric:
        return {"type": "category", "categoryorder": "array", "categoryarray": list(values)}
    numbers = [float(value) for value in values]
    labels = {"tickvals": numbers, "ticktext": [f"{value:g}" for value in numbers]}
    if len(numbers) > 1 and min(numbers) > 0 and max(numbers) / min(numbers) >= _WIDE:
        return {"type": "log", **labels}
    return labels
