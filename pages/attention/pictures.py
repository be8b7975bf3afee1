"""The pictures of the Attention page: the overview of all heads, and the large one as matrix, lines or bertviz."""

from collections.abc import Mapping

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.attention import picture_texts
from pages.attention.controls import choose_picture, choose_what, is_bertviz
from pages.attention.entry_panel import chosen_entry
from pages.attention.explanations import explain_picture
from pages.shared.components.head_grid import SIDE, head_grid
from pages.shared.components.head_matrix import head_matrix
from pages.shared.components.tokens import token_lines
from pages.shared.context import PageContext, sentence
from pages.shared.exhibit import exhibit, get_data
from pages.shared.url.session import GRID, MATRIX
from pages.shared.url.view_state import Picture
from transformer.lab import Inspection
from transformer.views.attention.heads import AllHeads, AllHeadsData, Bertviz
from transformer.views.attention.matrices import (
    AttentionEntropy,
    AttentionRollout,
    HeadMatrix,
    Matrix,
    TokenLines,
    hidden_share,
)
from transformer.views.attention.matrix_data import MatrixData, Side

NO_ROLLOUT_ENTRY = (
    "Clicking does nothing here: a rollout is a product of whole matrices, with no single q · k behind an entry."
)
NO_LINES = "Entropy belongs to a row, not to a pair of tokens, so there are no lines to draw: here is the matrix."


def picture_of(context: PageContext) -> Matrix | TokenLines | Bertviz:
    """Returns the large picture that the visitor chose, as a view."""
    view, layer, head, entry = context.view, context.layer, context.head, chosen_entry(context)
    cut = {"words": view.words, "marks": view.specials, "threshold": view.threshold}
    place = {"kind": view.kind, "layer": layer}
    if view.picture == "bertviz-neuron":
        return Bertviz(**place, head=head, picture="neuron", query=entry[0] if entry else None)
    if is_bertviz(view.picture):
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


def render_picture(context: PageContext) -> None:
    """Renders the chosen picture, with a line saying what it shows and what it hides, its checks and its export."""
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        caption = st.empty()
        choose_picture(context)
    choose_what(context)
    picture, subject, kind = picture_of(context), context.decoding, context.view.kind
    try:
        data = get_data(subject, picture)
    except ValueError as error:
        caption.caption(kind.label, width="content")
        st.markdown(sentence(str(error)))
        return
    if isinstance(picture, Bertviz):
        what, said = "all heads", picture_texts.bertviz_text(picture, data, context)
        draw = None
    else:
        matrix = picture.of if isinstance(picture, TokenLines) else picture
        what, said = picture_texts.title(matrix, context), picture_texts.matrix_text(matrix, data, context)

        def draw(data: MatrixData) -> None:
            _draw_lines(context, picture, data) if isinstance(picture, TokenLines) else _draw(context, picture, data)

    titled = f"{kind.label} · {what}"
    off = "" if isinstance(picture, Bertviz) else picture_texts.off_text(matrix, data, context)
    caption.caption(f"{titled}{off}{picture_texts.cache_text(context)}", width="content")
    if said:
        st.caption(" ".join(said))
    exhibit(subject, picture, draw=draw, said=" · ".join(filter(None, (titled, " ".join(said)))))


def render_overview(context: PageContext) -> None:
    """Renders all layers and heads, small, with their checks, their export and the explanation below."""
    shape = context.inspection.attention(context.view.kind).weights.shape
    said = ["All layers and heads"]
    if context.view.switches:
        said.append("with the switches on")
    if max(shape[2:]) > SIDE:
        said.append("each pixel the largest weight of its patch")
    st.caption(" · ".join(said))
    view = AllHeads(kind=context.view.kind)
    exhibit(context.decoding, view, draw=lambda data: _grid(context, data, key=GRID))
    explain_picture(context.view, context.lab.model.config)


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
    view, kind = context.view, context.view.kind
    rows_unseen, columns_unseen = _unseen(context, data)
    weak, names, chosen = None, ("query", "key"), None
    if isinstance(picture, AttentionEntropy):
        names = "query", "layer · head"
        if picture.framed and (row := data.rows.index_of(picture.framed[0])) is not None:
            chosen = row, data.columns.labels.index(f"{context.layer}·{context.head}")
    elif isinstance(picture, AttentionRollout):
        names = "position", "input"
    elif picture.framed:
        chosen = data.find(*picture.framed)
    if not isinstance(picture, AttentionEntropy) and picture.threshold:
        weak, _ = hidden_share(picture, data)
    entropy = isinstance(picture, AttentionEntropy)
    head_matrix(
        data.values,
        data.rows.labels,
        data.columns.labels,
        kind=kind,
        titles=picture.axes[kind],
        quantity="entropy" if entropy else picture.quantity,
        top=picture.top(data),
        label=f"{kind.label}, {picture_texts.title(picture, context)}",
        names=names,
        row_notes=data.rows.notes("row"),
        column_notes=("",) * len(data.columns.labels) if entropy else data.columns.notes("column"),
        rows_unseen=rows_unseen,
        columns_unseen={} if entropy else columns_unseen,
        mask=data.mask,
        weak=weak,
        weak_label="" if weak is None else f"below {picture.least(data):.3g}",
        forbidden=data.forbidden,
        forbids=view.forbids,
        targets=data.entries,
        largest=data.largest,
        unit=view.unit if entropy else "",
        chosen=chosen,
        off=data.off,
        clickable=data.entries is not None,
        key=MATRIX,
    )
    if isinstance(picture, AttentionRollout):
        st.caption(NO_ROLLOUT_ENTRY)
    elif view.picture == "lines":
        st.caption(NO_LINES)


def _draw_lines(context: PageContext, picture: TokenLines, data: MatrixData) -> None:
    """Renders the lines on a canvas."""
    rows_unseen, columns_unseen = _unseen(context, data)
    weak, _ = hidden_share(picture.of, data)
    token_lines(
        data.columns.labels,
        data.rows.labels,
        data.values * ~weak,
        kind=context.view.kind,
        source_unseen=columns_unseen,
        target_unseen=rows_unseen,
        source_label=picture.ends[0],
        target_label=picture.ends[1],
        top=picture.of.top(data),
        off=data.off,
        key="head-lines",
    )


def _unseen(context: PageContext, data: MatrixData) -> tuple[Mapping[int, str], Mapping[int, str]]:
    """Returns the rows and the columns whose token stands for a word that the model never saw, with that word."""

    def words(side: Side) -> Mapping[int, str]:
        unseen = context.sentence.unseen_tokens
        return {index: unseen[at[0]] for index, at in enumerate(side.positions) if at[0] in unseen}

    kind = context.view.kind
    return words(data.rows) if kind == "encoder_self" else {}, {} if kind == "decoder_self" else words(data.columns)
