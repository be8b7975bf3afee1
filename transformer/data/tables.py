"""Rows of cells in text of any kind: separators, quotation marks, header lines, keys of JSON, languages of a TMX.

A text becomes a table, each row with the number of its line. Not here: which two columns hold the sentences
(columns.py), and how a file is unpacked (unpacking.py).
"""

import csv
import io
import json
import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, zip_longest
from typing import NamedTuple

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from transformer.data.columns import header_names, is_header, known_names, n_columns, role
from transformer.data.unpacking import CorpusError, Text, text_language

SAMPLE = 2_000
"""Rows from which separator, header and columns are found."""
MAX_COLUMNS = 100
"""The most columns of a table: a file with more is none of sentence pairs, and each costs time on every row."""
MAX_CELL_LINES = 20
"""Lines over which a cell between quotation marks may run."""
SHOWN_CHARACTERS = 120
_SEPARATORS = ("\t", "|", ";", ",")
"""The separators of a CSV file, the rarest in sentences first."""
_FEWEST_ALIKE = 0.5
"""The share of rows that must have the same number of cells."""
_SEPARATOR_LINE = re.compile(r"sep=(.)$", re.IGNORECASE)
_MOST_BEFORE = 5
"""Lines that may stand before the header line."""
_NEARLY_ALL = 0.9
"""The share of lines that say what all are: in quotation marks, which then are no part of the text; objects of JSON."""
_SINGLE_MARKS = re.compile(r"(?:^|[\t|;,]) *'"), re.compile(r"' *(?:[\t|;,]|$)")
"""The beginning and the end of a cell between single quotation marks."""
_JSON_LIST = re.compile(r"\ufeff?\s*\[\s*\{")
_PIPES = " ||| "
_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


class Row(NamedTuple):
    """A row of a table."""

    line: int
    """The number of its first line in the text, from 1."""
    cells: Sequence[str]
    """Empty where the row cannot be read."""
    text: str
    """Its beginning as it stands, to show."""
    is_stray: bool = False
    """True if a quotation mark in it closes nothing, so that it was read as any other character."""


@dataclass(frozen=True)
class Table:
    """The rows of a text."""

    noun: str
    """The word for one of its columns: "column", "key", "language" or "file"."""
    names: tuple[str, ...]
    """The names of the columns, "" for one without; all empty where there is no header."""
    rows: Callable[[], Iterator[Row]]
    """Yields the rows from the start, a header line left out."""
    has_header_line: bool = False
    is_ragged: bool = False
    """True if a row with too few or too many cells may still be right, where tabs stand between them."""

    def __post_init__(self) -> None:
        _check_width(len(self.names), self.noun)

    @property
    def sample(self) -> list[Row]:
        """Reads the first rows."""
        return list(islice(self.rows(), SAMPLE))


class _TooWide(Exception):
    """A table has more than MAX_COLUMNS of what the message names."""


def _check_width(n: int, noun: str = "column") -> None:
    if n > MAX_COLUMNS:
        raise _TooWide(noun)


def table_of(texts: Sequence[Text]) -> Table:
    """Returns the table in a text, or in parallel texts, a row for each of their lines; CorpusError where there is
    none, or it has more than MAX_COLUMNS columns."""
    try:
        return _table_of(texts)
    except _TooWide as error:
        raise CorpusError(
            f"{texts[0].name} has over {MAX_COLUMNS} {error}s: save the two that hold the pairs alone"
        ) from None


def _table_of(texts: Sequence[Text]) -> Table:
    if len(texts) > 1 or not texts[0].kind:
        return _parallel_table(texts)
    (text,) = texts
    match text.kind:
        case ".csv":
            return _csv_table(text)
        case ".jsonl":
            return _json_table(text)
        case ".tmx":
            return _tmx_table(text)
        case _:
            return _plain_table(text)


def _parallel_table(texts: Sequence[Text]) -> Table:
    if len(texts) == 1:
        raise CorpusError(
            f"{texts[0].name} holds one side of the pairs: bring it with the file of the other language, whose lines "
            "translate its lines"
        )
    counts = [text.text.count("\n") + (not text.text.endswith("\n")) for text in texts]
    if len(set(counts)) > 1:
        lengths = ", ".join(f"{text.name} has {count:,}" for text, count in zip(texts, counts, strict=True))
        raise CorpusError(f"parallel files need the same number of lines: {lengths}")

    def rows() -> Iterator[Row]:
        for line, cells in enumerate(zip_longest(*(_all_lines(text.text) for text in texts), fillvalue=""), start=1):
            if any(cell.strip() for cell in cells):
                yield Row(line, cells, _short("\t".join(cells)))

    return Table("file", tuple(text_language(text.name) for text in texts), rows)


def _plain_table(text: Text) -> Table:
    """Returns the table in a .txt or .tsv: where neither tabs nor ||| stand on most lines, that of the CSV or JSONL
    which it is under another name."""
    lines = list(islice(_lines(text.text), SAMPLE))
    pipes, tabs = (sum(mark in line for _, line in lines) for mark in (_PIPES.strip(), "\t"))
    if max(pipes, tabs) <= len(lines) / 2:
        if sum(bool(_object(line)) for _, line in lines) > _NEARLY_ALL * len(lines):
            return _json_table(text)
        mark = _quotation_mark(text)
        separator = _separator(text, mark)
        counts = Counter(len(row.cells) for row in islice(_csv_rows(text.text, separator, mark), SAMPLE))
        if any(n > 1 and count > _NEARLY_ALL * counts.total() for n, count in counts.items()):
            return _csv_table(text)
    return _tab_table(text, lines, pipes, tabs)


def _tab_table(text: Text, lines: Sequence[tuple[int, str]], pipes: int, tabs: int) -> Table:
    separator = _PIPES.strip() if pipes > max(tabs, len(lines) / 2) else "\t"
    for mark in "\"'" if separator == "\t" and lines else "":
        quoted = sum(all(_stands_quoted(cell, mark) for cell in line.split(separator)) for _, line in lines)
        if quoted > _NEARLY_ALL * len(lines):
            return _with_header(Table("column", (), partial(_csv_rows, text.text, separator, mark), is_ragged=True))

    def rows() -> Iterator[Row]:
        # Not the csv module: a quotation mark in a TSV file is a character like any other.
        for number, line in _lines(text.text):
            yield Row(number, [_unquoted(cell) for cell in line.split(separator, MAX_COLUMNS)], _short(line))

    return _with_header(Table("column", (), rows, is_ragged=True))


def _stands_quoted(cell: str, mark: str = '"') -> bool:
    return len(cell) > 1 and cell[0] == cell[-1] == mark


def _unquoted(cell: str) -> str:
    """Returns the text of a cell in quotation marks with doubled ones inside, as pandas writes it."""
    inner = cell[1:-1]
    is_csv = _stands_quoted(cell) and '""' in inner and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if is_csv else cell


def _csv_table(text: Text) -> Table:
    first = next(_lines(text.text), (1, ""))[1].strip()
    mark = _quotation_mark(text)
    said = _SEPARATOR_LINE.match(first)  # written by Excel
    separator = said[1] if said else _separator(text, mark)

    def rows() -> Iterator[Row]:
        return islice(_csv_rows(text.text, separator, mark), 1 if said else 0, None)

    table = _with_header(Table("column", (), rows))
    counts = Counter(len(row.cells) for row in table.sample)
    (most, alike), *others = counts.most_common(3) or [(0, 0)]
    if most > 1 and alike < _FEWEST_ALIKE * counts.total():
        shares = ", ".join(f"{count:,} on {n:,}" for count, n in ((most, alike), *others))
        raise CorpusError(
            f"{text.name} has rows with different numbers of cells ({shares} rows): put quotation marks around cells "
            f"that hold a {separator!r}, or save it as TSV, with tabs between the cells"
        )
    return table


def _quotation_mark(text: Text) -> str:
    """Returns the mark around cells: a single one where two cells or more stand in these on nearly every line."""
    lines = [line for _, line in islice(_lines(text.text), SAMPLE // 4)]
    single = sum(all(len(end.findall(line)) > 1 for end in _SINGLE_MARKS) for line in lines)
    return "'" if single > _NEARLY_ALL * len(lines) else '"'


def _separator(text: Text, mark: str) -> str:
    """Returns the separator that gives the same number of cells on most lines; a comma where none does."""
    start = text.text[: 200 * SAMPLE]

    def evidence(separator: str) -> tuple[bool, float]:
        rows = [row.cells for row in islice(_csv_rows(start, separator, mark), SAMPLE // 4)]
        counts = Counter(len(cells) for cells in rows if len(cells) > 1)
        alike = counts.most_common(1)[0][1] / len(rows) if counts else 0.0
        return bool(rows) and known_names(rows[0]) > 1, round(alike, 1)

    best = max(map(evidence, _SEPARATORS))
    return "," if best == (False, 0.0) else next(one for one in _SEPARATORS if evidence(one) == best)


def _csv_rows(text: str, separator: str, mark: str = '"') -> Iterator[Row]:
    """Yields the rows of a CSV text. A quotation mark that closes nothing within MAX_CELL_LINES lines, or is followed
    by anything but a separator, is a character like any other: it must not swallow the rows after it."""
    lines, ahead = _lines(text), deque[tuple[int, str]]()

    def fill(count: int) -> bool:
        ahead.extend(islice(lines, max(0, count - len(ahead))))
        return len(ahead) >= count

    while fill(1):
        number, line = ahead.popleft()
        if mark not in line:
            yield Row(number, line.split(separator, MAX_COLUMNS), _short(line))
            continue
        cells, more = _quoted([line], separator, mark), 0
        while cells is None and more < MAX_CELL_LINES and fill(more + 1):
            more += 1
            cells = _quoted([line, *(part for _, part in islice(ahead, more))], separator, mark)
        if cells:
            for _ in range(more):
                ahead.popleft()
        yield Row(number, cells or line.split(separator, MAX_COLUMNS), _short(line), is_stray=not cells)


def _quoted(lines: Sequence[str], separator: str, mark: str) -> list[str] | None:
    """Returns the cells of a row on these lines; None where a quotation mark is open, empty where one is wrong.

    A mark within a cell is doubled, or has a backslash before it, as databases write it.
    """
    text = "\n".join(lines)
    found = _cells(text, separator, mark)
    if not found and f"\\{mark}" in text:
        found = _cells(text, separator, mark, escape="\\") or found
    return found


def _cells(text: str, separator: str, mark: str, escape: str | None = None) -> list[str] | None:
    try:
        rows = list(
            csv.reader(
                io.StringIO(text, newline=""),
                delimiter=separator,
                quotechar=mark,
                escapechar=escape,
                strict=True,
                skipinitialspace=True,
            )
        )
    except csv.Error as error:
        return None if "unexpected end" in str(error) else []
    return rows[0] if len(rows) == 1 else []


def _json_table(text: Text) -> Table:
    if _JSON_LIST.match(text.text):
        raise CorpusError(f"{text.name} holds one list of JSON: save it as JSONL, an object on each line, or as CSV")
    objects = (_object(line) for _, line in islice(_lines(text.text), SAMPLE))
    names = tuple(dict.fromkeys(chain.from_iterable(objects)))
    has_names = not any(isinstance(name, int) for name in names)

    def rows() -> Iterator[Row]:
        for number, line in _lines(text.text):
            found = _object(line)
            yield Row(number, [found.get(name, "") for name in names] if found else (), _short(line))

    return Table("key" if has_names else "column", tuple(map(str, names)) if has_names else (), rows)


def _object(line: str) -> Mapping[str | int, str]:
    """Returns the strings in a line of JSON by their keys, those of an object within it too; by their place in a list;
    none where it holds no two strings."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    cells: dict[str | int, str] = {}
    if isinstance(found, list):
        cells = {place: value for place, value in enumerate(found) if isinstance(value, str)}
    elif isinstance(found, dict):
        within = [value for value in found.values() if isinstance(value, dict)]
        named = {key: value for part in (*within, found) for key, value in part.items() if isinstance(value, str)}
        roles = Counter(map(role, named))
        # "src" in one line and "source" in another are one column
        cells = {role(key) if roles[role(key)] == 1 and role(key) else key: cell for key, cell in named.items()}
    try:
        "".join(cells.values()).encode()  # JSON can spell lone surrogates, which are no text
    except UnicodeEncodeError:
        return {}
    return cells if len(cells) > 1 else {}


def _tmx_table(text: Text) -> Table:
    """Returns the translation units of a TMX (Translation Memory eXchange 1.4), a column for each language."""
    units: list[tuple[int, dict[str, str]]] = []
    try:
        # no entities, no DTD, nothing from elsewhere: a file is data
        parser = etree.iterparse(
            io.BytesIO(_without_declaration(text.text).encode()),
            tag="{*}tu",
            resolve_entities=False,
            load_dtd=False,
            no_network=True,
        )
        for _, unit in parser:
            cells = {}
            for variant in unit.iterfind("{*}tuv"):
                segment = variant.find("{*}seg")
                if segment is not None:
                    cells[variant.get(_LANG) or variant.get("lang") or ""] = "".join(segment.itertext())
            units.append((unit.sourceline or 0, cells))
            unit.clear()
    except etree.XMLSyntaxError as error:
        raise CorpusError(f"{text.name} is not a well-formed TMX file: {error.msg}") from error
    names = tuple(dict.fromkeys(chain.from_iterable(cells for _, cells in units)))

    def rows() -> Iterator[Row]:
        for line, cells in units:
            found = [cells.get(name, "") for name in names]
            yield Row(line, found, _short("\t".join(found)))

    return Table("language", names, rows)


def _without_declaration(text: str) -> str:
    """The text without the XML declaration, whose encoding may be another than that of the text as it is here."""
    return re.sub(r"^\s*<\?xml[^>]*\?>", "", text, count=1)


def _with_header(table: Table) -> Table:
    """Returns the table with the names in its header line, which may follow a few lines of another kind."""
    sample = [row.cells for row in table.sample]
    n = n_columns(sample, ())
    _check_width(n)
    widths = (n, n - 1) if n > 2 else (n,)  # R names no column of row names
    first = next((place for place, cells in enumerate(sample[:_MOST_BEFORE]) if len(cells) in widths), 0)
    if not is_header(sample[first:]):
        return table
    rows = table.rows
    return Table(
        table.noun,
        header_names(sample[first:]),
        lambda: (row for place, row in enumerate(rows()) if place != first),
        has_header_line=True,
        is_ragged=table.is_ragged,
    )


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yields the lines that are not blank with their numbers, one at a time: a list of all would double the memory. A
    byte order mark at the start of a line is left out: files are put together with theirs."""
    for number, line in enumerate(_all_lines(text), start=1):
        line = line.lstrip("\ufeff")
        if line.strip():
            yield number, line


def _all_lines(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield text[start:end]
        start = end + 1


def _short(text: str) -> str:
    return text[: SHOWN_CHARACTERS + 1]
