"""The commands for runs: list, show, pause, pack and publish them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import tyro

from transformer.runs import run_folder as run_folders
from transformer.runs.archive import load_archive, save_archive
from transformer.runs.labels import about, rename, set_note
from transformer.runs.publishing import publish
from transformer.runs.run_folder import Run
from transformer.runs.status import RunError, Status, run_folder
from transformer.runs.status import status as status_of

RunsAction = Literal[
    "list", "show", "pause", "resume", "stop", "delete", "rename", "note", "export", "import", "publish"
]
_USAGE = {action: f"runs {action} RUN" for action in get_args(RunsAction)} | {
    "rename": "runs rename RUN NAME",
    "note": 'runs note RUN "TEXT"',
    "export": "runs export RUN FILE.zip",
    "import": "runs import FILE.zip",
    "publish": "runs publish RUN FOLDER",
}
_WITH_VALUE = ("rename", "note", "export", "publish")


def runs(
    action: tyro.conf.Positional[RunsAction] = "list",
    run: tyro.conf.Positional[str | None] = None,
    value: tyro.conf.Positional[str | None] = None,
    *,
    with_corpus: bool = False,
    half: bool = False,
) -> None:
    """List the runs, or show, pause, resume, stop or delete one; rename RUN NAME, note RUN TEXT, export RUN FILE.zip,
    import FILE.zip, publish RUN FOLDER.

    Args:
        run: The run's id; for import, the archive.
        value: The new name, the note (empty takes it away), or the archive to write.
        with_corpus: Add the file that the run learned from to the archive.
        half: Publish the weights in float16.
    """
    if action == "list":
        _print_runs(run_folders.list_runs())
        return
    if run is None:
        raise RunError(f"which {'archive' if action == 'import' else 'run'}? say: {_USAGE[action]}")
    if value is None and action in _WITH_VALUE:
        raise RunError(f"something is missing; say: {_USAGE[action]}")
    if value is not None and action not in _WITH_VALUE:
        raise RunError(f"{value!r} is one word too many; say: {_USAGE[action]}")
    match action:
        case "rename":
            rename(run, value or "")
            run = value or run
        case "note":
            set_note(run, value or "")
        case "export":
            save_archive(run, Path(value or ""), with_corpus=with_corpus)
            print(f"{run} is in {value}")
            return
        case "publish":
            publish(run_folder(run), Path(value or ""), half=half)
            print(f"{run} is in {value}")
            return
        case "import":
            with Path(run).open("rb") as file:
                run = load_archive(file)
        case "pause":
            run_folders.pause(run)
        case "resume":
            run_folders.resume(run)
        case "stop":
            run_folders.stop(run)
        case "delete":
            run_folders.delete(run)
            print(f"{run} is deleted")
            return
    print(described(run, status_of(run)))


def described(run: str, status: Status) -> str:
    """Returns the state of a run in a line."""
    why = status.error or status.reason
    return f"{run}: {status.state} at step {status.step:,} after {status.elapsed_s:.1f} s{f' ({why})' if why else ''}"


def _print_runs(found: Sequence[Run]) -> None:
    if not found:
        print("No runs yet. Train one: python -m transformer train reverse")
    for run in found:
        note = about(run.folder).note
        print(described(run.id, run.status) + (f": {' '.join(note.split())}" if note else ""))
