"""What attention does with positions: the first layer's scores of the sentence, as a sum of four parts."""

import numpy as np
import streamlit as st

from pages.positions.checks import check_split
from pages.positions.choices import Choices, segments
from pages.positions.export_tables import take_parts_away
from pages.positions.frame import OTHER_KINDS, STACKS, beneath
from pages.positions.tables import get_split
from pages.shared import fields, wording
from pages.shared.context import is_dark
from pages.shared.controls import PageContext, switch_chips
from pages.shared.scrolling_figure import scrolling_figure
from pages.shared.url.session import choose
from transformer.analysis.positions.score_decomposition import PARTS
from transformer.figures.positions.tables import parts_figure

_SPLIT = r"""
\frac{q_i \cdot k_j}{\sqrt{d_k}} = \frac{(q^c_i + q^p_i)\cdot(k^c_j + k^p_j)}{\sqrt{d_k}}
"""
_SPLIT_UNSCALED = r"q_i \cdot k_j = (q^c_i + q^p_i)\cdot(k^c_j + k^p_j)"


def draw_scores(context: PageContext, chosen: Choices) -> None:
    """The first layer's scores of the sentence, as a sum of four parts."""
    left, right = st.columns([2, 1], gap="medium")
    with left:
        segments("stack", "Stack", STACKS, chosen.stack)
    with right:
        head = _choose_head(context)
    switch_chips(context)
    try:
        split = get_split(context, chosen.stack)
    except ValueError as error:
        st.markdown(f"**{context.lab.name}** cannot be taken apart this way: {wording.plain(str(error))}.")
        st.markdown(OTHER_KINDS.get(context.lab.model.config.positions, ""))
        return
    inspection = context.inspection
    tokens = inspection.source_tokens if chosen.stack == "encoder" else inspection.decoder_inputs
    hidden = ~split.mask
    parts = [np.where(hidden, np.nan, part) for part in (*split.parts[:, head], split.scores[head])]
    figure = parts_figure(parts, [*PARTS, "sum: the score"], tokens, tokens, dark=is_dark())
    scrolling_figure(figure, key="parts")
    beneath(lambda: check_split(split), lambda: take_parts_away(context, chosen.stack, head, parts, tokens))
    shares = [float(part[split.mask].std()) for part in split.parts[:, head]]
    st.markdown(
        f"Layer 0, head {head} of the {chosen.stack}'s self-attention. How much each part varies over the cells "
        "(standard deviation): "
        + ", ".join(f"{name} **{wording.number(share)}**" for name, share in zip(PARTS, shares, strict=True))
        + "."
    )
    whose = (
        "" if chosen.stack == "encoder" else " The decoder's scores are of one teacher-forced pass over its own output."
    )
    st.caption(
        f"The parts sum to the recorded score to within {wording.number(split.largest_error)} in every head.{whose}"
    )
    with st.expander("What am I looking at?"):
        st.markdown(
            "The first layer reads embedding + position, and a score is a product of two such sums, so it is a sum of "
            "four: word meets word, word meets place, place meets word, place meets place (query first). Biases count "
            "as content. A model with pre-norm divides by the measured norm of the sum in both parts. Cells that the "
            "mask hides are left empty."
        )
        st.latex(_SPLIT if context.lab.model.config.scale_scores else _SPLIT_UNSCALED)


def _choose_head(context: PageContext) -> int:
    heads = list(range(context.lab.model.config.n_heads))
    fields.box("Head", heads, context.head, lambda head: choose(head=head), key="positions-head")
    return context.head
