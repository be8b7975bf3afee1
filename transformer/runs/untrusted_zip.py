"""A zip archive from anywhere, read without trusting a word of it: no path is followed, no size believed, no link made.

Nothing is unpacked here: `Member.read` and `Member.copy_to` give the bytes of one member, up to a limit.
"""

import hashlib
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader, BytesIO
from pathlib import Path, PurePosixPath

MOST_MEMBERS = 1_000
_CHUNK = 2**20
_SMALL = 2**20
"""Members up to this size may be compressed to any degree: a file of a few lines repeated is no bomb."""
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_FAULTS = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError),
    *(NotImplementedError, LookupError, OverflowError),
)
"""The errors of the standard library for a damaged archive."""


class ArchiveError(Exception):
    """An archive cannot be read or trusted; the message says why, as the end of a sentence."""


@dataclass(frozen=True)
class Member:
    """One file in an archive."""

    path: str
    """The name in the archive, with / between folders; never absolute, never with a step up."""
    n_bytes: int
    """The size that the archive states; `read` and `copy_to` never give more."""
    packed: int
    _info: zipfile.ZipInfo
    _archive: zipfile.ZipFile

    @property
    def name(self) -> str:
        """The last part of its path."""
        return PurePosixPath(self.path).name

    def check(self, *, most: int, ratio: float) -> None:
        """ArchiveError where the file is larger than `most` bytes or shrinks by more than `ratio`, as bombs do."""
        if self.n_bytes > most:
            raise ArchiveError(f"{self.path} would have {self.n_bytes:,} bytes, and at most {most:,} can be right")
        if self.n_bytes > _SMALL and self.n_bytes > ratio * max(1, self.packed):
            raise ArchiveError(
                f"{self.path} would grow from {self.packed:,} to {self.n_bytes:,} bytes, which such a file does not"
            )

    def read(self) -> bytes:
        """Its content, as long as the archive says; ArchiveError where it is damaged."""
        try:
            with self._archive.open(self._info) as source:
                return source.read()
        except _FAULTS as error:
            raise ArchiveError(f"{self.path} in it is damaged ({_said(error)})") from error

    def sha256(self) -> str:
        """The checksum of its content, in hexadecimal; ArchiveError where it is damaged."""
        found = hashlib.sha256()
        for chunk in self._chunks():
            found.update(chunk)
        return found.hexdigest()

    def copy_to(self, path: Path) -> None:
        """Writes its content to a new file; ArchiveError where it is damaged, OSError where it cannot be written."""
        with path.open("xb") as target:
            for chunk in self._chunks():
                target.write(chunk)

    def _chunks(self) -> Iterator[bytes]:
        try:
            source = self._archive.open(self._info)
        except _FAULTS as error:
            raise ArchiveError(f"{self.path} in it is damaged ({_said(error)})") from error
        with source:
            while chunk := self._chunk(source):
                yield chunk

    def _chunk(self, source: zipfile.ZipExtFile | object) -> bytes:
        try:
            return source.read(_CHUNK)  # pyright: ignore[reportAttributeAccessIssue]
        except _FAULTS as error:
            raise ArchiveError(f"{self.path} in it is damaged ({_said(error)})") from error


def members_of(file: BytesIO | BufferedReader) -> dict[str, Member]:
    """Every file in the archive by its path; ArchiveError for anything that an honest archive does not hold."""
    try:
        archive = zipfile.ZipFile(file)
        infos = [info for info in archive.infolist() if not info.is_dir()]
    except _FAULTS as error:
        raise ArchiveError(f"it is not a zip archive, or it is damaged ({_said(error)})") from error
    if len(infos) > MOST_MEMBERS:
        raise ArchiveError(f"it holds {len(infos):,} files, and at most {MOST_MEMBERS:,} are read")
    found: dict[str, Member] = {}
    for info in infos:
        _check_entry(info)
        if info.filename in found:
            raise ArchiveError(f"it holds {_short(info.filename)} twice")
        found[info.filename] = Member(info.filename, info.file_size, info.compress_size, info, archive)
    return found


def _check_entry(info: zipfile.ZipInfo) -> None:
    name = _short(info.filename)
    parts = info.filename.split("/")
    original = info.orig_filename
    strange = "\\" in original or "\0" in original or re.match(r"[A-Za-z]:", original) is not None
    if strange or any(part in ("", ".", "..") for part in parts):
        raise ArchiveError(f"it holds the path {name}, which leads out of its own folder")
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
        raise ArchiveError(f"it holds {name}, which is a link or no ordinary file")
    if info.flag_bits & 0x1:
        raise ArchiveError(f"{name} in it is encrypted: pack it without a password")
    if info.compress_type not in _METHODS:
        raise ArchiveError(f"{name} in it is packed in an unusual way: use plain zip (deflate or stored)")


def _short(name: str) -> str:
    return repr(name if len(name) <= 60 else f"{name[:60]}…")


def _said(error: BaseException) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__
