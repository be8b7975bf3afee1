"""The question before Play: which picture will the attention turn into? And what it became, beside the guess."""

import numpy as np
import streamlit as st

from pages.playground.choices import PAGE, Knobs
from pages.shared.components.small_matrices import SmallMatrix, small_matrices
from pages.training.live.clearest import clearest_head
from pages.training.live.settings import OF_LETTERS
from transformer.analysis.attention.shapes import Shape, measured_shape
from transformer.runs.live.watched import LiveOutput

_N = 6
SHAPES: dict[Shape, str] = {
    "diagonal": "in the same order",
    "anti_diagonal": "backwards",
    "scattered": "here and there",
    "even": "everywhere alike",
}
"""The order of reading that each picture shows."""
_WEIGHTS = {
    "diagonal": np.eye(_N),
    "anti_diagonal": np.eye(_N)[::-1],
    "scattered": np.eye(_N)[[2, 5, 0, 4, 1, 3]],
    "even": np.full((_N, _N), 1 / _N),
}
_PICTURES = tuple(SmallMatrix(name, label, _WEIGHTS[name]) for name, label in SHAPES.items())


def is_asked(knobs: Knobs) -> bool:
    """Tells whether the question fits the task and the model."""
    return knobs.task in OF_LETTERS and knobs.model == "transformer"


def ask() -> None:
    """Renders the question with its four pictures."""
    st.markdown("**A guess first: where will it look for each letter that it writes?**")
    small_matrices(
        _PICTURES,
        label="Where will it look?",
        kind="cross",
        chosen=PAGE.now.guess,
        take=PAGE.take("guess"),
        key="playground-guess",
    )
    guessed = PAGE.now.guess
    st.caption(
        "Each row is a letter that it writes, each column one that it reads. "
        + ("Now press Play." if guessed else "Or just press Play.")
    )


def letters(output: LiveOutput) -> SmallMatrix | None:
    """Returns the weights of the last layer's clearest head between letters, without end marks; None for fewer than two
    letters, and where a link names the run of a model without attention."""
    if not output.weights.size:
        return None
    found = clearest_head(output)
    n = len(output.source) - 1
    weights = output.weights[found.layer, found.head, : min(len(output.tokens) - output.ended, n), :n]
    return SmallMatrix("became", "what it became", weights) if min(weights.shape) > 1 else None


def beside(output: LiveOutput | None) -> None:
    """Renders the picture that was guessed, and beside it what the attention became, once there is an output; nothing
    without a guess."""
    guessed = next((picture for picture in _PICTURES if picture.name == PAGE.now.guess), None)
    if guessed is None:
        return
    became = None if output is None else letters(output)
    pictures = [SmallMatrix("guess", "your guess", guessed.weights), *([] if became is None else [became])]
    small_matrices(pictures, label="Your guess and what it became", kind="cross", key="playground-guessed")


def said_of(output: LiveOutput, guess: str) -> str:
    """Returns where the last layer's clearest head looks, in a sentence with its measured weight, and whether that was
    guessed; "" where `letters` has no picture."""
    drawn = letters(output)
    found = None if drawn is None else measured_shape(drawn.weights)
    if found is None:
        return ""
    share = f"{100 * found.share:.0f} % of its weight"
    match found.shape:
        case "diagonal":
            said = f"To write its first letter it looks at the first one, and so on in order: a head puts {share} there"
        case "anti_diagonal":
            said = f"To write its first letter it looks at the last one, and so on backwards: a head puts {share} there"
        case "scattered":
            said = f"A head puts {share} on one letter at a time; which one depends on the letters"
        case "even":
            said = f"No head of its last layer has settled on a letter: even the clearest puts only {share} on one"
    if not guess:
        return f"{said}."
    return f"{said}, as you guessed." if guess == found.shape else f"{said}. You guessed “{SHAPES[guess]}”."
