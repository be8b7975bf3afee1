"""The fields of the Train page: each shows the plan, hands back what is typed, and has its sentence beneath it."""

from collections.abc import Mapping

import streamlit as st

from pages.common.controls import say
from pages.common.training.memory import change, key_of, memory
from pages.common.training.plans import CHOICES, LABELS, MAY_BE_EMPTY, WHOLE

NAMES = {
    "post": "post (paper)",
    "pre": "pre",
    "paper": "paper: inverse square root",
    "constant": "constant",
    "cosine": "cosine to 0",
    "auto": "auto: what is faster",
}
PLACEHOLDERS = {"target_percent": "never", "threads": "auto"}
STEPS: dict[str, int | float] = {
    **{"d_model": 32, "d_ff": 32, "steps": 50, "evaluate_every": 10, "warmup_steps": 50, "batch_tokens": 256},
    **{"learning_rate": 1e-4, "dropout": 0.05, "label_smoothing": 0.05, "seconds": 10.0, "target_percent": 1.0},
}
"""What one press of + adds."""
HELP = {
    "target_percent": "Share of validation pairs translated exactly right. Empty: train to the end.",
    "label_smoothing": "Share of the probability spread over all tokens (section 5.4).",
    "batch_tokens": "Padding included, on the longer side.",
    "precision": "auto takes bfloat16 only where it measures faster.",
    "threads": "Empty: all, or one where another run is at work.",
    "sentences": "One a line, at most five. They are translated at each evaluation.",
}


def fields(names: tuple[str, ...], faults: Mapping[str, str], notes: Mapping[str, str]) -> None:
    """A row of fields, and beneath it what is wrong with any of them."""
    for column, name in zip(st.columns(len(names), vertical_alignment="bottom", gap="small"), names, strict=True):
        with column:
            _field(name)
    _sentences(names, faults, notes)


def text_field(value: str, faults: Mapping[str, str], notes: Mapping[str, str]) -> None:
    """The sentences to follow."""
    _put("sentences", value)
    st.text_area(
        LABELS["sentences"],
        key=key_of("sentences"),
        height=128,
        help=HELP["sentences"],
        on_change=change,
        args=("sentences",),
    )
    _sentences(("sentences",), faults, notes)


def _field(name: str) -> None:
    _put(name, getattr(memory().plan, name))
    shared = {"key": key_of(name), "help": HELP.get(name), "on_change": change, "args": (name,)}
    if name == "until":
        st.selectbox("Unit", CHOICES[name], label_visibility="hidden", **shared)
    elif name in CHOICES:
        st.selectbox(LABELS[name], CHOICES[name], format_func=_name, **shared)
    else:
        empty = {"value": None, "placeholder": PLACEHOLDERS[name]} if name in MAY_BE_EMPTY else {}
        st.number_input(
            LABELS[name], step=STEPS.get(name, 1), format="%d" if name in WHOLE else "%g", **shared, **empty
        )


def _put(name: str, value: object) -> None:
    """Shows a value in a field. Only where it differs: what a visitor is typing elsewhere stays untouched."""
    key = key_of(name)
    if isinstance(value, int | float):
        value = value if name in WHOLE else float(value)
    if key not in st.session_state or st.session_state[key] != value:
        st.session_state[key] = value


def _sentences(names: tuple[str, ...], faults: Mapping[str, str], notes: Mapping[str, str]) -> None:
    for name in names:
        if name in faults:
            say(faults[name])
        elif name in notes:
            st.caption(notes[name])


def _name(choice: str) -> str:
    return NAMES.get(choice, choice)
