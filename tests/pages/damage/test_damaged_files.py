"""Every file below the folder of runs and that of the shipped models, damaged in turn: the pages that read it go on.

The files are found by walking both folders, so one of a new kind is tried without a word here.
"""

import os
import random
import shutil
import time
from dataclasses import replace
from functools import partial
from hashlib import sha256
from itertools import cycle
from pathlib import Path

import pytest
from damage import damages
from page_models import faults_of, visit
from page_train import pairs
from tiny_runs import MODEL, settings

from pages.shared.cache import RESULTS
from pages.training.durations import Estimate, write_estimate
from transformer.access.classroom import Quota, set_classroom, set_quota
from transformer.access.known_people import take_share
from transformer.access.people import Person, acting_as
from transformer.access.server_settings import IDENTITY, TEACHERS
from transformer.checkpoints.settings import SHIPPED_FOLDER
from transformer.config import CorpusConfig
from transformer.data.uploads import save_upload
from transformer.files import write_json
from transformer.runs import run_folder
from transformer.runs.labels import keep, set_note
from transformer.runs.limits import quota
from transformer.runs.limits.retention import clear_old
from transformer.runs.sharing import share
from transformer.runs.status import run_folder as folder_of
from transformer.runs.sweeps import Base, create_sweep
from transformer.runs.worker import train_run

ADA = "ada"
RUN, MODEL_NAME = "pairs-1", "reverse-learned"
N_VALUES = int(os.environ.get("DAMAGED_VALUES", "2"))
"""The values of each file that are made wrong in turn."""
PAGES_EACH = int(os.environ.get("DAMAGED_PAGES", "1"))
"""The pages that are opened on each damaged file, in turn."""
TEXT = {RUN: "the word1 is here", MODEL_NAME: "a b c"}
OF_RUN = ("runs", "train", "race")
OF_MODEL = (
    "attention",
    "positions",
    "heads",
    "home",
    "tokenizers",
    "compare",
    "steps",
    "walkthrough",
    "masks",
    "before",
)
OF_LAB = {"experiments": ("paper_lab",), "position-study": ("positions",), "my-study": ("positions",)}
OF_ALL = ("server", "train", "runs", "learn", "playground", "race", "classroom")


@pytest.fixture(scope="module")
def whole_room(tmp_path_factory):
    """A folder with a run of an uploaded corpus, a study, own results of an experiment, all that teachers set, and
    another with a few shipped models."""
    room = tmp_path_factory.mktemp("damage")
    shutil.copytree(SHIPPED_FOLDER / MODEL_NAME, room / "shipped" / MODEL_NAME)
    shutil.copytree(SHIPPED_FOLDER / "position-study", room / "shipped" / "position-study")
    (room / "shipped" / "experiments").mkdir()
    shutil.copy(SHIPPED_FOLDER / "experiments" / "heads.json", room / "shipped" / "experiments")
    with pytest.MonkeyPatch.context() as patch, acting_as(Person(id=ADA, is_teacher=True)):
        patch.setenv("ATTENTION_LAB_RUNS", str(room / "runs"))
        patch.setenv(IDENTITY, "cookie")
        _make_run()
        _set_for_class()
        patch.setenv(quota.KEEP_DAYS, "0.0001")
        clear_old(time.time() + 60)
    root = room / "runs"
    shutil.copytree(SHIPPED_FOLDER / "position-study", root / "my-study")
    write_json(root / "my-study" / "worker.json", {"pid": 3, "create_time": 1.0, "boot_time": 1.0})
    write_json(root / ".turns.json", {ADA: time.time()})
    own = root / ".experiments" / sha256(ADA.encode()).hexdigest()[:32]
    own.mkdir(parents=True)
    shutil.copy(SHIPPED_FOLDER / "experiments" / "heads.json", own / "heads-full.json")
    return room


def _make_run() -> None:
    """Makes and trains a run of an upload, with all that is noted of it, and a sweep that waits."""
    corpus = CorpusConfig(name=str(save_upload("pairs.tsv", pairs(60))))
    model = replace(MODEL, positions="learned")
    run_folder.create_run(model, settings(), corpus, pinned=(TEXT[RUN],), name=RUN)
    folder = folder_of(RUN)
    quota.write_ticket(folder, ADA, 0.0)
    assert train_run(RUN).state == "finished"
    quota.write_ticket(folder, ADA, 0.0)
    write_estimate(folder, Estimate(training_s=1.0, scoring_s=1.0))
    set_note(RUN, "a note")
    keep(RUN)
    share(RUN)
    create_sweep(Base(model=model, train=settings(), corpus=CorpusConfig(name="reverse")), "train.seed", ["1", "2"])


def _set_for_class() -> None:
    """Sets all that teachers may set, and follows a link."""
    set_classroom(models=(MODEL_NAME,), lesson="masks", lesson_title="Masks", quota=Quota(megabytes=500.0))
    set_quota(ADA, Quota(megabytes=400.0, minutes=60.0))
    take_share(ADA, "token")


@pytest.fixture
def own_room(whole_room, tmp_path, monkeypatch):
    """A copy of it, in place."""
    room = tmp_path / "room"
    shutil.copytree(whole_room, room, copy_function=shutil.copyfile)
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(room / "runs"))
    monkeypatch.setenv(IDENTITY, "header:X-User")
    monkeypatch.setenv(TEACHERS, ADA)
    monkeypatch.setenv(quota.KEEP_DAYS, "1000")
    monkeypatch.setattr("pages.shared.visitors.current.unsealed", lambda value: ADA)
    monkeypatch.setattr("transformer.runs.run_folder.start", lambda *_, **__: None)
    for place in ("checkpoints.settings", "experiments.study"):
        monkeypatch.setattr(f"transformer.{place}.SHIPPED_FOLDER", room / "shipped")
    monkeypatch.setattr("transformer.experiments.results.SHIPPED_RESULTS", room / "shipped" / "experiments")
    return room


def files_of(room: Path) -> list[Path]:
    """One file of each kind in both folders, relative to the room: of two runs and of snapshots the first."""
    kinds: dict[tuple[str, ...], Path] = {}
    for path in sorted(path.relative_to(room) for path in room.rglob("*") if path.is_file()):
        inside = path.parts[2:] if is_run(room / "/".join(path.parts[:2])) else path.parts
        kind = (*inside[:-1], "*" if path.parent.name == "snapshots" else path.name)
        if "lock" not in path.name:
            kinds.setdefault(kind, path)
    return list(kinds.values())


def is_run(folder: Path) -> bool:
    """Tells whether this is the folder of a run."""
    return (folder / "status.json").is_file()


def run_in_links(run_id: str) -> dict[str, str]:
    """The parameters by which links name a run."""
    return dict.fromkeys(("run", "left_run", "right_run"), run_id)


def pages_for(room: Path, file: Path) -> list[partial]:
    """Visits to the pages that read a file."""
    folder = file.parts[1]
    if folder in TEXT:
        shown = [partial(visit, page, model=folder, text=TEXT[folder], pairs="50") for page in OF_MODEL]
        return [partial(visit, page, **run_in_links(folder)) for page in OF_RUN if folder == RUN] + shown
    if is_run(room / "runs" / folder):
        return [partial(visit, page, **run_in_links(folder)) for page in OF_RUN] + [
            partial(visit, "runs", tab="Sweeps")
        ]
    return [partial(visit, page) for page in OF_LAB.get(folder.lstrip("."), OF_ALL)]


PARTS = 24


@pytest.mark.parametrize("part", range(PARTS))
def test_a_damaged_file_ends_in_a_sentence_on_every_page(own_room, part, caplog):
    failed = []
    for number, file in enumerate(files_of(own_room)):
        if number % PARTS != part:
            continue
        path, turns = own_room / file, cycle(pages_for(own_room, file))
        content = path.read_bytes()
        for what, damaged in damages(file.name, content, random.Random(str(file)), N_VALUES):
            path.unlink()
            if damaged is not None:
                path.write_bytes(damaged)
            assert not quota.over_quota(ADA)
            for _ in range(PAGES_EACH):
                RESULTS.clear()
                caplog.clear()
                page = next(turns)
                at = page()
                if bad := faults_of(at):
                    raised = [repr(row.exc_info[1]) for row in caplog.records if row.exc_info]
                    failed.append(f"{file} ({what}), {page.args[0]}: {bad} {raised}")
            path.write_bytes(content)
    assert not failed, "\n".join(failed)
