"""The fields of the Train page: each shows the plan, hands back what is typed, and has its sentence beneath it."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial

import streamlit as st

from pages.shared.context import say
from pages.shared.fields import box, line, lines, number, toggle
from pages.training import corpora
from pages.training.plan_fields import CHOICES, EMPTY, FIELDS, LABELS, SWITCHES, Part
from pages.training.plan_text import written
from pages.training.train_state import CHOSEN, change, change_part, key_of, memory, type_number
from transformer.model.score_forms import SCORE_FORMS
from transformer.training.devices import devices_present

NAMES = {
    "transformer": "Transformer",
    "rnn": "recurrent (LSTM or GRU)",
    "conv": "convolutional",
    "lstm": "LSTM",
    "gru": "GRU",
    **{kind: form.label for kind, form in SCORE_FORMS.items()},
    "general": "general (Luong)",
    "post": "post (paper)",
    "pre": "pre",
    "paper": "paper: inverse square root",
    "constant": "constant",
    "cosine": "cosine to 0",
    "wsd": "constant, then straight to 0",
    "adamw": "Adam (paper)",
    "muon": "Muon",
    "auto": "auto",
    "words": "whole words",
    "char": "characters",
}
WITHOUT: dict[Part, tuple[str, str]] = {
    "causal_mask": (
        "No causal mask",
        "In training the decoder may see the word that it has to write: loss falls to almost nothing, but what it "
        "writes by itself is nonsense.",
    ),
    "positions": (
        "No positions",
        "The encoder sees a bag of words: copy and reverse stay wrong, sort can still be learned.",
    ),
    "scale_scores": (
        "No division by √d_k",
        "Scores grow with the width of a head, so softmax saturates too early and passes on little gradient: "
        "training is slower, most of all with wide heads.",
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
        "The model is rewarded for being entirely certain: loss falls lower, and probabilities say less.",
    ),
    "warmup_steps": (
        "No warm-up",
        "The full learning rate meets random initial weights: loss may jump at first, and some runs never recover.",
    ),
}
"""The label of each switch, and its expected effect."""


def fields(names: Sequence[str], faults: Mapping[str, str], notes: Mapping[str, str]) -> None:
    """Renders a row of fields, and beneath it their faults and notes."""
    for column, name in zip(st.columns(len(names), vertical_alignment="bottom", gap="small"), names, strict=True):
        with column:
            field(name)
    sentences(names, faults, notes)


def rows_of(names: Sequence[str]) -> list[list[str]]:
    """Returns the rows for fields that have no row of their own: two side by side, and switches, which are wider, one
    beneath the other."""
    boxes = [name for name in names if name not in SWITCHES]
    return [boxes[i : i + 2] for i in range(0, len(boxes), 2)] + [[name] for name in names if name in SWITCHES]


def text_field(value: str, faults: Mapping[str, str], notes: Mapping[str, str]) -> None:
    """Renders the field of sentences to follow."""
    name = "sentences"
    lines(LABELS[name], value, partial(change, name), key=key_of(name), height=128, help=FIELDS[name].help)
    sentences((name,), faults, notes)


def part_switches(left_out: Collection[Part], parts: Collection[Part]) -> None:
    """Renders a switch for each of these parts that a run can leave out, each with what to expect."""
    for part in parts:
        label, expected = WITHOUT[part]
        toggle(label, part in left_out, partial(change_part, part), key=key_of(f"without-{part}"))
        st.caption(expected)


def field(name: str) -> None:
    """Renders one field with the plan's value.

    To the browser no number has to be whole: it would read 1e3 and 1.5 as 1. A number that may be left out is typed
    as text: a field for numbers that has a default cannot be emptied, and one without may lose its number (fields.py).
    """
    value, label, key, help = getattr(CHOSEN.now.plan, name), LABELS[name], key_of(name), FIELDS[name].help or None
    if name in CHOICES or name in ("corpus", "device"):
        _choice(name, value)
    elif name in SWITCHES:
        toggle(label, bool(value), partial(change, name), key=key, help=help)
    elif name in EMPTY:
        typed = memory().drafts.get(name, written(value))
        line(label, typed, partial(type_number, name), key=key, placeholder=EMPTY[name], help=help)
    else:
        shown, step = None if value is None else float(value), float(FIELDS[name].step)
        number(label, shown, partial(change, name), key=key, step=step, format="%g", help=help)


def _choice(name: str, value: str) -> None:
    found = {"corpus": corpora.offered, "device": devices_present}
    options = found.get(name, lambda: CHOICES[name])()
    options = options if value in options else (*options, value)
    names = corpora.titles(options) if name == "corpus" else NAMES
    box(
        LABELS[name],
        options,
        value,
        partial(change, name),
        key=key_of(name),
        names=lambda choice: str(names.get(choice, choice)),
        help=FIELDS[name].help or None,
    )


def sentences(names: Sequence[str], faults: Mapping[str, str], notes: Mapping[str, str]) -> None:
    """Renders the faults and notes of some fields."""
    for name in names:
        if name in faults:
            say(faults[name])
        elif name in notes:
            st.caption(notes[name])
