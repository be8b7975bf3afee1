"""The fields of the Train page: each shows the plan, hands back what is typed, and has its sentence beneath it."""

from collections.abc import Collection, Mapping, Sequence

import streamlit as st

from pages.common.controls import say
from pages.common.training import corpora
from pages.common.training.memory import change, change_part, key_of, memory
from pages.common.training.plan_fields import CHOICES, LABELS, MAY_BE_EMPTY, WHOLE, Part
from pages.common.visitor import visitor
from transformer.devices import devices_present

NAMES = {
    "post": "post (paper)",
    "pre": "pre",
    "paper": "paper: inverse square root",
    "constant": "constant",
    "cosine": "cosine to 0",
    "auto": "auto",
    "words": "whole words",
    "char": "characters",
}
PLACEHOLDERS = {
    **{"target_percent": "never", "patience": "never", "threads": "auto", "vocab_size": "auto", "longest": "10"},
    **{"steps": "no limit", "seconds": "no limit"},
}
STEPS: dict[str, int | float] = {
    **{"d_model": 32, "d_ff": 32, "steps": 50, "evaluate_every": 10, "warmup_steps": 50, "batch_tokens": 256},
    **{"learning_rate": 1e-4, "dropout": 0.05, "label_smoothing": 0.05, "seconds": 10.0, "target_percent": 1.0},
    **{"vocab_size": 500, "max_length": 16},
}
"""What one press of + adds."""
HELP = {
    "tokenizer": "auto: whole words for generated text, bpe for files.",
    "vocab_size": "Tokens in all, source and target together. Empty: what suits the text.",
    "max_length": "Pairs with a longer side are skipped; longer sentences cannot be translated.",
    "longest": "Strings have 1 to so many symbols. Empty: 10.",
    "steps": "With seconds too: what comes first ends the run.",
    "seconds": "Of training. With steps too: what comes first ends the run.",
    "target_percent": "Share of validation pairs translated exactly right. Empty: train to the end.",
    "patience": "Evaluations in a row without a lower validation loss. Empty: train to the end.",
    "dropout": "After sublayers, and on the sum of embedding and position (section 5.4).",
    "label_smoothing": "Share of the probability spread over all tokens (section 5.4).",
    "batch_tokens": "Padding included, on the longer side.",
    "precision": "auto takes bfloat16 only where it measures faster.",
    "device": "auto takes the best one that is present.",
    "threads": "Empty: all, or one where another run is at work.",
    "sentences": "One a line, at most five. They are translated at each evaluation.",
}
WITHOUT: dict[Part, tuple[str, str]] = {
    "causal_mask": (
        "No causal mask",
        "In training the decoder may see the word that it is to write: loss falls to next to nothing, and what it "
        "writes by itself is nonsense.",
    ),
    "positions": (
        "No positions",
        "The encoder sees a bag of words: copy and reverse stay wrong, sort can still be learned.",
    ),
    "scale_scores": (
        "No division by √d_k",
        "Scores grow with the width of a head, softmax is sure too early and passes little gradient on: slower, most "
        "of all with wide heads.",
    ),
    "residual": (
        "No residual connections",
        "Each sublayer replaces its input instead of adding to it: the more layers, the less is learned.",
    ),
    "norm": (
        "No layer norm",
        "Nothing keeps states in range from layer to layer: training may diverge unless the learning rate is lowered.",
    ),
    "label_smoothing": (
        "No label smoothing",
        "The model is rewarded for being entirely sure: loss falls lower, and probabilities say less.",
    ),
    "warmup_steps": (
        "No warm-up",
        "The full learning rate meets weights drawn by lot: loss may jump at first, and some runs never recover.",
    ),
}
"""What each switch is called, and what is to be expected of it."""


def fields(names: Sequence[str], faults: Mapping[str, str], notes: Mapping[str, str]) -> None:
    """A row of fields, and beneath it what is wrong with any of them."""
    for column, name in zip(st.columns(len(names), vertical_alignment="bottom", gap="small"), names, strict=True):
        with column:
            field(name)
    sentences(names, faults, notes)


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
    sentences(("sentences",), faults, notes)


def part_switches(left_out: Collection[Part]) -> None:
    """A switch for each part that a run can leave out, each with what to expect."""
    for part, (label, expected) in WITHOUT.items():
        key = key_of(f"without-{part}")
        if st.session_state.get(key) != (part in left_out):
            st.session_state[key] = part in left_out
        st.toggle(label, key=key, on_change=change_part, args=(part,))
        st.caption(expected)


def field(name: str) -> None:
    """One field, which shows what the plan has."""
    value = getattr(memory().plan, name)
    _put(name, value)
    shared = {"key": key_of(name), "help": HELP.get(name), "on_change": change, "args": (name,)}
    if name in CHOICES or name in ("corpus", "device"):
        found = {"corpus": lambda: corpora.offered(visitor()), "device": devices_present}
        options = found.get(name, lambda: CHOICES[name])()
        options = options if value in options else (*options, value)
        names = corpora.titles(options) if name == "corpus" else NAMES
        st.selectbox(LABELS[name], options, format_func=lambda choice: str(names.get(choice, choice)), **shared)
    else:
        empty = {"value": None, "placeholder": PLACEHOLDERS[name]} if name in MAY_BE_EMPTY else {}
        st.number_input(
            LABELS[name], step=STEPS.get(name, 1), format="%d" if name in WHOLE else "%g", **shared, **empty
        )


def sentences(names: Sequence[str], faults: Mapping[str, str], notes: Mapping[str, str]) -> None:
    """What is wrong with some fields, or worth knowing."""
    for name in names:
        if name in faults:
            say(faults[name])
        elif name in notes:
            st.caption(notes[name])


def _put(name: str, value: object) -> None:
    """Shows a value in a field. Only where it differs: what a visitor is typing elsewhere stays untouched."""
    key = key_of(name)
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = value if name in WHOLE else float(value)
    if key not in st.session_state or st.session_state[key] != value:
        st.session_state[key] = value
