"""Inside one step: what every depth of the decoder would have written, and what chose this token over another."""

import math
from collections.abc import Sequence
from functools import partial

import streamlit as st

from pages.shared import fields, wording
from pages.shared.context import PageContext, is_transformer, say
from pages.shared.exhibit import exhibit, get_data
from pages.steps.branches import Walk
from pages.steps.choices import PAGE, Choices
from pages.steps.loading import get_logit_lens
from transformer.analysis.steps.candidates import candidates
from transformer.views.steps.logit_lens import LogitContributions, LogitLensDepths
from transformer.views.steps.subjects import LensAtStep

N_OTHERS = 50
"""The number of tokens in the box of those that could have been written instead."""

LENS_EXPLAINED = """
The decoder passes a vector from layer to layer, and the projection turns the last one into a score for every token. The
**logit lens** asks the same projection earlier: what would be written if this layer were the last? The last row is the
model's own answer.
"""
POST_NORM = """
This model is post-norm, as in the paper: every layer ends in a layer norm with a gain and bias of its own, so each
depth is read as its norm left it. Only the last norm was trained to be read by the projection, the others by the
next layer. A low rank at an early depth is therefore no proof that the token is not known there yet.
"""
PRE_NORM = """
This model is pre-norm: all layers add to one stream, and a single norm stands before the projection. Each depth is read
through that same final norm, so depths can be compared.
"""
NO_NORM = """
This model has no layer norms: the stream is read as it is.
"""
PARTS_EXPLAINED = """
A token is written because its logit is larger than every other one's. That difference is a sum over everything that was
ever added to the stream: the embedding, the positions, each head, each feed-forward. Layer norms divide by a standard
deviation that depends on all of them at once; here every norm keeps the deviation that it measured in this pass, and
then each part's share is exact, and the shares sum to the difference. All biases (of values, of outputs, of norms) are
one term. It says what each part added, not what would happen without it: later layers would then have added other
things.
"""


def render_logit_lens(context: PageContext, walk: Walk, chosen: Choices) -> None:
    """Renders the predictions by depth, and the contributions to the difference of two logits."""
    if not is_transformer(context.lab):
        st.markdown("This takes the layers of a Transformer apart, and this model is not one. Choose one above.")
        return
    lens = get_logit_lens(context.lab, walk.branch, walk.step, context.view.switches)
    baseline = get_logit_lens(context.lab, walk.branch, walk.step, ()) if context.view.switches else None
    subject = LensAtStep(context.lab, walk.branch, walk.step, lens, baseline)
    _render_depths(context, subject)
    st.divider()
    _render_contributions(context, subject, walk.written, chosen)


def _render_depths(context: PageContext, subject: LensAtStep) -> None:
    st.caption(f"If the decoder ended here · step {subject.step}")
    data = exhibit(subject, LogitLensDepths(), explain=partial(_explain_lens, context), width=760)
    if data is not None:
        st.markdown(_settled_text(wording.token(data.tokens[data.written]), data.ranks))
    if subject.baseline is not None:
        st.caption("Tokens are those with the switches; without them, the same words were read.")


def _explain_lens(context: PageContext) -> None:
    st.markdown(LENS_EXPLAINED)
    st.markdown({"post": POST_NORM, "pre": PRE_NORM, "none": NO_NORM}[context.lab.model.config.norm])


def _settled_text(word: str, ranks: Sequence[int]) -> str:
    """Says from which depth on the written token is the first choice."""
    last = len(ranks) - 1
    if ranks[last] != 1:
        return f"{word} was forced: the whole decoder ranks it {ranks[last]:,}."
    first = next(depth for depth in range(len(ranks)) if all(rank == 1 for rank in ranks[depth:]))
    if first == 0:
        return f"{word} ranks first before any layer has run, and stays there."
    if first == last:
        return f"{word} becomes the first choice only in the last layer: before it ranks {ranks[last - 1]:,}."
    return f"{word} is the first choice from layer {first - 1} on."


def _render_contributions(context: PageContext, subject: LensAtStep, written: int, chosen: Choices) -> None:
    piece, vocab = context.lab.tokenizer.piece, context.lab.model.config.vocab_size
    never = {written, context.lab.model.config.pad_id}
    others = [token for token in candidates(subject.lens.log_probs[-1], N_OTHERS).ids if token not in never]
    asked = chosen.against
    if 0 <= asked < vocab and asked not in never and asked not in others:
        others = [asked, *others]
    against = asked if asked in others else others[0]
    view = LogitContributions(against=against)
    data = get_data(subject, view)
    left, right = st.columns([2, 3], gap="medium", vertical_alignment="bottom")
    with left:
        label = f"Why {wording.plain(data.written.strip('▁'))} and not"
        fields.box(label, others, against, PAGE.take("against"), key="against", names=piece)
        say(*PAGE.said("against"))
    if asked >= vocab:
        st.caption(f"The link compares with token {asked:,}, which a vocabulary of {vocab:,} does not have.")
    with right:
        st.markdown(
            f"logit of {wording.token(data.written)} − logit of {wording.token(data.against)} = "
            f"**{wording.number(data.difference, signed=True)}**, so "
            f"{_odds_text(data.written, data.against, data.difference)}"
        )
    exhibit(subject, view, data=data, explain=partial(st.markdown, PARTS_EXPLAINED), width=760)
    together = math.fsum(value for _, value in data.parts)
    marks = "" if data.baseline is None else " Marks: without the switches, after the same words."
    st.caption(
        f"{len(data.parts)} parts sum to {wording.number(together, signed=True)}; the pass's own difference is "
        f"{wording.number(data.error)} away.{marks}"
    )


def _odds_text(written: str, against: str, difference: float) -> str:
    """Says how many times as probable the more probable one is: e to the power of the difference of the logits."""
    more, less = (written, against) if difference >= 0 else (against, written)
    times = math.exp(min(abs(difference), 700.0))
    said = wording.number(times) if times < 1_000 else f"{times:,.0f}" if times < 1e6 else f"{times:.2g}"
    power = f"e^{wording.number(abs(difference))}"
    return f"{wording.token(more)} is {power} = {said} times as probable as {wording.token(less)}."
