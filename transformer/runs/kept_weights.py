"""The weights in a run's folder by the step that they are of: snapshots kept on the way, and the newest."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from safetensors import SafetensorError, safe_open

from transformer.checkpoints.settings import WEIGHTS_FILE, read_settings
from transformer.runs import run_folder
from transformer.runs.run_folder import Run
from transformer.runs.status import SNAPSHOTS, read_status

Stamp = tuple[int, int]
"""Time of change and size of a file."""


@dataclass(frozen=True)
class Snapshot:
    """Weights kept on the way, or those that the run offers now."""

    step: int
    path: Path
    stamp: Stamp
    newest: bool
    """True if these are the run's own weights file."""


def snapshots_of(run: Run) -> list[Snapshot]:
    """The weights of a run by step, the newest last. Steps that a resumed run has not reached again are left out."""
    reached = run.status.step if run.status.active else None
    kept = [
        Snapshot(step, path, stamp, False)
        for step, path in run_folder.snapshots(run.id).items()
        if (stamp := _stamp(path)) is not None and (reached is None or step <= reached)
    ]
    path = run.folder / WEIGHTS_FILE
    stamp = _stamp(path)
    if stamp is None:
        return kept
    newest = Snapshot(_step_of(path, stamp), path, stamp, True)
    last = kept[-1].step if kept else -1
    same = newest.step == last and run.settings.train.final_weights == "latest"
    if newest.step >= last and not same and (reached is None or newest.step <= reached or not kept):
        kept = [snapshot for snapshot in kept if snapshot.step != newest.step] + [newest]
    return kept


def evaluated_weights(folder: Path) -> dict[int, Path]:
    """The files of weights in a folder by step, each of which an evaluation of that step has seen.

    A run that was stopped early may end with weights (averaged, best) that were never evaluated.
    """
    found = {int(path.stem): path for path in (folder / SNAPSHOTS).glob("*.safetensors") if path.stem.isdecimal()}
    newest = folder / WEIGHTS_FILE
    stopped = read_status(folder).state == "stopped"
    if newest.is_file() and not (stopped and read_settings(folder).train.final_weights != "latest"):
        found[step_of(newest)] = newest
    return found


def newest_step(run: Run) -> int | None:
    """The step of the weights that can be opened now; None where there are none."""
    path = run.folder / WEIGHTS_FILE
    return step_of(path) if path.is_file() else None


def step_of(path: Path) -> int:
    """The step that a file of weights says it is of; 0 where it says none."""
    stamp = _stamp(path)
    return 0 if stamp is None else _step_of(path, stamp)


@lru_cache(maxsize=256)
def _step_of(path: Path, stamp: Stamp) -> int:
    """The step in a weights file's notes; no tensor is read."""
    try:
        with safe_open(path, framework="np") as file:
            step = (file.metadata() or {}).get("step", "0")
    except (SafetensorError, OSError):
        return 0
    return int(step) if step.isdecimal() else 0


def _stamp(path: Path) -> Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
