"""What is wrong with a training run, if anything: each finding in a sentence with the number seen, and what to try.

The signs are read from the rows that the run wrote; heads and corpus are measured elsewhere and handed in. A healthy
run has no findings, and what was checked is said.
"""

from collections.abc import Sequence

from transformer.analysis.heads.health import HeadHealth
from transformer.analysis.proportions import Proportions
from transformer.analysis.training.corpus_findings import length, vocabulary
from transformer.analysis.training.curve_findings import (
    all_wrong,
    answer_seen,
    course_of_the_loss,
    not_a_number,
    over_fitting,
)
from transformer.analysis.training.curves import Curves, curves_of
from transformer.analysis.training.findings import SEVERITIES, Diagnosis, Finding, Severity, counted
from transformer.analysis.training.head_findings import dead_and_saturated
from transformer.config import ModelConfig, TrainConfig

__all__ = ["Diagnosis", "Finding", "Severity", "diagnose"]

ENOUGH = 0.95
"""Exact match from which a run has done what it was for, however its curves look."""
FEWEST_STEPS = 60
"""Steps, counted after the warm-up, before which a curve says nothing."""


def diagnose(
    rows: Sequence[dict],
    model: ModelConfig,
    train: TrainConfig,
    *,
    over: bool,
    error: str = "",
    corpus: Proportions | None = None,
    heads: Sequence[HeadHealth] | None = None,
) -> Diagnosis:
    """What the rows of a run and what was measured of its corpus and heads (None: not measured) say of it.

    `over`: no step will follow. `error`: why it failed, where it did.
    """
    curves = curves_of(rows)
    seen = [not_a_number(curves, model, train, error)]
    checked = [f"the loss and gradient norm of {counted(len(curves.steps), 'step')} for NaN and infinity"]
    unchecked = []
    enough = _exact_match(curves) >= ENOUGH
    if len(curves.steps) >= min(train.warmup_steps, 200) + FEWEST_STEPS:
        seen += course_of_the_loss(curves, model, train, over=over, enough=enough)
        checked.append("the course of the training loss for divergence, standstill and unsteadiness")
    else:
        unchecked.append(f"the course of the loss ({counted(len(curves.steps), 'step')}: too few)")
    if len(curves.evaluations) >= 4:
        seen.append(over_fitting(curves, train))
        checked.append(f"{len(curves.evaluations):,} evaluations for over-fitting and plateau")
    else:
        unchecked.append(f"over-fitting ({counted(len(curves.evaluations), 'evaluation')}, 4 are needed)")
    if curves.evaluations and (over or len(curves.evaluations) >= 4):
        seen.append(answer_seen(curves, model) or all_wrong(curves, over=over))
        checked.append("the exact match of the last evaluation against its loss")
    if corpus is None:
        unchecked.append("vocabulary and lengths (the corpus is not here)")
    else:
        seen += [vocabulary(corpus), length(corpus, model)]
        checked.append(f"a vocabulary of {corpus.vocab_size:,} and max_length {corpus.max_length} against the corpus")
    if heads is None or len(curves.steps) < FEWEST_STEPS:
        unchecked.append("the attention heads (no weights yet, too few steps, or no corpus)")
    else:
        seen += dead_and_saturated(heads, model, enough=enough)
        checked.append(f"{counted(len(heads), 'attention head')} for dead and saturated ones")
    findings = [finding for finding in seen if finding is not None]
    return Diagnosis(
        tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))),
        tuple(checked),
        tuple(unchecked),
    )


def _exact_match(curves: Curves) -> float:
    return float(curves.evaluations[-1].get("exact_match") or 0.0) if curves.evaluations else 0.0
