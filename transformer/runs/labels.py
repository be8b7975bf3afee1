"""The labels that people give a run: its name, its former names, a note.

The name is the folder's, so that it is the same in every list, link and command. A former name still leads to the run,
as long as nothing else has taken it.
"""

import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from transformer import locks
from transformer.access import audit
from transformer.access.ownership import may_take
from transformer.checkpoints.settings import (
    ABOUT_FILE,
    CARD_FILE,
    SHIPPED_FOLDER,
    formerly,
    is_name,
    read_settings,
    write_settings,
)
from transformer.files import read_json, runs_folder, write_json, write_text
from transformer.runs.status import LOCK_FILE, RunError, is_alive, own_folder, read_status

LONGEST_NOTE = 2_000
_IDLE_FIRST = "pause or stop it before it gets another name"


@dataclass(frozen=True, kw_only=True)
class About:
    """The content of about.json."""

    note: str = ""
    formerly: tuple[str, ...] = ()
    """Names that the run had before, the last one at the end."""
    kept: bool = False
    """True if its owner wants it kept however old it is."""


def about(folder: Path) -> About:
    """Reads the labels of the run in a folder; empty if there are none or they cannot be read.

    The note is only for those who may take from the run.
    """
    content = read_json(folder / ABOUT_FILE)
    note = content.get("note")
    return About(
        note=note[:LONGEST_NOTE] if isinstance(note, str) and may_take(folder) else "",
        formerly=formerly(folder),
        kept=content.get("kept") is True,
    )


def set_note(run_id: str, text: str) -> None:
    """Keeps a note with a run; an empty one takes it away. RunError for one that is too long."""
    text = text.strip()
    if len(text) > LONGEST_NOTE:
        raise RunError(f"the note has {len(text):,} characters: at most {LONGEST_NOTE:,} are kept")
    _write(own_folder(run_id), note=text)
    audit.record("note", runs_folder() / run_id)


def keep(run_id: str, *, kept: bool = True) -> None:
    """Keeps a run however old it is, or no longer."""
    _write(own_folder(run_id), kept=kept)
    audit.record("keep" if kept else "keep no longer", runs_folder() / run_id)


def rename(run_id: str, name: str) -> None:
    """Gives a run another name: its folder moves in one step, while no trainer works on it.

    RunError for a name that cannot be one, that is taken, or while the run is at work or waits for its turn.
    """
    folder, name = own_folder(run_id), name.strip()
    if name == run_id:
        return
    _check_name(name)
    lock = locks.take(folder / LOCK_FILE)  # no trainer can begin meanwhile; the lock moves with the folder
    if lock is None:
        raise RunError(f"{run_id} is at work: {_IDLE_FIRST}")
    try:
        if (now := read_status(folder)).waiting:
            raise RunError(f"{run_id} waits for its turn: {_IDLE_FIRST}")
        if now.active and now.pid is not None and is_alive(now.pid, now.create_time, now.boot_time):
            raise RunError(f"{run_id} is at work: {_IDLE_FIRST}")
        target = runs_folder() / name
        before = [former for former in formerly(folder) if former != name]
        folder.rename(target)
        # Whoever is killed from here on leaves a run that works: the folder alone says what it is called.
        _write(target, formerly=(*before, run_id))
        _rename_inside(target, run_id)
        audit.record("rename", target, before=run_id)
    except OSError as error:
        raise RunError(f"{run_id} cannot be renamed: {error.strerror or error}") from error
    finally:
        os.close(lock)


def _check_name(name: str) -> None:
    if not is_name(name):
        raise RunError(
            f"{name[:80]!r} cannot be a run's name: take letters, digits, dots, hyphens and underscores, at most 80, "
            "beginning with a letter or digit"
        )
    if os.path.lexists(SHIPPED_FOLDER / name):
        raise RunError(f"there is a shipped model called {name}: take another name")
    if os.path.lexists(runs_folder() / name):
        raise RunError(f"there is already a run called {name}: take another name")


def _rename_inside(folder: Path, old: str) -> None:
    """Puts the new name into config.json and at the head of the card."""
    write_settings(folder, replace(read_settings(folder), name=folder.name))
    card = folder / CARD_FILE
    if card.is_file():
        title, _, rest = card.read_text(encoding="utf-8", errors="replace").partition("\n")
        if title == f"# {old}":
            write_text(card, f"# {folder.name}\n{rest}")


def _write(folder: Path, **changes: object) -> None:
    write_json(folder / ABOUT_FILE, asdict(replace(about(folder), **changes)))
