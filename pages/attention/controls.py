"""The controls of the picture on the Attention page: what is drawn, how, and what is left out of it."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from pages.shared.context import PageContext, is_transformer, say
from pages.shared.fields import box, number, segments, several, toggle
from pages.shared.url.session import choose, problems
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
_UNITS: dict[Unit, str] = {"nats": "nats", "bits": "bits"}


def choose_picture(context: PageContext) -> None:
    """Renders the choice between matrix, lines and bertviz's views."""
    chosen = context.view.picture
    with st.container(horizontal=True, gap="small", width="content"):
        family: Picture = "bertviz" if context.view.bertviz else chosen
        _choose_picture("choose-picture", "Picture", _PICTURES, family)
        if context.view.bertviz:
            if is_transformer(context.lab):
                _choose_picture("choose-bertviz", "View", _BERTVIZ, chosen)
    say(*problems("picture"))


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
    say(*problems("show", "unit", "combine", "over", "threshold", "specials", "words"))


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
