"""The checks of the Heads page's figures."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager

import numpy as np
import streamlit as st

from pages.heads.choices import Measure, Removal
from pages.heads.data import Measured, means_of
from pages.shared.checks import badge
from pages.shared.context import PageContext
from transformer.analysis.checks import Check
from transformer.analysis.heads.ablation_checks import (
    check_intervals_hold,
    check_output_effects,
    check_smallest_set,
    check_validation_effects,
)
from transformer.analysis.heads.addresses import HeadAt
from transformer.analysis.heads.importance import OutputEffect
from transformer.analysis.heads.leave_one_out import Agreement, Erasing
from transformer.analysis.heads.leave_one_out_checks import check_agreement, check_erasure, check_sums
from transformer.analysis.heads.minimal_set import Found, Goal
from transformer.analysis.heads.survey import Survey
from transformer.analysis.heads.survey_checks import Column, check_likeness_of_heads, check_survey
from transformer.analysis.heads.validation_importance import ValidationEffects
from transformer.model.kinds import AttentionKind

_OTHER = ("entropy", "largest", "error_rate", "accuracy", "error_rate_read")


def check_columns(
    context: PageContext, measured: Measured, found: Survey, names: Sequence[str], measure: Measure, *, key: str
) -> None:
    """Of columns of the table or of the map's colours, for all heads."""
    suffix = " peak" if measure == "peak" else ""
    columns = [(p.at, name if name in _OTHER else name + suffix) for p in found.profiles for name in names]
    _counted(context, measured, found, columns, key)


def check_profile(context: PageContext, measured: Measured, found: Survey, at: HeadAt) -> None:
    """Of the bars of one head, and the ticks of an even one."""
    names = found.by_head[at].weight
    columns = [(at, name + what) for name in names for what in ("", " even")]
    _counted(context, measured, found, columns, "proof-heads-profile")


def _counted(context: PageContext, measured: Measured, found: Survey, columns: Sequence[Column], key: str) -> None:
    lab = context.lab

    def run() -> Iterable[Check]:
        with _reading(measured):
            yield from check_survey(lab.model, measured.pairs, lab.tokenizer, found, columns, unit=measured.unit)

    badge(run, key=key)


def _reading(measured: Measured) -> AbstractContextManager[None]:
    """Says what takes its time: many pairs."""
    return st.spinner(f"Reading {measured.said} again", show_time=True)


def check_groups(
    context: PageContext,
    measured: Measured,
    found: Survey,
    kind: AttentionKind,
    groups: Sequence[Sequence[int]],
    closest: float,
) -> None:
    """Of distances, and of groups of heads that are alike."""
    lab = context.lab

    def run() -> Iterable[Check]:
        with _reading(measured):
            yield from check_likeness_of_heads(
                lab.model, measured.pairs, lab.tokenizer, found, kind, groups, closest, unit=measured.unit
            )

    badge(run, key="proof-heads-alike")


def check_worth(
    context: PageContext,
    removal: Removal,
    effects: Sequence[OutputEffect],
    over_pairs: tuple[Measured, ValidationEffects] | None,
    at: HeadAt,
) -> None:
    """Of the map of what heads are worth: to this translation, or, of the head in hand, over the pairs."""
    lab, seen = context.lab, context.inspection

    def run() -> Iterable[Check]:
        means = means_of(lab, removal)
        if over_pairs is not None:
            measured, found = over_pairs
            with _reading(measured):
                yield from check_validation_effects(lab.model, measured.pairs, lab.tokenizer, found, at, means)
            return
        yield from check_output_effects(lab.model, seen.source_ids, seen.target_ids, seen.interventions, effects, means)

    badge(run, key="proof-heads-worth")


def check_ranking(values: Sequence[float], found: ValidationEffects | None, *, rising: bool) -> None:
    """Of the ranking: the costliest head first, and every interval around its value."""

    def run() -> Iterable[Check]:
        steps = np.diff(values) * (1 if rising else -1)
        how = f"{len(values)} heads, each against the one above; by how much the order is wrong"
        yield Check("The head whose removal costs most stands first", float(-steps.min(initial=0.0)), 0.0, how)
        if found is not None:
            yield check_intervals_hold(found)

    badge(run, key="proof-heads-ranking")


def check_set(context: PageContext, goal: Goal, found: Found, exact: int) -> None:
    """Of the smallest set: decoded again, and its parts."""
    lab, seen = context.lab, context.inspection
    badge(
        lambda: check_smallest_set(lab.model, seen.source_ids, seen.target_ids, goal, seen.interventions, found, exact),
        key="proof-heads-set",
    )


def check_erased(context: PageContext, how: Erasing, effect: np.ndarray) -> None:
    """Of what erasing each source token costs."""
    lab, seen = context.lab, context.inspection
    badge(
        lambda: check_erasure(lab.model, seen.source_ids, seen.target_ids, how, seen.interventions, effect),
        key="proof-heads-erasure",
    )


def check_dots(context: PageContext, at: HeadAt, effect: np.ndarray, found: Agreement) -> None:
    """Of a head's weights against effects."""
    weights = context.inspection.cross.weights[at.layer, at.head].astype(np.float64)
    badge(lambda: check_agreement(weights, effect, found), key="proof-heads-dots")


def check_correlations(
    context: PageContext, effect: np.ndarray, found: dict[HeadAt, Agreement], sums: dict[HeadAt, float]
) -> None:
    """Of the table of correlations."""

    def weights(at: HeadAt) -> np.ndarray:
        return context.inspection.attention(at.kind).weights[at.layer, at.head].astype(np.float64)

    def run() -> Iterable[Check]:
        checks = [tuple(check_agreement(weights(at), effect, own)) for at, own in found.items()]
        for same in zip(*checks, strict=True):
            worst = max(same, key=lambda check: check.measured)
            yield Check(
                f"{worst.claim}, of every head", worst.measured, worst.tolerance, f"{len(same)} heads; {worst.how}"
            )
        yield check_sums([weights(at) for at in sums], effect, list(sums.values()))

    badge(run, key="proof-heads-table")
