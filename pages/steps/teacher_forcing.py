"""A reference beside the decoding: teacher-forced and free-running, where they part, and what that costs on average."""

import math
from functools import partial

import numpy as np
import streamlit as st

from pages.shared import wording
from pages.shared.background import Stopped
from pages.shared.components.tokens import token_chips
from pages.shared.context import Decoded, PageContext, say
from pages.shared.exhibit import exhibit, get_data
from pages.shared.guard import guard
from pages.shared.waiting import follow_work, wait_a_moment
from pages.steps.choices import Choices
from pages.steps.loading import leave_exposure, measure_exposure, measured_exposure, validation_pairs
from pages.steps.step import reference_ids, render_reference_field
from transformer.analysis.steps.exposure_bias import Exposure, ReferenceLosses
from transformer.interventions.names import plural
from transformer.views.steps.subjects import MeasuredExposure
from transformer.views.steps.teacher_forcing import ExposureBias, TeacherForcedReference

LOSSES_EXPLAINED = """
**Teacher-forced**: at each position the decoder reads the reference's own words before it, as in training, and is asked
for the next. **Free-running**: it reads what it wrote itself, as in use. The loss of a reference token is −log of its
probability. Up to the first divergence both read the same words, so both losses are equal; from there on the model's
own words may make the reference's next token less likely, or a token at the same place may simply be another word.
"""
EXPOSURE_EXPLAINED = """
**Exposure bias** is what the difference between training and use costs: the loss of a reference token after the model's
own words minus its loss after the right ones, averaged over sentences at each position, with a 95 % interval. It counts
the sentences whose output still goes on at this position; the shares below count all. A translation that is right in
other words looks biased too: this measures distance from one reference.
"""


@guard("Teacher forcing")
def render_reference(context: Decoded, chosen: Choices) -> None:
    """Renders the field, the losses of the reference in it, and exposure bias over many sentences."""
    render_reference_field(context, chosen)
    ids = reference_ids(context, chosen)
    if ids:
        _render_losses(context, ids)
    elif not chosen.reference:
        st.caption("Type how this sentence should be translated to compare it with the model's own output.")
    st.divider()
    _render_exposure(context)


def _render_losses(context: Decoded, ids: tuple[int, ...]) -> None:
    subject, view = context.decoding, TeacherForcedReference(reference=ids)
    try:
        data = get_data(subject, view)
    except ValueError as error:
        say(f"{str(error)[:1].upper()}{str(error)[1:]}: shorten it.")
        return
    seen, divergence = data.losses, data.losses.divergence
    changed = set() if divergence is None else {divergence}
    token_chips(
        data.tokens,
        label="reference",
        changed=changed,
        probabilities=np.exp(-seen.forced_loss).tolist(),
        key="reference-chips",
    )
    token_chips(
        [context.lab.tokenizer.piece(token) for token in seen.written],
        label="written",
        changed=changed & set(range(len(seen.written))),
        probabilities=context.inspection.probabilities.tolist(),
        key="written-chips",
    )
    st.markdown(_divergence_text(context, seen))
    _render_warning(context, seen)
    exhibit(subject, view, data=data, explain=partial(st.markdown, LOSSES_EXPLAINED), width=760)
    if (baseline := data.baseline) is not None:
        leaves = "is the reference"
        if baseline.divergence is not None:
            leaves = f"leaves the reference at position {baseline.divergence}"
        st.caption(
            f"With the switches, teacher-forced: {wording.number(_mean(seen.forced_loss))} nats per token; without "
            f"them: {wording.number(_mean(baseline.forced_loss))}. Without them the output {leaves}."
        )


def _divergence_text(context: PageContext, seen: ReferenceLosses) -> str:
    mean = f"Teacher-forced, the reference costs {wording.number(_mean(seen.forced_loss))} nats per token."
    if seen.divergence is None:
        return f"The model writes this very reference by itself. {mean}"
    at = seen.divergence
    right = wording.token(context.lab.tokenizer.piece(seen.reference[at]))
    if at >= len(seen.written):
        return f"The output ends before position {at}, where the reference goes on with {right}. {mean}"
    own = wording.token(context.lab.tokenizer.piece(seen.written[at]))
    gap = seen.free_loss[at + 1 :] - seen.forced_loss[at + 1 :]
    gap = gap[~np.isnan(gap)]
    after = (
        f" After that its own words cost the reference {wording.number(float(gap.mean()), signed=True)} nats per token."
        if len(gap)
        else ""
    )
    return f"First divergence at position {at}: {own} was written where the reference has {right}.{after} {mean}"


def _render_warning(context: PageContext, seen: ReferenceLosses) -> None:
    chance, mean = math.log(context.lab.model.config.vocab_size), _mean(seen.forced_loss)
    if mean > chance:
        say(
            f"This reference is less probable than chance: {wording.number(mean)} nats per token, where guessing among "
            f"{context.lab.model.config.vocab_size:,} tokens costs {wording.number(chance)}. Is it in the language "
            "that this model writes?"
        )


def _render_exposure(context: PageContext) -> None:
    st.markdown("## Over the validation set")
    lab, switches, pairs = context.lab, context.view.switches, validation_pairs(context.lab)
    if not pairs:
        st.caption("This model's corpus is not here, so there are no validation sentences to measure on.")
        return
    work = measured_exposure(lab, switches)
    if work is None:
        label = f"Measure exposure bias on {len(pairs)} sentences{' with the switches' if switches else ''}"
        st.button(label, key="measure-exposure", on_click=measure_exposure, args=(lab, switches))
        st.caption("Each sentence is read twice, teacher-forced and free-running, while you go on.")
        return
    if not wait_a_moment(work):
        leave = partial(leave_exposure, lab, switches)
        follow_work(work, "Reading each sentence twice", leave, key="cancel-exposure")
        return
    try:
        exposure = work.result()
    except Stopped:
        st.rerun()
    explain = partial(st.markdown, EXPOSURE_EXPLAINED)
    data = exhibit(MeasuredExposure(lab, exposure), ExposureBias(), explain=explain, width=760)
    if data is None:
        return
    st.markdown(_summary_text(exposure))
    without = measured_exposure(lab, ()) if switches else None
    if without is not None and without.over.is_set():
        st.caption(f"Without the switches: {_summary_text(without.result())}")


def _summary_text(found: Exposure) -> str:
    sentences = f"{found.n_pairs} {plural(found.n_pairs, 'sentence')}"
    if not found.positions:
        return f"None of the {sentences} shares a position with enough others."
    worst = max(found.positions, key=lambda at: at.bias)
    total = sum(at.going for at in found.positions)
    mean = sum(at.bias * at.going for at in found.positions) / total
    return (
        f"{sentences}, {total:,} positions: {wording.number(mean, signed=True)} nats on average. Largest at "
        f"position {worst.position}: {wording.number(worst.bias, signed=True)} ± {wording.number(worst.bias_error)} "
        f"over {worst.going:,} sentences."
    )


def _mean(losses: np.ndarray) -> float:
    return float(losses.astype(np.float64).mean())
