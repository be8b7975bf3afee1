"""The chosen head or heads, drawn as a matrix, as lines between tokens, or by bertviz."""

from collections.abc import Mapping

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.attention.bertviz_view import Framed, show_bertviz
from pages.attention.entry_panel import chosen_cell
from pages.attention.picture_controls import choose_picture, choose_what, is_bertviz
from pages.attention.picture_data import Drawing, Source, drawing, shown_at
from pages.attention.picture_explained import explain_picture
from pages.attention.picture_loading import get_vectors
from pages.attention.picture_rollout import CannotDraw, silenced
from pages.attention.picture_sides import Side
from pages.shared.checks import show_checks
from pages.shared.components.head_grid import SIDE, head_grid
from pages.shared.components.head_matrix import head_matrix
from pages.shared.components.token_lines import token_lines
from pages.shared.context import heads_at_mean, heads_in_sublayers_off, heads_replaced, is_dark
from pages.shared.controls import PageContext
from pages.shared.url.session import GRID, MATRIX
from pages.shared.url.view_state import Picture, View
from transformer.lab import Attention, Inspection

NORMS_SAID = "The length of what each cell adds to the block's output (Kobayashi et al., 2020)."
WEIGHTS_ARE_OFF = (
    "This {part} is off: its weights are still computed, as drawn in grey, but its output is set to zero, so nothing "
    "of what it looks at goes any further."
)
NORMS_ARE_OFF = "This {part} is off: its output is set to zero, so nothing of it arrives and every norm is 0."
WEIGHTS_AT_MEAN = (
    "This head is at its mean: its weights are still computed, as drawn in grey, but its output is its mean over the "
    "validation set at every position, whatever it looks at."
)
NORMS_AT_MEAN = "This head is at its mean over the validation set: nothing of what it looks at arrives, so norms are 0."
COPIED_NORMS = "A switch copied what another sentence had into this block; where it did, norms are 0."
COPIED_WEIGHTS = (
    "A switch copied what another sentence had into this block: where it did, nothing of what is looked at here goes "
    "any further."
)
NO_ROLLOUT_CELL = (
    "A click does nothing here: a rollout is a product of whole matrices, with no single q · k behind a cell."
)
NO_LINES = "Entropy belongs to a row, not to a pair of tokens, so there are no lines to draw: here is the matrix."


def draw_head(context: PageContext) -> Drawing | Framed | None:
    """The picture that the visitor chose, with a line saying what it shows and what it hides.

    Returns what it draws; None where nothing can be drawn.
    """
    source = source_of(context)
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        caption = st.empty()
        choose_picture(context)
    choose_what(context)
    if is_bertviz(context.view.picture):
        caption.caption(f"{context.view.kind.label} · all heads{_note(context)}", width="content")
        return show_bertviz(source, dark=is_dark())
    try:
        made = drawing(source)
    except CannotDraw as reason:
        caption.caption(context.view.kind.label, width="content")
        st.markdown(str(reason))
        return None
    caption.caption(
        f"{context.view.kind.label} · {made.what}{_off_note(source, made)}{_note(context)}", width="content"
    )
    what = (NORMS_SAID,) * (context.view.show == "norms")
    if said := (*what, *made.said, *_said_of_switches(source, made)):
        st.caption(" ".join(said))
    if context.view.picture == "lines" and context.view.show != "entropy":
        _lines(context, made)
    else:
        _matrix(context, made)
    return made


def draw_overview(context: PageContext) -> None:
    """All layers and heads, small, with the explanation and the proofs under them."""
    attention = context.inspection.attention(context.view.kind)
    pooled = max(attention.weights.shape[2:]) > SIDE
    st.caption(
        "All layers and heads"
        + " · with the switches on" * bool(context.view.switches)
        + " · each pixel the largest weight of its patch" * pooled
    )
    _grid(context, attention, key=GRID)
    explain_picture(context.view, context.lab.model.config)
    show_checks(context)


def draw_so_far(context: PageContext, place: DeltaGenerator, seen: Inspection) -> None:
    """The same of a decoding that goes on, as far as it is written, in place of what stood there before."""
    with place.container():
        st.caption(f"All layers and heads · {len(seen.target_tokens)} tokens written so far")
        _grid(context, seen.attention(context.view.kind), key=f"{GRID}-so-far-{len(seen.target_tokens)}")


def _grid(context: PageContext, attention: Attention, *, key: str) -> None:
    head_grid(
        attention.weights,
        kind=context.view.kind,
        selected=(context.layer, context.head),
        off=context.heads_off | heads_in_sublayers_off(context),
        at_mean=heads_at_mean(context),
        mask=attention.mask,
        key=key,
    )


def is_wide(picture: Picture) -> bool:
    """Whether a picture needs the page's whole width."""
    return picture in ("bertviz-model", "bertviz-neuron")


def source_of(context: PageContext) -> Source:
    """What the scene's pictures are made of."""
    view = context.view
    norms = None
    if view.show == "norms" and not is_bertviz(view.picture):
        vectors = get_vectors(context.lab, context.inspection, view.kind)
        norms = vectors.contributions(context.inspection.attention(view.kind).weights)
    return Source(context.lab, context.inspection, view, context.layer, context.head, heads_replaced(context), norms)


def _off_note(source: Source, made: Drawing) -> str:
    if not made.off:
        return ""
    off = [(source.layer, head) in source.heads_off for head in source.heads]
    if all(off):
        return " · **off**"
    return " · **off or at their mean**" if any(off) else f" · **at {'its' if len(off) == 1 else 'their'} mean**"


def framed_cell(context: PageContext, made: Drawing) -> tuple[int, int] | None:
    """The row and column that the picture frames: of the chosen query and key, of entropy the chosen query and head."""
    column = context.layer * context.lab.model.config.n_heads + context.head
    return shown_at(made, chosen_cell(context), entropy_of=column if context.view.show == "entropy" else None)


def _matrix(context: PageContext, made: Drawing) -> None:
    view, (rows_unseen, columns_unseen) = context.view, unseen_words(context, made)
    head_matrix(
        made.values,
        made.rows.labels,
        made.columns.labels,
        kind=view.kind,
        titles=made.titles,
        quantity=made.quantity,
        top=made.top,
        label=f"{view.kind.label}, {made.what}",
        names=made.names,
        row_notes=made.rows.notes("row"),
        column_notes=made.column_notes or made.columns.notes("column"),
        rows_unseen=rows_unseen,
        columns_unseen=columns_unseen,
        mask=made.mask,
        weak=made.weak,
        weak_label=made.weak_label,
        forbidden=forbidden_cells(view, made),
        forbids=view.forbids,
        targets=made.targets,
        largest=made.largest,
        unit=made.unit,
        chosen=framed_cell(context, made),
        off=made.off,
        clickable=made.targets is not None,
        key=MATRIX,
    )
    if view.show == "rollout":
        st.caption(NO_ROLLOUT_CELL)
    elif context.view.picture == "lines":
        st.caption(NO_LINES)


def forbidden_cells(view: View, made: Drawing) -> np.ndarray | None:
    """Which cells a switch forbids; None where a cell of the picture is no single query and key."""
    if made.targets is None or view.show not in ("weights", "norms") or view.words:
        return None
    stack, sublayer = view.kind.where
    found = np.zeros(made.values.shape, dtype=bool)
    for spec in view.switches:
        for query, key in spec.forbidden if spec.acts_in(stack, sublayer) else ():
            assert spec.address is not None, "it acts in a block"
            found |= (made.targets[..., [0, 2, 3]] == (spec.address.layer, query, key)).all(axis=-1)
    return found


def _lines(context: PageContext, made: Drawing) -> None:
    values = made.values if made.weak is None else made.values * ~made.weak
    rows_unseen, columns_unseen = unseen_words(context, made)
    token_lines(
        made.columns.labels,
        made.rows.labels,
        values,
        kind=context.view.kind,
        source_unseen=columns_unseen,
        target_unseen=rows_unseen,
        source_label=made.ends[0],
        target_label=made.ends[1],
        top=made.top,
        off=made.off,
        key="head-lines",
    )


def unseen_words(context: PageContext, made: Drawing) -> tuple[Mapping[int, str], Mapping[int, str]]:
    """The rows, and the columns, that are a token of the sentence with a word that the model never saw, and that."""

    def words(side: Side) -> Mapping[int, str]:
        return {index: context.unseen[at[0]] for index, at in enumerate(side.positions) if at[0] in context.unseen}

    kind, columns_are_keys = context.view.kind, context.view.show != "entropy"
    rows = words(made.rows) if kind == "encoder_self" else {}
    return rows, words(made.columns) if kind != "decoder_self" and columns_are_keys else {}


def _said_of_switches(source: Source, made: Drawing) -> tuple[str, ...]:
    if made.off and source.view.combine == "one":
        if (source.layer, source.head) in source.heads_off:
            said = NORMS_ARE_OFF if source.view.show == "norms" else WEIGHTS_ARE_OFF
            return (said.format(part="block" if source.layer in source.sublayers_off else "head"),)
        return (NORMS_AT_MEAN if source.view.show == "norms" else WEIGHTS_AT_MEAN,)
    off = [head for head in source.heads if (source.layer, head) in source.off]
    if source.view.show in ("rollout", "entropy"):
        return ()
    if not off:
        return (COPIED_NORMS if source.view.show == "norms" else COPIED_WEIGHTS,) * _copied_into(source)
    named = f"head{'s' * (len(off) > 1)} {', '.join(map(str, off))}"
    verb = "is" if len(off) == 1 else "are"
    at_mean = any((source.layer, head) not in source.heads_off for head in off)
    named += f" {verb} off{' or at the mean' * at_mean}"
    if source.view.show == "norms":
        return (f"Of these, {named} and {verb} counted with norms of 0.",)
    return (f"Of these, {named}: the weights are still computed and counted here, but go no further.",)


def _copied_into(source: Source) -> bool:
    """Whether a switch puts another sentence's context or output in place of what these heads gathered."""
    replaced = [s.replaced for s, at in silenced(source.inspection, source.view.kind) if at[0] == source.layer]
    copied = [r for r in replaced if r is not None and r.by == "copy" and r.tensor in ("heads", "output")]
    return any(r.heads is None or not {*r.heads}.isdisjoint(source.heads) for r in copied)


def _note(context: PageContext) -> str:
    if context.view.kind == "decoder_self" and not context.inspection.cached:
        return " · the last whole pass, because the cache is ruled out"
    return ""
