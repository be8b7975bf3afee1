"""What the figures of a study are drawn from: how each run learned, and how far each kind reaches."""

from collections.abc import Iterable

import numpy as np

from transformer.experiments.study import Study, StudyRun
from transformer.experiments.verdict import LengthCurve
from transformer.figures.positions.study import ByLength, Learning
from transformer.runs.run_folder import RunError, metrics


def learning_curves(study: Study, corpus: str) -> list[Learning]:
    """Validation exact match over the steps of each run on a corpus; of one at work, as far as it has come."""
    return [_learning(run) for run in study.runs if run.corpus == corpus]


def by_length(curves: Iterable[LengthCurve]) -> list[ByLength]:
    """Exact match by length of each kind, with the ends of its interval."""
    found = []
    for curve in curves:
        length, right, count = (np.array([getattr(s, f) for s in curve.scores]) for f in ("length", "right", "count"))
        low, high = np.array(curve.intervals()).T
        found.append(ByLength(curve.positions, length, right, count, low, high))
    return found


def _learning(run: StudyRun) -> Learning:
    points = run.curve
    if not points and run.id:
        try:
            rows = [
                row for row in metrics(run.id) if row["split"] == "validation" and {"loss", "exact_match"} <= row.keys()
            ]
        except RunError:
            rows = []
        points = tuple((row["step"], row["loss"], row["exact_match"]) for row in rows)
    steps, matches = np.array([p[0] for p in points], int), np.array([p[2] for p in points], float)
    return Learning(run.positions, run.seed, steps, matches)
