"""The paired study of positions: one model trained with each kind of them, side by side, seeds, data and steps equal.

A study is a folder in the folder of runs with one file, study.json: its plan, and what each of its runs came to. The
runs are ordinary ones. Conducting it is study_work.py's, its verdict study_verdict.py's. No torch here.
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
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_args

import psutil

from transformer.config import FEWEST_SYMBOLS, MOST_SYMBOLS, CorpusConfig, ModelConfig, PositionKind, TrainConfig
from transformer.corpora import CORPORA
from transformer.files import new_folder, read_json, write_json
from transformer.launch import own_environment
from transformer.recipes import recipe_for
from transformer.runs import LOG_FILE, RunError, is_alive, pause, status
from transformer.settings import SHIPPED_FOLDER, is_name, runs_folder

STUDY_FILE = "study.json"
_WORKER_FILE, _REQUEST_FILE = "worker.json", "request.json"
SHIPPED_STUDY = "position-study"
"""The study that comes with the lab, in the folder of shipped models."""
LENGTH_TASKS = ("copy", "reverse", "sort")
"""Corpora whose sentences can be had at any length."""
KINDS: tuple[PositionKind, ...] = get_args(PositionKind)


class StudyError(Exception):
    """A study cannot be made, found or read; the message says why."""


@dataclass(frozen=True, kw_only=True)
class StudyPlan:
    """What is compared, on what, and for how long. Everything that is not named here is the corpus' recipe."""

    corpora: tuple[str, ...] = ("reverse", "copy")
    """Generated corpora; lengths are tested where there are any to test (copy, reverse, sort)."""
    positions: tuple[PositionKind, ...] = KINDS
    """Kinds of positions that are set side by side."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Each kind is trained once with each seed: of its weights and of the order of the data."""
    steps: int = 1_000
    """Optimiser steps of every run. None ends earlier."""
    batch_tokens: int = 768
    """Tokens in a batch, padding included, on the longer side."""
    trained_to: int = 16
    """Most symbols in a training sentence."""
    tested_to: int = 40
    """Most symbols in a test sentence."""
    pairs: int = 100
    """Held-out sentences of each length, where there are so many."""

    def __post_init__(self) -> None:
        for name in ("corpora", "positions", "seeds"):
            values = getattr(self, name)
            if not values or len(set(values)) != len(values):
                raise ValueError(f"{name} ({', '.join(map(str, values))}) must name at least one, and each only once")
        if unknown := [name for name in self.corpora if name not in CORPORA]:
            raise ValueError(f"corpora ({unknown[0]}) must be among: {', '.join(CORPORA)}")
        if unknown := [kind for kind in self.positions if kind not in KINDS]:
            raise ValueError(f"positions ({unknown[0]}) must be among: {', '.join(KINDS)}")
        low, high = FEWEST_SYMBOLS, MOST_SYMBOLS
        if not low <= self.trained_to <= self.tested_to <= high:
            raise ValueError(
                f"{low} <= trained_to ({self.trained_to}) <= tested_to ({self.tested_to}) <= {high} must hold"
            )
        for name in ("steps", "batch_tokens", "pairs"):
            if not 1 <= getattr(self, name) <= 1_000_000:
                raise ValueError(f"{name} ({getattr(self, name)}) must lie between 1 and 1,000,000")

    @property
    def n_runs(self) -> int:
        """Runs in all."""
        return len(self.corpora) * len(self.positions) * len(self.seeds)

    def configs(self, corpus: str, positions: PositionKind, seed: int) -> tuple[ModelConfig, TrainConfig, CorpusConfig]:
        """The settings of one run: the recipe of the corpus, but for what the plan sets. One thread, float32."""
        recipe, by_length = recipe_for(corpus), corpus in LENGTH_TASKS
        model = replace(recipe.model, positions=positions)
        if by_length:
            model = replace(model, max_length=self.tested_to + 1)
        train = replace(
            recipe.train,
            max_steps=self.steps,
            batch_tokens=self.batch_tokens,
            seed=seed,
            threads=1,
            precision="float32",
            device="cpu",
        )
        return model, train, CorpusConfig(name=corpus, longest=self.trained_to if by_length else None)


@dataclass(frozen=True, kw_only=True)
class StudyRun:
    """One run of a study and what it came to; empty values where it is not there yet."""

    corpus: str
    positions: PositionKind
    seed: int
    id: str = ""
    """The run's, in the folder of runs."""
    state: str = "waiting"
    """waiting, running, done, or why there is no result: stopped, failed, deleted."""
    parameters: int | None = None
    steps: int | None = None
    steps_to_target: int | None = None
    """The first evaluation with validation exact match at TARGET or above; None for never."""
    exact_match: float | None = None
    """On held-out sentences of the lengths of training, 0..1."""
    bleu: float | None = None
    count: int | None = None
    """Held-out sentences scored."""
    tokens_per_s: float | None = None
    """Real target tokens a second of training: the median step's."""
    elapsed_s: float | None = None
    trained_positions: int | None = None
    """Positions that training reached, from 0 on."""
    curve: tuple[tuple[int, float, float], ...] = ()
    """(step, validation loss, validation exact match) of each evaluation."""
    lengths: dict[str, tuple[tuple[int, int, int], ...]] = field(default_factory=dict)
    """(length, right, count) for each length, by what was done past the trained positions; "" where a formula knows."""


TARGET = 0.99
"""The validation exact match that counts as learned."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """A plan and its runs."""

    name: str
    plan: StudyPlan
    runs: tuple[StudyRun, ...]
    command: str = ""
    """The command that makes it again."""
    created: str = ""
    machine: str = ""
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def done(self) -> tuple[StudyRun, ...]:
        """The runs that have a result."""
        return tuple(run for run in self.runs if run.state == "done")

    def with_run(self, changed: StudyRun) -> "Study":
        """The same with one run's row replaced."""
        same = (changed.corpus, changed.positions, changed.seed)
        rows = (changed if (run.corpus, run.positions, run.seed) == same else run for run in self.runs)
        return replace(self, runs=tuple(rows))


def create_study(plan: StudyPlan, *, name: str | None = None, command: str = "") -> str:
    """The name of a new study in the folder of runs; nothing is trained yet."""
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
    raise AssertionError("names do not run out")


def save_study(study: Study) -> None:
    """Replaces the file of a study of one's own."""
    write_json(_folder(study.name) / STUDY_FILE, asdict(study))


def read_study(folder: Path) -> Study:
    """The study in a folder; StudyError where there is none or it cannot be read."""
    content = read_json(folder / STUDY_FILE)
    if not content:
        raise StudyError(f"{folder.name}/{STUDY_FILE} holds no study that can be read")
    try:
        plan = StudyPlan(**{key: _tuples(value) for key, value in content.pop("plan").items()})
        rows = tuple(StudyRun(**_row(row)) for row in content.pop("runs"))
        named = {key: value for key, value in content.items() if key in _NAMES} | {"name": folder.name}
        return Study(plan=plan, runs=rows, **named)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StudyError(f"{folder.name}/{STUDY_FILE} cannot be read: {error}") from error


def load_study(name: str) -> Study:
    """A study of one's own by name, or the shipped one; StudyError where there is none."""
    return read_study(_folder(name))


def list_studies() -> tuple[str, ...]:
    """Names of all studies: one's own, the newest first, then the shipped one."""
    root = runs_folder()
    found = [path for path in root.glob(f"*/{STUDY_FILE}") if is_name(path.parent.name)] if root.is_dir() else []
    own = [path.parent.name for path in sorted(found, key=lambda path: path.parent.stat().st_ctime, reverse=True)]
    shipped = [SHIPPED_STUDY] if (SHIPPED_FOLDER / SHIPPED_STUDY / STUDY_FILE).is_file() else []
    return (*own, *shipped)


def is_shipped(name: str) -> bool:
    """Whether this study came with the lab."""
    return name == SHIPPED_STUDY


def is_active(name: str) -> bool:
    """Whether a process is at work on the study, or about to be."""
    if is_shipped(name):
        return False
    worker = read_json(_folder(name) / _WORKER_FILE)
    if worker.get("pid") is None:
        return time.time() - worker.get("since", 0.0) < 60
    return is_alive(worker["pid"], worker.get("create_time"))


def start_study(name: str) -> None:
    """Conducts the study in a process of its own, from where it stands; StudyError where one is at work already."""
    folder = _folder(name)
    if is_active(name):
        raise StudyError(f"{name} is being conducted already")
    write_json(folder / _WORKER_FILE, {"pid": None, "since": time.time()})
    (folder / _REQUEST_FILE).unlink(missing_ok=True)
    environment = os.environ | own_environment(threads=1)
    with (folder / LOG_FILE).open("ab") as log:
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "transformer.study_work", name],
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
    """Asks the process that conducts the study to end; the run at work pauses. `start_study` goes on from there."""
    write_json(_folder(name) / _REQUEST_FILE, {"request": "stop"})
    for run in load_study(name).runs:
        if run.state == "running" and run.id:
            try:
                if status(run.id).active:
                    pause(run.id)
            except RunError:  # ended in this moment
                continue


def is_asked_to_stop(name: str) -> bool:
    """Whether `stop_study` was called since the study was last started."""
    return (_folder(name) / _REQUEST_FILE).exists()


def sign_in(name: str) -> None:
    """Notes this process as the one that conducts the study; StudyError where another one does."""
    folder = _folder(name)
    worker = read_json(folder / _WORKER_FILE)
    if worker.get("pid") not in (None, os.getpid()) and is_active(name):
        raise StudyError(f"{name} is being conducted already")
    (folder / _REQUEST_FILE).unlink(missing_ok=True)
    write_json(folder / _WORKER_FILE, {"pid": os.getpid(), "create_time": psutil.Process().create_time()})


def sign_out(name: str) -> None:
    """Notes that nobody conducts the study any more."""
    write_json(_folder(name) / _WORKER_FILE, {})


def _folder(name: str) -> Path:
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
