"""Exported numbers: labelled arrays as CSV, to read, and as NPZ, exact and without pickles."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Shaped
from numpy import ndarray


@dataclass(frozen=True)
class Table:
    """A matrix with a label for each row and column."""

    name: str
    values: Shaped[ndarray, "row column"]
    rows: Sequence[str]
    columns: Sequence[str]

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.rows), len(self.columns)):
            raise ValueError(
                f"{len(self.rows)} row and {len(self.columns)} column labels do not fit {self.name} "
                f"of shape {self.values.shape}"
            )


def numbered(labels: Sequence[str]) -> list[str]:
    """Returns the labels, each with its index before it, so that no two are the same."""
    return [f"{i} {label}" for i, label in enumerate(labels)]


def column_table(name: str, rows: Sequence[str], columns: Mapping[str, Shaped[ndarray, " row"] | None]) -> Table:
    """Returns a table of columns by their titles, without those that are None."""
    kept = {title: values for title, values in columns.items() if values is not None}
    return Table(name, np.column_stack(tuple(kept.values())), rows, list(kept))


def head_tables(
    values: Float[ndarray, "layer head row column"], rows: Sequence[str], columns: Sequence[str], *, name: str = ""
) -> tuple[Table, ...]:
    """Returns a table for every head of every layer; `name` is put behind "layer 0 head 0"."""
    layers, heads = map(range, values.shape[:2])
    labels = numbered(rows), numbered(columns)
    return tuple(
        Table(f"layer {layer} head {head}{name}", values[layer, head], *labels) for layer in layers for head in heads
    )


def as_csv(tables: Sequence[Table]) -> str:
    """Returns the tables below one another, an empty line between them: labels, then numbers that read back exactly."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for index, table in enumerate(tables):
        if index:
            writer.writerow([])
        writer.writerow([table.name, *table.columns])
        for label, row in zip(table.rows, table.values, strict=True):
            writer.writerow([label, *map(str, row)])
    return text.getvalue()


def as_npz(tables: Sequence[Table]) -> bytes:
    """Returns the arrays under their names, each with its labels; `numpy.load` reads them without pickles."""
    arrays: dict[str, ndarray] = {}
    for table in tables:
        arrays[table.name] = table.values
        arrays[f"{table.name} rows"] = np.array(table.rows, dtype=np.str_)
        arrays[f"{table.name} columns"] = np.array(table.columns, dtype=np.str_)
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()
