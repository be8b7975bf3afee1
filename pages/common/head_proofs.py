"""The checks of the Heads page's figures."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager

import numpy as np
import streamlit as st

from pages.common.head_choices import Measure, Removal
from pages.common.head_data import Measured, means_of
from pages.common.proofs import badge
from pages.common.scene import Scene
from transformer.analysis.effects import OutputEffect
from transformer.analysis.erasure import Agreement, Erasing
from transformer.analysis.head_erasure_proofs import prove_agreement, prove_erasure, prove_sums
from transformer.analysis.head_places import HeadAt
from transformer.analysis.head_removal_proofs import (
    prove_intervals_hold,
    prove_output_effects,
    prove_smallest_set,
    prove_validation_effects,
)
from transformer.analysis.head_survey import Kind, Survey
from transformer.analysis.head_survey_proofs import Column, prove_likeness_of_heads, prove_survey
from transformer.analysis.proofs import Proof
from transformer.analysis.smallest_set import Found, Goal
from transformer.analysis.validation_effects import ValidationEffects

_OTHER = ("entropy", "largest", "error_rate", "accuracy", "error_rate_read")


def prove_columns(
    scene: Scene, measured: Measured, found: Survey, names: Sequence[str], measure: Measure, *, key: str
) -> None:
    """Of columns of the table or of the map's colours, for all heads."""
    suffix = " peak" if measure == "peak" else ""
    columns = [(p.at, name if name in _OTHER else name + suffix) for p in found.profiles for name in names]
    _counted(scene, measured, found, columns, key)


def prove_profile(scene: Scene, measured: Measured, found: Survey, at: HeadAt) -> None:
    """Of the bars of one head, and the ticks of an even one."""
    names = found.by_head[at].weight
    columns = [(at, name + what) for name in names for what in ("", " even")]
    _counted(scene, measured, found, columns, "proof-heads-profile")


def _counted(scene: Scene, measured: Measured, found: Survey, columns: Sequence[Column], key: str) -> None:
    lab = scene.lab

    def run() -> Iterable[Proof]:
        with _reading(measured):
            yield from prove_survey(lab.model, measured.pairs, lab.tokenizer, found, columns, unit=measured.unit)

    badge(run, key=key)


def _reading(measured: Measured) -> AbstractContextManager[None]:
    """Says what takes its time: many pairs."""
    return st.spinner(f"Reading {measured.said} again", show_time=True)


def prove_groups(
    scene: Scene, measured: Measured, found: Survey, kind: Kind, groups: Sequence[Sequence[int]], closest: float
) -> None:
    """Of distances, and of groups of heads that are alike."""
    lab = scene.lab

    def run() -> Iterable[Proof]:
        with _reading(measured):
            yield from prove_likeness_of_heads(
                lab.model, measured.pairs, lab.tokenizer, found, kind, groups, closest, unit=measured.unit
            )

    badge(run, key="proof-heads-alike")


def prove_worth(
    scene: Scene,
    removal: Removal,
    effects: Sequence[OutputEffect],
    over_pairs: tuple[Measured, ValidationEffects] | None,
    at: HeadAt,
) -> None:
    """Of the map of what heads are worth: to this translation, or, of the head in hand, over the pairs."""
    lab, seen = scene.lab, scene.inspection

    def run() -> Iterable[Proof]:
        means = means_of(lab, removal)
        if over_pairs is not None:
            measured, found = over_pairs
            with _reading(measured):
                yield from prove_validation_effects(lab.model, measured.pairs, lab.tokenizer, found, at, means)
            return
        yield from prove_output_effects(lab.model, seen.source_ids, seen.target_ids, seen.interventions, effects, means)

    badge(run, key="proof-heads-worth")


def prove_ranking(values: Sequence[float], found: ValidationEffects | None, *, rising: bool) -> None:
    """Of the ranking: the costliest head first, and every interval around its value."""

    def run() -> Iterable[Proof]:
        steps = np.diff(values) * (1 if rising else -1)
        how = f"{len(values)} heads, each against the one above; by how much the order is wrong"
        yield Proof("The head whose removal costs most stands first", float(-steps.min(initial=0.0)), 0.0, how)
        if found is not None:
            yield prove_intervals_hold(found)

    badge(run, key="proof-heads-ranking")


def prove_set(scene: Scene, goal: Goal, found: Found, exact: int) -> None:
    """Of the smallest set: decoded again, and its parts."""
    lab, seen = scene.lab, scene.inspection
    badge(
        lambda: prove_smallest_set(lab.model, seen.source_ids, seen.target_ids, goal, seen.interventions, found, exact),
        key="proof-heads-set",
    )


def prove_erased(scene: Scene, how: Erasing, effect: np.ndarray) -> None:
    """Of what erasing each source token costs."""
    lab, seen = scene.lab, scene.inspection
    badge(
        lambda: prove_erasure(lab.model, seen.source_ids, seen.target_ids, how, seen.interventions, effect),
        key="proof-heads-erasure",
    )


def prove_dots(scene: Scene, at: HeadAt, effect: np.ndarray, found: Agreement) -> None:
    """Of a head's weights against effects."""
    weights = scene.inspection.cross.weights[at.layer, at.head].astype(np.float64)
    badge(lambda: prove_agreement(weights, effect, found), key="proof-heads-dots")


def prove_correlations(
    scene: Scene, effect: np.ndarray, found: dict[HeadAt, Agreement], sums: dict[HeadAt, float]
) -> None:
    """Of the table of correlations."""

    def weights(at: HeadAt) -> np.ndarray:
        return scene.inspection.attention(at.kind).weights[at.layer, at.head].astype(np.float64)

    def run() -> Iterable[Proof]:
        proofs = [tuple(prove_agreement(weights(at), effect, own)) for at, own in found.items()]
        for same in zip(*proofs, strict=True):
            worst = max(same, key=lambda proof: proof.measured)
            yield Proof(
                f"{worst.claim}, of every head", worst.measured, worst.tolerance, f"{len(same)} heads; {worst.how}"
            )
        yield prove_sums([weights(at) for at in sums], effect, list(sums.values()))

    badge(run, key="proof-heads-table")
