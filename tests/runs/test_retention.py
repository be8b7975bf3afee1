"""Tests that old or excess data is cleared a week after a warning, and never a run that is at work, pinned or kept."""

import contextlib
import os
import subprocess
import time
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from tiny_runs import MODEL, create, settings

from transformer.access.people import Person, acting_as
from transformer.access.server_settings import IDENTITY
from transformer.config import CorpusConfig
from transformer.data.unpacking import CorpusError
from transformer.data.uploads import delete_upload, list_uploads, save_upload
from transformer.files import runs_folder
from transformer.runs import run_folder
from transformer.runs.archive import load_archive
from transformer.runs.labels import about, keep, set_note
from transformer.runs.limits import quota
from transformer.runs.limits.retention import WARNING_S, announced, clear_old
from transformer.runs.queue import cancel
from transformer.runs.sharing import pin
from transformer.runs.status import RunError, Status, read_status, run_ids, write_status
from transformer.runs.sweeps import Base, create_sweep

pytestmark = pytest.mark.usefixtures("room")

DAY_S = 24 * 3600.0
ADA, BOB = Person(id="ada"), Person(id="bob")
PAIRS = "".join(f"a {i} word\tun mot {i}\n" for i in range(300)).encode()


def run_of(person: Person, name: str, *, days_old: float = 0.0, n_bytes: int = 0) -> Path:
    """A finished run of somebody, so old and with a file so large."""
    with acting_as(person):
        folder = runs_folder() / create(name=name)
    write_status(folder, Status(state="finished", step=20, heartbeat=time.time() - days_old * DAY_S))
    (folder / "weights.bin").write_bytes(bytes(n_bytes))
    return folder


def names(found) -> list[str]:
    return [one.name for one in found]


def after(days: float) -> float:
    return time.time() + days * DAY_S


def test_nothing_is_announced_or_cleared_where_nothing_is_set():
    run_of(ADA, "old", days_old=3_000)
    assert announced(time.time()) == [] == clear_old(after(3_000))


def test_an_old_run_is_cleared_a_week_after_its_warning_and_not_before(monkeypatch):
    monkeypatch.setenv(quota.KEEP_DAYS, "90")
    run_of(ADA, "old", days_old=400)
    run_of(ADA, "young", days_old=80)
    assert clear_old(time.time()) == [], "the setting is new: a warning comes first"
    (found,) = announced(after(1))
    assert (
        found.name == "old" and found.owners == {"ada"} and found.due == pytest.approx(time.time() + WARNING_S, abs=60)
    )
    assert clear_old(after(6.9)) == []
    assert names(clear_old(after(7.1))) == ["old"] and run_ids(runs_folder()) == ["young"]
    assert names(announced(after(7.1))) == ["young"] and clear_old(after(9.9)) == []
    assert names(clear_old(after(14.2))) == ["young"]


def test_a_run_that_trained_again_is_no_longer_announced(monkeypatch):
    monkeypatch.setenv(quota.KEEP_DAYS, "90")
    folder = run_of(ADA, "old", days_old=400)
    clear_old(time.time())
    write_status(folder, replace(read_status(folder), heartbeat=time.time()))
    assert clear_old(after(8)) == [] and announced(after(8)) == []
    assert names(announced(after(85))) == ["old"] and clear_old(after(89)) == [], "the old warning does not count"


@pytest.mark.parametrize("limit", [quota.KEEP_DAYS, quota.STORE])
def test_what_is_at_work_waits_is_pinned_or_kept_never_goes(monkeypatch, limit):
    monkeypatch.setenv(limit, "0")
    pinned, kept = run_of(ADA, "pinned", days_old=400), run_of(ADA, "kept", days_old=400)
    for name, state, phase in (("working", "running", "training"), ("waiting", "queued", "waiting")):
        write_status(run_of(ADA, name, days_old=400), Status(state=state, phase=phase, heartbeat=1.0))
    pin(pinned.name)
    keep(kept.name)
    set_note(kept.name, "a note does not end the keeping")
    assert about(kept).kept
    clear_old(time.time())
    assert clear_old(after(30)) == [] and len(run_ids(runs_folder())) == 4
    keep(kept.name, kept=False)
    clear_old(after(30))
    assert names(clear_old(after(38))) == ["kept"]


def test_the_oldest_go_until_the_rest_fits(monkeypatch):
    for name, days in (("new", 1), ("oldest", 30), ("older", 20)):
        run_of(ADA, name, days_old=days, n_bytes=2_000_000)
    monkeypatch.setenv(quota.STORE, "5")
    assert names(announced(time.time())) == ["oldest"]
    monkeypatch.setenv(quota.STORE, "3")
    assert sorted(names(announced(time.time()))) == ["older", "oldest"]


def test_who_has_more_than_their_quota_loses_their_own_oldest_only(monkeypatch):
    run_of(BOB, "bobs", days_old=90, n_bytes=1_000_000)
    for name, days in (("new", 1), ("old", 30)):
        run_of(ADA, name, days_old=days, n_bytes=2_000_000)
    monkeypatch.setenv(quota.DISK, "3")
    (found,) = announced(time.time())
    assert found.name == "old" and "more than 3 MB" in found.reason


def test_uploads_count_towards_the_quota_and_go_too(monkeypatch):
    with acting_as(ADA):
        path = save_upload("mine.tsv", PAIRS)
    before = quota.used_bytes("ada")
    assert before >= len(PAIRS) and quota.used_bytes("bob") == 0
    monkeypatch.setenv(quota.DISK, "0.001")
    with pytest.raises(RunError, match="your runs and files take"):
        quota.check_quota("ada")
    monkeypatch.delenv(quota.DISK)
    monkeypatch.setenv(quota.KEEP_DAYS, "10")
    clear_old(after(5))
    assert names(clear_old(after(13))) == ["mine.tsv"] and not path.parent.exists()


def test_only_so_many_runs_of_a_visitor_wait(monkeypatch):
    monkeypatch.setenv(quota.MAX_WAITING, "2")
    with acting_as(ADA):
        mine = [create(name=f"r{i}") for i in range(3)]
    for run_id in mine[:2]:
        write_status(runs_folder() / run_id, Status(state="queued", phase="waiting"))
    with acting_as(ADA), pytest.raises(RunError, match="2 of your runs wait already, and a visitor may have 2"):
        run_folder.start(mine[2])


def test_where_visitors_are_told_apart_a_queue_of_one_is_bounded_without_a_setting(monkeypatch):
    """And what is refused leaves nothing behind that would fill the disk."""
    monkeypatch.setenv(IDENTITY, "cookie")
    with acting_as(ADA):
        for i in range(quota.MOST_WAITING):
            write_status(runs_folder() / create(name=f"r{i}"), Status(state="queued", phase="waiting"))
        for _ in range(3):
            with pytest.raises(RunError, match="24 of your runs wait already, and a visitor may have 24 in the queue"):
                create(name="more")
        base = Base(model=MODEL, train=settings(), corpus=CorpusConfig(name="reverse"))
        cancel("r0", "stopped")
        with pytest.raises(RunError, match="23 of your runs wait already, and this adds 2, and a visitor may have 24"):
            create_sweep(base, "n_heads", ["1", "2"])
    assert len(run_ids(runs_folder())) == quota.MOST_WAITING
    with acting_as(BOB):
        create(name="bobs")
    monkeypatch.setenv(IDENTITY, "none")
    with acting_as(ADA):
        create(name="more")


def test_who_has_used_up_their_quota_makes_no_run_and_loads_no_archive(monkeypatch, tmp_path):
    with acting_as(ADA):
        save_upload("mine.tsv", PAIRS)
        monkeypatch.setenv(quota.DISK, "0.001")
        with pytest.raises(RunError, match="your runs and files take"):
            create(name="more")
        monkeypatch.setenv(quota.DISK, "0.5")
        with pytest.raises(RunError, match=r"this file has 0\.6 MB, your runs and files take"):
            load_archive(BytesIO(bytes(600_000)))
    assert run_ids(runs_folder()) == []


def test_a_file_is_removed_by_who_brought_it_and_by_nobody_else():
    with acting_as(ADA):
        path = save_upload("mine.tsv", PAIRS)
    with acting_as(BOB), pytest.raises(CorpusError, match="is not here"):
        delete_upload(path.parent.name)
    with acting_as(ADA):
        delete_upload(path.parent.name)
        assert list_uploads() == () and not path.parent.exists() and quota.used_bytes("ada") == 0


def test_nothing_new_begins_on_a_disk_that_is_almost_full(monkeypatch):
    run_id = create()
    monkeypatch.setattr("transformer.files.free_bytes", lambda: 100 * 2**20)
    said = "almost full: 100 MB are free, and at least 256 MB are needed"
    with pytest.raises(RunError, match=said):
        run_folder.start(run_id)
    with pytest.raises(CorpusError, match=said):
        save_upload("mine.tsv", PAIRS)


@pytest.mark.slow
def test_a_run_on_a_disk_that_fills_up_fails_in_a_sentence_and_goes_on_once_there_is_room(tmp_path, monkeypatch):
    """A real disk of 1.5 MB, full while the run trains."""
    from transformer.runs.worker import train_run

    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500k", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("a disk of its own needs the right to mount one")
    try:
        monkeypatch.setenv("ATTENTION_LAB_RUNS", str(disk))
        with monkeypatch.context() as patch:  # so small a disk takes no run at all
            patch.setattr("transformer.runs.queue.disk_refusal", str)
            run_id = create(max_steps=60)
        filler = disk / "filler"
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(4096)):
                pass
        os.truncate(filler, filler.stat().st_size - 48 * 1024)  # room for its status, and not for its weights
        train_run(run_id)
        failed = run_folder.get_run(run_id).status
        assert failed.state == "failed" and "the disk is full: free some space, then resume" in failed.error
        os.truncate(filler, 0)
        train_run(run_id)
        assert run_folder.get_run(run_id).status.state == "finished"
        assert run_folder.metrics(run_id)[-1]["step"] == 60
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
