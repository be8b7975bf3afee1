"""The pictures of the Attention page: the overview of all heads, and the large one as matrix, lines or bertviz."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.attention import picture_texts
from pages.attention.entry_choice import chosen_entry
from pages.attention.explanations import explain_picture
from pages.shared.components.head_grid import SIDE, head_grid
from pages.shared.components.head_matrix import head_matrix
from pages.shared.components.tokens import token_lines
from pages.shared.context import Decoded, PageContext, sentence
from pages.shared.exhibit import exhibit, get_data
from pages.shared.explain import explain, kind_explained
from pages.shared.guard import guard
from pages.shared.url.session import GRID, MATRIX
from pages.shared.url.view_state import Picture
from transformer.lab import Inspection
from transformer.views.attention.entropy import AttentionEntropy
from transformer.views.attention.heads import AllHeads, AllHeadsData, Bertviz
from transformer.views.attention.matrices import (
    AttentionRollout,
    HeadMatrix,
    Matrix,
    TokenLines,
    hidden_share,
)
from transformer.views.attention.matrix_data import MatrixData
from transformer.views.view import View

D = TypeVar("D")

NO_LINES = "Entropy belongs to a row, not to a pair of tokens, so there are no lines to draw: this is the matrix."


def picture_of(context: Decoded) -> Matrix | TokenLines | Bertviz:
    """Returns the large picture that the visitor chose, as a view."""
    view, layer, head, entry = context.view, context.layer, context.head, chosen_entry(context)
    cut = {"words": view.words, "marks": view.specials, "threshold": view.threshold}
    place = {"kind": view.kind, "layer": layer}
    if view.picture == "bertviz-neuron":
        return Bertviz(**place, head=head, picture="neuron", query=entry[0] if entry else None)
    if view.bertviz:
        return Bertviz(**place, head=head, picture="model" if view.picture == "bertviz-model" else "head", **cut)
    if view.show == "entropy":
        framed = (entry[0], layer, head) if entry else None
        marks = "shown" if view.specials == "shown" else "hidden"
        return AttentionEntropy(kind=view.kind, unit=view.unit, marks=marks, framed=framed)
    lines = view.picture == "lines"
    if view.show == "rollout":
        rollout = AttentionRollout(**place, **cut)
        return TokenLines(of=rollout) if lines else rollout
    everything = tuple(range(context.lab.model.config.n_heads))
    heads = (head,) if view.combine == "one" else view.over or everything
    how = "max" if view.combine == "max" else "mean"
    matrix = HeadMatrix(**place, heads=heads, how=how, shows=view.show, **cut, framed=None if lines else entry)
    return TokenLines(of=matrix) if lines else matrix


@guard("The picture")
def render_picture(context: Decoded) -> None:
    """Renders the chosen picture, between a line saying what it shows and what there is to know of it."""
    caption = st.empty()
    picture = picture_of(context)
    if isinstance(picture, Bertviz):
        said = picture_texts.bertviz_text
        _render(context, caption, picture, lambda data: ("all heads", "", said(picture, data, context)))
        return
    matrix = picture.of if isinstance(picture, TokenLines) else picture

    def texts(data: MatrixData) -> tuple[str, str, list[str]]:
        off = picture_texts.off_text(matrix, data, context) or picture_texts.example_text(matrix, data, context)
        return picture_texts.title(matrix, context), off, picture_texts.matrix_text(matrix, data, context)

    def draw(data: MatrixData) -> None:
        _draw_lines(context, picture, data) if isinstance(picture, TokenLines) else _draw(context, picture, data)

    _render(context, caption, picture, texts, draw)


def _render(
    context: Decoded,
    caption: DeltaGenerator,
    picture: View[D],
    texts: Callable[[D], tuple[str, str, list[str]]],
    draw: Callable[[D], object] | None = None,
) -> None:
    """Renders a picture below its caption; `texts`: what it shows, what to know at once, and its sentences."""
    subject, kind = context.decoding, context.view.kind
    try:
        data = get_data(subject, picture)
    except ValueError as error:
        caption.caption(kind.label, width="content")
        st.markdown(sentence(str(error)))
        return
    what, off, said = texts(data)
    titled = f"{kind.label} · {what}"
    caption.caption(f"{titled}{off}{picture_texts.cache_text(context)}", width="content")
    exhibit(
        subject,
        picture,
        data=data,
        draw=draw,
        said=" · ".join(filter(None, (titled, " ".join(said)))),
        explain=partial(explain_picture, context.view, context.lab.model.config),
    )
    if said:  # below the picture, which stays where it is however much is said
        st.caption(" ".join(said))


@guard("The overview of heads")
def render_overview(context: Decoded) -> None:
    """Renders all layers and heads, small, with their menu."""
    shape = context.inspection.attention(context.view.kind).weights.shape
    said = ["All layers and heads"]
    if context.view.switches:
        said.append("as the switches changed them")
    if max(shape[2:]) > SIDE:
        said.append("each pixel is the largest weight in its patch")
    st.caption(" · ".join(said))
    view = AllHeads(kind=context.view.kind)
    config = context.lab.model.config
    explained = partial(explain, kind_explained(context.view.kind, config), config)
    exhibit(context.decoding, view, draw=lambda data: _grid(context, data, key=GRID), explain=explained)


def render_so_far(context: PageContext, place: DeltaGenerator, seen: Inspection) -> None:
    """Renders all heads of a decoding in progress, as far as it is written, in place of the overview before."""
    with place.container():
        st.caption(f"All layers and heads · {len(seen.target_tokens)} tokens written so far")
        data = AllHeads(kind=context.view.kind).data(context.lab, seen)
        _grid(context, data, key=f"{GRID}-so-far-{len(seen.target_tokens)}")


def is_wide(picture: Picture) -> bool:
    """Returns whether a picture needs the page's whole width."""
    return picture in ("bertviz-model", "bertviz-neuron")


def _grid(context: PageContext, data: AllHeadsData, *, key: str) -> None:
    head_grid(
        data.weights,
        kind=context.view.kind,
        selected=(context.layer, context.head),
        off=[(layer, head) for layer, head in np.argwhere(data.off).tolist()],
        at_mean=[(layer, head) for layer, head in np.argwhere(data.at_mean).tolist()],
        mask=data.mask,
        key=key,
    )


def _draw(context: PageContext, picture: Matrix, data: MatrixData) -> None:
    """Renders the matrix on a canvas whose entries can be clicked."""
    label = f"{context.view.kind.label}, {picture_texts.title(picture, context)}"
    head_matrix(picture, data, label=label, forbids=context.view.forbids, key=MATRIX)
    if context.view.picture == "lines":
        st.caption(NO_LINES)


def _draw_lines(context: PageContext, picture: TokenLines, data: MatrixData) -> None:
    """Renders the lines on a canvas."""
    weak, _ = hidden_share(picture.of, data)
    token_lines(
        data.columns.labels,
        data.rows.labels,
        data.values * ~weak,
        kind=context.view.kind,
        source_unseen=data.columns.unseen,
        target_unseen=data.rows.unseen,
        source_label=picture.ends[0],
        target_label=picture.ends[1],
        top=picture.of.top(data),
        off=data.off,
        key="head-lines",
    )
