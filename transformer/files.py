"""Files that are never seen half-written: atomic replacement, appended rows, and readers that forgive a broken tail."""

import contextlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

PROJECT_FOLDER = Path(__file__).resolve().parents[1]
"""The folder that holds the library, the shipped checkpoints and, unless told otherwise, the runs."""


MAX_DIGITS = 300
"""The digits of the largest whole number that is read from a file: a float holds it."""
MIN_FREE_BYTES = 256 * 2**20
"""Bytes that must be free on the disk of the runs before anything new begins there: what goes on needs them."""


def runs_folder() -> Path:
    """Returns where runs are kept: $ATTENTION_LAB_RUNS, or runs/ beside the library."""
    return Path(os.environ.get("ATTENTION_LAB_RUNS") or PROJECT_FOLDER / "runs")


def free_bytes() -> int:
    """Returns the bytes that are free on the disk of the runs."""
    folder = runs_folder().absolute()
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def disk_refusal() -> str:
    """Returns why nothing new may be stored, as a sentence without its full stop; empty where there is room."""
    if (free := free_bytes()) >= MIN_FREE_BYTES:
        return ""
    return (
        f"the disk of this server is almost full: {free / 2**20:,.0f} MB are free, and at least "
        f"{MIN_FREE_BYTES / 2**20:,.0f} MB are needed for anything new; delete runs, or tell whoever runs the server"
    )


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside `path` that takes its place when the block ends well, and vanishes when it does not."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder that becomes `folder` when the block ends well, and vanishes when it does not.

    FileExistsError where `folder` is already there.
    """
    if folder.exists():
        raise FileExistsError(f"{folder} is already there; choose another name or remove it first")
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".tmp", dir=folder.parent))
    try:
        yield temporary
        temporary.chmod(0o755)
        temporary.rename(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def remove_leftovers(folder: Path, *, older_than_s: float = 10.0) -> None:
    """Removes the temporary files and folders that a killed process left here or one folder below.

    Young ones stay: somebody may be writing them.
    """
    latest = time.time() - older_than_s
    for path in [*folder.glob(".*.tmp"), *folder.glob("*/.*.tmp")]:
        with contextlib.suppress(OSError):
            if path.stat().st_mtime > latest:
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


def write_text(path: Path, text: str) -> None:
    """Replaces the file by this text, atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: object) -> None:
    """Replaces the file by this value as JSON, atomically."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def read_json(path: Path) -> dict:
    """The object in a JSON file; empty where there is none or it cannot be read as one."""
    try:
        value = _read(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def append_rows(path: Path, rows: Iterable[object]) -> None:
    """Appends each row as one line of JSON, in one write; a half-written line from an earlier crash is closed first."""
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    with path.open("ab+") as file:
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(size - 1)
            lines = lines if file.read(1) == b"\n" else "\n" + lines
        file.write(lines.encode())


def read_rows(path: Path) -> list[dict]:
    """The rows of a JSON-lines file, in order; none where there is no file.

    A last line without its newline is still being written and left out; so is a line that a crash cut short.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    lines = content[: content.rfind(b"\n") + 1].splitlines()
    return [row for row in map(_parsed, lines) if isinstance(row, dict)]


def last_of(rows: Iterable[dict], key: Callable[[dict], object]) -> list[dict]:
    """The rows with only the last one of each key, at the place where the key first stood."""
    return list({key(row): row for row in rows}.values())


def _parsed(line: bytes) -> object:
    try:
        return _read(line)
    except (ValueError, RecursionError):
        return None


def _read(content: bytes) -> Any:
    """The value of JSON; ValueError also for a whole number that no float holds, which no arithmetic here can take.

    Half of a surrogate pair, which JSON can name and UTF-8 cannot, is read as a question mark.
    """
    value = json.loads(content, parse_int=_whole_number)
    if b"\\ud" in content.lower():
        value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    return value


def _whole_number(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits; at most {MAX_DIGITS} can be read")
    return int(digits)
