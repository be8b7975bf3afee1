"""Sums up a study: each kind of positions in one row, with the spread over seeds; and exact match by length."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import NamedTuple

from transformer.analysis.positions.lengths import LengthScore, wilson
from transformer.config import PositionKind
from transformer.experiments.plan import Study, StudyRun
from transformer.model.position_extension import Extension

JUST_BEYOND = 4
"""Lengths past the longest of training that count as just beyond it."""


class Spread(NamedTuple):
    """The mean or median of some runs, the lowest and the highest."""

    middle: float
    low: float
    high: float


@dataclass(frozen=True)
class Share:
    """Sentences that came out right, all seeds together, with Wilson's 95 % interval."""

    right: int
    count: int
    low: float
    high: float

    @property
    def value(self) -> float:
        """The share, 0..1; NaN where nothing was tested."""
        return self.right / self.count if self.count else float("nan")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One kind of positions on one corpus, over its seeds."""

    positions: PositionKind
    n_runs: int
    steps_to_target: tuple[int | None, ...]
    """The step of each seed; None: never within the budget."""
    exact_match: Spread
    """On held-out sentences of the lengths of training; the mean of the seeds."""
    bleu: Spread | None
    near: Share | None
    """Just beyond the lengths of training; None where lengths were not tested."""
    beyond: Share | None
    """The score at all lengths beyond, up to the longest tested."""
    beyond_of_seeds: Spread | None
    parameters: int
    tokens_per_s: Spread
    """The median of the seeds."""

    def line(self) -> str:
        """The row as plain text."""
        steps = ", ".join("never" if n is None else f"{n:,}" for n in self.steps_to_target)
        said = [
            f"{self.positions:10} steps to 0.99: {steps}",
            f"exact match {_spread(self.exact_match, '.3f')}",
        ]
        if self.bleu is not None:
            said.append(f"BLEU {_spread(self.bleu, '.1f')}")
        if self.near is not None and self.beyond is not None:
            said.append(f"just beyond {_share(self.near)}, all beyond {_share(self.beyond)}")
        said.append(f"{self.parameters:,} parameters, {_spread(self.tokens_per_s, ',.0f')} tokens/s")
        return "; ".join(said)


@dataclass(frozen=True)
class LengthCurve:
    """Exact match by length of one kind of positions, its seeds together."""

    positions: PositionKind
    scores: tuple[LengthScore, ...]
    """Right and count over all seeds; a count of 0 where the length was refused."""


def verdicts(study: Study, corpus: str, how: Extension = "noise") -> tuple[Verdict, ...]:
    """Returns a row for each kind with a result on this corpus; `how` says how a learned table goes on."""
    rows = []
    for positions in study.plan.positions:
        runs = [run for run in study.done if (run.corpus, run.positions) == (corpus, positions)]
        if runs:
            rows.append(_verdict(study, positions, runs, how))
    return tuple(rows)


def length_curves(study: Study, corpus: str, how: Extension = "noise") -> tuple[LengthCurve, ...]:
    """Returns exact match by length for each kind; with "refuse", a learned table answers nothing past training."""
    curves = []
    for positions in study.plan.positions:
        runs = [run for run in study.done if (run.corpus, run.positions) == (corpus, positions)]
        scores = _pooled([_scores(study, run, how) for run in runs])
        if scores:
            curves.append(LengthCurve(positions, scores))
    return tuple(curves)


def _verdict(study: Study, positions: PositionKind, runs: Sequence[StudyRun], how: Extension) -> Verdict:
    plan = study.plan
    by_seed = [_scores(study, run, how) for run in runs]
    tested = all(by_seed)
    first, last = plan.trained_to + 1, plan.tested_to
    shares = [share_of(scores, first, last) for scores in by_seed] if tested else []
    together = _pooled(by_seed)
    bleus = [run.bleu for run in runs if run.bleu is not None]
    return Verdict(
        positions=positions,
        n_runs=len(runs),
        steps_to_target=tuple(run.steps_to_target for run in runs),
        exact_match=_spread_of([run.exact_match for run in runs if run.exact_match is not None], middle=mean),
        bleu=_spread_of(bleus, middle=mean) if len(bleus) == len(runs) else None,
        near=share_of(together, first, min(last, plan.trained_to + JUST_BEYOND)) if tested else None,
        beyond=share_of(together, first, last) if tested else None,
        beyond_of_seeds=_spread_of([s.value for s in shares if s.count], middle=mean) if tested else None,
        parameters=runs[0].parameters or 0,
        tokens_per_s=_spread_of([run.tokens_per_s for run in runs if run.tokens_per_s is not None], middle=median),
    )


def _scores(study: Study, run: StudyRun, how: Extension) -> tuple[LengthScore, ...]:
    if not run.lengths:
        return ()
    scores = run.lengths.get("") or run.lengths.get("noise" if how == "refuse" else how, ())
    refused = run.positions == "learned" and how == "refuse"
    last = study.plan.trained_to if refused else study.plan.tested_to
    return tuple(LengthScore(n, *((right, count) if n <= last else (0, 0))) for n, right, count in scores)


def _pooled(runs: Sequence[Sequence[LengthScore]]) -> tuple[LengthScore, ...]:
    return tuple(
        LengthScore(row[0].length, sum(s.right for s in row), sum(s.count for s in row))
        for row in zip(*filter(None, runs), strict=True)
    )


def share_of(scores: Sequence[LengthScore], first: int, last: int) -> Share:
    """Sums the scores of the lengths from `first` to `last`."""
    chosen = [score for score in scores if first <= score.length <= last]
    right, count = sum(score.right for score in chosen), sum(score.count for score in chosen)
    return Share(right, count, *wilson(right, count))


def _spread_of(values: Sequence[float], *, middle: Callable[[Sequence[float]], float]) -> Spread:
    return Spread(middle(values), min(values), max(values)) if values else Spread(*[float("nan")] * 3)


def _spread(spread: Spread, form: str) -> str:
    return f"{spread.middle:{form}} ({spread.low:{form}} to {spread.high:{form}})"


def _share(share: Share) -> str:
    if not share.count:
        return "refused"
    return f"{share.value:.3f} ({share.low:.3f} to {share.high:.3f}, {share.right:,} of {share.count:,})"
