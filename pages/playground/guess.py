"""The question before Play: which picture will the attention turn into? And what it became, beside the guess."""

from typing import Literal

import numpy as np
import streamlit as st
from numpy import ndarray

from pages.playground.choices import PAGE, Knobs
from pages.shared.components.small_matrices import SmallMatrix, small_matrices
from pages.shared.texts.catalogue import Texts
from pages.training.live.clearest import clearest_head
from pages.training.live.settings import OF_LETTERS
from transformer.analysis.attention.shapes import Shape, measured_shape
from transformer.runs.live.watched import LiveOutput

_N = 6
TEXTS = Texts("playground.guess")
_WEIGHTS: dict[Shape, ndarray] = {
    "diagonal": np.eye(_N),
    "anti_diagonal": np.eye(_N)[::-1],
    "scattered": np.eye(_N)[[2, 5, 0, 4, 1, 3]],
    "even": np.full((_N, _N), 1 / _N),
}
"""The pictures to choose from, by the order of reading that each shows."""


def is_asked(knobs: Knobs) -> bool:
    """Tells whether the question fits the task and the model."""
    return knobs.task in OF_LETTERS and knobs.model == "transformer"


def ask() -> None:
    """Renders the question with its four pictures, as one part, so that what comes after it takes the place of all."""
    with st.container(gap="xsmall"):
        st.markdown(TEXTS("question"))
        small_matrices(
            [_picture(shape) for shape in _WEIGHTS],
            label=TEXTS("label"),
            kind="cross",
            chosen=PAGE.now.guess,
            take=PAGE.take("guess"),
            key="playground-guess",
        )
        st.caption(TEXTS("guessed") if PAGE.now.guess else TEXTS("waiting"))


def _picture(shape: Shape, name: str = "", label: str = "") -> SmallMatrix:
    return SmallMatrix(name or shape, label or TEXTS(f"shapes.{shape}"), _WEIGHTS[shape])


def letters(output: LiveOutput) -> SmallMatrix | None:
    """Returns the weights of the last layer's clearest head between letters, without end marks; None for fewer than two
    letters, and where a link names the run of a model without attention."""
    if not output.weights.size:
        return None
    found = clearest_head(output)
    n = len(output.source) - 1
    weights = output.weights[found.layer, found.head, : min(len(output.tokens) - output.ended, n), :n]
    return SmallMatrix("became", TEXTS("became"), weights) if min(weights.shape) > 1 else None


def beside(output: LiveOutput | None) -> None:
    """Renders the picture that was guessed, and beside it what the attention became, once there is an output; nothing
    without a guess."""
    if not PAGE.now.guess:
        return
    became = None if output is None else letters(output)
    pictures = [_picture(PAGE.now.guess, "guess", TEXTS("yours")), *([] if became is None else [became])]
    small_matrices(pictures, label=TEXTS("both"), kind="cross", key="playground-guessed")


def said_of(output: LiveOutput, guess: Shape | Literal[""]) -> str:
    """Returns where the last layer's clearest head looks, in a sentence with its measured weight, and whether that was
    guessed; "" where `letters` has no picture."""
    drawn = letters(output)
    found = None if drawn is None else measured_shape(drawn.weights)
    if found is None:
        return ""
    said = TEXTS(f"found.{found.shape}", share=100 * found.share)
    if not guess:
        return TEXTS("unguessed", said=said)
    if guess == found.shape:
        return TEXTS("right", said=said)
    return TEXTS("wrong", said=said, guess=TEXTS(f"shapes.{guess}"))
