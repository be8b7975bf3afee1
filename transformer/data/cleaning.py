"""Parallel text read from files: formats, encodings, archives; which rows are dropped and why.

Whatever the bytes are, they give rows or a CorpusError that says what is wrong, in bounded time and memory. Not here:
splits and tokenizers (corpora.py), and where uploads are kept (uploads.py).
"""

import csv
import gzip
import io
import json
import struct
import unicodedata
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Literal

from transformer.text.pairs import Pair, words

MAX_CHARACTERS = 500
"""Longest side of a pair that cleaning keeps."""
MAX_FILE_BYTES = 256 * 2**20
"""Largest file that is read, measured after decompression."""
MAX_RATIO = 200
"""Unpacked bytes for each packed one at which a file is no text but a bomb; sentences reach about 10."""
EXAMPLES_SHOWN = 3
"""Dropped rows that a report keeps for each reason."""
_CHUNK = 2**20
_RATIO_FROM = 16 * 2**20
_MAX_DIRECTORY = 2**16
"""Largest table of contents of a .zip, in bytes: a few hundred files."""
_SHOWN_CHARACTERS = 120

Reason = Literal["malformed", "empty", "too_long", "duplicate"]
Row = tuple[str, str] | str
"""The two sides of a row, or the row as it stands where it has not two."""


class CorpusError(Exception):
    """A corpus cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class CleaningReport:
    """Counts of a file's rows, kept and dropped. Each dropped row is counted once, under its first reason."""

    read: int
    kept: int
    dropped: Mapping[Reason, int]
    """The number of rows that each reason dropped, without reasons that dropped none. Malformed: rows without two
    columns, or that are not JSON with a source and a target. Empty: pairs with a side that has no word."""
    examples: Mapping[Reason, tuple[str, ...]] = field(default_factory=dict)
    """The first few dropped rows of each reason, cut short, the two sides with a tab between them."""

    def __str__(self) -> str:
        reasons = [f"{count:,} {REASONS[reason]}" for reason, count in self.dropped.items()]
        return f"{self.kept:,} of {self.read:,} pairs kept" + (f"; dropped: {', '.join(reasons)}" if reasons else "")


REASONS: dict[Reason, str] = {
    "malformed": "malformed",
    "empty": "with an empty side",
    "too_long": "too long",
    "duplicate": "repeated",
}


def read_rows(path: Path) -> list[Row]:
    """The rows of a file, as `rows_of`; CorpusError also where it cannot be read."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError as error:
        raise CorpusError(f"there is no file {path}") from error
    except OSError as error:
        raise CorpusError(f"{path.name} cannot be read: {error}") from error
    return rows_of(path.name, content)


def rows_of(name: str, content: bytes, *, limit: int | None = None) -> list[Row]:
    """The rows of a file of this name and content; CorpusError where it cannot be understood.

    By its name: .tsv or .txt (source, tab, target; further columns are ignored), .csv (the same with commas,
    semicolons or tabs between) or .jsonl ({"source": ..., "target": ...} or [source, target] on each line), each also
    as .gz, or as the only such file in a .zip. UTF-8, or UTF-16 with its byte order mark. A first row "source, target"
    is a header. `limit` is the most bytes that it may unpack to, MAX_FILE_BYTES where None.
    """
    limit = MAX_FILE_BYTES if limit is None else limit
    kind, unpacked = _unpacked(name, content, limit)
    text = _decoded(name, unpacked)
    del unpacked
    try:
        rows = list(_READERS[kind](text))
    except csv.Error as error:
        raise CorpusError(f"{name} is not a well-formed CSV file: {_of_csv(error)}") from error
    first = rows[0] if rows else ""
    is_header = not isinstance(first, str) and [side.strip().lower() for side in first] == ["source", "target"]
    return rows[is_header:]


def clean_pairs(rows: Iterable[Row]) -> tuple[list[Pair], CleaningReport]:
    """The usable pairs among these rows, in order, and what was dropped.

    Text is normalised to NFC, and white space to single spaces. Dropped are rows without two sides, pairs with a side
    that has no word or more than MAX_CHARACTERS characters, and repeated pairs. Several translations of one source
    stay.
    """
    kept: dict[tuple[str, str], Pair] = {}
    read = 0
    counts = Counter[Reason]()
    examples: dict[Reason, list[str]] = {}
    for row in rows:
        read += 1
        sides = None if isinstance(row, str) else (_normalised(row[0]), _normalised(row[1]))
        reason = _fault(sides, kept)
        if reason is None:
            assert sides is not None and sides[0] is not None and sides[1] is not None, "_fault refuses such rows"
            kept[sides[0], sides[1]] = Pair(sides[0], sides[1])
            continue
        counts[reason] += 1
        if len(shown := examples.setdefault(reason, [])) < EXAMPLES_SHOWN:
            shown.append(_shortened(row))
    dropped: dict[Reason, int] = {reason: counts[reason] for reason in REASONS if counts[reason]}
    frozen: dict[Reason, tuple[str, ...]] = {reason: tuple(shown) for reason, shown in examples.items()}
    return list(kept.values()), CleaningReport(read, len(kept), dropped, frozen)


def kinds_of_files() -> tuple[str, ...]:
    """The endings that a file of pairs may have, each also with .gz; and .zip."""
    return (*_READERS, ".zip")


def _fault(sides: tuple[str | None, str | None] | None, kept: Mapping[tuple[str, str], Pair]) -> Reason | None:
    if sides is None:
        return "malformed"
    source, target = sides
    if source is None or target is None or max(len(source), len(target)) > MAX_CHARACTERS:
        return "too_long"
    if not (words(source) and words(target)):
        return "empty"
    return "duplicate" if (source, target) in kept else None


def _normalised(text: str) -> str | None:
    """NFC with single spaces; None for what is too long whatever NFC makes of it (it joins three characters at most).

    Not normalised first: on a long run of combining marks that takes quadratic time.
    """
    if len(text) > 100 * MAX_CHARACTERS:
        return None
    text = " ".join(text.split())
    return None if len(text) > 3 * MAX_CHARACTERS else " ".join(unicodedata.normalize("NFC", text).split())


def _shortened(row: Row) -> str:
    return "\t".join(
        side if len(side) <= _SHOWN_CHARACTERS else f"{side[:_SHOWN_CHARACTERS]}…"
        for side in ((row,) if isinstance(row, str) else row)
    )


def _unpacked(name: str, content: bytes, limit: int) -> tuple[str, bytes]:
    """The kind of the file in there, as a key of _READERS, and its bytes."""
    suffixes = [suffix.lower() for suffix in PurePath(name).suffixes]
    last, before = (*reversed(suffixes), "", "")[:2]
    try:
        if last == ".zip":
            return _unzipped(name, content, limit)
        if last == ".gz" and before in _READERS:
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
                return before, _bounded(name, stream.read, len(content), limit)
    except (
        *(OSError, EOFError, zlib.error, RuntimeError, NotImplementedError),
        # zipfile on a damaged file: it seeks to places, decodes names and unpacks fields that are not there
        *(zipfile.BadZipFile, ValueError, OverflowError, struct.error),
    ) as error:
        raise CorpusError(f"{name} cannot be read: {error}") from error
    if last not in _READERS:
        raise CorpusError(
            f"{name} is not a kind of file that can be read: bring {', '.join(_READERS)}, its .gz, or a .zip of one"
        )
    if len(content) > limit:
        raise _too_large(name, limit)
    return last, content


def _unzipped(name: str, content: bytes, limit: int) -> tuple[str, bytes]:
    """The only file of pairs in a .zip. manythings.org adds an _about.txt; such names do not count."""
    _check_directory(name, content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [
            member
            for member in archive.infolist()
            if PurePath(member.filename).suffix.lower() in _READERS
            and not any(part.startswith((".", "_")) for part in PurePath(member.filename).parts)
        ]
        if len(members) != 1:
            raise CorpusError(
                f"{name} holds {len(members)} files of pairs ({', '.join(_READERS)}) where one is needed: "
                "bring the one that you mean"
            )
        if members[0].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise CorpusError(f"{name} is packed in a way that is not read here: unpack it, or zip it as usual")
        with archive.open(members[0]) as stream:
            return PurePath(members[0].filename).suffix.lower(), _bounded(name, stream.read, len(content), limit)


def _check_directory(name: str, content: bytes) -> None:
    """Refuses a .zip whose table of contents is large, before it is read into memory as objects.

    Found as zipfile does: the record that ends the file, or else the last one before a comment.
    """
    ends_plainly = content[-22:-18] == b"PK\x05\x06" and content[-2:] == b"\0\0"
    place = len(content) - 22 if ends_plainly else content.rfind(b"PK\x05\x06", max(0, len(content) - 65_557))
    if place < 0 or len(content) < place + 22:
        raise CorpusError(f"{name} is damaged or no .zip file")
    size = int.from_bytes(content[place + 12 : place + 16], "little")
    has_64_bit_record = content[max(0, place - 20) : place][:4] == b"PK\x06\x07"
    if size > _MAX_DIRECTORY or has_64_bit_record:
        raise CorpusError(f"{name} holds too many files: bring the one with the pairs")


def _bounded(name: str, read: Callable[[int], bytes], packed: int, limit: int) -> bytes:
    """All of a stream that unpacks, read in pieces so that a bomb is noticed early."""
    pieces, total = [], 0
    while piece := read(_CHUNK):
        pieces.append(piece)
        total += len(piece)
        if total > limit:
            raise _too_large(name, limit)
        if total > _RATIO_FROM and total > MAX_RATIO * packed:
            raise CorpusError(f"{name} unpacks to over {MAX_RATIO} times its size: that is no text to learn from")
    return b"".join(pieces)


def _too_large(name: str, limit: int) -> CorpusError:
    return CorpusError(f"{name} is larger than {limit:,} bytes: bring a part of it")


def _decoded(name: str, content: bytes) -> str:
    """The text, lines ended by newlines alone."""
    sixteen_bit = content[:2] in (b"\xff\xfe", b"\xfe\xff") and content[:4] != b"\xff\xfe\0\0"
    encoding = "utf-16" if sixteen_bit else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        meant = "UTF-16, as its first bytes say," if sixteen_bit else "UTF-8"
        raise CorpusError(f"{name} is not {meant} text (byte {error.start:,}): save it as UTF-8") from error
    if "\0" in text:
        raise CorpusError(f"{name} is not UTF-8 text: it holds NUL characters. Save it as UTF-8")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _tsv_rows(text: str) -> Iterator[Row]:
    # Not the csv module: a quotation mark in a TSV file is a character like any other.
    for line in _lines(text):
        yield _two(line.split("\t", 2), line)


def _csv_rows(text: str) -> Iterator[Row]:
    separator = _separator(text)
    for cells in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
        if cells:
            yield _two(cells, separator.join(cells))


def _jsonl_rows(text: str) -> Iterator[Row]:
    for line in _lines(text):
        yield _from_json(line)


_READERS: dict[str, Callable[[str], Iterator[Row]]] = {
    ".tsv": _tsv_rows,
    ".txt": _tsv_rows,
    ".csv": _csv_rows,
    ".jsonl": _jsonl_rows,
}


def _lines(text: str) -> Iterator[str]:
    """The lines that are not blank, one at a time: a list of all would double the memory."""
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        line = text[start:end]
        if line.strip():
            yield line
        start = end + 1


def _separator(text: str) -> str:
    """Comma, semicolon or tab: the one that splits most of the first lines; a comma where none does."""
    lines = text[:20_000].split("\n", 50)[:50]
    return max((",", ";", "\t"), key=lambda separator: sum(separator in line for line in lines))


def _two(cells: Sequence[str], row: str) -> Row:
    return (cells[0], cells[1]) if len(cells) >= 2 else row[: _SHOWN_CHARACTERS + 1]


def _from_json(line: str) -> Row:
    try:
        match json.loads(line):
            case {"source": str(source), "target": str(target)} | [str(source), str(target), *_]:
                (source + target).encode()  # JSON can spell lone surrogates, which are no text
                return source, target
    except (ValueError, RecursionError):
        pass  # counted as malformed
    return line[: _SHOWN_CHARACTERS + 1]


def _of_csv(error: csv.Error) -> str:
    if "field limit" in str(error):
        return f"a cell has over {csv.field_size_limit():,} characters, as where a quotation mark is never closed"
    return str(error)
