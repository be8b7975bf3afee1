"""Numbers of a capsule held against fresh ones: the largest deviation of each kind, and where it lies."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy import ndarray
from pandas import DataFrame

from transformer.capsules.arrays import LOG_PROBS, SOURCE_IDS, TARGET_IDS, arrays_of, mask_name, weights_name
from transformer.capsules.contents import SavedDecoding, SavedFigure, SavedModel
from transformer.figures.tables import cells
from transformer.inspection.inspection import Inspection
from transformer.interventions import parse_intervention
from transformer.lab import Lab

FLOAT32 = 1e-5
"""The deviation of a float32 probability or weight that another machine's order of summing explains."""
Place = Callable[[tuple[int, ...]], str]


@dataclass(frozen=True)
class Compared:
    """The saved numbers of one kind against fresh ones."""

    what: str
    count: int
    """The numbers that were compared."""
    deviation: float
    """The largest; infinite where they cannot be compared."""
    tolerance: float
    where: str = ""
    """Where the largest deviation lies; empty where there is none."""
    saved: str = ""
    fresh: str = ""

    @property
    def holds(self) -> bool:
        return self.deviation <= self.tolerance  # not for NaN


def differing(what: str, why: str, *, saved: str = "", fresh: str = "") -> Compared:
    """Returns the row of something that cannot be compared number by number."""
    return Compared(what, 0, math.inf, 0.0, why, saved, fresh)


def compare_arrays(what: str, saved: object, fresh: object, tolerance: float, place: Place) -> Compared:
    """Returns the largest deviation of two arrays, relative to the largest number where that is above 1."""
    a, b = np.asarray(saved, dtype=np.float64), np.asarray(fresh, dtype=np.float64)
    if a.shape != b.shape:
        return differing(what, "they have different shapes", saved=_shape(a), fresh=_shape(b))
    if not a.size:
        return Compared(what, 0, 0.0, tolerance)
    with np.errstate(invalid="ignore"):
        apart = np.abs(a - b)
    apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.where(np.isnan(apart), np.inf, apart))
    finite = np.abs(b[np.isfinite(b)])
    apart = apart / max(1.0, float(finite.max(initial=0.0)))
    index = tuple(map(int, np.unravel_index(int(apart.argmax()), a.shape)))
    if not apart[index]:
        return Compared(what, a.size, 0.0, tolerance)
    return Compared(what, a.size, float(apart[index]), tolerance, place(index), f"{a[index]:.9g}", f"{b[index]:.9g}")


def compare_texts(what: str, saved: Sequence[str], fresh: Sequence[str]) -> Compared:
    """Returns how many of two rows of texts differ, and the first that does."""
    differs = [i for i in range(max(len(saved), len(fresh))) if saved[i : i + 1] != fresh[i : i + 1]]
    if not differs:
        return Compared(what, len(saved), 0.0, 0.0)
    first = differs[0]
    shown = ("".join(map(repr, texts[first : first + 1])) or "nothing" for texts in (saved, fresh))
    return Compared(what, len(saved), float(len(differs)), 0.0, f"number {first}", *shown)


def compare_decoding(
    saved: SavedDecoding, arrays: Mapping[str, ndarray], lab: Lab, seen: Inspection | None = None
) -> tuple[Compared, ...]:
    """Decodes a saved sentence again, unless that is given, and compares everything: tokens exactly, float32 within
    FLOAT32."""
    try:
        fresh = seen or lab.inspect(saved.text, map(parse_intervention, saved.switches), dict(saved.forced))
    except (ValueError, RecursionError) as error:
        return (differing("A fresh pass", f"it cannot be made: {error}"),)
    own, rows = arrays_of(fresh), []
    rows.append(compare_texts("Source tokens", saved.source_tokens, fresh.source_tokens))
    rows.append(_ids("Ids of the source", SOURCE_IDS, arrays, own))
    rows.append(compare_texts("Decoded tokens", saved.target_tokens, fresh.target_tokens))
    rows.append(_ids("Ids of the output", TARGET_IDS, arrays, own))
    rows.append(compare_texts("Translation", (saved.translation,), (fresh.translation,)))
    if missing := sorted(own.keys() ^ arrays.keys()):
        rows.append(differing("Arrays", f"only one side has {', '.join(missing)}"))

    def step_and_token(index: tuple[int, ...]) -> str:
        step, token = index
        written = fresh.target_tokens[step]
        return f"step {step} (writes {written!r}), token {lab.tokenizer.piece(token)!r}"

    if LOG_PROBS in arrays:
        log_probs = np.asarray(arrays[LOG_PROBS], dtype=np.float64)
        given = np.exp(np.minimum(log_probs, 50.0)), np.exp(own[LOG_PROBS].astype(np.float64))
        rows.append(compare_arrays("Probabilities", *given, FLOAT32, step_and_token))
        rows.append(compare_arrays("Log-probabilities", log_probs, own[LOG_PROBS], FLOAT32, step_and_token))
    for kind, attention in fresh.attentions.items():

        def head_and_entry(index: tuple[int, ...], *, queries=attention.queries, keys=attention.keys) -> str:
            *where, query, key = index
            head = f", head {where[1]}" if len(where) > 1 else ""
            return f"layer {where[0]}{head}, query {query} {queries[query]!r}, key {key} {keys[key]!r}"

        label = kind.label
        for what, name, tolerance in (
            (f"{label}: weights", weights_name(kind), FLOAT32),
            (f"{label}: masks", mask_name(kind), 0.0),
        ):
            if name in arrays:
                rows.append(compare_arrays(what, arrays[name], own[name], tolerance, head_and_entry))
    return tuple(rows)


def compare_model(saved: SavedModel, fresh: SavedModel) -> tuple[Compared, ...]:
    """Compares the checksums of a model with those in the capsule."""
    parts = zip(("weights", "tokenizer", "settings"), saved.fingerprint, fresh.fingerprint, strict=True)
    return tuple(
        Compared(f"{saved.name}: checksum of the {part}", 1, 0.0, 0.0)
        if there == here
        else differing(
            f"{saved.name}: checksum of the {part}", "they are not equal", saved=f"{there[:12]}…", fresh=f"{here[:12]}…"
        )
        for part, there, here in parts
    )


def compare_figure(saved: SavedFigure, tables: Sequence[DataFrame]) -> Compared:
    """Returns the largest deviation of a figure's tables, relative to the largest number of each."""
    rows = []
    fresh = {table.index.name: table for table in tables}
    if missing := [table.index.name for table in saved.tables if table.index.name not in fresh]:
        rows.append(differing(saved.title, f"there is no table {missing[0]!r} any more"))
    for table in saved.tables:
        if table.index.name in fresh:
            rows.extend(_compare_table(saved.title, table, fresh[table.index.name]))
    count = sum(row.count for row in rows)
    worst = max(rows, key=lambda row: row.deviation - row.tolerance, default=Compared(saved.title, 0, 0.0, FLOAT32))
    return Compared(saved.title, count, worst.deviation, worst.tolerance, worst.where, worst.saved, worst.fresh)


def _compare_table(title: str, saved: DataFrame, fresh: DataFrame) -> tuple[Compared, ...]:
    rows, columns = list(map(str, fresh.index)), list(map(str, fresh.columns))
    if (list(saved.index), list(saved.columns)) != (rows, columns):
        return (differing(title, f"{saved.index.name}: its rows or columns have other labels"),)
    there, here = cells(saved), cells(fresh)
    if "U" in (there.dtype.kind, here.dtype.kind):
        return (compare_texts(title, *(array.astype(np.str_).ravel().tolist() for array in (there, here))),)

    def cell(index: tuple[int, ...]) -> str:
        return f"{saved.index.name}: row {rows[index[0]]!r}, column {columns[index[1]]!r}"

    return (compare_arrays(title, there, here, FLOAT32, cell),)


def _ids(what: str, name: str, saved: Mapping[str, ndarray], fresh: Mapping[str, ndarray]) -> Compared:
    if name not in saved:
        return differing(what, "the capsule has none")
    return compare_arrays(what, saved[name], fresh[name], 0.0, lambda index: f"number {index[0]}")


def _shape(array: ndarray) -> str:
    return " × ".join(map(str, array.shape)) or "one number"
