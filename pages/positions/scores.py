"""Shows how attention uses positions: the first layer's scores of the sentence, as a sum of four parts."""

from functools import partial

import streamlit as st

from pages.positions.choices import Choices, segments
from pages.positions.table_choice import OTHER_KINDS, STACKS
from pages.shared import fields, wording
from pages.shared.context import PageContext
from pages.shared.decoding import decode
from pages.shared.exhibit import exhibit
from pages.shared.explain import render_equation
from pages.shared.interventions.panel import switch_chips
from pages.shared.url.session import choose
from transformer.analysis.positions.score_decomposition import PARTS
from transformer.config import ModelConfig
from transformer.model.score_forms import SCORE_FORMS
from transformer.views.positions_scores import ScoreParts


def render_scores(context: PageContext, chosen: Choices) -> None:
    """Renders the first layer's scores of the sentence, as a sum of four parts."""
    config = context.lab.model.config
    left, right = st.columns([2, 1], gap="medium")
    with left:
        segments("stack", "Stack", STACKS, chosen.stack)
    with right:
        heads = list(range(config.n_heads))
        fields.box("Head", heads, context.head, lambda head: choose(head=head), key="positions-head")
    decoded = decode(context)
    switch_chips(decoded)
    data = exhibit(
        decoded.decoding,
        ScoreParts(stack=chosen.stack, head=context.head),
        explain=partial(_explain, config),
    )
    if data is None:
        st.markdown(OTHER_KINDS.get(config.positions, ""))
        return
    spread = zip(PARTS, data.spread.tolist(), strict=True)
    st.markdown(
        f"Layer 0, head {context.head} of the {chosen.stack}'s self-attention. How much each part varies over the "
        f"cells (standard deviation): {', '.join(f'{name} **{wording.number(value)}**' for name, value in spread)}."
    )
    forced = " The decoder's scores come from one teacher-forced pass over its own output."
    st.caption(
        f"The parts sum to the recorded score to within {wording.number(data.largest_error)}."
        f"{forced if chosen.stack == 'decoder' else ''}"
    )


def _explain(config: ModelConfig) -> None:
    st.markdown(
        "The first layer reads embedding + position, and a score is a product of two such sums, so it is a sum of "
        "four: word meets word, word meets place, place meets word, place meets place (query first). Biases count "
        "as content. In a model with pre-norm, both halves are divided by the measured norm of their sum. Cells "
        "that the mask hides are left empty."
    )
    pair = SCORE_FORMS[config.score].pair
    whole, parts = pair("q_i", "k_j"), pair("(q^c_i + q^p_i)", "(k^c_j + k^p_j)")
    divided = [rf"\frac{{{score}}}{{\sqrt{{d_k}}}}" if config.scale_scores else score for score in (whole, parts)]
    render_equation(" = ".join(divided))
