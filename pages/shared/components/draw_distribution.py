"""A step's distribution with the sliders that reshape it: drawn anew in the browser at every movement.

The whole vocabulary's log-probabilities are there, so the bars need no server; it learns the settings at each release.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import streamlit as st
from jaxtyping import Float
from numpy import ndarray
from streamlit.components.v2 import component

from pages.shared.components.frontend import describe_tokens, text_of
from pages.shared.components.packed_arrays import packed_arrays

_component = component(
    "attention_lab_draw_distribution",
    html="<div class='root'></div>\n",
    css=text_of("value_axes.css", "tokens.css", "draw_distribution.css"),
    js=text_of("value_axes.js", "tokens.js", "draw_rule.js", "draw_distribution.js"),
)


@dataclass(frozen=True, kw_only=True)
class Slider:
    """One setting of `sampling.reshaped` and where it may stand."""

    name: str
    label: str
    low: float
    high: float
    step: float


def draw_distribution(
    log_probs: Float[ndarray, "vocab"],
    tokens: Mapping[int, str],
    sliders: Sequence[Slider],
    settings: Mapping[str, float],
    take: Callable[[Mapping[str, Any]], None],
    *,
    usual: Float[ndarray, "vocab"] | None = None,
    never: int,
    label: str,
    key: str,
) -> None:
    """Draws bars of these `tokens` (their ids in order), and a row for all others.

    `usual`: the step's log-probabilities without the switches, as marks. The token `never` cannot be drawn. `take` is
    called with the settings as the browser sends them, before the page runs again.
    """

    def taken() -> None:
        if reported := _reported(key):
            take(reported)

    header = {
        "ids": list(tokens),
        "tokens": describe_tokens(list(tokens.values())),
        "sliders": [asdict(slider) for slider in sliders],
        "settings": dict(settings),
        "report": _reported(key).get("report"),
        "never": never,
        "label": label,
    }
    arrays = [log_probs] if usual is None else [log_probs, usual]
    _component(key=key, on_settings_change=taken, data=packed_arrays(header, arrays))


def _reported(key: str) -> Mapping[str, Any]:
    """Returns the last message from the sliders with this key."""
    state = st.session_state.get(key)
    settings = state.get("settings") if isinstance(state, dict) else None
    return settings if isinstance(settings, dict) else {}
