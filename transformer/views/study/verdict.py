"""The figure that sums up a paired study of positions: each kind in one row, with the spread over its seeds."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.checks import Check, agree
from transformer.analysis.positions.checks import check_interval
from transformer.experiments.plan import TARGET, Study
from transformer.experiments.verdict import JUST_BEYOND, Share, Spread, verdicts
from transformer.figures.positions.study import verdict_figure
from transformer.figures.tables import column_table, matrix_table
from transformer.model.position_extension import Extension
from transformer.views.study.lengths import counts_in_file, study_content

SPREAD = ("middle", "lowest", "highest")
SHARE = ("right", "of", "low 95 %", "high 95 %")


@dataclass(frozen=True)
class VerdictData:
    """The results of each kind of positions; NaN where there is no such number."""

    kinds: tuple[str, ...]
    n_runs: Int[ndarray, " kind"]
    steps_to_target: Float[ndarray, "kind seed"]
    """NaN for a seed that never reached the target, and for one without a run."""
    exact_match: Float[ndarray, "kind 3"]
    """On held-out sentences of the lengths of training: the mean of the seeds, the lowest and the highest."""
    bleu: Float[ndarray, "kind 3"]
    tokens_per_s: Float[ndarray, "kind 3"]
    """The median of the seeds, the lowest and the highest."""
    near: Float[ndarray, "kind 4"]
    """Just beyond the lengths of training: right, count, and the ends of Wilson's interval."""
    beyond: Float[ndarray, "kind 4"]
    """The same at all tested lengths beyond."""
    parameters: Int[ndarray, " kind"]


@dataclass(frozen=True, kw_only=True)
class StudyVerdict:
    """Each kind of positions on one corpus: steps to learn it, exact match inside and beyond, speed."""

    corpus: str
    past: Extension
    """The extension of a learned table past its last trained row."""
    name = "{corpus}-verdict-{past}"
    explained = (
        "One row for each kind of positions: how fast it learned, how many strings it gets right within the lengths of "
        "training, and how many beyond. Numbers with a range come from several seeds; what lies inside each other's "
        "range may be chance."
    )

    def data(self, study: Study) -> VerdictData:
        """The numbers of every kind with a result; ValueError where there is none yet."""
        rows = verdicts(study, self.corpus, self.past)
        if not rows:
            raise ValueError(f"no run on {self.corpus} has a result yet")
        steps = np.full((len(rows), len(study.plan.seeds)), np.nan)
        for place, row in enumerate(rows):
            steps[place, : row.n_runs] = [math.nan if n is None else n for n in row.steps_to_target]
        return VerdictData(
            kinds=tuple(row.positions for row in rows),
            n_runs=np.array([row.n_runs for row in rows]),
            steps_to_target=steps,
            exact_match=_spreads([row.exact_match for row in rows]),
            bleu=_spreads([row.bleu for row in rows]),
            tokens_per_s=_spreads([row.tokens_per_s for row in rows]),
            near=_shares([row.near for row in rows]),
            beyond=_shares([row.beyond for row in rows]),
            parameters=np.array([row.parameters for row in rows]),
        )

    def figure(self, data: VerdictData, *, dark: bool = False) -> go.Figure:
        """Exact match inside the lengths of training and beyond them."""
        columns = {"held out, lengths of training": data.exact_match}
        right, count, low, high = data.beyond.T
        if (count > 0).any():
            share = np.divide(right, count, out=np.full(len(count), np.nan), where=count > 0)
            columns["all lengths beyond"] = np.column_stack((share, low, high))
        return verdict_figure(data.kinds, columns, dark=dark)

    def tables(self, data: VerdictData) -> tuple[DataFrame, ...]:
        """Every number, a row for each kind."""
        seeds = [f"run {i}" for i in range(data.steps_to_target.shape[1])]
        return (
            matrix_table(f"steps to {TARGET}", data.steps_to_target, data.kinds, seeds),
            matrix_table("exact match, held out", data.exact_match, data.kinds, SPREAD),
            matrix_table("BLEU", data.bleu, data.kinds, SPREAD),
            matrix_table("just beyond", data.near, data.kinds, SHARE),
            matrix_table("all lengths beyond", data.beyond, data.kinds, SHARE),
            matrix_table("tokens per second", data.tokens_per_s, data.kinds, SPREAD),
            column_table("parameters", data.kinds, {"parameters": data.parameters}),
            column_table("runs", data.kinds, {"runs": data.n_runs}),
        )

    def checks(self, study: Study, data: VerdictData) -> Iterator[Check]:
        """Sums up the rows of the study's file again."""
        content, how = study_content(study), "the study's file read again"
        plan = content["plan"]
        runs = [
            [run for run in content["runs"] if (run["corpus"], run["positions"], run["state"]) == (*key, "done")]
            for key in ((self.corpus, kind) for kind in data.kinds)
        ]
        steps = np.full((len(runs), len(plan["seeds"])), np.nan)
        for row, own in zip(steps, runs, strict=True):
            row[: len(own)] = [run["steps_to_target"] for run in own]  # None -> NaN
        yield agree(f"Steps to {TARGET} are the runs' own", data.steps_to_target, steps, 0, how)
        yield agree("All finished runs are counted", data.n_runs, [len(own) for own in runs], 0, how)
        sizes = [own[0]["parameters"] for own in runs]
        yield agree("Parameters are those of the runs", data.parameters, sizes, 0, how)
        for name, shown in (("exact_match", data.exact_match), ("bleu", data.bleu)):
            again = [_again([run[name] for run in own], _mean) for own in runs]
            yield agree(f"{name}: mean, lowest and highest of the seeds", shown, again, 1e-9, how)
        again = [_again([run["tokens_per_s"] for run in own], _median) for own in runs]
        yield agree("Speed: median, lowest and highest of the seeds", data.tokens_per_s, again, 1e-6, how)
        first, last = plan["trained_to"] + 1, plan["tested_to"]
        for name, shown, end in (
            ("near", data.near, min(last, first + JUST_BEYOND - 1)),
            ("beyond", data.beyond, last),
        ):
            counted = [counts_in_file(content, self.corpus, kind, self.past) for kind in data.kinds]
            again = [
                [sum(pair[i] for n, pair in counts.items() if first <= n <= end) for i in (0, 1)]
                if counts
                else [math.nan] * 2
                for counts in counted
            ]
            yield agree(f"{name}: right of lengths {first} to {end}", shown[:, :2], again, 0, how)
            known = ~np.isnan(shown[:, 1])
            right, count, low, high = shown[known].T
            yield check_interval(right, count, low, high)


def _spreads(found: Sequence[Spread | None]) -> Float[ndarray, "kind 3"]:
    return np.array([[math.nan] * 3 if spread is None else list(spread) for spread in found])


def _shares(found: Sequence[Share | None]) -> Float[ndarray, "kind 4"]:
    return np.array([[math.nan] * 4 if share is None else astuple(share) for share in found])


def _again(values: Sequence[Any], middle: Any) -> list[float]:
    if not values or any(value is None for value in values):
        return [math.nan] * 3
    ordered = sorted(values)
    return [middle(ordered), ordered[0], ordered[-1]]


def _mean(ordered: Sequence[float]) -> float:
    return math.fsum(ordered) / len(ordered)


def _median(ordered: Sequence[float]) -> float:
    return (ordered[len(ordered) // 2] + ordered[(len(ordered) - 1) // 2]) / 2
