"""The map of a model: the paper's figure 1 laid out for it, with the chosen block unfolded as figure 2; and what shapes
a pass has at its stations.

Plain numbers and words; nothing is drawn here. Data flow from below to above, as in the paper.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from transformer.analysis.trace.comparison import open_station
from transformer.analysis.trace.names import short_name
from transformer.analysis.trace.steps import Name, Part, Station, missing_stations, n_layers, stations, switches_at
from transformer.analysis.trace.trace import Trace, sees_later
from transformer.figures.trace.diagram import WIDTH, Box, Drawing, Frame, Line
from transformer.interventions import Intervention
from transformer.model.kinds import AttentionKind, KindName
from transformer.model.taps import Stack
from transformer.model.transformer import Transformer

Shape = tuple[int, ...]
_STACKS: tuple[Stack, Stack] = ("encoder", "decoder")
_COLUMN = {"encoder": 112.0, "decoder": 338.0}
"""The middle of each stack."""
_BOX, _OPEN, _PILL = 150.0, 166.0, 122.0
"""Widths: a box, an unfolded block, a step inside it."""
_CROSSING = WIDTH / 2
"""Where the encoder's memory goes over to the decoder."""
_TITLES: dict[tuple[Stack, Part], str] = {
    ("encoder", "self"): "Multi-head attention",
    ("decoder", "self"): "Masked multi-head attention",
    ("decoder", "cross"): "Multi-head attention",
    ("encoder", "ffn"): "Feed forward",
    ("decoder", "ffn"): "Feed forward",
}
_KINDS: dict[tuple[str, str], AttentionKind] = {kind.where: kind for kind in AttentionKind}


def unfolded(model: Transformer, layer: int) -> dict[Stack, int]:
    """The layer of each stack that is on the map: this one, the last one where a stack is not as high."""
    return {stack: min(layer, n_layers(model, stack) - 1) for stack in _STACKS}


def draw_map(
    model: Transformer,
    chosen: Station,
    layer: int = 0,
    switches: Sequence[Intervention] = (),
    say: Callable[[Intervention], str] = str,
) -> Drawing:
    """The map of a model at a station of a layer, with what switches act there; `say` names a switch."""
    order, layers = stations(model), unfolded(model, layer)
    if chosen not in order:
        raise ValueError(f"this model has no station {chosen}")
    switched = {
        station: tuple(map(say, switches_at(station, layers[station.stack], switches, model))) for station in order
    }
    drawing = Drawing()
    tops: dict[Stack, float] = {}
    ports: dict[Stack, tuple[float, float]] = {}
    for stack in _STACKS:
        masked = not sees_later(model, switches)
        column = _Column(drawing, model, stack, chosen, layers[stack], switched, masked)
        tops[stack], ports[stack] = column.build()
    x, y = _COLUMN["encoder"], tops["encoder"]
    cross_x, cross_y = ports["decoder"]
    drawing.lines.append(
        Line(((x, y), (x, y + 14), (_CROSSING, y + 14), (_CROSSING, cross_y), (cross_x, cross_y)), "cross")
    )
    drawing.height = max(tops["encoder"] + 26, tops["decoder"] + 6)
    return drawing


def map_shapes(model: Transformer, walk: Trace, drawing: Drawing, layer: int = 0) -> dict[str, dict[str, Shape]]:
    """The shape of every array that comes out of each station on the map, by their names; of a folded block, of what
    comes out of the block."""
    own = {str(station): station for station in stations(model)}
    layers = unfolded(model, layer)
    found: dict[str, dict[str, Shape]] = {}
    for box in drawing.boxes:
        if box.ghost:
            continue
        station = own[box.station]
        last = Station(station.stack, station.sublayer, "output") if box.folded else station
        opened = open_station(model, walk, last, layers[last.stack] if last.in_layer else 0)
        found[box.station] = {
            shown.name: shown.values.shape[:1] if shown.columns == "id" else shown.values.shape
            for shown in opened.comes_out
        }
    return found


class _Column:
    """One stack, built from below."""

    def __init__(
        self,
        drawing: Drawing,
        model: Transformer,
        stack: Stack,
        chosen: Station,
        layer: int,
        switched: Mapping[Station, tuple[str, ...]],
        masked: bool,
    ) -> None:
        self.stack: Stack = stack
        self.masked = masked
        self.drawing, self.model, self.config = drawing, model, model.config
        self.chosen, self.layer, self.switched = chosen, layer, switched
        self.own = [station for station in stations(model) if station.stack == stack]
        self.x, self.y = _COLUMN[stack], 4.0
        self.port = (0.0, 0.0)
        """Where the encoder's memory comes in."""

    def build(self) -> tuple[float, tuple[float, float]]:
        """The height that the stack has reached, and the port of its cross-attention."""
        self._single("ids", 24, shape="text")
        self._rise(12)
        self._single("embedding", 30)
        self._rise(12)
        self._positions()
        self._rise(22)
        bottom = self.y - 12
        sublayers: tuple[Part, ...] = ("self", "ffn") if self.stack == "encoder" else ("self", "cross", "ffn")
        for sublayer in sublayers:
            self._sublayer(sublayer)
        self._layer_frame(bottom)
        ends: tuple[tuple[Name, float], ...] = (("final", 22), ("logits", 26), ("probabilities", 26))
        for name, height in ends:
            if Station(self.stack, None, name) in self.own:
                self._rise(14)
                self._single(name, height)
        return self.y, self.port

    def _single(self, name: Name, height: float, *, shape: Literal["box", "text"] = "box") -> None:
        self._place(Station(self.stack, None, name), _BOX, height, shape=shape)
        self.y += height

    def _place(
        self,
        station: Station,
        width: float,
        height: float,
        *,
        x: float | None = None,
        shape: Literal["box", "pill", "circle", "text"] = "box",
        label: str | None = None,
        kind: KindName | None = None,
        folded: bool = False,
    ) -> None:
        own = short_name(station, self.model) if label is None else label
        inside = [s for s in self.own if s.sublayer == station.sublayer] if folded else [station]
        switched = tuple(dict.fromkeys(text for s in inside for text in self.switched.get(s, ())))
        where = f"{self.stack}{f', layer {self.layer}' if station.in_layer else ''}"
        self.drawing.boxes.append(
            Box(
                str(station),
                (self.x if x is None else x) - width / 2,
                self.y,
                width,
                height,
                own,
                f"{own}, {where}{', unfold' if folded else ''}{', switched' if switched else ''}",
                shape,
                kind,
                station == self.chosen and not folded,
                folded=folded,
                switched=switched,
            )
        )

    def _ghost(self, label: str, width: float, height: float, shape: Literal["box", "pill"], said: str) -> None:
        box = Box("", self.x - width / 2, self.y, width, height, label, said, shape, ghost=True)
        self.drawing.boxes.append(box)
        self.y += height

    def _rise(self, height: float, *, arrow: bool = True) -> None:
        """A piece of the way up."""
        if height:
            self.drawing.lines.append(Line(((self.x, self.y), (self.x, self.y + height)), arrow=arrow))
        self.y += height

    def _positions(self) -> None:
        station = Station(self.stack, None, "positions")
        if station in self.own:
            self._place(station, 112, 24, shape="pill", label="+ position")
            self.y += 24
            return
        said = {
            "rotary": "positions: turned in Q, K",
            "alibi": "positions: ALiBi, in scores",
        }.get(self.config.positions, "no positions")
        self._ghost(said, 150, 22, "pill", f"{said}; the paper adds positions here")

    def _sublayer(self, sublayer: Part) -> None:
        """A block with its norms and the way around it."""
        norm, add = Station(self.stack, sublayer, "norm"), Station(self.stack, sublayer, "add")
        below = self.y - 8
        if norm in self.own:
            self._place(norm, _BOX, 22)
            self.y += 22
            self._rise(10)
        if self.chosen.stack == self.stack and self.chosen.sublayer == sublayer and self.chosen not in (norm, add):
            (self._open_ffn if sublayer == "ffn" else self._open_attention)(sublayer)
        else:
            first = next(s for s in self.own if s.sublayer == sublayer and s.name in ("qkv", "hidden"))
            if sublayer == "cross":
                self.port = (self.x - _OPEN / 2, self.y + 19)
            label, kind = self._title(sublayer), _KINDS.get((self.stack, sublayer))
            self._place(first, _OPEN, 38, label=label, kind=kind, folded=True)
            self.y += 38
        if add in self.own:
            self._rise(10)
            if self.config.residual:
                self._around(below, self.y + 11)
            self._place(add, _BOX, 22)
            self.y += 22
        self._rise(18)

    def _around(self, below: float, above: float) -> None:
        """The residual: from below the block to the sum, on the outer side."""
        side = -1 if self.stack == "encoder" else 1
        outer = self.x + side * (_OPEN / 2 + 9)
        self.drawing.lines.append(
            Line(((self.x, below), (outer, below), (outer, above), (self.x + side * _BOX / 2, above)))
        )

    def _open_ffn(self, sublayer: Part) -> None:
        bottom = self.y
        self.y += 8
        self._place(Station(self.stack, sublayer, "hidden"), _PILL, 22, shape="pill")
        self.y += 22
        self._rise(8)
        self._place(Station(self.stack, sublayer, "output"), _PILL, 22, shape="pill")
        self.y += 22
        self._close(bottom, sublayer)

    def _open_attention(self, sublayer: Part) -> None:
        """Figure 2 of the paper, from the three linear maps to the last one."""
        bottom, kind = self.y, _KINDS[self.stack, sublayer]
        if sublayer == "cross":
            self.port = (self.x - _OPEN / 2, self.y + 19)
        self.y += 8
        start = self.y + 11  # where the values leave for their weights
        inside = [s for s in self.own if s.sublayer == sublayer and s.name not in ("norm", "add")]
        gone = Station(self.stack, sublayer, "scaled") in missing_stations(self.model)
        for station in inside:
            if station.name == "masked" and gone:
                self._ghost("no ÷ √dₖ", _PILL, 18, "pill", "This model's scores are not divided by the root of d_k")
                self._rise(6, arrow=False)
            self._place(station, _PILL, 22, shape="pill", kind=kind if station.per_head else None)
            if station.name == "context":
                right = self.x + _PILL / 2
                way = ((right, start), (right + 12, start), (right + 12, self.y + 11), (right, self.y + 11))
                self.drawing.lines.append(Line(way, kind))
            self.y += 22
            if station != inside[-1]:
                self._rise(6, arrow=False)
        self._close(bottom, sublayer)

    def _close(self, bottom: float, sublayer: Part) -> None:
        """The outline of an unfolded block, its name on top."""
        self.y += 22
        title, kind = self._title(sublayer), _KINDS.get((self.stack, sublayer))
        frame = Frame(self.x - _OPEN / 2, bottom, _OPEN, self.y - bottom, title, "top", kind=kind)
        self.drawing.frames.append(frame)

    def _title(self, sublayer: Part) -> str:
        """The block's name; masked only where the pass hid later tokens."""
        at = self.stack, sublayer
        return _TITLES["encoder", "self"] if at == ("decoder", "self") and not self.masked else _TITLES[at]

    def _layer_frame(self, bottom: float) -> None:
        """The outline of the layer, N × beside it: that is the station of all layers where there are several."""
        n = n_layers(self.model, self.stack)
        station, height = Station(self.stack, None, "layers"), 20
        several = station in self.own
        top = self.y + height / 2 if several else self.y - 6
        self.drawing.frames.insert(0, Frame(self.x - 101, bottom, 202, top - bottom, sheets=min(n - 1, 3)))
        if several:
            self._place(station, 150, height, shape="pill", label=f"× {n} layers · layer {self.layer} shown")
            self.y += height
