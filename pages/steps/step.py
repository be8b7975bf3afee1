"""One decoding step: its candidates, its attention, what it computed and what it found in the cache."""

import math
from functools import partial

import streamlit as st

from pages.shared import fields, loading, wording
from pages.shared.components.tokens import token_chips
from pages.shared.context import PageContext, is_dark, say
from pages.shared.exhibit import exhibit
from pages.shared.explain import explain, steps_explained
from pages.shared.scrolling_figure import scrolling_figure
from pages.steps.branches import Walk, force_token
from pages.steps.choices import PAGE, Choices, change
from transformer.analysis.steps.candidates import candidates, rank
from transformer.config import ModelConfig
from transformer.interventions.names import plural
from transformer.lab import Inspection
from transformer.model.kinds import AttentionKind
from transformer.views.steps.candidates import CandidatesData, StepAttention, StepCandidates
from transformer.views.subjects import Decoding

N_OFFERED = 500
"""The number of tokens in the box of other tokens; any words can be typed."""


def offered(walk: Walk) -> tuple[int, ...]:
    """Returns the tokens that may be written here instead, the most probable first."""
    found = candidates(walk.branch.log_probs[walk.step], N_OFFERED).ids
    return tuple(token for token in found if token != walk.written)


def render_step(context: PageContext, walk: Walk, chosen: Choices) -> None:
    """Renders the candidates and both rows of attention of a step."""
    branch, step, layer, head = walk.branch, walk.step, context.layer, context.view.head
    subject, switched = Decoding(context.lab, branch), bool(context.view.switches)
    token_chips(branch.decoder_inputs[: step + 1], label="read so far", key="so-far")
    left, *places = st.columns([5, 4, 4], gap="small")
    with left:
        st.caption("Candidates · click one to force it")
        view = StepCandidates(
            step=step, reference=next_of_reference(context, walk, chosen), logarithmic=chosen.scale == "log"
        )
        draw, config = partial(_render_candidates, context, walk, view), context.lab.model.config
        explained = partial(explain, steps_explained(config), config)
        data = exhibit(subject, view, draw=draw, explain=explained, width=640)
        if data is not None:
            st.markdown(_written_text(walk, data))
    kinds = [kind for kind in (AttentionKind.CROSS, AttentionKind.DECODER_SELF) if kind in branch.attentions]
    for place, kind in zip(places, kinds, strict=False):
        with place:
            st.caption(kind.label)
            view = StepAttention(kind=kind, layer=layer, head=head, step=step)
            exhibit(subject, view, key=kind.sublayer, width=640)
            if kind == "decoder_self" and not branch.cached:
                st.caption("From the last whole pass: later tokens may change earlier states.")
    if switched:
        st.caption("Bars: with the switches. Marks: without them, after the same words (teacher-forced).")
    st.markdown(_cache_text(context, branch, step))


def _render_candidates(context: PageContext, walk: Walk, view: StepCandidates, data: CandidatesData) -> None:
    key = f"candidates-{walk.index}-{walk.step}-{len(walk.branches)}"

    def take_clicked() -> None:
        points = st.session_state[key].selection.points
        if points:
            force_token(context, walk, data.ids[int(points[-1]["y"])])

    figure = view.figure(data, dark=is_dark())
    scrolling_figure(figure, key=key, on_select=take_clicked, selection_mode="points")


def _written_text(walk: Walk, data: CandidatesData) -> str:
    """Says which token was written and how, the rest and the entropy."""
    word, p = wording.token(data.tokens[data.written]), wording.number(float(data.probabilities[data.written]))
    if walk.step in dict(walk.branch.forced):
        how = f"was forced here: rank {data.written_rank:,}, probability {p}."
    else:
        how = f"was written: probability {p}."
    return (
        f"{word} {how} Entropy {wording.number(data.entropy)} nats. The other {data.n_rest:,} tokens: "
        f"{wording.number(data.rest)} together."
    )


def render_scale(chosen: Choices) -> None:
    """Renders the choice between linear and logarithmic bars."""
    fields.toggle("Log scale", chosen.scale == "log", lambda on: change(scale="log" if on else "linear"), key="scale")
    say(*PAGE.said("scale"))


def render_reference_field(context: PageContext, chosen: Choices) -> None:
    """Renders a field for a reference translation, and says where the model cannot read it."""
    gold = loading.reference(context.lab, context.view.text)
    fields.line(
        "Reference translation",
        chosen.reference,
        lambda text: change(reference=text.strip()),
        key="reference",
        placeholder=gold.target if gold else "how it should read, to see where its token ranks",
    )
    say(*PAGE.said("reference"))
    tokenizer = context.lab.tokenizer
    if unseen := wording.unseen(tokenizer, tokenizer.sentence(_reference_text(context, chosen)), markdown=False):
        say(f"This reference cannot be followed: {unseen}")


def render_reference_rank(context: PageContext, walk: Walk, chosen: Choices) -> None:
    """Renders the field, and the rank of the reference's next token at this step."""
    render_reference_field(context, chosen)
    ids = reference_ids(context, chosen)
    if not ids:
        return
    token = next_of_reference(context, walk, chosen)
    if token is None:
        written = walk.branch.target_ids
        left = next(
            (i for i, (a, b) in enumerate(zip(ids, written, strict=False)) if a != b), min(len(ids), len(written))
        )
        st.caption(f"This branch left the reference at step {left}, so its next token says nothing here.")
        return
    row = walk.branch.log_probs[walk.step]
    p, place, word = math.exp(row[token]), rank(row, token), wording.token(context.lab.tokenizer.piece(token))
    st.caption(f"The reference goes on with {word}: rank {place:,} of {len(row):,}, probability {wording.number(p)}.")


def _cache_text(context: PageContext, branch: Inspection, step: int) -> str:
    """Says what this step computed and what it found in the cache, counted in the real pass."""
    config, n_source = context.lab.model.config, len(branch.source_ids)
    computed, reused = branch.computed[step], branch.reused[step]
    positions = f"{computed} {plural(computed, 'position')}"
    if not isinstance(config, ModelConfig) and branch.cached:
        kept = f"the {config.carried:,} numbers that the last step left"
        return f"**State**: {kept} are all it remembers of earlier tokens."
    if not branch.cached:
        return (
            f"**Cache**: not used, because later tokens may change earlier states; all {positions} went through the "
            "decoder again."
        )
    each = 2 * config.d_model * config.n_decoder_layers
    source = (
        f"The source's {n_source} keys and values per layer were computed in this step."
        if step == 0
        else f"The source's {n_source * each:,} numbers have been there since step 0."
    )
    earlier = f"{reused} earlier {plural(reused, 'position')}"
    return (
        f"**Cache**: {positions} went through the {config.n_decoder_layers} decoder layers and left "
        f"{computed * each:,} numbers of keys and values; those of {earlier} ({reused * each:,} numbers) were reused. "
        f"{source}"
    )


def _reference_text(context: PageContext, chosen: Choices) -> str:
    gold = loading.reference(context.lab, context.view.text)
    return chosen.reference or (gold.target if gold else "")


def reference_ids(context: PageContext, chosen: Choices) -> tuple[int, ...]:
    """Returns the reference's tokens with its end mark; none where there is no reference that can be read."""
    text = _reference_text(context, chosen)
    if not text or context.lab.unknown(text):
        return ()
    return (*context.lab.tokenizer.encode_target(text), context.lab.model.config.eos_id)


def next_of_reference(context: PageContext, walk: Walk, chosen: Choices) -> int | None:
    """Returns the reference's token at this step, where all tokens before are those of the branch."""
    ids = reference_ids(context, chosen)
    same = ids[: walk.step] == walk.branch.target_ids[: walk.step]
    return ids[walk.step] if same and walk.step < len(ids) else None
