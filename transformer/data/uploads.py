"""Files of pairs that visitors brought, each kept once, by its content, until a run takes a copy of its own.

They lie in `.uploads` of the folder of runs, which no list of runs and no name of a model ever reaches. A file belongs
to who brought it: nobody else is offered it, or reaches it by its key. Not here: how a file is read (pair_files.py).
"""

import hashlib
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath

from transformer.access.ownership import UPLOAD_OWNERS, UPLOADS, may_use_upload, upload_owners
from transformer.access.people import ME, acting
from transformer.data.columns import UnclearColumns
from transformer.data.corpora import corpus_of_pairs
from transformer.data.pair_files import content_of, pairs_of
from transformer.data.unpacking import CorpusError, packed_together
from transformer.files import append_rows, disk_refusal, replacing, runs_folder

MAX_UPLOAD_BYTES = 64 * 2**20
"""Largest upload, measured after decompression; the largest file of manythings.org has about 40 MiB."""
_KEY = re.compile(r"[0-9a-f]{24}")


@dataclass(frozen=True)
class Upload:
    """A stored file of pairs."""

    key: str
    """Names it in a URL; the beginning of the SHA-256 of its owner and content."""
    name: str
    """The name of its file, safely spelt."""
    path: Path
    """The value of CorpusConfig.name for it."""
    n_bytes: int
    saved: float
    """Unix time."""


def save_upload(name: str, content: bytes) -> Path:
    """The stored copy of a file that a visitor brought, checked first; the same content of the same person gives the
    same path.

    CorpusError, in a sentence for the visitor, where it cannot be trained on or there is no room; nothing is kept then.
    """
    if refusal := disk_refusal():
        raise CorpusError(refusal)
    safe = safe_name(name)
    check_upload(safe, content)
    owner = acting().id
    folder = _root() / _key(owner, content)
    same_kind = [path for path in _files(folder) if _kind(path.name) == _kind(safe)]
    path = same_kind[0] if same_kind else folder / safe
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not same_kind:
            with replacing(path) as temporary:
                temporary.write_bytes(content)
        if owner and owner not in upload_owners(folder):
            append_rows(folder / UPLOAD_OWNERS, [{"owner": owner}])
    except OSError as error:
        raise CorpusError(f"{safe} cannot be stored: {error.strerror or error}") from error
    return path


def save_uploads(files: Sequence[tuple[str, bytes]]) -> Path:
    """The stored copy of a file, or of the .zip of several parallel ones; as `save_upload`."""
    return save_upload(*(files[0] if len(files) == 1 else packed_together(files, MAX_UPLOAD_BYTES)))


def join_files(paths: Sequence[str]) -> Path:
    """The stored .zip of some parallel files, whose lines translate each other; CorpusError where they cannot be read
    or do not belong together."""
    return save_uploads([(Path(path).name, content_of(Path(path))) for path in paths])


def check_upload(name: str, content: bytes) -> None:
    """Raises CorpusError where a file of this name and content cannot be trained on, whichever columns are chosen."""
    with suppress(UnclearColumns):
        corpus_of_pairs(pairs_of(name, content, limit=MAX_UPLOAD_BYTES))


def list_uploads() -> tuple[Upload, ...]:
    """The files that the person brought for whom the code runs, the newest first; for a teacher those of all."""
    root = _root()
    folders = [folder for folder in root.iterdir() if _KEY.fullmatch(folder.name)] if root.is_dir() else []
    found = [_upload(path) for folder in folders if may_use_upload(folder) for path in _files(folder)]
    return tuple(sorted(found, key=lambda upload: (-upload.saved, upload.name)))


def find_upload(key: str) -> Upload:
    """The stored file of this key; CorpusError where there is none, or it is somebody else's."""
    files = _files(_root() / key) if _KEY.fullmatch(key) and may_use_upload(_root() / key) else []
    if not files:
        raise CorpusError("the file that this link names is not here: bring it again")
    return _upload(files[0])


def delete_upload(key: str) -> None:
    """Removes a stored file; runs that learn from it have a copy. CorpusError as `find_upload`, and where it stays."""
    path = find_upload(key).path
    try:
        shutil.rmtree(path.parent)
    except OSError as error:
        raise CorpusError(f"{path.name} cannot be removed: {error.strerror or error}") from error


def safe_name(name: str) -> str:
    """The last part of a file's name with letters, digits, spaces and ._- alone, its ending kept."""
    stem = re.sub(r"[^\w. -]+", "-", PurePath(name.replace("\\", "/")).name).strip(" .-")
    kind = _kind(stem)
    return (stem.removesuffix(kind)[: 60 - len(kind)].rstrip(" .-") or "pairs") + kind


def _kind(name: str) -> str:
    """All that says how a file is read: its ending, that before .gz included."""
    suffixes = PurePath(name).suffixes
    return "".join(suffixes[-2:] if suffixes[-1:] == [".gz"] else suffixes[-1:])[:20]


def _root() -> Path:
    return runs_folder() / UPLOADS


def _key(owner: str, content: bytes) -> str:
    """A person's own key, so that a file tells nobody that somebody else has it too."""
    whose = b"" if owner in ("", ME.id) else owner.encode() + b"\0"
    return hashlib.sha256(whose + content).hexdigest()[:24]


def _files(folder: Path) -> list[Path]:
    """Whole files: one that is being written is hidden."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith(".")) if folder.is_dir() else []


def _upload(path: Path) -> Upload:
    found = path.stat()
    return Upload(path.parent.name, path.name, path, found.st_size, found.st_mtime)
