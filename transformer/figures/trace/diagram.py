"""The map of a model: boxes, lines and frames as plain data, and drawn as a figure with the shapes of a pass."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import plotly.graph_objects as go
from plotly.colors import hex_to_rgb

from transformer.figures import theme
from transformer.figures.labels import hover_label
from transformer.figures.lines import points
from transformer.model.kinds import KindName

WIDTH = 450
"""Pixels of a drawing."""
_STRETCH, _MARGIN = 1.75, 8
"""The factor by which a figure is wider than the drawing, for a shape beside each name; and pixels around it."""
_HEAD = 6.0
"""The length of an arrow's head in pixels."""


@dataclass(frozen=True)
class Box:
    """A step, or a folded sublayer that opens at its first step."""

    step: str
    x: float
    y: float
    w: float
    h: float
    label: str
    spoken: str
    shape: Literal["box", "pill", "circle", "text"] = "box"
    kind: KindName | None = None
    chosen: bool = False
    ghost: bool = False
    """A part of the paper that this model never had: drawn, but no step."""
    folded: bool = False
    """A whole sublayer, which unfolds when one of its steps is chosen."""
    switched: tuple[str, ...] = ()
    """The interventions that act there, in words."""


@dataclass(frozen=True)
class Line:
    """A path of straight pieces, in the order of the flow."""

    points: tuple[tuple[float, float], ...]
    kind: KindName | None = None
    arrow: bool = True
    into: str = ""
    """The step that it leads to, where it goes around the steps before it."""
    carries: str = ""
    """The value that it brings there."""


@dataclass(frozen=True)
class Frame:
    """The outline of a layer, with the others as sheets behind it, or of an unfolded sublayer."""

    x: float
    y: float
    w: float
    h: float
    label: str = ""
    side: Literal["left", "right", "top"] = "top"
    sheets: int = 0
    kind: KindName | None = None


@dataclass
class Drawing:
    """Everything on the map."""

    height: float = 0.0
    boxes: list[Box] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)

    def data(self) -> dict[str, Any]:
        """Returns the drawing as the component gets it, y counted from the top."""
        top = self.height
        return {
            "width": WIDTH,
            "height": top,
            "boxes": [{**asdict(box), "y": top - box.y - box.h, "switched": list(box.switched)} for box in self.boxes],
            "lines": [{**asdict(line), "points": [[x, top - y] for x, y in line.points]} for line in self.lines],
            "frames": [{**asdict(frame), "y": top - frame.y - frame.h} for frame in self.frames],
        }


def map_figure(
    drawing: Drawing, shapes: Mapping[str, Mapping[str, tuple[int, ...]]], *, dark: bool = False
) -> go.Figure:
    """Draws the map with the shape of each step's result beside its name; hovering names each array."""
    unknown = shapes.keys() - {box.step for box in drawing.boxes}
    if unknown:
        raise ValueError(f"the map has no step {min(unknown)}")
    drawn = [
        *(shape for frame in drawing.frames for shape in _sheets(frame, dark)),
        *(shape for line in drawing.lines for shape in _arrow(line, dark)),
        *(shape for box in drawing.boxes for shape in _outline(box, dark)),
    ]
    quiet = theme.palette(dark).quiet
    steps = points(
        [_across(box.x + box.w / 2) for box in drawing.boxes],
        [box.y + box.h / 2 for box in drawing.boxes],
        [_note(box, shapes.get(box.step, {})) for box in drawing.boxes],
        mode="text",
        text=[_label(box, shapes.get(box.step, {}), dark) for box in drawing.boxes],
        textfont={
            "size": [12 if box.shape == "pill" or box.folded or box.ghost else 13 for box in drawing.boxes],
            "color": [_ink(box, dark) for box in drawing.boxes],
        },
    )
    titled = [frame for frame in drawing.frames if frame.label]
    titles = points(
        [_across(frame.x + frame.w / 2) for frame in titled],
        [frame.y + frame.h - 12 for frame in titled],
        mode="text",
        text=[f"<b>{frame.label}</b>" for frame in titled],
        textfont={"size": 12, "color": [_colour(frame.kind, quiet, dark) for frame in titled]},
    )
    bare = {"visible": False, "fixedrange": True}
    figure = theme.figure(
        [steps, titles],
        dark,
        shapes=drawn,
        xaxis={**bare, "range": [0, _across(WIDTH)]},
        yaxis={**bare, "range": [0, drawing.height]},
        width=round(_across(WIDTH) + 2 * _MARGIN),
        height=round(drawing.height + 2 * _MARGIN),
        margin={"l": _MARGIN, "r": _MARGIN, "t": _MARGIN, "b": _MARGIN, "autoexpand": False},
        dragmode=False,
    )
    return theme.on_paper(figure, dark)


def shape_text(shape: tuple[int, ...]) -> str:
    """Returns a shape in print: 4 × 14 × 16."""
    return " × ".join(f"{size:,}" for size in shape)


def _label(box: Box, shapes: Mapping[str, tuple[int, ...]], dark: bool) -> str:
    name = f"<b>{box.label}</b>" if box.chosen else box.label
    if not shapes:
        return name
    listed = ", ".join(dict.fromkeys(map(shape_text, shapes.values())))
    colours = theme.palette(dark)
    ink = colours.background if box.chosen else colours.quiet
    return f'{name}{"<br>" if box.folded else "  "}<span style="color:{ink}">{listed}</span>'


def _note(box: Box, shapes: Mapping[str, tuple[int, ...]]) -> str:
    arrays = (f"{hover_label(name)}: {shape_text(shape)}" for name, shape in shapes.items())
    return "<br>".join([f"<b>{box.spoken}</b>", *arrays, *map(hover_label, box.switched)])


def _ink(box: Box, dark: bool) -> str:
    colours = theme.palette(dark)
    return colours.background if box.chosen else colours.quiet if box.ghost else colours.text


def _sheets(frame: Frame, dark: bool) -> list[dict[str, Any]]:
    """Returns the frame with the sheets behind it, the farthest first."""
    colours = theme.palette(dark)
    own = _colour(frame.kind, colours.text, dark)
    fill = _mix(own, colours.background, 0.04)
    line = {"color": _mix(own, colours.background, 0.45) if frame.label else colours.line, "width": 1}
    return [
        {"type": "path", "path": _rounded(frame.x + 3 * sheet, frame.y + 3 * sheet, frame.w, frame.h, 8)}
        | {"fillcolor": fill, "line": line, "layer": "below"}
        for sheet in range(frame.sheets, -1, -1)
    ]


def _arrow(line: Line, dark: bool) -> list[dict[str, Any]]:
    colour = _colour(line.kind, theme.palette(dark).quiet, dark)
    points = [(_across(x), y) for x, y in line.points]
    way = "M" + "L".join(f"{x},{y}" for x, y in points)
    found: list[dict[str, Any]] = [{"type": "path", "path": way, "line": {"color": colour, "width": 1.25}}]
    if line.arrow:
        (x0, y0), (x, y) = points[-2:]
        length = ((x - x0) ** 2 + (y - y0) ** 2) ** 0.5 or 1.0
        u, v = _HEAD * (x - x0) / length, _HEAD * (y - y0) / length
        head = f"M{x},{y}L{x - u - v / 2},{y - v + u / 2}L{x - u + v / 2},{y - v - u / 2}Z"
        found.append({"type": "path", "path": head, "fillcolor": colour, "line": {"width": 0}})
    return [shape | {"layer": "below"} for shape in found]


def _outline(box: Box, dark: bool) -> list[dict[str, Any]]:
    """Returns the box, and a dot at its corner where an intervention acts."""
    if box.shape == "text" and not box.chosen:
        return []
    colours = theme.palette(dark)
    own = _colour(box.kind, colours.text, dark)
    fill, line = colours.background, {"color": _mix(own, colours.background, 0.45), "width": 1.0}
    if box.chosen:
        fill, line = colours.accent, {"color": colours.accent, "width": 1.0}
    elif box.ghost:
        line = {"color": colours.quiet, "width": 1.0, "dash": "3px,3px"}
    elif box.folded:
        fill = _mix(own, colours.background, 0.09)
    path = _rounded(box.x, box.y, box.w, box.h, box.h / 2 if box.shape == "pill" else 5)
    found: list[dict[str, Any]] = [{"type": "path", "path": path, "fillcolor": fill, "line": line, "layer": "below"}]
    if box.switched:
        x, y, r = _across(box.x + box.w) - 2, box.y + box.h - 2, 5.5
        corners = {"x0": x - r, "x1": x + r, "y0": y - r, "y1": y + r}
        paint = {"fillcolor": theme.diverging(dark)[-1][1], "line": {"color": colours.background, "width": 1.5}}
        found.append({"type": "circle", **corners, **paint, "layer": "below"})
    return found


def _rounded(x: float, y: float, w: float, h: float, r: float) -> str:
    """Returns the path of a box with round corners, in a figure's pixels."""
    left, right, top = _across(x), _across(x + w), y + h
    return (
        f"M{left + r},{y}L{right - r},{y}Q{right},{y} {right},{y + r}L{right},{top - r}Q{right},{top} {right - r},{top}"
        f"L{left + r},{top}Q{left},{top} {left},{top - r}L{left},{y + r}Q{left},{y} {left + r},{y}Z"
    )


def _across(x: float) -> float:
    return x * _STRETCH


def _colour(kind: KindName | None, otherwise: str, dark: bool) -> str:
    return otherwise if kind is None else theme.kind_colour(kind, dark)


def _mix(colour: str, background: str, share: float) -> str:
    """Returns this share of a colour, mixed with the background."""
    parts = zip(hex_to_rgb(colour), hex_to_rgb(background), strict=True)
    return "#" + "".join(f"{round(share * own + (1 - share) * under):02x}" for own, under in parts)
