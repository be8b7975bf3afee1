"""The results of an experiment: a file of rows, one for each cell and seed, with the command that made them.

Shipped results lie beside the shipped models, a visitor's own in the folder of runs. No torch here.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

from transformer.access.people import ME, acting
from transformer.checkpoints.settings import SHIPPED_FOLDER
from transformer.experiments.study import StudyError
from transformer.files import read_json, runs_folder, write_text

Level = int | float | str
Cell = Mapping[str, Level]
SHIPPED_RESULTS = SHIPPED_FOLDER / "experiments"
_OWN_FOLDER = ".experiments"
_MAX_MEASURED = 1e100
_HEAD = ("experiment", "budget", "command", "commit", "created", "machine")


class ExperimentError(StudyError, ValueError):
    """An experiment or its results cannot be found, read, judged or written; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """The measurements of one cell with one seed."""

    cell: Cell
    seed: int
    values: Mapping[str, float]
    elapsed_s: float

    def has(self, **where: Level) -> bool:
        """Tells whether the cell has these levels."""
        return all(self.cell[name] == level for name, level in where.items())


@dataclass(frozen=True, kw_only=True)
class Results:
    """The rows that were measured so far, and how."""

    experiment: str
    budget: str
    rows: tuple[Row, ...] = ()
    command: str = ""
    commit: str = ""
    """The code that measured them; empty where that is not known."""
    created: str = ""
    machine: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    shipped: bool = False

    @cached_property
    def digest(self) -> str:
        """A key of all that the results hold."""
        return hashlib.blake2b(_as_text(self).encode(), digest_size=16).hexdigest() + f"{self.shipped}"

    @property
    def elapsed_s(self) -> float:
        """The seconds that all measurements took."""
        return sum(row.elapsed_s for row in self.rows)

    def mean(self, metric: str, **where: Level) -> float:
        """Returns the mean of a metric over the seeds of the one cell with these levels."""
        return fmean(self.by_seed(metric, **where).values())

    def by_seed(self, metric: str, **where: Level) -> dict[int, float]:
        """Returns a metric by seed in the one cell with these levels."""
        return {row.seed: row.values[metric] for row in self._rows_at(where) if metric in row.values}

    def _rows_at(self, where: Cell) -> Sequence[Row]:
        """Returns the rows with these levels, from an index by the factors named: judges ask for thousands of cells."""
        factors = tuple(where)
        if factors not in self._indexes:
            index: dict[tuple[Level, ...], list[Row]] = {}
            for row in self.rows:
                index.setdefault(tuple(row.cell[factor] for factor in factors), []).append(row)
            self._indexes[factors] = index
        return self._indexes[factors].get(tuple(where.values()), ())

    @cached_property
    def _indexes(self) -> dict[tuple[str, ...], dict[tuple[Level, ...], list[Row]]]:
        return {}

    def levels(self, factor: str, metric: str = "") -> tuple[Level, ...]:
        """Returns the levels of a factor at which anything, or this metric, was measured, in the order of the rows."""
        return tuple(dict.fromkeys(row.cell[factor] for row in self.rows if not metric or metric in row.values))

    @property
    def seeds(self) -> tuple[int, ...]:
        """Returns the seeds that were measured."""
        return tuple(dict.fromkeys(row.seed for row in self.rows))


def shipped_file(name: str) -> Path:
    """Returns the file of an experiment's shipped results."""
    return SHIPPED_RESULTS / f"{name}.json"


def own_file(name: str, budget: str) -> Path:
    """Returns the file of an experiment's results that were measured here: of several people each has their own."""
    owner, folder = acting().id, runs_folder() / _OWN_FOLDER
    if owner not in ("", ME.id):
        folder /= hashlib.sha256(owner.encode()).hexdigest()[:32]
    return folder / f"{name}-{budget}.json"


def load_results(name: str, budget: str = "") -> Results:
    """Returns the shipped results of an experiment, or those measured here with a budget; ExperimentError else."""
    path = own_file(name, budget) if budget else shipped_file(name)
    if not path.is_file():
        raise ExperimentError(f"there are no results of {name}" + (f" with the budget {budget}" if budget else ""))
    found = read_results(path, shipped=not budget)
    if found.experiment != name or budget not in ("", found.budget):
        raise ExperimentError(f"{path.name} holds results of {found.experiment}, {found.budget}: measure again")
    return found


def read_results(path: Path, *, shipped: bool = False) -> Results:
    """Reads a file of results; ExperimentError where any of it has another shape than is written."""
    content = read_json(path)
    try:
        text = {name: _text(content, name) for name in _HEAD}
        versions = _field(content, "versions", dict)
        _require(all(isinstance(version, str) for version in versions.values()), "versions must be strings")
        factors, metrics = _names(content, "factors"), _names(content, "metrics")
        columns = [*factors, "seed", *metrics, "elapsed_s"]
        _require(content.get("columns") == columns, f"columns must be {', '.join(columns)}")
        rows = tuple(_row(row, factors, metrics) for row in _field(content, "rows", list))
    except _WrongShape as error:
        raise ExperimentError(f"{path.name} holds no results that can be read: {error}") from error
    return Results(**text, rows=rows, versions=versions, shipped=shipped)


class _WrongShape(Exception):
    pass


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise _WrongShape(otherwise)


def _field(content: dict[str, Any], name: str, kind: type) -> Any:
    found = content.get(name)
    _require(isinstance(found, kind), f"{name} is missing or has another shape")
    return found


def _text(content: dict[str, Any], name: str) -> str:
    return "" if name == "commit" and name not in content else _field(content, name, str)  # older files have none


def _names(content: dict[str, Any], name: str) -> list[str]:
    found = _field(content, name, list)
    _require(all(isinstance(each, str) for each in found) and len(set(found)) == len(found), f"{name} must be names")
    return found


def _row(row: object, factors: Sequence[str], metrics: Sequence[str]) -> Row:
    width = len(factors) + len(metrics) + 2
    _require(isinstance(row, list) and len(row) == width, f"a row does not have {width} columns")
    assert isinstance(row, list)
    *levels, seed = row[: len(factors) + 1]
    *measured, elapsed_s = row[len(factors) + 1 :]
    _require(all(isinstance(level, str) or is_measurement(level) for level in levels), "a level is no number or string")
    _require(type(seed) is int and 0 <= seed < 2**53, "a seed is no whole number")
    _require(all(value is None or is_measurement(value) for value in measured), "a measurement is no finite number")
    _require(is_measurement(elapsed_s) and elapsed_s >= 0, "elapsed_s is no time")
    values = {name: float(value) for name, value in zip(metrics, measured, strict=True) if value is not None}
    return Row(cell=dict(zip(factors, levels, strict=True)), seed=seed, values=values, elapsed_s=float(elapsed_s))


def is_measurement(value: object) -> bool:
    """Tells whether it is a number, no boolean, whose square is still finite."""
    return type(value) in (int, float) and abs(value) <= _MAX_MEASURED  # type: ignore[operator, arg-type]


def write_results(path: Path, results: Results) -> None:
    """Replaces a file of results, a line for each row; ExperimentError where that cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, _as_text(results))
    except OSError as error:
        raise ExperimentError(f"the results cannot be written to {path}: {error.strerror or error}") from error


def content_of(results: Results) -> list[dict[str, Any]]:
    """Returns the rows as they stand in the file, read again: a mapping of factors, seed and metrics each."""
    path = shipped_file(results.experiment) if results.shipped else own_file(results.experiment, results.budget)
    read_results(path)  # which refuses what has another shape
    content = json.loads(path.read_bytes())
    return [dict(zip(content["columns"], row, strict=True)) for row in content["rows"]]


def _as_text(results: Results) -> str:
    factors = list(results.rows[0].cell) if results.rows else []
    metrics = list(dict.fromkeys(name for row in results.rows for name in row.values))
    head = {
        **{name: getattr(results, name) for name in _HEAD},
        "versions": dict(results.versions),
        "factors": factors,
        "metrics": metrics,
        "columns": [*factors, "seed", *metrics, "elapsed_s"],
    }
    rows = [
        [
            *row.cell.values(),
            row.seed,
            *(_rounded(row.values.get(name)) for name in metrics),
            round(row.elapsed_s, 3),
        ]
        for row in results.rows
    ]
    lines = ",\n".join("    " + json.dumps(row, ensure_ascii=False) for row in rows)
    return json.dumps(head, ensure_ascii=False, indent=2)[:-2] + f',\n  "rows": [\n{lines}\n  ]\n}}\n'


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")
