"""What is taken away of the Walkthrough: the map with a pass's shapes, a station's numbers for all tokens."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from pages.common.exports import Away, opening_lines, papered, take_away
from pages.common.pictures import is_dark
from pages.common.scene import Scene
from pages.common.walkthrough_choices import Place, kind_of
from pages.common.walkthrough_panel import ALL, IN, N_BEST, OUT, drawn_strips, of_all_rows, tokens_of
from transformer.analysis.station_map import draw_map, map_shapes
from transformer.analysis.walkthrough import Opened, Shown
from transformer.analysis.whole_pass import WholePass
from transformer.figures.labels import hover_label
from transformer.figures.station_map import map_figure
from transformer.figures.tables import Table
from transformer.figures.walkthrough import Strip, strips_figure

_ROWS = {"source": "seen.source_tokens", "target": "seen.decoder_inputs[: len(walk.inputs)]"}


def take_map_away(scene: Scene, place: Place, walk: WholePass) -> None:
    """The popover under the map."""
    take_away(scene, "walkthrough", {"map": lambda: _map(scene, place, walk)}, key="take-map")


def take_station_away(scene: Scene, place: Place, walk: WholePass, opened: Opened) -> None:
    """The popover under an opened station."""
    drawn = drawn_strips(scene, place, opened)
    figures = {name: partial(_station, scene, place, walk, opened, name, drawn[name]) for name in reversed(drawn)}
    take_away(scene, "walkthrough", figures, key="take-station")


def _station(
    scene: Scene, place: Place, walk: WholePass, opened: Opened, picture: str, strips: Sequence[Strip]
) -> Away:
    values = {IN: opened.comes_in, OUT: opened.comes_out, ALL: of_all_rows(opened)}[picture]
    safe = [replace(strip, name=hover_label(strip.name)) for strip in strips]
    figure = strips_figure(safe, kind=kind_of(place), dark=is_dark())
    station, layer = place.station, place.layer
    imports = [
        "from transformer.analysis.walkthrough import open_station",
        "from transformer.figures.walkthrough import Strip, strips_figure",
    ]
    lines = [
        *_walk_lines(scene, place, walk, imports),
        f"opened = open_station(lab.model, walk, station, {layer})",
        f"shown = opened.comes_{'in' if picture == IN else 'out'}",
        *_strip_lines(opened, place, picture, values, strips),
        "numbers = [strip.values for strip in strips]",
        f"figure = strips_figure(strips, kind={kind_of(place)!r})",
    ]
    name = f"{scene.lab.name}-{_file_name(place)}" + f"-head{place.head}" * station.per_head
    name += f"-{picture.lower().replace(' ', '-')}"
    tables = tuple(table for value in values for table in _tables(scene, place, value))
    return Away(name, papered(figure, dark=is_dark(), width=820), tables, "\n".join(lines))


def _map(scene: Scene, place: Place, walk: WholePass) -> Away:
    model, layer = scene.lab.model, place.layer
    drawing = draw_map(model, place.station, layer, scene.inspection.interventions)
    shapes = map_shapes(model, walk, drawing, layer)
    imports = [
        "from transformer.analysis.station_map import draw_map, map_shapes",
        "from transformer.figures.station_map import map_figure",
    ]
    lines = [
        *_walk_lines(scene, place, walk, imports),
        f"drawing = draw_map(lab.model, station, {layer}, seen.interventions)",
        f"numbers = map_shapes(lab.model, walk, drawing, {layer})",
        "figure = map_figure(drawing, numbers)",
    ]
    named = {f"{station} {name}": shape for station, arrays in shapes.items() for name, shape in arrays.items()}
    sizes = np.array([shape if len(shape) == 3 else (1, *shape, 1)[:3] for shape in named.values()])
    table = Table("shape", sizes, list(named), ["heads", "rows", "columns"])
    figure = map_figure(drawing, shapes, dark=is_dark())
    return Away(f"{scene.lab.name}-map-{_file_name(place)}", figure, (table,), "\n".join(lines))


def _walk_lines(scene: Scene, place: Place, walk: WholePass, imports: Sequence[str]) -> list[str]:
    """The first lines of a program about the recorded pass: `walk` is the pass, `station` the chosen one."""
    needed = [
        "from transformer.analysis.stations import Station",
        "from transformer.analysis.whole_pass import record_pass",
    ]
    station, step = place.station, f", step={walk.last}" * walk.sees_later
    return [
        *opening_lines(scene, [*imports, *needed]),
        "again = (*lab.tokenizer.encode(seen.text), lab.model.config.eos_id)",
        "ids = seen.source_ids, seen.target_ids, seen.interventions",
        f"walk = record_pass(lab.model, *ids, log_probs=seen.log_probs, source_again=again{step})",
        f"station = Station({station.stack!r}, {station.block!r}, {station.name!r})",
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


def _tables(scene: Scene, place: Place, shown: Shown) -> list[Table]:
    """The numbers of all tokens; where a switch put others in place, those that the model computed too."""
    found = [(shown.name, shown.values)]
    if shown.before is not None:
        found.append((f"{shown.name}, as computed", shown.before))
    return [_table(scene, place, shown, name, values) for name, values in found]


def _table(scene: Scene, place: Place, shown: Shown, name: str, values: np.ndarray) -> Table:
    values = values[place.head] if values.ndim == 3 else values
    columns = tokens_of(scene, shown.columns, values.shape[1])
    if shown.columns == "vocab":
        columns = scene.lab.tokenizer.vocabulary()
    names = [f"{i} {token}" for i, token in enumerate(columns)] if columns else list(map(str, range(values.shape[1])))
    rows = [
        f"{i} {token}".strip()
        for i, token in enumerate(tokens_of(scene, shown.rows, len(values)) or [""] * len(values))
    ]
    return Table(name, np.asarray(values), rows, names)
