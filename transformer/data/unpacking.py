"""The texts in a file that somebody brings: plain, in a .gz or in a .zip, whatever their encoding.

Whatever the bytes are, they give texts or a CorpusError that says what is wrong, in bounded time and memory. Not here:
how a text is read as pairs (tables.py).
"""

import gzip
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from charset_normalizer import from_bytes

from transformer.data.languages import language

MAX_FILE_BYTES = 256 * 2**20
"""Largest file that is read, measured after decompression."""
MAX_RATIO = 200
"""Unpacked bytes for each packed one at which a file is no text but a bomb; sentences reach about 10."""
KINDS = (".tsv", ".txt", ".csv", ".jsonl", ".tmx")
"""The endings of a file that holds pairs."""
_CHUNK = 2**20
_RATIO_FROM = 16 * 2**20
_GUESSED_BYTES = 2**16
"""Bytes from which an encoding is guessed."""
_ENCODINGS = [
    *("cp1252", "utf_16_le", "utf_16_be", "cp1250", "cp1251", "koi8_r", "cp1253", "cp1254", "cp1255", "cp1256"),
    *("gb18030", "big5", "shift_jis", "euc_jp", "euc_kr", "tis_620"),
]
"""The encodings that are guessed."""
_MAX_DIRECTORY = 2**16
"""Largest table of contents of a .zip, in bytes: a few hundred files."""
_ABOUT = re.compile(r"(readme|licen[cs]e|about|copying|changelog|credits|metadata)\b", re.IGNORECASE)
"""The beginnings of names of files that say something about a .zip."""
_WAYS_OUT = {
    **dict.fromkeys((".xlsx", ".xls", ".ods", ".numbers"), "save the sheet as CSV"),
    **dict.fromkeys((".json", ".parquet", ".arrow", ".feather"), "save it as JSONL, an object on each line, or as CSV"),
    **dict.fromkeys((".docx", ".doc", ".odt", ".pdf", ".rtf"), "save the pairs as a text file, a tab between the two"),
    **dict.fromkeys((".tar", ".tgz", ".7z", ".rar", ".bz2", ".xz", ".zst"), "unpack it, or pack it as .zip or .gz"),
    **dict.fromkeys((".xlf", ".xliff", ".po", ".sdlxliff", ".mxliff"), "export it as TMX"),
}
"""The advice for files of other kinds, by their ending."""


class CorpusError(Exception):
    """A corpus cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class Text:
    """One text of a file, lines ended by newlines alone."""

    name: str
    """The name of the file; in a .zip, that of the member."""
    kind: str
    """One of KINDS; "" for one of two parallel texts, whose ending says its language."""
    text: str


def unpacked_texts(name: str, content: bytes, limit: int) -> tuple[Text, ...]:
    """Returns the text in a file of this name and content, or the parallel texts in a .zip; CorpusError where there is
    none. `limit` is the most bytes that each may unpack to."""
    suffixes = [suffix.lower() for suffix in PurePath(name).suffixes]
    last, before = (*reversed(suffixes), "", "")[:2]
    try:
        if last == ".zip":
            return _unzipped(name, content, limit)
        if last == ".gz" and (before in KINDS or _names_language(name[:-3])):
            unpacked = _gunzipped(name, content, limit)
            return (Text(name, before if before in KINDS else "", _decoded(name, unpacked)),)
    except (
        *(OSError, EOFError, zlib.error, RuntimeError, NotImplementedError),
        # zipfile on a damaged file: it seeks to places, decodes names and unpacks fields that are not there
        *(zipfile.BadZipFile, ValueError, OverflowError, struct.error),
    ) as error:
        raise CorpusError(f"{name} cannot be read: {error}") from error
    if last not in KINDS and not _names_language(name):
        hint = _WAYS_OUT.get(last) or f"bring {', '.join(KINDS)}, its .gz, or a .zip of one"
        raise CorpusError(f"{name} is not a kind of file that can be read: {hint}")
    if len(content) > limit:
        raise _too_large(name, limit)
    return (Text(name, last if last in KINDS else "", _decoded(name, content)),)


def packed_together(files: Sequence[tuple[str, bytes]], limit: int) -> tuple[str, bytes]:
    """Returns the name and content of a .zip of parallel texts, given by name and content; the same for the same.
    CorpusError where one of them is a .gz that cannot be unpacked."""
    files = [_without_gz(PurePath(name).name, content, limit) for name, content in files]
    names = [name for name, _ in files]
    stem, *_ = names[0].split(".")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, (_, content) in zip(names, files, strict=True):
            packed.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return f"{stem}.{'-'.join(_ending(name) for name in names)}.zip", archive.getvalue()


def text_language(name: str) -> str:
    """Returns the code or name of the language that the name of a parallel text says: "fr" of "train.fr", "fr.txt" and
    "fr.txt.gz"; else the file's name."""
    plain = PurePath(name).name
    for suffix in (".gz", *KINDS):
        plain = plain[: -len(suffix)] if plain.lower().endswith(suffix) else plain
    last = re.split(r"[.]", plain)[-1]
    return last if language(last) else PurePath(name).name


def _without_gz(name: str, content: bytes, limit: int) -> tuple[str, bytes]:
    if not name.lower().endswith(".gz"):
        return name, content
    return name[:-3], _gunzipped(name, content, limit)


def _gunzipped(name: str, content: bytes, limit: int) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            return _bounded(name, stream.read, len(content), limit)
    except (OSError, EOFError, zlib.error) as error:
        raise CorpusError(f"{name} cannot be read: {error}") from error


def _ending(name: str) -> str:
    return text_language(name) if text_language(name) != name else PurePath(name).stem


def _names_language(name: str) -> bool:
    """Tells whether the ending is a language: one of two parallel texts, such as train.fr."""
    return "." in PurePath(name).name and bool(language(PurePath(name).suffix.removeprefix(".")))


def _unzipped(name: str, content: bytes, limit: int) -> tuple[Text, ...]:
    """The only file of pairs in a .zip, or its parallel texts. manythings.org adds an _about.txt, OPUS a README: such
    names do not count."""
    _check_directory(name, content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [member for member in archive.infolist() if _is_text(member.filename)]
        texts = [member for member in members if _names_language(member.filename)]
        pairs = [member for member in members if PurePath(member.filename).suffix.lower() in KINDS]
        chosen = (
            texts if len(texts) > 1 and all(member.filename.lower().endswith(".txt") for member in pairs) else pairs
        )
        if not chosen or (len(chosen) > 1 and not _are_parallel([member.filename for member in chosen])):
            names = ", ".join(PurePath(member.filename).name[:40] for member in chosen[:6])
            raise CorpusError(
                f"{name} holds {len(chosen)} files of pairs{f' ({names})' if names else ''} where one is needed "
                f"({', '.join(KINDS)}), or one for each language, such as train.en and train.fr: bring the one that "
                "you mean"
            )
        packings = {member.compress_type for member in chosen}
        if not packings <= {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            raise CorpusError(f"{name} is packed in a way that is not read here: unpack it, or zip it as usual")
        found = []
        for member in chosen:
            with archive.open(member) as stream:
                unpacked = _bounded(name, stream.read, len(content), limit)
            kind = PurePath(member.filename).suffix.lower() if len(chosen) == 1 else ""
            found.append(Text(PurePath(member.filename).name if chosen[1:] else name, kind, _decoded(name, unpacked)))
            limit -= len(unpacked)
    return tuple(found)


def _is_text(name: str) -> bool:
    path = PurePath(name)
    return (
        (path.suffix.lower() in KINDS or _names_language(name))
        and not any(part.startswith((".", "_")) for part in path.parts)
        and not _ABOUT.match(path.name)
    )


def _are_parallel(names: Sequence[str]) -> bool:
    """Tells whether these may be parallel texts: train.en and train.fr, or en.txt and fr.txt."""
    stems = {PurePath(name).name.removesuffix(".txt").rpartition(".")[0] for name in names}
    return len(stems) == 1 and all(
        _names_language(name) or (name.endswith(".txt") and text_language(name) != PurePath(name).name)
        for name in names
    )


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


def _guessed_encoding(content: bytes) -> str:
    """Returns a few words on the encoding that this looks like; empty where none fits."""
    best = from_bytes(content[:_GUESSED_BYTES], cp_isolation=_ENCODINGS).best()
    if best is None:
        return ""
    # Many code pages give the same text: the first in the list is the most usual.
    usual = next(name for name in _ENCODINGS if name in best.could_be_from_charset)
    return f", it looks like {usual.replace('_', '-')}"


def _decoded(name: str, content: bytes) -> str:
    """The text, lines ended by newlines alone."""
    sixteen_bit = content[:2] in (b"\xff\xfe", b"\xfe\xff") and content[:4] != b"\xff\xfe\0\0"
    encoding = "utf-16" if sixteen_bit else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        meant = "UTF-16, as its first bytes say," if sixteen_bit else "UTF-8"
        guess = "" if sixteen_bit else _guessed_encoding(content)
        raise CorpusError(f"{name} is not {meant} text (byte {error.start:,}){guess}: save it as UTF-8") from error
    if "\0" in text:
        raise CorpusError(
            f"{name} is not UTF-8 text: it holds NUL characters{_guessed_encoding(content)}. Save it as UTF-8"
        )
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
