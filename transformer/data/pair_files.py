"""Files of sentence pairs as people have them, read as meant or refused in a sentence: the one reader of all ways in.

    file = read_pairs(Path("mine.csv"))                   # or read_pairs(path, "en,fr"): the columns that you mean
    pairs, report = file.clean()
    str(report)   # columns 2 (en) and 3 (fr) of 3, header line read; 601 of 862 pairs kept: dropped 55 malformed ...

Bytes become texts (unpacking.py), texts a table (tables.py), two of its columns the pairs (columns.py). Not here: what
cleaning drops (cleaning.py), and where uploads are kept (uploads.py).
"""

import sys
from array import array
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from transformer.data import unpacking
from transformer.data.cleaning import CleaningReport, Malformed, Row, clean_pairs
from transformer.data.columns import (
    Cells,
    asked_columns,
    chosen_columns,
    labels,
    n_columns,
    shown_name,
    side_names,
)
from transformer.data.tables import Table, table_of
from transformer.data.unpacking import KINDS, CorpusError, packed_together, unpacked_texts
from transformer.text.pairs import Pair, clean_text


@dataclass(frozen=True)
class PairFile:
    """The rows of a file, and how they were read."""

    name: str
    rows: Sequence[Row]
    layout: str = ""
    """The columns taken, and whether a header was read, in a few words."""
    source_name: str = "source"
    target_name: str = "target"
    """The languages of the sides where the file names them, in English."""
    lines: Sequence[int] = ()
    """The number of each row's line, from 1."""

    def clean(self) -> tuple[list[Pair], CleaningReport]:
        """Returns the usable pairs, in order, and what was read and dropped."""
        return clean_pairs(self.rows, self.layout, self.lines)

    def lines_of(self, pairs: Collection[Pair]) -> list[int]:
        """Returns the numbers of the lines on which these usable pairs stand first, ascending."""
        sought = {(pair.source, pair.target) for pair in pairs}
        found: list[int] = []
        for row, line in zip(self.rows, self.lines, strict=True):
            sides = () if isinstance(row, Malformed) else (clean_text(row[0]), clean_text(row[1]))
            if sides in sought:
                sought.remove(sides)
                found.append(line)
        return found


@dataclass(frozen=True)
class Columns:
    """The columns of a file, to choose from."""

    labels: tuple[str, ...]
    """The name of each, or "column 2"."""
    examples: tuple[str, ...]
    """The first cell of each that is not blank."""
    chosen: tuple[int, int] | None
    """The places of source and target, from 0; None where nothing says which they are."""


def read_pairs(path: Path, columns: str | None = None) -> PairFile:
    """Returns the rows of a file, as `pairs_of`; CorpusError also where it cannot be read."""
    return pairs_of(path.name, content_of(path), columns)


def read_parallel(paths: Sequence[Path], columns: str | None = None) -> PairFile:
    """Returns the rows of a file, or of parallel files whose lines translate each other; as `read_pairs`."""
    if len(paths) == 1:
        return read_pairs(paths[0], columns)
    files = [(path.name, content_of(path)) for path in paths]
    return pairs_of(*packed_together(files, unpacking.MAX_FILE_BYTES), columns)


def pairs_of(name: str, content: bytes, columns: str | None = None, *, limit: int | None = None) -> PairFile:
    """Returns the rows of a file of this name and content; CorpusError where it cannot be understood.

    By its name: .tsv or .txt (tabs or |||), .csv (commas, semicolons, tabs or bars), .jsonl (objects or lists), .tmx,
    each also as .gz or as the only such file in a .zip; or a .zip of parallel texts, such as train.en and train.fr.
    UTF-8, or UTF-16 with its byte order mark. The columns of source and target are found by their names or their
    content (columns.py), or are those that `columns` asks for: "en,fr" or "2,4". UnclearColumns where nothing says
    which they are. `limit` is the most bytes that it may unpack to, MAX_FILE_BYTES where None.
    """
    table = table_of(_texts(name, content, limit))
    del content
    sample = [row.cells for row in table.sample if row.cells]
    n = n_columns(sample, table.names)
    if n < 2:
        rows = [*table.rows()]
        return PairFile(name, [Malformed(row.text) for row in rows], lines=[row.line for row in rows])
    chosen = _chosen(name, table, sample, n, columns)
    rows, lines, stray = _rows(table, n, chosen)
    return PairFile(name, rows, _layout(table, n, chosen, stray), *side_names(table.names, chosen), lines)


def offered_columns(path: Path, columns: str | None = None) -> Columns:
    """Returns the columns of a file, as `columns_of`; CorpusError also where it cannot be read."""
    return columns_of(path.name, content_of(path), columns)


def columns_of(name: str, content: bytes, columns: str | None = None, *, limit: int | None = None) -> Columns:
    """Returns the columns of a file of this name and content to choose from, those that `columns` asks for chosen where
    they are there; CorpusError where it cannot be understood. `limit` is as in `pairs_of`."""
    table = table_of(_texts(name, content, limit))
    sample = [row.cells for row in table.sample if row.cells]
    n = n_columns(sample, table.names)
    cells = ((row[i].strip() for row in sample if i < len(row)) for i in range(n))
    chosen = None
    for asked in (columns, None):
        with suppress(CorpusError):
            chosen = chosen or _chosen(name, table, sample, n, asked)
    return Columns(labels(table.names, range(n)), tuple(next(filter(None, column), "") for column in cells), chosen)


def kinds_of_files() -> tuple[str, ...]:
    """Returns the endings that a file of pairs may have, each also with .gz; and .zip."""
    return (*KINDS, ".zip")


def content_of(path: Path) -> bytes:
    """Returns the bytes of a file, one more than MAX_FILE_BYTES at most; CorpusError where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(unpacking.MAX_FILE_BYTES + 1)
    except FileNotFoundError as error:
        raise CorpusError(f"there is no file {path}") from error
    except OSError as error:
        raise CorpusError(f"{path.name} cannot be read: {error}") from error


def _texts(name: str, content: bytes, limit: int | None) -> tuple[unpacking.Text, ...]:
    return unpacked_texts(name, content, unpacking.MAX_FILE_BYTES if limit is None else limit)


def _chosen(name: str, table: Table, sample: Sequence[Cells], n: int, columns: str | None) -> tuple[int, int]:
    if columns is None:
        return chosen_columns(name, sample, table.names, table.noun)
    return asked_columns(name, columns, table.names, n, table.noun)


def _rows(table: Table, n: int, chosen: tuple[int, int]) -> tuple[list[Row], Sequence[int], list[int]]:
    """Returns the chosen two cells of each row, its line, and the lines with a quotation mark that closes nothing.

    A row with more cells is malformed: one may have been cut in two. But where tabs stand between cells, which no
    sentence holds, the first two are right whatever follows them; and they are right in a row that ends early.
    """
    source, target = chosen
    most = 0 if max(chosen) > 1 else sys.maxsize if table.is_ragged else n
    rows: list[Row] = []
    lines, stray = array("L"), []
    for row in table.rows():
        lines.append(row.line)
        cells = row.cells
        if len(cells) == n or 1 < len(cells) <= most:
            rows.append((cells[source], cells[target]))
        else:
            rows.append(Malformed(row.text))
        if row.is_stray:
            stray.append(row.line)
    return rows, lines, stray


def _layout(table: Table, n: int, chosen: tuple[int, int], stray: Sequence[int]) -> str:
    names = [shown_name(table.names[i]) if table.names else "" for i in chosen]
    if table.noun == "column":
        source, target = (f"{i + 1} ({name})" if name else f"{i + 1}" for i, name in zip(chosen, names, strict=True))
    else:
        source, target = (name or "without a name" for name in names)
    parts = [f"{table.noun}s {source} and {target}" + (f" of {n}" if table.noun == "column" or n > 2 else "")]
    if table.has_header_line:
        parts.append("header line read")
    if stray:
        lines = f"line {stray[0]:,}" if len(stray) == 1 else f"{len(stray):,} lines, the first {stray[0]:,},"
        parts.append(f"a quotation mark that closes nothing on {lines} read as it stands")
    return ", ".join(parts)
