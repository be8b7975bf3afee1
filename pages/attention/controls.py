"""The controls of the Attention page: which head, whether it is off, and a drawer with all others."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.attention.entry_choice import choose_entry
from pages.shared.context import Decoded, PageContext, is_transformer, say
from pages.shared.controls import choose_kind, choose_layer
from pages.shared.fields import box, drawer, number, segments, several, toggle
from pages.shared.interventions.panel import switch_panel
from pages.shared.url.session import choose, problems, session
from pages.shared.url.view_state import OF_ANY_MODEL, Combine, Picture, Shown, Specials
from transformer.analysis.attention.aggregation import Unit

_PICTURES: dict[Picture, str] = {"matrix": "Matrix", "lines": "Lines", "bertviz": "bertviz"}
_BERTVIZ: dict[Picture, str] = {
    "bertviz": "Head view",
    "bertviz-model": "Model view",
    "bertviz-neuron": "Neuron view",
}
_SHOWN: dict[Shown, str] = {
    "weights": "Weights",
    "norms": "Contributions",
    "rollout": "Rollout",
    "entropy": "Entropy",
}
_COMBINE: dict[Combine, str] = {"one": "One head", "mean": "Mean of heads", "max": "Largest of heads"}
_SPECIALS: dict[Specials, str] = {
    "shown": "Shown",
    "hidden": "Left out",
    "renormalised": "Left out, rescaled",
}
_DRAWER = 600
_UNITS: dict[Unit, str] = {"nats": "nats", "bits": "bits"}


def choose_head(context: PageContext) -> DeltaGenerator:
    """Renders one row: kind, layer, head, and a place for the drawer, which it returns."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        choose_kind(context)
        choose_layer(context, width=80)
        heads = list(range(context.lab.model.config.n_heads))
        box("Head", heads, context.head, lambda head: choose(head=head), key="choose-head", width=80)
        drawer = st.container(width="content")
    say(*problems("kind", "layer", "head"))
    say(*problems("picture", "show", "unit", "combine", "over", "threshold", "specials", "words", "click", "cell"))
    return drawer


def render_drawer(context: Decoded) -> None:
    """Renders a button that opens all other controls."""
    drawer(lambda: _render_controls(context), key="drawer")


def _render_controls(context: Decoded) -> None:
    picture, switches, entry = st.tabs(["Picture", "Switches", "An entry"], width=_DRAWER)
    with picture:
        choose_picture(context)
        choose_what(context)
    with switches:
        switch_panel(context)
    with entry:
        if is_transformer(context.lab):
            choose_entry(context)
        else:
            st.caption("The entries of this model's attention are no products of a query and a key.")


def render_head_switches(context: PageContext) -> None:
    """Renders a toggle for the selected head, and a button for all heads of its layer."""
    stack, sublayer = context.view.kind.where
    layer, head, n_heads = context.layer, context.head, context.lab.model.config.n_heads
    off = context.view.heads_off(stack, layer, sublayer)
    everything = frozenset(range(n_heads))

    def set_heads(heads: frozenset[int]) -> None:
        choose(switches=session().view.with_heads_off(stack, layer, sublayer, heads).switches)

    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        toggle(
            f"Head {head}",
            head not in off,
            lambda on: set_heads(off - {head} if on else off | {head}),
            key="switch-head",
        )
        if n_heads > 1:
            now_off = everything - off
            st.button(
                f"Switch all {n_heads} {'off' if now_off else 'on'}",
                key="switch-block",
                type="tertiary",
                on_click=lambda: set_heads(everything if now_off else frozenset()),
            )


def choose_picture(context: PageContext) -> None:
    """Renders the choice between matrix, lines and bertviz's views."""
    chosen = context.view.picture
    with st.container(horizontal=True, gap="small", width="content"):
        family: Picture = "bertviz" if context.view.bertviz else chosen
        _choose_picture("choose-picture", "Picture", _PICTURES, family)
        if context.view.bertviz:
            if is_transformer(context.lab):
                _choose_picture("choose-bertviz", "View", _BERTVIZ, chosen)


def choose_what(context: PageContext) -> None:
    """Renders the choice of the quantity (weights, norms, rollout, entropy) and of what is left out of the picture."""
    view, bertviz = context.view, context.view.bertviz
    if view.picture == "bertviz-neuron":
        return
    shown: Shown = "weights" if bertviz else view.show
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="adjust"):
        if not bertviz:
            names = _SHOWN if is_transformer(context.lab) else {name: _SHOWN[name] for name in OF_ANY_MODEL}
            _box("show", "Show", names, shown, 140)
        if shown == "entropy":
            _box("unit", "Unit", _UNITS, view.unit, 90)
        elif shown != "rollout" and not bertviz and context.lab.model.config.n_heads > 1:
            _choose_heads(context)
        _choose_specials(view.specials, scaled=shown != "entropy")
        if shown != "entropy":
            _choose_threshold(view.threshold, of_largest=shown == "norms")
            if context.lab.tokenizer.kind != "words" or view.words:
                toggle("Whole words", view.words, lambda words: choose(words=words), key="choose-words")


def _choose_heads(context: PageContext) -> None:
    view, heads = context.view, list(range(context.lab.model.config.n_heads))
    _box("combine", "Heads", _COMBINE, view.combine, 150)
    if view.combine != "one":
        several(
            "Which",
            heads,
            view.over,
            lambda over: choose(over=_all_as_none(sorted(over), len(heads))),
            key="choose-over",
            placeholder="all",
            width=150,
        )


def _choose_picture(key: str, label: str, names: Mapping[Picture, str], chosen: Picture) -> None:
    segments(label, names, chosen, lambda picture: choose(picture=picture), key=key)


def _choose_specials(chosen: Specials, *, scaled: bool) -> None:
    """Renders whether marks are drawn. If rows cannot be rescaled to sum to 1, there is one way to leave marks out."""
    names = {name: label for name, label in _SPECIALS.items() if scaled or name != "renormalised"}
    _box("specials", "Start and end marks", names, chosen if chosen in names else "hidden", 186)


def _choose_threshold(value: float, *, of_largest: bool) -> None:
    number(
        "Hide below" + " × max" * of_largest,
        value,
        lambda value: choose(threshold=round(value, 4)),
        key="choose-threshold",
        step=0.05,
        format=f"%.{max(2, len(f'{value:.4f}'.rstrip('0').partition('.')[2]))}f",
        least=0.0,
        most=1.0,
        width=120,
    )


def _box(name: str, label: str, names: Mapping[Any, str], value: object, width: int) -> None:
    box(label, names, value, lambda chosen: choose(**{name: chosen}), key=f"choose-{name}", width=width)


def _all_as_none(heads: Sequence[int], n_heads: int) -> tuple[int, ...]:
    return () if len(heads) == n_heads else tuple(heads)
