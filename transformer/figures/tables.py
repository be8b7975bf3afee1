"""Exported numbers: named tables as CSV, to read, and as NPZ, exact and without pickles."""

import io
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float, Shaped
from numpy import ndarray
from pandas import DataFrame, Index


def matrix_table(
    name: str, values: Shaped[ndarray, "row column"], rows: Sequence[str], columns: Sequence[str]
) -> DataFrame:
    """Returns a matrix with a label for each row and column; its index bears the name, as a notebook shows it."""
    if values.shape != (len(rows), len(columns)):
        raise ValueError(f"{len(rows)} row and {len(columns)} column labels do not fit {name} of shape {values.shape}")
    texts = object if values.dtype.kind == "U" else None
    return DataFrame(values, _labels(rows, name), _labels(columns), dtype=texts)


def column_table(name: str, rows: Sequence[str], columns: Mapping[str, Shaped[ndarray, " row"] | None]) -> DataFrame:
    """Returns a table of columns by their titles, without those that are None; each keeps its type."""
    kept = {title: values for title, values in columns.items() if values is not None}
    return DataFrame(kept, _labels(rows, name), _labels(list(kept)))


def _labels(labels: Sequence[str], name: str | None = None) -> Index:
    """Returns labels as they are: Arrow, behind pandas' own type for text, refuses half a surrogate pair."""
    return Index(labels, dtype=object, name=name)


def numbered(labels: Sequence[str]) -> list[str]:
    """Returns the labels, each with its index before it, so that no two are the same."""
    return [f"{i} {label}" for i, label in enumerate(labels)]


def head_tables(
    values: Float[ndarray, "layer head row column"], rows: Sequence[str], columns: Sequence[str], *, name: str = ""
) -> tuple[DataFrame, ...]:
    """Returns a table for every head of every layer; `name` is put behind "layer 0 head 0"."""
    layers, heads = map(range, values.shape[:2])
    labels = numbered(rows), numbered(columns)
    return tuple(
        matrix_table(f"layer {layer} head {head}{name}", values[layer, head], *labels)
        for layer in layers
        for head in heads
    )


def cells(table: DataFrame) -> Shaped[ndarray, "row column"]:
    """Returns the cells as one array: of numbers where every column has numbers, else of texts."""
    kind = np.result_type(bool, *table.dtypes)
    return table.to_numpy(np.str_ if kind.hasobject else kind)


def as_csv(tables: Sequence[DataFrame]) -> str:
    """Returns the tables below one another, an empty line between them: labels, then numbers that read back exactly."""
    return "\n".join(table.to_csv(na_rep="nan", lineterminator="\n") for table in tables)


def as_npz(tables: Sequence[DataFrame]) -> bytes:
    """Returns the arrays under their names, each with its labels; `numpy.load` reads them without pickles."""
    arrays: dict[str, ndarray] = {}
    for table in tables:
        name = table.index.name
        arrays[name] = cells(table)
        arrays[f"{name} rows"] = np.array(table.index, dtype=np.str_)
        arrays[f"{name} columns"] = np.array(table.columns, dtype=np.str_)
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()
