"""The controls of the picture on the Attention page: what is drawn, how, and what is left out of it."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import streamlit as st

from pages.common.controls import Scene, say
from pages.common.state import choose, problems
from pages.common.view import Combine, Picture, Shown, Specials
from transformer.analysis.entropy import Unit

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
    "renormalised": "Left out, rows to 1",
}
_UNITS: tuple[Unit, ...] = ("nats", "bits")


def is_bertviz(picture: Picture) -> bool:
    """Whether bertviz draws it."""
    return picture in _BERTVIZ


def choose_picture(scene: Scene) -> None:
    """Matrix, lines, or one of bertviz's views."""
    chosen = scene.view.picture
    with st.container(horizontal=True, gap="small", width="content"):
        family: Picture = "bertviz" if is_bertviz(chosen) else chosen
        _segments("choose-picture", "Picture", _PICTURES, family, "picture")
        if is_bertviz(chosen):
            _segments("choose-bertviz", "View", _BERTVIZ, chosen, "picture")
    say(*problems("picture"))


def choose_what(scene: Scene) -> None:
    """Beside the raw weights: norms of contributions, rollout, entropy; and what is left out of the picture."""
    view, bertviz = scene.view, is_bertviz(scene.view.picture)
    if view.picture == "bertviz-neuron":
        return
    shown: Shown = "weights" if bertviz else view.show
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="adjust"):
        if not bertviz:
            _box("choose-show", "Show", list(_SHOWN), shown, "show", _SHOWN.__getitem__, 140)
        if shown == "entropy":
            _box("choose-unit", "Unit", list(_UNITS), view.unit, "unit", str, 90)
        elif shown != "rollout" and not bertviz:
            _choose_heads(scene)
        _box("choose-specials", "Start, end marks", list(_SPECIALS), view.specials, "specials", _SPECIALS.get, 140)
        if shown != "entropy":
            _number("choose-threshold", "Hide below" + " × max" * (shown == "norms"), view.threshold)
            if scene.lab.tokenizer.kind != "words" or view.words:
                _toggle("choose-words", "Whole words", view.words)
    say(*problems("show", "unit", "combine", "over", "threshold", "specials", "words"))


def _choose_heads(scene: Scene) -> None:
    view, heads = scene.view, list(range(scene.lab.model.config.n_heads))
    _box("choose-combine", "Heads", list(_COMBINE), view.combine, "combine", _COMBINE.__getitem__, 150)
    if view.combine == "one":
        return
    st.session_state["choose-over"] = list(view.over)
    st.multiselect(
        "Which",
        heads,
        key="choose-over",
        placeholder="all",
        width=150,
        on_change=lambda: choose(over=_all_as_none(sorted(st.session_state["choose-over"]), len(heads))),
    )


def _all_as_none(heads: Sequence[int], n_heads: int) -> tuple[int, ...]:
    return () if len(heads) == n_heads else tuple(heads)


def _segments(key: str, label: str, options: dict[Any, str], value: str, name: str) -> None:
    st.session_state[key] = value
    st.segmented_control(
        label,
        list(options),
        key=key,
        format_func=options.__getitem__,
        required=True,
        label_visibility="collapsed",
        on_change=lambda: choose(**{name: st.session_state[key]}),
    )


def _box(
    key: str,
    label: str,
    options: Sequence[Any],
    value: object,
    name: Literal["show", "unit", "combine", "specials"],
    format_func: Callable[[Any], Any],
    width: int,
) -> None:
    st.session_state[key] = value
    st.selectbox(
        label,
        options,
        key=key,
        format_func=format_func,
        width=width,
        on_change=lambda: choose(**{name: st.session_state[key]}),
    )


def _number(key: str, label: str, value: float) -> None:
    st.session_state[key] = value
    st.number_input(
        label,
        0.0,
        1.0,
        step=0.05,
        format="%.2f",
        key=key,
        width=120,
        on_change=lambda: choose(threshold=round(st.session_state[key], 4)),
    )


def _toggle(key: str, label: str, value: bool) -> None:
    st.session_state[key] = value
    st.toggle(label, key=key, on_change=lambda: choose(words=st.session_state[key]))
