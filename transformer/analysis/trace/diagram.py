"""The map of a model: the paper's figure 1 laid out for it, with the chosen sublayer unfolded as figure 2; and the
shapes that a pass has at its steps.

Plain numbers and words; nothing is drawn here. Data flow from bottom to top, as in the paper.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from transformer.analysis.trace.opened import open_step
from transformer.analysis.trace.recurrent.lines import recurrent_lines, recurrent_title
from transformer.analysis.trace.step import (
    SUBLAYERS,
    Step,
    Sublayer,
    TracedModel,
    Value,
    n_layers,
    sublayers_in_layers,
    sublayers_of,
)
from transformer.analysis.trace.steps import missing_steps, steps
from transformer.analysis.trace.trace import Trace, sees_later
from transformer.figures.trace.diagram import WIDTH, Box, Drawing, Frame, Line
from transformer.interventions import Intervention
from transformer.model.kinds import KindName
from transformer.model.recurrent import RecurrentModel
from transformer.model.taps import Stack

_COLUMN = {"encoder": 112.0, "decoder": 338.0}
"""The middle of each stack, in pixels."""
_BOX, _OPEN, _PILL = 150.0, 166.0, 122.0
"""The widths of a box, an unfolded sublayer, and a step inside it."""
_CROSSING = WIDTH / 2
"""The place at which the encoder's memory crosses to the decoder."""


def unfolded(model: TracedModel, layer: int) -> dict[Stack, int]:
    """Returns the layer of each stack that is on the map: this one, the last one where a stack has fewer."""
    return {stack: min(layer, n_layers(model, stack) - 1) for stack in SUBLAYERS}


def draw_map(
    model: TracedModel,
    chosen: Step,
    layer: int = 0,
    specs: Sequence[Intervention] = (),
) -> Drawing:
    """Draws the map of a model at a step of a layer, with the interventions that act there."""
    order, layers = steps(model), unfolded(model, layer)
    if chosen not in order:
        raise ValueError(f"this model has no step {chosen}")
    switched = {step: tuple(spec.label() for spec in step.interventions(layers[step.stack], specs)) for step in order}
    drawing = Drawing()
    tops: dict[Stack, float] = {}
    ports: dict[Stack, tuple[float, float]] = {}
    masked = not sees_later(model, specs)
    for stack in SUBLAYERS:
        column = _Column(drawing, model, stack, chosen, layers[stack], switched, masked)
        tops[stack], ports[stack] = column.build()
    if isinstance(model, RecurrentModel):
        drawing.lines.extend(recurrent_lines(model, drawing))
    else:
        x, y = _COLUMN["encoder"], tops["encoder"]
        cross_x, cross_y = ports["decoder"]
        drawing.lines.append(
            Line(
                ((x, y), (x, y + 14), (_CROSSING, y + 14), (_CROSSING, cross_y), (cross_x, cross_y)),
                "cross",
                into="decoder.cross.qkv",
                carries="memory",
            )
        )
    drawing.height = max(tops["encoder"] + 26, tops["decoder"] + 6)
    return drawing


def map_arrays(model: TracedModel, trace: Trace, drawing: Drawing, layer: int = 0) -> dict[str, dict[str, Value]]:
    """Returns every array that comes out of each step on the map, by name; of a folded sublayer, its output."""
    own = {str(step): step for step in steps(model)}
    layers = unfolded(model, layer)
    found: dict[str, dict[str, Value]] = {}
    for box in drawing.boxes:
        if not box.ghost:
            step = own[box.step]
            last = _last_of(own.values(), step) if box.folded else step
            opened = open_step(trace, last, min(layers[step.stack], last.n_layers - 1))
            found[box.step] = {shown.name: shown for shown in opened.comes_out}
    return found


def _last_of(order: Iterable[Step], step: Step) -> Step:
    """Returns the step that makes the output of a step's sublayer."""
    return [s for s in order if (s.stack, s.sublayer) == (step.stack, step.sublayer) and s.name != "add"][-1]


class _Column:
    """One stack, built from below."""

    def __init__(
        self,
        drawing: Drawing,
        model: TracedModel,
        stack: Stack,
        chosen: Step,
        layer: int,
        switched: Mapping[Step, tuple[str, ...]],
        masked: bool,
    ) -> None:
        self.stack: Stack = stack
        self.masked = masked
        self.drawing, self.model = drawing, model
        self.chosen, self.layer, self.switched = chosen, layer, switched
        self.own = {str(step): step for step in steps(model) if _drawn_in(step) == stack}
        self.x, self.y = _COLUMN[stack], 4.0
        self.port = (0.0, 0.0)
        """The point at which the encoder's memory comes in."""

    def build(self) -> tuple[float, tuple[float, float]]:
        """Draws the stack; returns the height that it has reached, and the port of its cross-attention."""
        self._single("ids", 24, shape="text")
        self._rise(12)
        self._single("embedding", 30)
        if isinstance(self.model, RecurrentModel):
            self._rise(26)
        else:
            self._rise(12)
            self._positions()
            self._rise(22)
        self._blocks()
        ends = (("final", 22), ("vector", 26), ("start", 22), ("combine", 22), ("logits", 26), ("probabilities", 26))
        for name, height in ends:
            if self._find(name) is not None:
                self._rise(14)
                self._single(name, height)
        return self.y, self.port

    def _blocks(self) -> None:
        """Draws all sublayers, those of a layer in its outline."""
        in_layers, bottom = sublayers_in_layers(self.model, self.stack), 0.0
        for sublayer in sublayers_of(self.model, self.stack):
            if sublayer == in_layers[0]:
                bottom = self.y - 12
            self._sublayer(sublayer)
            if sublayer == in_layers[-1]:
                self._layer_frame(bottom)
                if sublayer != sublayers_of(self.model, self.stack)[-1]:
                    self._rise(22)

    def _find(self, name: str, sublayer: Sublayer | None = None) -> Step | None:
        """Returns the step of this stack; None where the model lacks it."""
        if name == "start":  # the decoder's, drawn where its vector is
            return self.own.get("decoder.start")
        return self.own.get(".".join(part for part in (self.stack, sublayer, name) if part is not None))

    def _single(self, name: str, height: float, *, shape: Literal["box", "text"] = "box") -> None:
        step = self._find(name)
        assert step is not None, "only steps that a model has are drawn"
        self._place(step, _BOX, height, shape=shape)
        self.y += height

    def _place(
        self,
        step: Step,
        width: float,
        height: float,
        *,
        x: float | None = None,
        shape: Literal["box", "pill", "circle", "text"] = "box",
        label: str | None = None,
        kind: KindName | None = None,
        folded: bool = False,
    ) -> None:
        own = label or step.label
        inside = [s for s in self.own.values() if s.sublayer == step.sublayer] if folded else [step]
        switched = tuple(dict.fromkeys(text for s in inside for text in self.switched.get(s, ())))
        in_layers = sublayers_in_layers(self.model, self.stack)
        where = f"{step.stack}, layer {self.layer}" if step.sublayer in in_layers else step.stack
        self.drawing.boxes.append(
            Box(
                str(step),
                (self.x if x is None else x) - width / 2,
                self.y,
                width,
                height,
                own,
                f"{own}, {where}{', unfold' if folded else ''}{', switched' if switched else ''}",
                shape,
                kind,
                step == self.chosen and not folded,
                folded=folded,
                switched=switched,
            )
        )

    def _ghost(self, label: str, width: float, height: float, shape: Literal["box", "pill"], said: str) -> None:
        box = Box("", self.x - width / 2, self.y, width, height, label, said, shape, ghost=True)
        self.drawing.boxes.append(box)
        self.y += height

    def _rise(self, height: float, *, arrow: bool = True) -> None:
        """Draws a piece of the way up."""
        if height:
            self.drawing.lines.append(Line(((self.x, self.y), (self.x, self.y + height)), arrow=arrow))
        self.y += height

    def _positions(self) -> None:
        step = self._find("positions")
        if step is not None:
            self._place(step, 112, 24, shape="pill", label="+ position")
            self.y += 24
            return
        said = {
            "rotary": "positions: rotated in Q, K",
            "alibi": "positions: ALiBi, in scores",
        }.get(self.model.config.positions, "no positions")
        self._ghost(said, 150, 22, "pill", f"{said}; the paper adds positions here")

    def _sublayer(self, sublayer: Sublayer) -> None:
        """Draws a sublayer with its norms and the residual around it."""
        norm, add = self._find("norm", sublayer), self._find("add", sublayer)
        below = self.y - 8
        if norm is not None:
            self._place(norm, _BOX, 22)
            self.y += 22
            self._rise(10)
        if self.chosen.stack == self.stack and self.chosen.sublayer == sublayer and self.chosen not in (norm, add):
            self._open(sublayer)
        else:
            first = next(s for s in self.own.values() if s.sublayer == sublayer and s != norm)
            if sublayer == "cross":
                self.port = (self.x - _OPEN / 2, self.y + 19)
            self._place(first, _OPEN, 38, label=self._title(sublayer), kind=first.kind, folded=True)
            self.y += 38
        if add is not None:
            self._rise(10)
            if self.model.config.residual:
                self._around(below, self.y + 11, add)
            self._place(add, _BOX, 22)
            self.y += 22
        self._rise(18)

    def _around(self, below: float, above: float, add: Step) -> None:
        """Draws the residual: from below the sublayer to the sum, on the outer side."""
        side = -1 if self.stack == "encoder" else 1
        outer = self.x + side * (_OPEN / 2 + 9)
        self.drawing.lines.append(
            Line(
                ((self.x, below), (outer, below), (outer, above), (self.x + side * _BOX / 2, above)),
                into=str(add),
                carries="x",
            )
        )

    def _open(self, sublayer: Sublayer) -> None:
        """Unfolds a sublayer; attention as in figure 2 of the paper, from the three linear maps to the last one."""
        bottom = self.y
        if sublayer == "cross":
            self.port = (self.x - _OPEN / 2, self.y + 19)
        self.y += 8
        start = self.y + 11  # where the values leave for their weights
        inside = [s for s in self.own.values() if s.sublayer == sublayer and s.name not in ("norm", "add")]
        unscaled = any(str(step) == f"{self.stack}.{sublayer}.scaled" for step in missing_steps(self.model))
        for step in inside:
            if step.name == "masked" and unscaled:
                self._ghost("no ÷ √dₖ", _PILL, 18, "pill", "This model's scores are not divided by the root of d_k")
                self._rise(6, arrow=False)
            self._place(step, _PILL, 22, shape="pill", kind=step.kind if step.per_head else None)
            if step.name == "context":
                right = self.x + _PILL / 2
                way = ((right, start), (right + 12, start), (right + 12, self.y + 11), (right, self.y + 11))
                self.drawing.lines.append(Line(way, step.kind, into=str(step), carries="v"))
            self.y += 22
            if step != inside[-1]:
                is_flow = sublayer in ("ffn", "recurrent")
                self._rise(8 if is_flow else 6, arrow=is_flow)
        self.y += 22
        frame = Frame(
            self.x - _OPEN / 2, bottom, _OPEN, self.y - bottom, self._title(sublayer), "top", kind=inside[0].kind
        )
        self.drawing.frames.append(frame)

    def _title(self, sublayer: Sublayer) -> str:
        """Returns the sublayer's name; masked only where the pass hid later tokens."""
        if sublayer == "ffn":
            return "Feed forward"
        if isinstance(self.model, RecurrentModel):
            return recurrent_title(self.model, self.stack, sublayer)
        is_masked = self.masked and (self.stack, sublayer) == ("decoder", "self")
        return "Masked multi-head attention" if is_masked else "Multi-head attention"

    def _layer_frame(self, bottom: float) -> None:
        """Draws the outline of the layer, with N × on top: the step of all layers, where there are several."""
        n = n_layers(self.model, self.stack)
        step, height = self._find("layers"), 20
        top = self.y + height / 2 if step is not None else self.y - 6
        self.drawing.frames.insert(0, Frame(self.x - 101, bottom, 202, top - bottom, sheets=min(n - 1, 3)))
        if step is not None:
            self._place(step, 150, height, shape="pill", label=f"× {n} layers · layer {self.layer} shown")
            self.y += height


def _drawn_in(step: Step) -> Stack:
    """Returns the column of a step: the decoder's start stands on the vector that it is made of."""
    return "encoder" if step.name == "start" else step.stack
