"""The checks of the Decoder steps page's figures."""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from pages.shared import loading
from pages.shared.checks import badge
from pages.shared.context import PageContext
from pages.steps.loading import validation_pairs
from transformer.analysis.checks import Check, agree
from transformer.analysis.figure_checks import check_distribution, slow_log_probs
from transformer.analysis.steps.checks import check_contributions_of_parts, check_depths, check_kept
from transformer.analysis.steps.exposure_bias import AtPosition, ReferenceLosses, exposure
from transformer.analysis.steps.logit_lens import LogitLens
from transformer.analysis.steps.samples import Sampling, Sample
from transformer.decoding.beam import Hypothesis
from transformer.inspection.inspection import Inspection
from transformer.lab import Lab

_MOST_READ_AGAIN = 5
"""Outputs that are read again at most."""


def check_totals(context: PageContext, found: Sequence[Hypothesis] | Sequence[Sample], *, key: str) -> None:
    """Of outputs found by a search or by lot: the log-probability of each whole."""

    def run() -> Iterable[Check]:
        first = found[:_MOST_READ_AGAIN]
        totals = [_total(context, output.ids) for output in first]
        how = f"the first {len(first)} of {len(found)} outputs read again, token by token, in double precision"
        claim = "An output's log-probability is the sum over its tokens, each given those before it"
        yield agree(claim, [output.log_prob for output in first], totals, 1e-3, how)

    badge(run, key=key)


def check_hypothesis(context: PageContext, ids: Sequence[int], weights: np.ndarray) -> None:
    """Of a hypothesis's attention: that a decoding of its words alone, one by one, looks at the same places."""

    def run() -> Iterable[Check]:
        road = loading.get_branch(context.lab, context.view.text, context.view.switches, tuple(enumerate(ids)))
        again = road.cross.weights[:, :, : len(ids)]
        how = f"its {len(ids)} tokens forced one by one, without a beam; every layer and head"
        yield agree("Its attention is that of writing these words", weights, again, 1e-5, how)
        sums = weights.astype(np.float64).sum(axis=-1)
        yield agree("Every row sums to 1", sums, np.ones(sums.shape), 1e-5, f"{sums.size} rows summed")

    badge(run, key="proof-hypothesis")


def _total(context: PageContext, ids: Sequence[int]) -> float:
    rows = slow_log_probs(context.lab.model, context.inspection.source_ids, ids, context.view.switches)
    return math.fsum(rows[np.arange(len(ids)), list(ids)])


def check_draw(lab: Lab, road: Inspection, step: int, draw: Sampling, drawn: np.ndarray) -> None:
    """Of the distribution that is drawn from: the model's, reshaped in the order temperature, top-k, top-p, min-p."""

    def run() -> Iterable[Check]:
        row = road.log_probs[step].astype(np.float64)
        yield from check_distribution(
            lab.model, road.source_ids, road.target_ids[:step], road.interventions, road.log_probs[step]
        )
        left = np.flatnonzero(np.isfinite(drawn))
        shares = np.exp(row[left] / draw.temperature - (row[left] / draw.temperature).max())
        how = f"{len(left):,} tokens kept, e^(ln p / temperature) shared out among them again"
        claim = "Among the tokens that are kept, the chances are p^(1/temperature), shared out"
        yield agree(claim, np.exp(drawn[left].astype(np.float64)), shares / math.fsum(shares), 1e-4, how)
        yield check_kept(road.log_probs[step], draw, drawn, pad_id=lab.model.config.pad_id)
        others = np.flatnonzero(np.isinf(drawn))
        others = others[others != lab.model.config.pad_id]
        gap = max(0.0, float(row[others].max() - row[left].min())) if len(others) else 0.0
        yield Check(
            "What is left out is less probable than all that is kept",
            gap,
            1e-6,
            "the most probable token left out against the least probable one kept; by how much it is above, in nats",
        )

    badge(run, key="proof-draw")


def check_inside(lab: Lab, road: Inspection, step: int, inside: LogitLens, *, key: str) -> None:
    """Of what each depth would have written: shares of 1 everywhere, and the model's own word at the end."""

    def run() -> Iterable[Check]:
        sums = np.exp(inside.readings.astype(np.float64)).sum(axis=-1)
        how = f"{len(sums)} depths, all probabilities summed"
        yield agree("At every depth the probabilities sum to 1", sums, np.ones(len(sums)), 1e-4, how)
        yield check_depths(lab.model, road.source_ids, road.target_ids[:step], road.interventions, inside.readings)
        own = road.log_probs[step].astype(np.float64)
        how = "the last reading against the step that was decoded"
        yield agree("The last depth is the model's own word", np.exp(inside.readings[-1]), np.exp(own), 1e-4, how)

    badge(run, key=key)


def check_parts(lab: Lab, road: Inspection, step: int, inside: LogitLens, token: int, other: int) -> None:
    """Of contributions: that they are the whole difference of two logits, as an independent pass has it."""

    def run() -> Iterable[Check]:
        found = inside.contributions(lab.model, token, other)
        parts = math.fsum(value for _, value in found)
        difference = inside.difference(token, other)
        scale = 1e-4 * max(1.0, abs(difference))
        yield agree("All parts sum to the difference of the logits", parts, difference, scale, "summed again")
        yield check_contributions_of_parts(
            lab.model, road.source_ids, road.target_ids[:step], road.interventions, token, other, found
        )
        read = inside.readings[-1].astype(np.float64)
        how = "ln p of one less ln p of the other, at the last depth"
        yield agree(
            "It is the logarithm of how many times as probable", difference, read[token] - read[other], scale, how
        )

    badge(run, key="proof-parts")


def check_readings(context: PageContext, seen: ReferenceLosses) -> None:
    """Of a reference's losses: after its own words, and after what the model wrote."""

    def run() -> Iterable[Check]:
        model, source, switches = context.lab.model, context.inspection.source_ids, context.view.switches
        ids = list(seen.reference)
        rows = slow_log_probs(model, source, ids, switches)
        how = "the reference read again in double precision, on the explicit path, without a cache"
        claim = "Teacher-forced, a token's loss is −ln p after the reference's words"
        yield agree(claim, seen.forced_loss, -rows[np.arange(len(ids)), ids], 1e-3, how)
        written = list(seen.written)
        free = slow_log_probs(model, source, written, switches)[: len(ids)]
        again = np.full(len(ids), np.nan)
        again[: len(free)] = -free[np.arange(len(free)), ids[: len(free)]]
        claim = "Free-running, it is −ln p after the model's own words"
        yield agree(claim, seen.free_loss, again, 1e-3, "the model's own output read again in the same way")

    badge(run, key="proof-losses")


def check_exposure(context: PageContext, found: Sequence[AtPosition]) -> None:
    """Of exposure bias: all sentences measured again in other batches."""

    def run() -> Iterable[Check]:
        lab = context.lab
        pairs = validation_pairs(lab)
        *_, (_, again) = exposure(lab.model, pairs, lab.tokenizer, context.view.switches, batch_tokens=1_024)
        how = f"all {len(pairs)} sentences read twice again, in batches twice as large"
        yield agree("Exposure bias at each position", [a.bias for a in found], [a.bias for a in again], 1e-3, how)
        yield agree("How many sentences it is taken over", [a.going for a in found], [a.going for a in again], 0, how)

    badge(run, key="proof-exposure")
