"""A run's metrics as arrays for drawing, and its followed sentences: as the files in its folder stand now."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from transformer.checkpoints.metric_rows import metric_rows, sample_rows
from transformer.checkpoints.settings import METRICS_FILE
from transformer.figures.training.curves import Against, Curve
from transformer.files import last_of

Column = Float[ndarray, " row"]
_TRAIN = ("step", "elapsed_s", "loss", "learning_rate", "gradient_norm", "tokens_per_s")
_VALIDATION = ("step", "elapsed_s", "loss", "perplexity", "exact_match", "bleu", "chrf")


@dataclass(frozen=True)
class Progress:
    """The rows of metrics.jsonl as columns, by split. Read-only: shared by all callers."""

    train: dict[str, Column]
    """The smoothed loss, and the rest of _TRAIN."""
    validation: dict[str, Column]
    """The loss, not smoothed, and the rest of _VALIDATION; NaN where a score does not apply."""
    held_out: dict[str, dict[str, Any]]
    """The last row of each held-out split, scored at the end."""

    def curve(self, split: str, column: str, name: str, against: Against = "step") -> Curve:
        """Returns one column over steps or seconds."""
        columns = self.train if split == "train" else self.validation
        return Curve(name, columns[against], columns[column])

    def last(self, split: str, column: str) -> float | None:
        """Returns the newest value of a column; None before the first."""
        values = (self.train if split == "train" else self.validation)[column]
        return float(values[-1]) if len(values) else None

    def first_right(self, share: float) -> int | None:
        """Returns the step at which so large a share of outputs was first right; None if it never was."""
        reached = np.flatnonzero(self.validation["exact_match"] >= share)
        return int(self.validation["step"][reached[0]]) if len(reached) else None


class Sample(NamedTuple):
    """A pinned sentence as it was translated at one step."""

    step: int
    translation: str


def progress_of(folder: Path) -> Progress:
    """Returns the metrics of the run or checkpoint in a folder as they stand now."""
    return _progress(folder, _stamp(folder / METRICS_FILE))


def samples_of(folder: Path) -> dict[str, tuple[Sample, ...]]:
    """Returns the translations of each pinned sentence, the oldest first; after a resume the later one holds."""
    found: dict[str, list[Sample]] = {}
    for row in sample_rows(folder):
        samples = found.setdefault(row["source"], [])
        while samples and samples[-1].step >= row["step"]:
            samples.pop()
        samples.append(Sample(row["step"], row["translation"]))
    return {source: tuple(samples) for source, samples in found.items()}


def current_rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the rows that still hold: a training step that is done again undoes all that was written from it on."""
    kept: list[dict[str, Any]] = []
    last = -1
    for row in rows:
        step = row.get("step", 0)
        if row.get("split") == "train":
            if step <= last:
                kept = [other for other in kept if other.get("step", 0) < step]
            last = step
        kept.append(row)
    return last_of(kept, lambda row: (row.get("split"), row.get("step")))


@lru_cache(maxsize=64)
def _progress(folder: Path, stamp: tuple[int, int]) -> Progress:
    rows = sorted(current_rows(metric_rows(folder)), key=lambda row: row["step"])
    by_split: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_split.setdefault(row["split"], []).append(row)
    train, validation = by_split.pop("train", []), by_split.pop("validation", [])
    return Progress(
        train=_columns(train, _TRAIN),
        validation=_columns(validation, _VALIDATION),
        held_out={split: found[-1] for split, found in by_split.items()},
    )


def _columns(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> dict[str, Column]:
    return {name: np.array([row.get(name, np.nan) for row in rows], dtype=np.float64) for name in names}


def _stamp(path: Path) -> tuple[int, int]:
    """Returns the time of change and the size, which change whenever the file does."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
