"""The map of a model's token embeddings, and the neighbours of one token."""

from functools import partial

import numpy as np
import streamlit as st

from pages.shared import wording
from pages.shared.context import is_dark, say
from pages.shared.exhibit import exhibit
from pages.shared.fields import box, segments
from pages.shared.scrolling_figure import scrolling_figure
from pages.tokenizers.choices import PAGE, Choices
from pages.tokenizers.models import choose_model
from transformer.analysis.tokens.embeddings import group_of, is_shared
from transformer.figures.labels import readable
from transformer.lab import Lab
from transformer.views.subjects import Model
from transformer.views.tokens.embeddings import EmbeddingMap, MapData, NearestTokens

_SIDES = {"source": "Source", "target": "Target"}
_OFFERED = 10_000
"""The entries to choose from at most: a browser does not search through more at once."""
_FIRST = ("tired", "▁woman")
"""Entries that are chosen first where a vocabulary has them; their neighbours mean something like them."""
_LETTERS = 5
"""The fewest letters of the entry that is chosen else."""


def render_map(chosen: Choices) -> None:
    """Renders the controls, the map and the neighbours."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        lab = choose_model(chosen)
        if lab is None:
            return
        entries = tuple(lab.tokenizer.vocabulary())
        token = chosen.token if chosen.token in entries else first_word(lab, entries)
        offered = list(dict.fromkeys((*entries[:_OFFERED], token)))
        box("Token", offered, token, PAGE.take("token"), key="tokenizers-token", names=readable, width=240)
        shared = is_shared(lab.model)
        if not shared:
            segments("Side", _SIDES, chosen.side, PAGE.take("side"), key="tokenizers-side")
    if chosen.token not in ("", token):
        say(f"The vocabulary of {lab.name} has no “{chosen.token}”; another is shown.")
    side = "source" if shared else chosen.side
    subject = Model(lab)
    left, right = st.columns([3, 2], gap="large")
    with left:
        view = EmbeddingMap(token=token, side=side)
        data = exhibit(subject, view, draw=partial(_clickable_map, view), note="Click a dot to choose its token.")
    with right:
        st.markdown(f"### Nearest to {wording.token(token)}")
        near = exhibit(subject, NearestTokens(token=token, side=side))
    if data is None or near is None:
        return
    first, second = 100 * data.plane.shares
    dimensions = lab.model.config.d_model
    st.caption(
        f"Each dot is one of {len(entries):,} vocabulary entries: its row of the embedding matrix, {dimensions} "
        "numbers, projected on the two directions in which the rows spread the most. They hold "
        f"{first + second:.1f} % of the variance, so dots that lie together need not be alike. The lines lead to the "
        f"tokens that are nearest in all {dimensions} dimensions, by the cosine of the angle between the vectors. "
        + ("Source and target share this matrix." if shared else "Source and target have a matrix each.")
    )


def first_word(lab: Lab, entries: tuple[str, ...]) -> str:
    """Returns the entry that is chosen first: a known good one, else the first of some letters, else the last."""
    words = (
        entry
        for entry in entries
        if group_of(lab.tokenizer, entry) in ("word", "begins a word") and len(entry.lstrip("▁")) >= _LETTERS
    )
    return next((entry for entry in (*_FIRST, *words) if entry in entries), entries[-1])


def _clickable_map(view: EmbeddingMap, data: MapData) -> None:
    """Renders the map, a click on which chooses a token."""
    key = "embedding-map"

    def take_clicked() -> None:
        if clicked := st.session_state[key].selection.points:
            apart = np.abs(data.plane.places - (clicked[-1]["x"], clicked[-1]["y"])).sum(axis=1)
            PAGE.change(token=data.tokens[int(apart.argmin())])

    scrolling_figure(view.figure(data, dark=is_dark()), key=key, on_select=take_clicked, selection_mode="points")
