"""The fields of the Train page: each shows the plan, hands back what is typed, and has its sentence beneath it."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial

import streamlit as st

from pages.shared.context import say
from pages.shared.fields import box, line, lines, number, toggle
from pages.shared.visitor import visitor
from pages.training import corpora
from pages.training.plan_fields import CHOICES, LABELS, MAY_BE_EMPTY, Part
from pages.training.plan_text import written
from pages.training.train_state import change, change_part, key_of, memory, type_number
from transformer.training.devices import devices_present

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
    **{"d_model": 32, "d_ff": 32, "evaluate_every": 10, "warmup_steps": 50, "batch_tokens": 256},
    **{"learning_rate": 1e-4, "dropout": 0.05, "label_smoothing": 0.05, "max_length": 16},
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
    name = "sentences"
    lines(LABELS[name], value, partial(change, name), key=key_of(name), height=128, help=HELP[name])
    sentences((name,), faults, notes)


def part_switches(left_out: Collection[Part]) -> None:
    """A switch for each part that a run can leave out, each with what to expect."""
    for part, (label, expected) in WITHOUT.items():
        toggle(label, part in left_out, partial(change_part, part), key=key_of(f"without-{part}"))
        st.caption(expected)


def field(name: str) -> None:
    """One field, which shows what the plan has.

    To the browser no number has to be whole: it would read 1e3 and 1.5 as 1. A number that may be left out is typed
    as text: a field for numbers that has a default cannot be emptied, and one without may lose its number (fields.py).
    """
    now = memory()
    value, label, key, help = getattr(now.plan, name), LABELS[name], key_of(name), HELP.get(name)
    if name in CHOICES or name in ("corpus", "device"):
        _choice(name, value)
    elif name in MAY_BE_EMPTY:
        typed = now.drafts.get(name, written(value))
        line(label, typed, partial(type_number, name), key=key, placeholder=PLACEHOLDERS[name], help=help)
    else:
        shown, step = None if value is None else float(value), float(STEPS.get(name, 1))
        number(label, shown, partial(change, name), key=key, step=step, format="%g", help=help)


def _choice(name: str, value: str) -> None:
    found = {"corpus": lambda: corpora.offered(visitor()), "device": devices_present}
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
        help=HELP.get(name),
    )


def sentences(names: Sequence[str], faults: Mapping[str, str], notes: Mapping[str, str]) -> None:
    """What is wrong with some fields, or worth knowing."""
    for name in names:
        if name in faults:
            say(faults[name])
        elif name in notes:
            st.caption(notes[name])
