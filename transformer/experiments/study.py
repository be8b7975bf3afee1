"""The paired study of positions: the same model trained with each kind, with equal seeds, data and steps.

A study is a folder in the folder of runs with one file, study.json: its plan and the result of each run. The runs are
ordinary ones. runner.py trains and tests them, verdict.py sums them up. No torch here.
"""

import datetime
import itertools
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import psutil

from transformer.checkpoints.metric_rows import is_number
from transformer.checkpoints.settings import SHIPPED_FOLDER, is_name
from transformer.experiments.plan import Study, StudyPlan, StudyRun
from transformer.files import new_folder, read_json, runs_folder, write_json
from transformer.runs.launch import own_environment
from transformer.runs.run_folder import pause
from transformer.runs.status import LOG_FILE, RunError, is_alive, is_pid, status

STUDY_FILE = "study.json"
_WORKER_FILE, _REQUEST_FILE = "worker.json", "request.json"
SHIPPED_STUDY = "position-study"
"""The study that comes with the lab, in the folder of shipped models."""


class StudyError(Exception):
    """A study cannot be created, found or read; the message says why."""


def create_study(plan: StudyPlan, *, name: str | None = None, command: str = "") -> str:
    """Creates a study in the folder of runs and returns its name; nothing is trained yet."""
    root = runs_folder()
    for free in _free_names(root, name):
        rows = [
            StudyRun(corpus=corpus, positions=kind, seed=seed)
            for seed, corpus, kind in itertools.product(plan.seeds, plan.corpora, plan.positions)
        ]
        study = Study(
            name=free,
            plan=plan,
            runs=tuple(rows),
            command=command,
            created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            machine=f"{platform.machine()}, {os.cpu_count()} CPUs, one thread a run",
            versions={"python": platform.python_version()},
        )
        try:
            with new_folder(root / free) as folder:
                write_json(folder / STUDY_FILE, asdict(study))
        except FileExistsError:
            continue
        except OSError as error:
            raise StudyError(f"the study cannot be written to {root}: {error.strerror or error}") from error
        return free
    raise AssertionError("there is always a free name")


def save_study(study: Study) -> None:
    """Replaces the file of a study that did not come with the lab."""
    write_json(study_folder(study.name) / STUDY_FILE, asdict(study))


def read_study(folder: Path) -> Study:
    """Reads the study in a folder; StudyError where there is none or it cannot be read."""
    content = read_json(folder / STUDY_FILE)
    if not content:
        raise StudyError(f"{folder.name}/{STUDY_FILE} holds no study that can be read")
    try:
        plan = StudyPlan(**{key: _tuples(value) for key, value in content.pop("plan").items()})
        rows = tuple(StudyRun(**_row(row)) for row in content.pop("runs"))
        named: dict[str, Any] = {key: value for key, value in content.items() if key in _NAMES} | {"name": folder.name}
        return Study(plan=plan, runs=rows, **named)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StudyError(f"{folder.name}/{STUDY_FILE} cannot be read: {error}") from error


def load_study(name: str) -> Study:
    """Reads a study by name; StudyError where there is none."""
    return read_study(study_folder(name))


def list_studies() -> tuple[str, ...]:
    """Returns the names of all studies, the newest first and the shipped one last."""
    root = runs_folder()
    found = [path for path in root.glob(f"*/{STUDY_FILE}") if is_name(path.parent.name)] if root.is_dir() else []
    own = [path.parent.name for path in sorted(found, key=lambda path: path.parent.stat().st_ctime, reverse=True)]
    shipped = [SHIPPED_STUDY] if (SHIPPED_FOLDER / SHIPPED_STUDY / STUDY_FILE).is_file() else []
    return (*own, *shipped)


def is_shipped(name: str) -> bool:
    """Returns True for the study that came with the lab."""
    return name == SHIPPED_STUDY


def is_active(name: str) -> bool:
    """Returns True while a process runs the study, or is about to."""
    if is_shipped(name):
        return False
    worker = read_json(study_folder(name) / _WORKER_FILE)
    pid, times = worker.get("pid"), (worker.get("create_time"), worker.get("boot_time"))
    if pid is None:
        return is_number(since := worker.get("since", 0.0)) and abs(time.time() - since) < 60
    return is_pid(pid) and all(at is None or is_number(at) for at in times) and is_alive(pid, *times)


def start_study(name: str) -> None:
    """Runs the rest of the study in a process of its own; StudyError where one is running already."""
    folder = study_folder(name)
    if is_active(name):
        raise StudyError(f"{name} is running already")
    write_json(folder / _WORKER_FILE, {"pid": None, "since": time.time()})
    (folder / _REQUEST_FILE).unlink(missing_ok=True)
    environment = os.environ | own_environment(threads=1)
    with (folder / LOG_FILE).open("ab") as log:
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "transformer.experiments.runner", name],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=environment,
            )
        except OSError as error:
            raise StudyError(f"the study {name} could not be started: {error}") from error
    threading.Thread(target=process.wait, name=f"reaper of {name}", daemon=True).start()


def stop_study(name: str) -> None:
    """Asks the process that runs the study to stop; its current run pauses. `start_study` continues from there."""
    write_json(study_folder(name) / _REQUEST_FILE, {"request": "stop"})
    for run in load_study(name).runs:
        if run.state == "running" and run.id:
            try:
                if status(run.id).active:
                    pause(run.id)
            except RunError:  # ended in this moment
                continue


def is_asked_to_stop(name: str) -> bool:
    """Returns True if `stop_study` was called since the study was last started."""
    return (study_folder(name) / _REQUEST_FILE).exists()


def claim_study(name: str) -> None:
    """Records this process as the one that runs the study; StudyError where another one does."""
    folder = study_folder(name)
    worker = read_json(folder / _WORKER_FILE)
    if worker.get("pid") not in (None, os.getpid()) and is_active(name):
        raise StudyError(f"{name} is running already")
    (folder / _REQUEST_FILE).unlink(missing_ok=True)
    born = {"create_time": psutil.Process().create_time(), "boot_time": psutil.boot_time()}
    write_json(folder / _WORKER_FILE, {"pid": os.getpid()} | born)


def release_study(name: str) -> None:
    """Records that no process runs the study any more."""
    write_json(study_folder(name) / _WORKER_FILE, {})


def study_folder(name: str) -> Path:
    """Returns the folder of a study; StudyError where there is none."""
    root = SHIPPED_FOLDER if is_shipped(name) else runs_folder()
    if not is_name(name) or not (root / name / STUDY_FILE).is_file():
        raise StudyError(f"there is no study {name!r}; there are: {', '.join(list_studies()) or 'none yet'}")
    return root / name


def _free_names(root: Path, name: str | None) -> Iterator[str]:
    base = name or "positions"
    if not is_name(base) or base == SHIPPED_STUDY:
        raise StudyError(f"a study cannot be named {base!r}: take letters, digits, dots and dashes")
    for number in itertools.count(1):
        free = base if number == 1 else f"{base}-{number}"
        if not (root / free).exists():
            yield free


def _row(row: dict[str, Any]) -> dict[str, Any]:
    lengths = {how: tuple(map(tuple, scores)) for how, scores in row.get("lengths", {}).items()}
    return {**row, "curve": tuple(map(tuple, row.get("curve", ()))), "lengths": lengths}


def _tuples(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


_NAMES = {item.name for item in fields(Study)} - {"plan", "runs"}
