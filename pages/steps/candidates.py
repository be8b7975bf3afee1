"""One step of decoding: what could have been written, where it looked, what was computed and what was at hand."""

import math

import plotly.graph_objects as go
import streamlit as st
from jaxtyping import Float
from numpy import ndarray

from pages.shared import fields, loading, wording
from pages.shared.checks import check_rows, check_step
from pages.shared.components.token_chips import token_chips
from pages.shared.context import is_dark
from pages.shared.controls import PageContext, say
from pages.shared.scrolling_figure import scrolling_figure
from pages.steps.branches import Walk, go_on_with
from pages.steps.choices import PAGE, Choices, change
from pages.steps.loading import Baseline, get_usual
from transformer.analysis.heads.importance import head_average
from transformer.analysis.steps.candidates import Candidates, candidates, rank
from transformer.figures.steps.candidates import candidate_bars, row_bars
from transformer.lab import Attention, Inspection
from transformer.model.kinds import AttentionKind

N_CANDIDATES = 10
"""Tokens in the picture."""
N_OFFERED = 500
"""Tokens in the box of other roads; any beginning can be typed."""


def offered(walk: Walk) -> tuple[int, ...]:
    """The tokens that may stand here instead, the most probable first."""
    found = candidates(walk.road.log_probs[walk.step], N_OFFERED).ids
    return tuple(token for token in found if token != walk.written)


def show_step(context: PageContext, walk: Walk, chosen: Choices) -> None:
    """The three pictures of a step, with what is to be said of each."""
    road, step = walk.road, walk.step
    usual = get_usual(context.lab, road) if context.view.switches else None
    token_chips(road.decoder_inputs[: step + 1], label="read so far", key="so-far")
    left, middle, right = st.columns([5, 4, 4], gap="small")
    with left:
        _show_candidates(context, walk, chosen, usual)
        check_step(context.lab, road, step, key="proof-step")
    with middle:
        st.caption("Cross-attention")
        _show_row(context, road.cross, step, usual, key="step-cross")
        check_rows(context.lab, road, AttentionKind.CROSS, key="proof-cross")
    with right:
        st.caption("Decoder self-attention")
        _show_row(context, road.decoder_self, step, usual, key="step-self", n_keys=step + 1)
        check_rows(context.lab, road, AttentionKind.DECODER_SELF, key="proof-self")
        if not road.cached:
            st.caption("Of the last whole pass: later tokens may change earlier states.")
    if usual is not None:
        st.caption("Bars: with the switches. Marks: without them, after the same words (teacher-forced).")
    st.markdown(_cache_line(context, road, step))


def choose_scale(chosen: Choices) -> None:
    """Linear or logarithmic bars."""
    fields.toggle("Log scale", chosen.scale == "log", lambda on: change(scale="log" if on else "linear"), key="scale")
    say(*PAGE.said("scale"))


def ask_reference(context: PageContext, chosen: Choices) -> None:
    """A field for a reference translation, and a sentence where the model cannot read what stands in it."""
    gold = loading.reference(context.lab, context.view.text)
    fields.line(
        "Reference translation",
        chosen.reference,
        lambda text: change(reference=text.strip()),
        key="reference",
        placeholder=gold.target if gold else "how it should read, to see where its token ranks",
    )
    say(*PAGE.said("reference"))
    if unseen := wording.unseen_plainly(context.lab.tokenizer, _reference_text(context, chosen)):
        say(f"This reference cannot be followed: {unseen}")


def choose_reference(context: PageContext, walk: Walk, chosen: Choices) -> None:
    """The field, and how the reference's next token fares at this step."""
    ask_reference(context, chosen)
    ids = reference_ids(context, chosen)
    if not ids:
        return
    token = next_of_reference(context, walk, chosen)
    if token is None:
        written = walk.road.target_ids
        left = next(
            (i for i, (a, b) in enumerate(zip(ids, written, strict=False)) if a != b), min(len(ids), len(written))
        )
        st.caption(f"This road left the reference at step {left}, so its next token says nothing here.")
        return
    row = walk.road.log_probs[walk.step]
    p, place, word = _probability(row, token), rank(row, token), wording.token(context.lab.tokenizer.piece(token))
    st.caption(f"The reference goes on with {word}: rank {place:,} of {len(row):,}, probability {wording.number(p)}.")


def _show_candidates(context: PageContext, walk: Walk, chosen: Choices, usual: Baseline | None) -> None:
    found = step_candidates(context, walk, chosen)
    st.caption("Candidates · click one to force it")
    figure = candidates_figure(context, walk, chosen, usual)
    key = f"candidates-{walk.index}-{walk.step}-{len(walk.roads)}"

    def take_clicked() -> None:
        points = st.session_state[key].selection.points
        if points:
            go_on_with(context, walk, found.ids[int(points[-1]["y"])])

    scrolling_figure(figure, key=key, on_select=take_clicked, selection_mode="points")
    st.markdown(_said(context, walk, found))


def step_candidates(context: PageContext, walk: Walk, chosen: Choices) -> Candidates:
    """The most probable tokens of this step, with the written one and the reference's."""
    reference = next_of_reference(context, walk, chosen)
    wanted = {walk.written} if reference is None else {walk.written, reference}
    return candidates(walk.road.log_probs[walk.step], N_CANDIDATES, wanted)


def candidates_figure(context: PageContext, walk: Walk, chosen: Choices, usual: Baseline | None) -> go.Figure:
    """The bars of what could be written at this step."""
    found, reference = step_candidates(context, walk, chosen), next_of_reference(context, walk, chosen)
    return candidate_bars(
        [context.lab.tokenizer.piece(token) for token in found.ids],
        found.probabilities,
        written=found.ids.index(walk.written),
        reference=None if reference is None else found.ids.index(reference),
        before=None if usual is None else [_probability(usual.log_probs[walk.step], token) for token in found.ids],
        logarithmic=chosen.scale == "log",
        dark=is_dark(),
    )


def _said(context: PageContext, walk: Walk, found: Candidates) -> str:
    """The written token, how it came to be written, the rest and the entropy."""
    word, row = wording.token(context.lab.tokenizer.piece(walk.written)), walk.road.log_probs[walk.step]
    p, place = wording.number(_probability(row, walk.written)), rank(row, walk.written)
    forced = walk.step in dict(walk.road.forced)
    how = (
        f"{word} was forced here: rank {place:,}, probability {p}."
        if forced
        else f"{word} was written: probability {p}."
    )
    return (
        f"{how} Entropy {wording.number(found.entropy)} nats. "
        f"The other {found.n_rest:,} tokens: {wording.number(found.rest)} together."
    )


def _show_row(
    context: PageContext,
    attention: Attention,
    step: int,
    usual: Baseline | None,
    *,
    key: str,
    n_keys: int | None = None,
) -> None:
    scrolling_figure(row_figure(context, attention, step, usual, n_keys), key=key)


def row_figure(
    context: PageContext, attention: Attention, step: int, usual: Baseline | None, n_keys: int | None = None
) -> go.Figure:
    """The bars of where this step looked."""
    keys = attention.keys[:n_keys]
    row = _row_of(context, attention.weights, step)[: len(keys)]
    before = None if usual is None else _row_of(context, usual.weights[attention.kind], step)[: len(keys)]
    return row_bars(row, keys, kind=attention.kind, before=before, dark=is_dark())


def _row_of(context: PageContext, weights: Float[ndarray, "layer head query key"], step: int) -> Float[ndarray, "key"]:
    """Where this step looked with the chosen head, or with all of the layer on average."""
    head = context.view.head
    return (head_average(weights, context.layer) if head is None else weights[context.layer, head])[step]


def _cache_line(context: PageContext, road: Inspection, step: int) -> str:
    """What this step computed and what it found in the cache, counted in the real pass."""
    config, n_source = context.lab.model.config, len(road.source_ids)
    computed, reused = road.computed[step], road.reused[step]
    each = 2 * config.d_model * config.n_decoder_layers
    positions = f"{computed} position{'s' * (computed > 1)}"
    if not road.cached:
        return (
            f"**Cache**: not used, because later tokens may change earlier states; all {positions} went through the "
            f"decoder again."
        )
    source = (
        f"The source's {n_source} keys and values a layer were computed in this step."
        if step == 0
        else f"The source's {n_source * each:,} numbers were there since step 0."
    )
    earlier = f"{reused} earlier position{'s' * (reused != 1)}"
    return (
        f"**Cache**: {positions} went through the {config.n_decoder_layers} decoder layers and left "
        f"{computed * each:,} numbers of keys and values; those of {earlier} ({reused * each:,} numbers) were reused. "
        f"{source}"
    )


def _reference_text(context: PageContext, chosen: Choices) -> str:
    gold = loading.reference(context.lab, context.view.text)
    return chosen.reference or (gold.target if gold else "")


def reference_ids(context: PageContext, chosen: Choices) -> tuple[int, ...]:
    """The reference's tokens with its end mark; none where there is no reference that can be read."""
    text = _reference_text(context, chosen)
    if not text or context.lab.unknown(text):
        return ()
    return (*context.lab.tokenizer.encode_target(text), context.lab.model.config.eos_id)


def next_of_reference(context: PageContext, walk: Walk, chosen: Choices) -> int | None:
    """The reference's token at this step, where all tokens before are those of the road."""
    ids = reference_ids(context, chosen)
    same = ids[: walk.step] == walk.road.target_ids[: walk.step]
    return ids[walk.step] if same and walk.step < len(ids) else None


def _probability(log_probs: Float[ndarray, "vocab"], token: int) -> float:
    return math.exp(log_probs[token])
