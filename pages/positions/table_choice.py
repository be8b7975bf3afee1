"""Chooses the tables that the Positions page compares: a sinusoidal one of any size, and a model's learned one."""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.positions.choices import BASES, MAX_SIZE, Choices, box, segments, slider, stepped
from pages.shared import loading
from pages.shared.cache import cached
from pages.shared.context import PageContext
from pages.shared.fields import drawer
from transformer.checkpoints.settings import CheckpointError, read_settings
from transformer.lab import Lab
from transformer.model.taps import Stack
from transformer.runs.position_moments import LearnedTable, Rows, learned_table, table_at_start
from transformer.views.subjects import LearnedPositions

STACKS = {"encoder": "Encoder", "decoder": "Decoder"}
OTHER_KINDS = {
    "none": "It has no positions at all: its encoder cannot tell one word order from another.",
    "rotary": "Instead, its self-attention rotates queries and keys by their position, so that a score depends on the "
    "distance between the two words. Cross-attention carries no positions.",
    "alibi": "Instead, its self-attention lowers each score with the distance between the two words, equally in both "
    "directions in the encoder, where only the end mark tells which way a sentence runs. Cross-attention carries no "
    "positions.",
}
"""Explanations of the kinds that add no positions to the embeddings."""
_LAYOUTS = {"interleaved": "Interleaved", "concatenated": "Concatenated"}
_MOMENTS = {"start": "before training", "trained": "trained"}


@dataclass(frozen=True)
class Shown:
    """The tables on the page, and what they were chosen from."""

    subject: LearnedPositions
    choices: Choices
    models: tuple[str, ...]
    """The models with a learned table."""
    d_model: int
    length: int

    @property
    def learned(self) -> LearnedTable | None:
        """Returns the learned table, or None."""
        return self.subject.learned

    @property
    def size(self) -> dict[str, Any]:
        """Returns the options that all views of tables share."""
        return {"d_model": self.d_model, "length": self.length, "base": self.choices.base}

    @property
    def usable_rows(self) -> int:
        """Returns the number of rows that both tables have and training reached."""
        return self.length if self.learned is None else min(self.length, self.learned.trained)


def choose_tables(context: PageContext, choices: Choices) -> Shown:
    """Renders the controls of both tables; returns the tables."""
    models = learned_models()
    subject = _subject(context, choices, models)
    rows, width = context.lab.model.config.max_length, context.lab.model.config.d_model
    if subject.learned is not None:
        rows, width = subject.learned.rows.shape
    shown = Shown(
        subject,
        choices,
        models,
        d_model=choices.d_model or min(width - width % 2, MAX_SIZE),
        length=choices.length or min(rows, MAX_SIZE),
    )
    _render_controls(shown)
    return shown


def learned_models() -> tuple[str, ...]:
    """Returns the names of all models with learned positions."""
    found = []
    for model in loading.models():
        try:
            if read_settings(model.folder).model.positions == "learned":
                found.append(model.name)
        except CheckpointError:
            continue
    return tuple(found)


def render_extent(shown: Shown, line: str = "") -> None:
    """Says how many rows the learned table has, and how many of them were trained."""
    if shown.learned is None:
        return
    rows, trained = len(shown.learned.rows), shown.learned.trained
    text = f"The learned table has {rows} rows."
    if trained == 0:
        text += " Training reached none of them."
    elif trained < rows:
        text += (
            f" Training reached only positions 0 to {trained - 1}: from {trained} on{line}, every row is still "
            "exactly the noise that it started as."
        )
    st.caption(text)


def _subject(context: PageContext, choices: Choices, models: tuple[str, ...]) -> LearnedPositions:
    """Returns the learned table of the chosen model, else of this page's model or its learned twin, else of any."""
    wanted = (choices.table, context.lab.name, f"{context.lab.name}-learned", *models)
    partner = next((name for name in wanted if name in models), None)
    if partner is None:
        return LearnedPositions(context.lab, None)
    try:
        lab = loading.get_lab(partner)
    except CheckpointError:
        return LearnedPositions(context.lab, None)
    start = _table_at_start(lab, choices.stack)
    return LearnedPositions(lab, learned_table(lab.checkpoint, choices.stack, choices.moment, start=start))


@cached(max_entries=16)
def _table_at_start(lab: Lab, stack: Stack) -> Rows:
    return table_at_start(lab.checkpoint, stack)


def _render_controls(shown: Shown) -> None:
    """Renders the sliders of the sinusoidal table, and which learned table stands beside it."""
    with st.container(key="table-sizes"):
        columns = st.columns(3, gap="medium")
        with columns[0]:
            slider("d_model", "d_model", 2, MAX_SIZE, shown.d_model, step=2)
        with columns[1]:
            slider("length", "Length", 2, MAX_SIZE, shown.length)
        with columns[2]:
            stepped("base", "Base", BASES, shown.choices.base)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if shown.learned is not None:
            box("table", "Learned table of", shown.models, shown.subject.lab.name)
            moments = ["start", *map(str, shown.learned.steps), "trained"]
            now = shown.choices.moment if shown.choices.moment in moments else "trained"
            box("moment", "When", moments, now, lambda m: f"step {m}" if m.isdecimal() else _MOMENTS[m])
        if shown.learned is not None or shown.choices.section == "table":
            drawer(lambda: _render_rare(shown), key="positions-drawer")
    if shown.learned is None:
        st.caption("No model here has learned positions. Train one with *positions: learned* to see its table here.")


def _render_rare(shown: Shown) -> None:
    if shown.learned is not None:
        segments("stack", "Stack of the learned table", STACKS, shown.choices.stack)
    if shown.choices.section == "table":
        segments("layout", "Layout of the sinusoidal table", _LAYOUTS, shown.choices.layout)
