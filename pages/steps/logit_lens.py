"""Inside one step: what every depth of the decoder would have written, and what chose this token over another."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import streamlit as st

from pages.shared import fields, wording
from pages.shared.context import is_dark
from pages.shared.controls import PageContext, say
from pages.shared.scrolling_figure import scrolling_figure
from pages.steps.branches import Walk
from pages.steps.checks import check_inside, check_parts
from pages.steps.choices import PAGE, Choices
from pages.steps.export_logit_lens import (
    DEPTH,
    KINDS,
    N_SHOWN,
    N_TOKENS,
    WITHOUT,
    take_contributions_away,
    take_lens_away,
)
from pages.steps.loading import get_logit_lens
from transformer.analysis.steps.candidates import candidates, rank
from transformer.analysis.steps.logit_lens import LogitLens, Part
from transformer.figures.steps.logit_lens import Depth, Share, contribution_bars, lens_figure

N_OTHERS = 50
"""Tokens in the box of what could have been written instead."""

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


def show_inside(context: PageContext, walk: Walk, chosen: Choices) -> None:
    """Two pictures of the step: predictions by depth, and contributions to the difference of two logits."""
    inside = get_logit_lens(context.lab, walk.road, walk.step, context.view.switches)
    usual = get_logit_lens(context.lab, walk.road, walk.step, ()) if context.view.switches else None
    _show_lens(context, walk, inside, usual)
    st.divider()
    _show_parts(context, walk, chosen, inside, usual)


def _show_lens(context: PageContext, walk: Walk, inside: LogitLens, usual: LogitLens | None) -> None:
    piece = context.lab.tokenizer.piece
    st.caption(f"If the decoder ended here · step {walk.step}")
    before = [None] * len(inside.readings) if usual is None else list(usual.readings)
    depths = [
        _depth(context, row, other, depth, walk.written)
        for depth, (row, other) in enumerate(zip(inside.readings, before, strict=True))
    ]
    figure = lens_figure(depths, piece(walk.written), before_name="without switches", dark=is_dark())
    scrolling_figure(figure, key="lens")
    with st.container(horizontal=True):
        check_inside(context.lab, walk.road, walk.step, inside, key="proof-lens")
        take_lens_away(context, walk, inside, depths)
    ranks = [depth.rank for depth in depths]
    st.markdown(_settled(wording.token(piece(walk.written)), ranks))
    if usual is not None:
        st.caption("Tokens are those with the switches; without them, the same words were read.")
    with st.expander("What am I looking at?"):
        st.markdown(LENS_EXPLAINED)
        st.markdown({"post": POST_NORM, "pre": PRE_NORM, "none": NO_NORM}[context.lab.model.config.norm])


def _depth(context: PageContext, row: np.ndarray, before: np.ndarray | None, depth: int, followed: int) -> Depth:
    found = candidates(row, N_TOKENS)
    return Depth(
        DEPTH.format("before", 0) if depth == 0 else DEPTH.format("after", depth - 1),
        tuple(context.lab.tokenizer.piece(token) for token in found.ids[:N_TOKENS]),
        found.probabilities[:N_TOKENS],
        rank(row, followed),
        float(np.exp(row[followed])),
        None if before is None else (rank(before, followed), float(np.exp(before[followed]))),
    )


def _settled(word: str, ranks: Sequence[int]) -> str:
    """From where on the written token is the first choice."""
    last = len(ranks) - 1
    if ranks[last] != 1:
        return f"{word} was forced: the whole decoder ranks it {ranks[last]:,}."
    first = next(depth for depth in range(len(ranks)) if all(rank == 1 for rank in ranks[depth:]))
    if first == 0:
        return f"{word} ranks first before any layer has run, and stays there."
    if first == last:
        return f"{word} becomes the first choice only in the last layer: before it ranks {ranks[last - 1]:,}."
    return f"{word} is the first choice from layer {first - 1} on."


def _show_parts(context: PageContext, walk: Walk, chosen: Choices, inside: LogitLens, usual: LogitLens | None) -> None:
    piece, vocab = context.lab.tokenizer.piece, context.lab.model.config.vocab_size
    never = {walk.written, context.lab.model.config.pad_id}
    others = [token for token in candidates(inside.readings[-1], N_OTHERS).ids if token not in never]
    asked = chosen.against
    if 0 <= asked < vocab and asked not in never and asked not in others:
        others = [asked, *others]
    against = asked if asked in others else others[0]
    left, right = st.columns([2, 3], gap="medium", vertical_alignment="bottom")
    with left:
        fields.box(
            f"Why {wording.plain(piece(walk.written).strip('▁'))} and not",
            others,
            against,
            PAGE.take("against"),
            key="against",
            names=piece,
        )
        say(*PAGE.said("against"))
    if asked >= vocab:
        st.caption(f"The link compares with token {asked:,}, which a vocabulary of {vocab:,} does not have.")
    found = inside.contributions(context.lab.model, walk.written, against)
    before = None if usual is None else dict(usual.contributions(context.lab.model, walk.written, against))
    difference = inside.difference(walk.written, against)
    with right:
        odds = _odds(piece(walk.written), piece(against), difference)
        st.markdown(
            f"logit of {wording.token(piece(walk.written))} − logit of {wording.token(piece(against))} = "
            f"**{wording.number(difference, signed=True)}**, so {odds}"
        )
    shares = _shares(found, before, difference, None if usual is None else usual.difference(walk.written, against))
    figure = contribution_bars(
        shares, raised=piece(walk.written), lowered=piece(against), before_name=WITHOUT, dark=is_dark()
    )
    scrolling_figure(figure, key="contributions")
    with st.container(horizontal=True):
        check_parts(context.lab, walk.road, walk.step, inside, walk.written, against)
        take_contributions_away(context, walk, against, shares)
    error = abs(sum(value for _, value in found) - difference)
    st.caption(
        f"{len(found)} parts sum to {wording.number(sum(value for _, value in found), signed=True)}; the pass's own "
        f"difference is {wording.number(error)} away."
        + " Marks: without the switches, after the same words."
        * (usual is not None)
    )
    with st.expander("What am I looking at?", key="parts-explained"):
        st.markdown(PARTS_EXPLAINED)


def _odds(written: str, against: str, difference: float) -> str:
    """How many times as probable the more probable one is: e to the power of the difference of the logits."""
    more, less = (written, against) if difference >= 0 else (against, written)
    times = math.exp(min(abs(difference), 700.0))
    said = wording.number(times) if times < 1_000 else f"{times:,.0f}" if times < 1e6 else f"{times:.2g}"
    power = f"e^{wording.number(abs(difference))}"
    return f"{wording.token(more)} is {power} = {said} times as probable as {wording.token(less)}."


def _shares(
    found: Sequence[tuple[Part, float]],
    before: Mapping[Part, float] | None,
    difference: float,
    usual_difference: float | None,
) -> list[Share]:
    """The largest parts first, the others together, the sum last."""
    ranked = sorted(found, key=lambda pair: -abs(pair[1]))
    shown, rest = ranked[:N_SHOWN], ranked[N_SHOWN:]
    shares = [
        Share(part.title, value, KINDS.get(part.sublayer or ""), None if before is None else before.get(part, 0.0))
        for part, value in shown
    ]
    if rest:
        old = None if before is None else sum(before.get(part, 0.0) for part, _ in rest)
        shares.append(Share(f"{len(rest)} other parts", sum(value for _, value in rest), None, old))
    return [*shares, Share("together", difference, None, usual_difference)]
