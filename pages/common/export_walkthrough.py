"""What is taken away of the Walkthrough: the chosen station's numbers for all tokens."""

from dataclasses import replace

import numpy as np

from pages.common.exports import Away, opening_lines, papered, take_away
from pages.common.pictures import is_dark
from pages.common.scene import Scene
from pages.common.walkthrough_choices import Place, kind_of
from pages.common.walkthrough_panel import strips_of
from transformer.analysis.walkthrough import Opened, Shown
from transformer.figures.labels import hover_label
from transformer.figures.tables import Table
from transformer.figures.walkthrough import Strip, strips_figure

_ROWS = {"source": "seen.source_tokens", "target": "seen.decoder_inputs"}


def take_station_away(scene: Scene, place: Place, opened: Opened) -> None:
    """The popover under an opened station."""
    take_away(scene, "walkthrough", {"station": lambda: _station(scene, place, opened)}, key="take-station")


def _station(scene: Scene, place: Place, opened: Opened) -> Away:
    shown = opened.comes_out[-1]
    strip, how = _strip(scene, place, shown)
    figure = strips_figure([replace(strip, name=hover_label(strip.name))], kind=kind_of(place), dark=is_dark())
    station, layer = place.station, place.layer
    lines = [
        *opening_lines(
            scene,
            [
                "from transformer.analysis.stations import Station",
                "from transformer.analysis.walkthrough import open_station",
                "from transformer.analysis.whole_pass import record_pass",
                "from transformer.figures.walkthrough import Strip, strips_figure",
            ],
        ),
        "again = (*lab.tokenizer.encode(seen.text), lab.model.config.eos_id)",
        "ids = seen.source_ids, seen.target_ids, seen.interventions",
        "walk = record_pass(lab.model, *ids, log_probs=seen.log_probs, source_again=again)",
        f"station = Station({station.stack!r}, {station.block!r}, {station.name!r})",
        f"shown = open_station(lab.model, walk, station, {layer}).comes_out[-1]",
        *how,
        f"figure = strips_figure([strip], kind={kind_of(place)!r})",
    ]
    where = f"-layer{layer}" * station.in_layer + f"-head{place.head}" * station.per_head
    name = f"{scene.lab.name}-{str(station).replace('.', '-')}{where}"
    tables = tuple(_table(scene, place, value) for value in opened.comes_out)
    return Away(name, papered(figure, dark=is_dark(), width=820), tables, "\n".join(lines))


def _strip(scene: Scene, place: Place, shown: Shown) -> tuple[Strip, list[str]]:
    """The last thing that comes out, and the lines that make its strip."""
    if shown.columns == "id":
        tokens = _ROWS[shown.rows]
        strip = Strip("ids", shown.values[:, 0], _tokens(scene, shown.rows), scale="plain")
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
    columns = _tokens(scene, shown.columns)
    if shown.columns == "vocab":
        columns = scene.lab.tokenizer.vocabulary()
    names = [f"{i} {token}" for i, token in enumerate(columns)] if columns else list(map(str, range(values.shape[1])))
    rows = [f"{i} {token}" for i, token in enumerate(_tokens(scene, shown.rows))]
    return Table(shown.name, np.asarray(values), rows, names)


def _tokens(scene: Scene, axis: str) -> tuple[str, ...]:
    seen = scene.inspection
    return {"source": seen.source_tokens, "target": seen.decoder_inputs}.get(axis, ())
