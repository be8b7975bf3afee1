"""A reference beside the decoding: teacher-forced and free-running, where they part, and what that costs on average."""

import math
from collections.abc import Sequence

import numpy as np
import streamlit as st

from pages.shared import wording
from pages.shared.components.token_chips import token_chips
from pages.shared.context import is_dark
from pages.shared.controls import PageContext, say
from pages.shared.scrolling_figure import scrolling_figure
from pages.steps.candidates import ask_reference, reference_ids
from pages.steps.checks import check_exposure, check_readings
from pages.steps.choices import Choices
from pages.steps.export_teacher_forcing import take_exposure_away, take_losses_away
from pages.steps.loading import get_two_readings, measure, measured, validation_pairs
from transformer.analysis.steps.exposure_bias import AtPosition, ReferenceLosses
from transformer.figures.steps.teacher_forcing import Measured, exposure_figure, losses_figure

READINGS_EXPLAINED = """
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


def show_reference(context: PageContext, chosen: Choices) -> None:
    """The field, both readings of what stands in it, and the measurement over many sentences."""
    ask_reference(context, chosen)
    ids = reference_ids(context, chosen)
    if ids:
        _show_readings(context, ids)
    elif not chosen.reference:
        st.caption("Type how this sentence should read to see both readings of it.")
    st.divider()
    _show_exposure(context)


def _show_readings(context: PageContext, ids: tuple[int, ...]) -> None:
    try:
        seen = get_two_readings(context.lab, context.inspection.source_ids, ids, context.view.switches)
    except ValueError as error:
        say(f"{str(error)[:1].upper()}{str(error)[1:]}: shorten it.")
        return
    piece = context.lab.tokenizer.piece
    divergence = seen.divergence
    token_chips(
        [piece(token) for token in seen.reference],
        label="reference",
        changed=set() if divergence is None else {divergence},
        probabilities=np.exp(-seen.forced_loss).tolist(),
        key="reference-chips",
    )
    token_chips(
        [piece(token) for token in seen.written],
        label="written",
        changed=set() if divergence is None else {divergence} & set(range(len(seen.written))),
        probabilities=context.inspection.probabilities.tolist(),
        key="written-chips",
    )
    st.markdown(_said(context, seen))
    _warn_of_strangeness(context, seen)
    usual = get_two_readings(context.lab, context.inspection.source_ids, ids, ()) if context.view.switches else None
    figure = losses_figure(
        [piece(token) for token in seen.reference],
        seen.forced_loss.astype(np.float64),
        seen.free_loss.astype(np.float64),
        divergence=divergence,
        before=None if usual is None else usual.forced_loss.astype(np.float64),
        dark=is_dark(),
    )
    scrolling_figure(figure, key="losses")
    with st.container(horizontal=True):
        check_readings(context, seen)
        take_losses_away(context, seen, figure)
    if usual is not None:
        st.caption(
            f"With the switches, teacher-forced: {wording.number(_mean(seen.forced_loss))} nats a token; without them: "
            f"{wording.number(_mean(usual.forced_loss))}. Without them the output "
            + (
                "is the reference."
                if usual.divergence is None
                else f"leaves the reference at position {usual.divergence}."
            )
        )
    with st.expander("What am I looking at?"):
        st.markdown(READINGS_EXPLAINED)


def _said(context: PageContext, seen: ReferenceLosses) -> str:
    mean = f"Teacher-forced, the reference costs {wording.number(_mean(seen.forced_loss))} nats a token."
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
        f" After that its own words cost the reference {wording.number(float(gap.mean()), signed=True)} nats a token."
        if len(gap)
        else ""
    )
    return f"First divergence at position {at}: {own} was written where the reference has {right}.{after} {mean}"


def _warn_of_strangeness(context: PageContext, seen: ReferenceLosses) -> None:
    chance, mean = math.log(context.lab.model.config.vocab_size), _mean(seen.forced_loss)
    if mean > chance:
        say(
            f"This reference is less probable than chance: {wording.number(mean)} nats a token, where guessing among "
            f"{context.lab.model.config.vocab_size:,} tokens costs {wording.number(chance)}. Is it in the language "
            "that this model writes?"
        )


def _show_exposure(context: PageContext) -> None:
    st.markdown("##### Over the validation set")
    pairs = validation_pairs(context.lab)
    if not pairs:
        st.caption("This model's corpus is not here, so there are no validation sentences to measure on.")
        return
    found = measured(context.lab, context.view.switches)
    if found is None:
        switched = " with the switches" * bool(context.view.switches)
        if st.button(f"Measure exposure bias on {len(pairs)} sentences{switched}", key="measure-exposure"):
            bar = st.progress(0.0, "Reading each sentence twice")
            for share in measure(context.lab, context.view.switches):
                bar.progress(share, f"Reading each sentence twice · {share:.0%}")
            st.rerun()
        st.caption("Each sentence is read twice, teacher-forced and free-running. Any other control cancels it.")
        return
    figure = exposure_figure([_drawn(at) for at in found], dark=is_dark())
    scrolling_figure(figure, key="exposure")
    with st.container(horizontal=True):
        check_exposure(context, found)
        take_exposure_away(context, found, figure)
    st.markdown(_summary(found, len(pairs)))
    usual = measured(context.lab, ()) if context.view.switches else None
    if usual is not None:
        st.caption(f"Without the switches: {_summary(usual, len(pairs))}")
    with st.expander("What am I looking at?", key="exposure-explained"):
        st.markdown(EXPOSURE_EXPLAINED)


def _summary(found: Sequence[AtPosition], n_pairs: int) -> str:
    if not found:
        return f"None of the {n_pairs} sentences shares a position with enough others."
    worst = max(found, key=lambda at: at.bias)
    total = sum(at.going for at in found)
    mean = sum(at.bias * at.going for at in found) / total
    return (
        f"{n_pairs} sentences, {total:,} positions: {wording.number(mean, signed=True)} nats on average. Largest at "
        f"position {worst.position}: {wording.number(worst.bias, signed=True)} ± {wording.number(worst.bias_error)} "
        f"over {worst.going:,} sentences."
    )


def _drawn(at: AtPosition) -> Measured:
    return Measured(
        at.position,
        at.count,
        at.going,
        at.bias,
        at.bias - at.bias_error,
        at.bias + at.bias_error,
        at.forced_right / at.count,
        at.free_right / at.count,
    )


def _mean(losses: np.ndarray) -> float:
    return float(losses.astype(np.float64).mean())
