"""A badge at each figure that opens its own check: claims about what is drawn, measured when asked for."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from pages.shared import loading, wording
from pages.shared.context import PageContext
from transformer.analysis.attention.weight_checks import check_weights
from transformer.analysis.checks import Check, agree
from transformer.analysis.comparison.checks import check_most_moved, check_outputs
from transformer.analysis.figure_checks import check_comparison, check_output
from transformer.inspection.inspection import AttentionKind, Comparison, Inspection
from transformer.lab import Lab

Run = Callable[[], Iterable[Check]]


def badge(run: Run, *, key: str) -> None:
    """A quiet button under a figure; opened, it runs the proofs and shows what each measured, a failing one in red."""
    with st.popover("Prove it", icon=":material/verified:", type="tertiary", key=key, on_change="rerun") as box:
        if box.open:
            with st.container(width=520):
                _show(tuple(run()))


def _show(checks: Sequence[Check]) -> None:
    failing = sum(not check.holds for check in checks)
    if failing:
        st.markdown(f":red[:material/error: **{failing} of {len(checks)} checks fail.**]")
    else:
        n = len(checks)
        said = "1 check, run just now: it holds." if n == 1 else f"{n} checks, run just now: all hold."
        st.markdown(f":green[:material/verified: **{said}**]")
    for check in checks:
        icon = ":green[:material/check:]" if check.holds else ":red[:material/close:]"
        claim = f"**{wording.plain(check.claim)}.**" if check.holds else f":red[**{wording.plain(check.claim)}.**]"
        how = wording.plain(f"{check.how[:1].upper()}{check.how[1:]}")
        measured, allowed = wording.number(check.measured), wording.number(check.tolerance)
        st.markdown(f"{icon} {claim} {how}: **{measured}** (allowed: {allowed}).")


def weight_checks(lab: Lab, seen: Inspection, kind: AttentionKind) -> tuple[Check, ...]:
    """That the weights of one kind of attention are what q, k and the mask of this very decoding give."""
    stack, sublayer = kind.where
    attention = seen.attention(kind)
    return check_weights(
        lab.model,
        seen.source_ids,
        seen.interventions,
        dict(seen.forced),
        stack=stack,
        sublayer=sublayer,
        weights=attention.weights,
        mask=attention.mask,
    )


def check_compared(context: PageContext, comparison: Comparison) -> None:
    """Of probabilities before and after, of their divergence, and of both outputs."""

    def run() -> Iterable[Check]:
        yield from check_comparison(
            context.lab.model,
            comparison.before.source_ids,
            comparison.before.target_ids,
            comparison.after.interventions,
            before=comparison.forced_before,
            after=comparison.forced_after,
            kl_divergence=comparison.kl_divergence,
        )
        yield from check_outputs(context.lab.model, comparison)

    badge(run, key="proof-compared")


def check_difference(context: PageContext) -> None:
    """Of the difference of a head's attention: each side is read again, without recording anything else; and of the
    head that moved most."""

    def run() -> Iterable[Check]:
        lab, kind = context.lab, context.view.kind
        shift = loading.get_attention_shift(lab, context.view.text, context.view.switches)
        comparison = loading.get_comparison(lab, context.view.text, context.view.switches)
        forced = dict(enumerate(comparison.before.target_ids))
        for name, switches, found in (
            ("before", (), shift.before[kind]),
            ("after", comparison.after.interventions, shift.after[kind]),
        ):
            stack, sublayer = kind.where
            claim, *_ = check_weights(
                lab.model,
                comparison.before.source_ids,
                switches,
                forced,
                stack=stack,
                sublayer=sublayer,
                weights=found.weights,
                mask=found.mask,
            )
            yield replace(claim, claim=f"{name.capitalize()}: {claim.claim}")
            again = lab.attention_on(comparison.before, switches)[kind].weights
            how = "the original output read again"
            yield agree(f"What is called {name} is that pass's attention", found.weights, again, 0, how)
        moved, most, layer, head = shift.largest()[0]
        claim = f"{most.label}, layer {layer}, head {head} moved most"
        claim = claim if moved >= wording.NEGLIGIBLE else "No weight of any head moved, but for rounding"
        yield check_most_moved(lab.model, comparison, shift, claim)

    badge(run, key="proof-difference")


def check_road(lab: Lab, *roads: Inspection, key: str) -> None:
    """Of an output and the roads forced beside it: the probability under each of their tokens."""

    def run() -> Iterable[Check]:
        for index, road in enumerate(roads):
            own = road.log_probs[np.arange(len(road.target_ids)), list(road.target_ids)]
            whose = f"Road {index}: " if index else ""
            for check in check_output(lab.model, road.source_ids, road.target_ids, road.interventions, own):
                yield replace(check, claim=f"{whose}{check.claim}")

    badge(run, key=key)
