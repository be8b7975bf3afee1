"""One station of the Walkthrough, opened beside the map: what comes in, the equation, what comes out, the source."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import streamlit as st
from numpy import ndarray

from pages.shared import fields, wording
from pages.shared.components.walkthrough_map import walkthrough_map
from pages.shared.context import is_dark
from pages.shared.controls import PageContext
from pages.shared.scrolling_figure import scrolling_figure
from pages.shared.url.session import choose
from pages.walkthrough.checks import check_station
from pages.walkthrough.choices import MAP, PAGE, Place, go_to, kind_of
from pages.walkthrough.step_text import told
from transformer.analysis.trace.comparison import Opened, Shown, open_station
from transformer.analysis.trace.diagram import draw_map, unfolded
from transformer.analysis.trace.names import short_name, sublayer_name
from transformer.analysis.trace.steps import n_layers
from transformer.analysis.trace.trace import Trace
from transformer.figures.labels import hover_label
from transformer.figures.trace.arrays import Scale, Strip, strips_figure
from transformer.interventions import Intervention
from transformer.model.taps import Stack

IN, OUT, ALL = "Comes in", "Comes out", "All tokens"
"""The pictures of a station."""
N_BEST = 12
"""Tokens of the vocabulary that are shown."""
_ARROW = ":material/arrow_forward:"


def show_map(context: PageContext, place: Place) -> None:
    """The architecture with the chosen station, and what switches act on."""
    model, switches = context.lab.model, context.inspection.interventions
    layers = unfolded(model, place.layer)
    drawing = draw_map(model, place.station, place.layer, switches, Intervention.label)
    walkthrough_map(
        drawing.data(),
        order=[(str(station), layers[station.stack]) for station in place.order],
        chosen=str(place.station),
        label=f"Map of {context.lab.name}. Arrow keys go from station to station, in the order of the computation.",
        key=MAP,
    )
    elsewhere = _in_other_layers(context, layers)
    if elsewhere:
        st.caption(f":orange[●] Also switched, in a layer that is not unfolded: {wording.plain('; '.join(elsewhere))}.")


def choose_place(context: PageContext, place: Place) -> None:
    """Layer, head and the followed token: each where the station has one."""
    station, seen = place.station, context.inspection
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        if station.in_layer and n_layers(context.lab.model, station.stack) > 1 and station.name != "layers":
            options = list(range(n_layers(context.lab.model, station.stack)))
            fields.box(
                "Layer", options, place.layer, lambda layer: go_to(context, station, layer), key="walk-layer", width=84
            )
        if station.per_head:
            heads = range(context.lab.model.config.n_heads)
            fields.box("Head", heads, place.head, lambda head: choose(head=head), key="walk-head", width=84)
        name = "token" if station.stack == "encoder" else "step"
        tokens = seen.source_tokens if station.stack == "encoder" else seen.target_tokens
        fields.box(
            "Follow the token" if name == "token" else "Follow the step",
            range(len(tokens)),
            place.row,
            PAGE.take(name),
            key="walk-token",
            width=250,
            names=lambda i: f"{i} · {tokens[i]}" if name == "token" else _step_name(context, i),
        )


def walk_on(context: PageContext, place: Place, *, where: str) -> None:
    """The way back and on."""
    before = place.order[place.index - 1] if place.index else None
    after = place.order[place.index + 1] if place.index + 1 < len(place.order) else None
    model = context.lab.model
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.button(
            "Back" if before is None else f"Back: {short_name(before, model)}",
            key=f"walk-back-{where}",
            type="tertiary",
            icon=":material/arrow_back:",
            disabled=before is None,
            on_click=lambda: go_to(context, before or place.station, place.layer),
        )
        st.caption(f"{place.index + 1} of {len(place.order)}", width="content")
        st.button(
            "To the beginning" if after is None else f"Next: {short_name(after, model)}",
            key=f"walk-next-{where}",
            type="primary" if where == "below" else "secondary",
            icon=_ARROW,
            icon_position="right",
            on_click=lambda: go_to(context, after or place.order[0], place.layer),
        )


def show_station(context: PageContext, place: Place, walk: Trace) -> Opened:
    """What happens at the chosen station, with its real numbers."""
    station, config = place.station, context.lab.model.config
    opened = open_station(context.lab.model, walk, station, place.layer)
    lifted = walk.sees_later and config.causal_mask
    words = told(station, config, lifted=lifted, closed=_closed_by_switches(opened, walk))
    st.caption(_where(place, masked=not walk.sees_later))
    _tell_pass(place, walk)
    st.markdown(f"##### {words.title}")
    st.markdown(words.says)
    drawn = drawn_strips(context, place, opened)
    if comes_in := drawn.get(IN):
        st.caption(f"Comes in · {_shapes(opened.comes_in)}")
        _draw(comes_in, place, "walk-in")
    st.latex(words.equation)
    st.caption(f"In the paper: {words.paper[0].lower()}{words.paper[1:]}")
    _comes_out(context, place, opened, drawn)
    _tell_switches(opened)
    check_station(context, place, walk)
    _show_source(opened)
    _link(context, place)
    return opened


def drawn_strips(context: PageContext, place: Place, opened: Opened) -> dict[str, list[Strip]]:
    """What is drawn of a station, by picture: what comes in, what comes out, and that of all tokens."""
    name = place.station.name
    if name == "ids":
        ids = opened.comes_out[0]
        tokens = tokens_of(context, ids.rows, len(ids.values))
        return {OUT: [Strip("id of each token in the vocabulary", ids.values[:, 0], tokens, scale="plain")]}
    out = strips_of(context, place, opened.comes_out, chosen_row=True)
    found = {IN: strips_of(context, place, opened.comes_in, chosen_row=True), OUT: out}
    if name not in ("logits", "probabilities"):
        found[ALL] = strips_of(context, place, of_all_rows(opened), chosen_row=False)
    return {picture: strips for picture, strips in found.items() if strips}


def _comes_out(context: PageContext, place: Place, opened: Opened, drawn: Mapping[str, Sequence[Strip]]) -> None:
    name = place.station.name
    st.caption(f"Comes out · {_shapes(opened.comes_out)}{_not_kept(opened) * (name != 'ids')}")
    _draw(drawn[OUT], place, "walk-out")
    if name == "probabilities":
        written = context.inspection.target_tokens[place.step]
        p = float(opened.comes_out[0].values[place.step, context.inspection.target_ids[place.step]])
        st.markdown(f"It writes {wording.token(written)}, with probability **{wording.number(p)}**.")
    if whole := drawn.get(ALL):
        said = "All tokens" if not place.station.per_head else f"All tokens, head {place.head}"
        st.caption(f"{said} · the followed one is framed")
        _draw(whole, place, "walk-all")


def of_all_rows(opened: Opened) -> tuple[Shown, ...]:
    """What is also shown for all tokens: what comes out, unless it is already."""
    if opened.station.name in ("layers", "add"):
        return opened.comes_out[-1:]
    return tuple(shown for shown in opened.comes_out if not shown.every_row)


def strips_of(context: PageContext, place: Place, values: Sequence[Shown], *, chosen_row: bool) -> list[Strip]:
    """The arrays as strips of the followed token, or as matrices of all of them."""
    found: list[Strip] = []
    for shown in values:
        if shown.columns == "id":
            continue
        if shown.columns == "vocab":
            found.append(_best(context, place, shown))
            continue
        array = shown.values[place.head] if shown.values.ndim == 3 else shown.values
        before = None
        if shown.before is not None:
            before = shown.before[place.head] if shown.before.ndim == 3 else shown.before
        columns = tokens_of(context, shown.columns, array.shape[1])
        rows = tokens_of(context, shown.rows, array.shape[0])
        if chosen_row and not shown.every_row:
            if before is not None:
                found.append(_strip(f"{shown.name}, as computed", before, shown, columns, place.row))
            name = shown.name if before is None else f"{shown.name}, as a switch leaves it"
            found.append(_strip(name, array, shown, columns, place.row))
        else:
            allowed = None if shown.allowed is None else shown.allowed
            frame = None if shown.every_row else place.row
            found.append(Strip(shown.name, array, columns, rows, allowed, _scale(shown), frame))
    return found


def _strip(name: str, array: ndarray, shown: Shown, columns: Sequence[str] | None, row: int) -> Strip:
    allowed = None if shown.allowed is None else shown.allowed[row]
    return Strip(name, array[row], columns, allowed=allowed, scale=_scale(shown))


def _scale(shown: Shown) -> Scale:
    return "weights" if shown.name in ("weights", "probabilities") else "around 0"


def _best(context: PageContext, place: Place, shown: Shown) -> Strip:
    """A row over the vocabulary, cut down to its most probable tokens."""
    row = shown.values[place.step]
    best = np.argsort(-row, kind="stable")[:N_BEST]
    tokens = [context.lab.tokenizer.piece(int(i)) for i in best]
    name = f"{shown.name} of the {len(best)} best of {row.size:,} tokens"
    return Strip(name, row[best], tokens, scale=_scale(shown))


def tokens_of(context: PageContext, axis: str, length: int) -> tuple[str, ...] | None:
    """What stands at the rows or columns; of the output, as much as this pass has read. None where it is no token."""
    seen = context.inspection
    if axis == "source":
        return seen.source_tokens
    if axis == "target":
        return seen.decoder_inputs[:length]
    return None


def _draw(strips: Sequence[Strip], place: Place, key: str) -> None:
    safe = [replace(strip, name=hover_label(strip.name)) for strip in strips]
    scrolling_figure(strips_figure(safe, kind=kind_of(place), dark=is_dark()), key=key)


def _shapes(values: Sequence[Shown]) -> str:
    """The arrays with their shapes: scores 4 heads × 14 × 14."""
    named: dict[str, str] = {}
    for shown in values:
        sizes = shown.values.shape
        heads = f"{sizes[0]} head{'s' * (sizes[0] > 1)} × " if shown.values.ndim == 3 else ""
        named[shown.name] = f"{heads}{sizes[-2]} × {sizes[-1]:,}"
    if len(named) > 3 and len(set(named.values())) == 1:
        return f"{len(named)} times {next(iter(named.values()))}"
    return " · ".join(f"**{name}** {shape}" for name, shape in named.items())


def _not_kept(opened: Opened) -> str:
    return "" if any(shown.recorded for shown in opened.comes_out) else " · computed here, the pass does not keep it"


def _step_name(context: PageContext, step: int) -> str:
    read, written = context.inspection.decoder_inputs[step], context.inspection.target_tokens[step]
    return f"{step} · reads {read}, writes {written}"


def _tell_pass(place: Place, walk: Trace) -> None:
    """Which pass is shown, where every step has one of its own."""
    if walk.sees_later and place.station.stack == "decoder":
        n = walk.last
        before = f"the {n} token{'s' * (n > 1)} written before it, none after" if n else "the start mark alone"
        st.markdown(
            f":orange[:material/layers:] **Step {n}’s own pass**: {before}. Where later tokens are seen, no other step "
            "has these numbers."
        )


def _closed_by_switches(opened: Opened, walk: Trace) -> int:
    """Cells that the mask of this station closes and the causal mask does not."""
    station, allowed = opened.station, opened.comes_out[0].allowed
    if station.name != "masked" or allowed is None:
        return 0
    causal = (station.stack, station.sublayer) == ("decoder", "self") and not walk.sees_later
    return int((~allowed & np.tri(*allowed.shape, dtype=bool)).sum() if causal else (~allowed).sum())


def _where(place: Place, *, masked: bool) -> str:
    station = place.station
    parts = [station.stack.capitalize()]
    if station.in_layer and station.name != "layers":
        parts.append(f"layer {place.layer}")
    if station.sublayer is not None:
        parts.append(sublayer_name(station, masked=masked))
    if station.per_head:
        parts.append(f"head {place.head}")
    return " · ".join(parts)


def _tell_switches(opened: Opened) -> None:
    for switched in opened.switched:
        moved = wording.number(switched.moved)
        label = wording.plain(switched.spec.label())
        change_ = (
            f"numbers here moved by up to **{moved}**" if switched.moved else "no number here changed (measured: 0)"
        )
        st.markdown(f":orange[:material/tune:] **{label}**: {change_}.")


def _show_source(opened: Opened) -> None:
    st.caption("The lines of this project that did it")
    for snippet in opened.snippets:
        lines = f"line {snippet.first}" if snippet.first == snippet.last else f"lines {snippet.first}–{snippet.last}"
        st.code(f"# {snippet.file}, {snippet.function}, {lines}\n{snippet.text}", language="python", wrap_lines=True)


def _link(context: PageContext, place: Place) -> None:
    kind = kind_of(place)
    if kind is None:
        return
    view = context.view.at_head(kind, place.layer, place.head)
    label = f"This head among all others: Attention, layer {place.layer}, head {place.head}"
    st.page_link("pages/attention/page.py", label=label, icon=_ARROW, query_params=view.parameters())


def _in_other_layers(context: PageContext, layers: dict[Stack, int]) -> list[str]:
    """Switches that act in layers which the map does not unfold."""
    return [
        spec.label()
        for spec in context.inspection.interventions
        if all(site.layer is not None and site.layer != layers[site.stack] for site in spec.sites(context.lab.model))
    ]


def show_reading(context: PageContext) -> None:
    """What became of the sentence."""
    became = wording.plain(context.inspection.translation) or "(nothing)"
    under = " under the switches" * bool(context.view.switches)
    st.markdown(f"It becomes{under}: *{became}*")
