"""What the sections of the Positions page share: the sizes of the tables, which learned one, and what stands under a
figure."""

from collections.abc import Callable

import streamlit as st

from pages.positions.choices import BASES, LONGEST, box, segments, slider, stepped
from pages.positions.tables import Table, Tables

STACKS = {"encoder": "Encoder", "decoder": "Decoder"}
OTHER_KINDS = {
    "none": "It has no positions at all: its encoder cannot tell one order of the words from another.",
    "rotary": "Its self-attention turns queries and keys by their position instead, so that a score depends on the "
    "distance between the two words. Cross-attention carries no positions.",
    "alibi": "Its self-attention lowers each score with the distance between the two words instead, alike in both "
    "directions in the encoder, to which only the end mark tells which way a sentence runs. Cross-attention carries no "
    "positions.",
}
"""What a model does that adds no positions to its embeddings."""
_MOMENTS = {"start": "before training", "trained": "trained"}


def beneath(*buttons: Callable[[], None]) -> None:
    """The quiet buttons under a figure, side by side."""
    with st.container(horizontal=True, gap="medium"):
        for button in buttons:
            button()


def draw_sizes(shown: Tables) -> None:
    """The sliders of the sinusoidal table, and which learned table stands beside it."""
    chosen = shown.choices
    with st.container(key="table-sizes"):
        columns = st.columns(3, gap="medium")
        with columns[0]:
            slider("d_model", "d_model", 2, LONGEST, shown.d_model, step=2)
        with columns[1]:
            slider("length", "Length", 2, LONGEST, shown.length)
        with columns[2]:
            stepped("base", "Base", BASES, chosen.base)
    if shown.learned is None:
        st.caption("No model here has learned positions; train one with *positions: learned* to see its table beside.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        box("table", "Learned table of", shown.models, shown.partner)
        segments("stack", "Stack", STACKS, chosen.stack)
        steps = [str(step) for step in shown.learned.steps]
        moments = ["start", *steps, "trained"]
        now = chosen.moment if chosen.moment in moments else "trained"
        box("moment", "When", moments, now, lambda m: f"step {m}" if m.isdecimal() else _MOMENTS[m])


def both(shown: Tables, *, trained_only: bool = False) -> tuple[list[Table], list[str]]:
    """The tables and their names, of the learned one the chosen rows or those that training reached."""
    values, names = [shown.sinusoidal], [shown.sinusoidal_name]
    if shown.learned is not None:
        values.append(shown.cut[: shown.learned.trained] if trained_only else shown.cut)
        names.append(shown.learned_name)
    return values, names


def say_where_it_ends(shown: Tables, line: str = "") -> None:
    """How many rows the learned table has, and how many of them were trained."""
    if shown.learned is None:
        return
    rows, trained = len(shown.learned.rows), shown.learned.trained
    said = f"The learned table has {rows} rows and ends there."
    if trained == 0:
        said += " Training reached none of them."
    elif trained < rows:
        said += (
            f" Training reached only positions 0 to {trained - 1}: from {trained} on{line} every row is still, "
            "bit for bit, the noise it began as."
        )
    st.caption(said)
