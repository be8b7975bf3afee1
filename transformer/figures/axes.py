"""Parts that many figures share: axes with a label at each row and column, hover texts, frames, lines and notes."""

from collections.abc import Sequence
from typing import Any, Literal

from transformer.figures import theme
from transformer.figures.labels import axis_labels


def row_axis(labels: Sequence[str], *, every: int = 1, **own: Any) -> dict[str, Any]:
    """Returns the y axis of rows that go down from 0, with a label at each, or at every so many."""
    return _labelled(labels, every) | {"range": [len(labels) - 0.5, -0.5]} | own


def column_axis(labels: Sequence[str], *, every: int = 1, **own: Any) -> dict[str, Any]:
    """Returns the x axis of columns that count from 0, with a label at each, or at every so many."""
    return _labelled(labels, every) | {"range": [-0.5, len(labels) - 0.5]} | own


def token_labels(tokens: Sequence[str], dark: bool) -> list[str]:
    """Returns the labels of tokens on an axis, in the colours of the theme."""
    colours = theme.palette(dark)
    return axis_labels(tokens, quiet=colours.quiet, faint=colours.faint)


def monospace(size: float, **own: Any) -> dict[str, Any]:
    """Returns the face of tokens."""
    return {"family": theme.MONOSPACE, "size": size} | own


def hover(texts: Any) -> dict[str, Any]:
    """Returns the properties of a trace that say a text for each point, in place of its coordinates."""
    return {"customdata": texts, "hovertemplate": "%{customdata}<extra></extra>"}


def panel(number: int) -> str:
    """Returns the end of the names of a panel's axes: nothing for the first, "2" for the second."""
    return "" if number == 1 else str(number)


def on_axes(end: str, name: Literal["axis", "ref"] = "axis") -> dict[str, str]:
    """Returns the references of a trace ("axis") or a shape ("ref") to the axes whose names end so."""
    return {f"x{name}": f"x{end}", f"y{name}": f"y{end}"}


def framed(
    row: float, column: float, *, colour: str, rows: int = 1, columns: int = 1, width: float = 2.5, end: str = ""
) -> dict[str, Any]:
    """Returns the shape of a frame around so many rows and columns, from this row and column on."""
    return {
        "type": "rect", "x0": column - 0.5, "x1": column + columns - 0.5, "y0": row - 0.5, "y1": row + rows - 0.5,
        "line": {"color": colour, "width": width}, **on_axes(end, "ref"),
    }  # fmt: skip


def upright(x: float, colour: str, *, width: float = 1, **line: Any) -> dict[str, Any]:
    """Returns the shape of a line from the bottom of the figure to its top."""
    ends = {"x0": x, "x1": x, "xref": "x", "y0": 0, "y1": 1, "yref": "y domain"}
    return {"type": "line", **ends, "line": {"color": colour, "width": width, **line}}


def level(y: float, colour: str, *, width: float = 1, **line: Any) -> dict[str, Any]:
    """Returns the shape of a line from the left of the figure to its right."""
    ends = {"x0": 0, "x1": 1, "xref": "x domain", "y0": y, "y1": y, "yref": "y"}
    return {"type": "line", **ends, "line": {"color": colour, "width": width, **line}}


def note(text: str, x: float, y: float, xanchor: str, yanchor: str, *, size: int = 12, **own: Any) -> dict[str, Any]:
    """Returns a quiet text at a place of the drawing, 0..1 from its left and bottom, held at the given corner."""
    place = {"x": x, "y": y, "xref": "paper", "yref": "paper", "xanchor": xanchor, "yanchor": yanchor}
    return {"text": text, **place, "font": {"size": size}} | own


def _labelled(labels: Sequence[str], every: int) -> dict[str, Any]:
    return {"tickvals": list(range(0, len(labels), every)), "ticktext": list(labels[::every])}
