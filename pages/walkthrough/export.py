"""What is taken away of the Walkthrough: the map with a pass's shapes, a station's numbers for all tokens."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from pages.shared.context import PageContext, is_dark
from pages.shared.exports import Export, opening_lines, papered, take_away
from pages.walkthrough.choices import Place, kind_of
from pages.walkthrough.panel import ALL, IN, N_BEST, OUT, drawn_strips, of_all_rows, tokens_of
from transformer.analysis.trace.comparison import Opened, Shown
from transformer.analysis.trace.diagram import draw_map, map_shapes
from transformer.analysis.trace.trace import Trace
from transformer.figures.labels import hover_label
from transformer.figures.tables import Table
from transformer.figures.trace.arrays import Strip, strips_figure
from transformer.figures.trace.diagram import map_figure

_ROWS = {"source": "seen.source_tokens", "target": "seen.decoder_inputs[: len(walk.inputs)]"}


def take_map_away(context: PageContext, place: Place, walk: Trace) -> None:
    """The popover under the map."""
    take_away(context, "walkthrough", {"map": lambda: _map(context, place, walk)}, key="take-map")


def take_station_away(context: PageContext, place: Place, walk: Trace, opened: Opened) -> None:
    """The popover under an opened station."""
    drawn = drawn_strips(context, place, opened)
    figures = {name: partial(_station, context, place, walk, opened, name, drawn[name]) for name in reversed(drawn)}
    take_away(context, "walkthrough", figures, key="take-station")


def _station(
    context: PageContext, place: Place, walk: Trace, opened: Opened, picture: str, strips: Sequence[Strip]
) -> Export:
    values = {IN: opened.comes_in, OUT: opened.comes_out, ALL: of_all_rows(opened)}[picture]
    safe = [replace(strip, name=hover_label(strip.name)) for strip in strips]
    figure = strips_figure(safe, kind=kind_of(place), dark=is_dark())
    station, layer = place.station, place.layer
    imports = [
        "from transformer.analysis.trace.comparison import open_station",
        "from transformer.figures.trace.arrays import Strip, strips_figure",
    ]
    lines = [
        *_walk_lines(context, place, walk, imports),
        f"opened = open_station(lab.model, walk, station, {layer})",
        f"shown = opened.comes_{'in' if picture == IN else 'out'}",
        *_strip_lines(opened, place, picture, values, strips),
        "numbers = [strip.values for strip in strips]",
        f"figure = strips_figure(strips, kind={kind_of(place)!r})",
    ]
    name = f"{context.lab.name}-{_file_name(place)}" + f"-head{place.head}" * station.per_head
    name += f"-{picture.lower().replace(' ', '-')}"
    tables = tuple(table for value in values for table in _tables(context, place, value))
    return Export(name, papered(figure, dark=is_dark(), width=820), tables, "\n".join(lines))


def _map(context: PageContext, place: Place, walk: Trace) -> Export:
    model, layer = context.lab.model, place.layer
    drawing = draw_map(model, place.station, layer, context.inspection.interventions)
    shapes = map_shapes(model, walk, drawing, layer)
    imports = [
        "from transformer.analysis.trace.diagram import draw_map, map_shapes",
        "from transformer.figures.trace.diagram import map_figure",
    ]
    lines = [
        *_walk_lines(context, place, walk, imports),
        f"drawing = draw_map(lab.model, station, {layer}, seen.interventions)",
        f"numbers = map_shapes(lab.model, walk, drawing, {layer})",
        "figure = map_figure(drawing, numbers)",
    ]
    named = {f"{station} {name}": shape for station, arrays in shapes.items() for name, shape in arrays.items()}
    sizes = np.array([shape if len(shape) == 3 else (1, *shape, 1)[:3] for shape in named.values()])
    table = Table("shape", sizes, list(named), ["heads", "rows", "columns"])
    figure = map_figure(drawing, shapes, dark=is_dark())
    return Export(f"{context.lab.name}-map-{_file_name(place)}", figure, (table,), "\n".join(lines))


def _walk_lines(context: PageContext, place: Place, walk: Trace, imports: Sequence[str]) -> list[str]:
    """The first lines of a program about the recorded pass: `walk` is the pass, `station` the chosen one."""
    needed = [
        "from transformer.analysis.trace.steps import Station",
        "from transformer.analysis.trace.trace import record_pass",
    ]
    station, step = place.station, f", step={walk.last}" * walk.sees_later
    return [
        *opening_lines(context, [*imports, *needed]),
        "again = (*lab.tokenizer.encode(seen.text), lab.model.config.eos_id)",
        "ids = seen.source_ids, seen.target_ids, seen.interventions",
        f"walk = record_pass(lab.model, *ids, log_probs=seen.log_probs, source_again=again{step})",
        f"station = Station({station.stack!r}, {station.sublayer!r}, {station.name!r})",
    ]


def _file_name(place: Place) -> str:
    station = place.station
    return str(station).replace(".", "-") + f"-layer{place.layer}" * station.in_layer


def _strip_lines(
    opened: Opened, place: Place, picture: str, values: Sequence[Shown], strips: Sequence[Strip]
) -> list[str]:
    """The lines that make the strips of a picture out of what comes in or out, `shown`."""
    if place.station.name == "ids":
        (strip,) = strips
        made = f"Strip({strip.name!r}, shown[0].values[:, 0], {_ROWS[values[0].rows]}, scale='plain')"
        return [f"strips = [{made}]"]
    arrays = opened.comes_in if picture == IN else opened.comes_out
    lines, sources = [], []
    for shown in values:
        if shown.columns == "id":
            continue
        at = f"shown[{next(i for i, value in enumerate(arrays) if value is shown)}]"
        if shown.columns == "vocab":
            lines += [
                f"row = {at}.values[{place.step}]",
                f"best = (-row).argsort(kind='stable')[:{N_BEST}]",
                "tokens = [lab.tokenizer.piece(int(i)) for i in best]",
            ]
            sources.append(("row[best], tokens", ""))
            continue
        head = f"[{place.head}]" * (shown.values.ndim == 3)
        columns, masked = _ROWS.get(shown.columns, "None"), shown.allowed is not None
        if picture == ALL or shown.every_row:
            sources.append(
                (f"{at}.values{head}, {columns}, {_ROWS.get(shown.rows, 'None')}", f", allowed={at}.allowed" * masked)
            )
            continue
        allowed = f", allowed={at}.allowed[{place.row}]" * masked
        for name in ["before"] * (shown.before is not None) + ["values"]:
            sources.append((f"{at}.{name}{head}[{place.row}], {columns}", allowed))
    lines.append("strips = [")
    for strip, (array, allowed) in zip(strips, sources, strict=True):
        look = f"{allowed}, scale={strip.scale!r}" + f", chosen={strip.chosen}" * (strip.chosen is not None)
        lines.append(f"    Strip({strip.name!r}, {array}{look}),")
    return [*lines, "]"]


def _tables(context: PageContext, place: Place, shown: Shown) -> list[Table]:
    """The numbers of all tokens; where a switch put others in place, those that the model computed too."""
    found = [(shown.name, shown.values)]
    if shown.before is not None:
        found.append((f"{shown.name}, as computed", shown.before))
    return [_table(context, place, shown, name, values) for name, values in found]


def _table(context: PageContext, place: Place, shown: Shown, name: str, values: np.ndarray) -> Table:
    values = values[place.head] if values.ndim == 3 else values
    columns = tokens_of(context, shown.columns, values.shape[1])
    if shown.columns == "vocab":
        columns = context.lab.tokenizer.vocabulary()
    names = [f"{i} {token}" for i, token in enumerate(columns)] if columns else list(map(str, range(values.shape[1])))
    rows = [
        f"{i} {token}".strip()
        for i, token in enumerate(tokens_of(context, shown.rows, len(values)) or [""] * len(values))
    ]
    return Table(name, np.asarray(values), rows, names)
