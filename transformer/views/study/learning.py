"""The learning curves of the paired study of positions."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from pandas import DataFrame

from transformer.analysis.checks import Check, agree
from transformer.checkpoints.settings import METRICS_FILE
from transformer.experiments.plan import TARGET, Study, StudyRun
from transformer.figures.positions.study import Learning, learning_figure
from transformer.figures.tables import column_table
from transformer.runs.run_folder import metrics
from transformer.runs.status import RunError, run_folder
from transformer.views.study.lengths import study_content


@dataclass(frozen=True)
class LearningData:
    """The learning curves of a study's runs."""

    kinds: tuple[str, ...]
    """All kinds of positions of the study, in the order of their colours."""
    curves: tuple[Learning, ...]
    budget: int
    """Steps of each run."""


@dataclass(frozen=True, kw_only=True)
class StudyLearning:
    """Validation exact match over the steps of each run of a study on one corpus."""

    corpus: str
    name = "{corpus}-learning"
    explained = (
        "The share of right answers on strings that were not trained on, as each run learned. Colours are kinds of "
        "positions, and runs of one colour differ in their seed alone: how far they are apart shows what is chance."
    )

    def data(self, study: Study) -> LearningData:
        """The runs' evaluations; a run in progress has those it has made so far."""
        found = (_learning(run) for run in study.runs if run.corpus == self.corpus)
        return LearningData(study.plan.positions, tuple(curve for curve in found if len(curve.step)), study.plan.steps)

    def figure(self, data: LearningData, *, dark: bool = False) -> go.Figure:
        """A line for each run, a colour for each kind of positions."""
        return learning_figure(data.curves, data.kinds, budget=data.budget, target=TARGET, dark=dark)

    def tables(self, data: LearningData) -> tuple[DataFrame, ...]:
        """Exact match of each run at each evaluation."""
        return tuple(
            column_table(
                f"{curve.name}, seed {curve.seed}",
                [f"step {step}" for step in curve.step],
                {"exact match": curve.exact_match},
            )
            for curve in data.curves
        )

    def checks(self, study: Study, data: LearningData) -> Iterator[Check]:
        """Reads the runs' evaluations again, from their files as they are now."""
        content = study_content(study)
        wanted = [(run, _points(run)) for run in content["runs"] if run["corpus"] == self.corpus]
        wanted = [(run, points) for run, points in wanted if points]
        how = "files read again"
        again = [(data.kinds.index(run["positions"]), run["seed"], len(points)) for run, points in wanted]
        shown = [(data.kinds.index(curve.name), curve.seed, len(curve.step)) for curve in data.curves]
        yield agree("Each line is the run of its kind and seed", shown, again, 0, how)
        again = [point for _, points in wanted for point in points]
        points = [point for curve in data.curves for point in zip(curve.step, curve.exact_match, strict=True)]
        yield agree("Each point is the run's own", points, again, 0, how)
        yield agree("Runs have as many steps as planned", data.budget, content["plan"]["steps"], 0, how)


def _learning(run: StudyRun) -> Learning:
    points = [(step, match) for step, _, match in run.curve]
    if not points and run.id:
        try:
            rows = [row for row in metrics(run.id) if row["split"] == "validation"]
        except RunError:
            rows = []
        points = [(row["step"], row["exact_match"]) for row in rows]
    steps, matches = np.array([p[0] for p in points], int), np.array([p[1] for p in points], float)
    return Learning(run.positions, run.seed, steps, matches)


def _points(run: dict[str, Any]) -> list[tuple[int, float]]:
    """Returns (step, exact match) of each evaluation of a run, from its row in the study's file or its own file."""
    if run["curve"] or not run["id"]:
        return [(step, match) for step, _, match in run["curve"]]
    try:
        lines = (run_folder(run["id"]) / METRICS_FILE).read_text(encoding="utf-8").splitlines()
    except (RunError, OSError):
        return []
    rows = [json.loads(line) for line in lines if line.endswith("}")]
    points = {row["step"]: row["exact_match"] for row in rows if row["split"] == "validation"}
    return sorted(points.items())
