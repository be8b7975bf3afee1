"""What is taken away of the Walkthrough: the map with a pass's shapes, a station's numbers for all tokens."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pages.common.exports import Away, opening_lines, papered, take_away
from pages.common.pictures import is_dark
from pages.common.scene import Scene
from pages.common.walkthrough_choices import Place, kind_of
from pages.common.walkthrough_panel import strips_of, tokens_of
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
    take_away(scene, "walkthrough", {"station": lambda: _station(scene, place, walk, opened)}, key="take-station")


def _station(scene: Scene, place: Place, walk: WholePass, opened: Opened) -> Away:
    shown = opened.comes_out[-1]
    strip, how = _strip(scene, place, shown)
    figure = strips_figure([replace(strip, name=hover_label(strip.name))], kind=kind_of(place), dark=is_dark())
    station, layer = place.station, place.layer
    imports = [
        "from transformer.analysis.walkthrough import open_station",
        "from transformer.figures.walkthrough import Strip, strips_figure",
    ]
    lines = [
        *_walk_lines(scene, place, walk, imports),
        f"shown = open_station(lab.model, walk, station, {layer}).comes_out[-1]",
        *how,
        f"figure = strips_figure([strip], kind={kind_of(place)!r})",
    ]
    name = f"{scene.lab.name}-{_file_name(place)}" + f"-head{place.head}" * station.per_head
    tables = tuple(_table(scene, place, value) for value in opened.comes_out)
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


def _strip(scene: Scene, place: Place, shown: Shown) -> tuple[Strip, list[str]]:
    """The last thing that comes out, and the lines that make its strip."""
    if shown.columns == "id":
        tokens = _ROWS[shown.rows]
        strip = Strip("ids", shown.values[:, 0], tokens_of(scene, shown.rows, len(shown.values)), scale="plain")
        return strip, ["numbers = shown.values[:, 0]", f"strip = Strip('ids', numbers, {tokens}, scale='plain')"]
    (strip,) = strips_of(scene, place, [shown], chosen_row=False)
    if shown.columns == "vocab":
        return strip, [
            f"row = shown.values[{place.step}]",
            f"best = (-row).argsort(kind='stable')[:{len(strip.values)}]",
            "numbers = row[best]",
            "tokens = [lab.tokenizer.piece(int(i)) for i in best]",
            f"strip = Strip({strip.name!r}, numbers, tokens, scale={strip.scale!r})",
        ]
    head = f"[{place.head}]" * (shown.values.ndim == 3)
    columns = _ROWS.get(shown.columns, "None")
    chosen = f", scale={strip.scale!r}, chosen={strip.chosen!r}"
    return strip, [
        f"numbers = shown.values{head}",
        f"strip = Strip({strip.name!r}, numbers, {columns}, {_ROWS[shown.rows]}, shown.allowed{chosen})",
    ]


def _table(scene: Scene, place: Place, shown: Shown) -> Table:
    values = shown.values[place.head] if shown.values.ndim == 3 else shown.values
    columns = tokens_of(scene, shown.columns, values.shape[1])
    if shown.columns == "vocab":
        columns = scene.lab.tokenizer.vocabulary()
    names = [f"{i} {token}" for i, token in enumerate(columns)] if columns else list(map(str, range(values.shape[1])))
    rows = [f"{i} {token}" for i, token in enumerate(tokens_of(scene, shown.rows, len(values)) or ())]
    return Table(shown.name, np.asarray(values), rows, names)
