"""A runs folder that is a file or read-only, a run without status.json, and a server that dies as it measures."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from tiny_runs import create

from transformer import locks
from transformer.runs import benchmark, run_folder, upkeep
from transformer.runs.status import LOCK_FILE, RunError

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("room")]


def test_a_file_in_place_of_the_runs_folder_is_named(tmp_path, monkeypatch):
    path = tmp_path / "notes.txt"
    path.write_text("")
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(path))
    for refused in (run_folder.list_runs, upkeep.begin):
        with pytest.raises(RunError, match=r"notes\.txt, which is a file: let ATTENTION_LAB_RUNS name a folder"):
            refused()


def test_a_run_that_lost_its_status_can_be_deleted(room):
    run_id = create()
    (room / run_id / "status.json").unlink()
    run_folder.delete(run_id)
    assert not (room / run_id).exists()


@pytest.mark.parametrize("name", ["..", "nothing", "folder"])
def test_what_is_no_run_is_not_deleted(room, name):
    (room / "folder").mkdir(parents=True)
    with pytest.raises(RunError, match="there is no run"):
        run_folder.delete(name)
    assert (room / "folder").is_dir()


def test_a_run_whose_lock_is_held_is_not_deleted_whatever_its_status_says(room):
    run_id = create()
    lock = locks.take(room / run_id / LOCK_FILE)
    try:
        with pytest.raises(RunError, match="is still training; stop it first"):
            run_folder.delete(run_id)
    finally:
        os.close(lock)
    run_folder.delete(run_id)
    assert not (room / run_id).exists()


@pytest.mark.parametrize("action", [run_folder.start, run_folder.stop, run_folder.pause, run_folder.delete])
def test_a_read_only_folder_is_a_sentence(room, monkeypatch, action):
    run_id = create()

    def refuse(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    for place in ("run_folder.enqueue", "run_folder.cancel", "run_folder.locks.take"):
        monkeypatch.setattr(f"transformer.runs.{place}", refuse)
    with pytest.raises(
        RunError, match=rf"^{run_id} cannot be changed: .* cannot be written to \(Read-only file system\)$"
    ):
        action(run_id)


def test_a_benchmark_ends_with_the_server_that_asked_for_it_and_leaves_nothing(tmp_path):
    folder = tmp_path / "measured"
    folder.mkdir()
    benchmark_code = (
        "import sys, time; from transformer.runs import benchmark; "
        "benchmark.benchmark = lambda folder: time.sleep(300); benchmark.main([sys.argv[1], 'attached'])"
    )
    server_code = (
        "import subprocess, sys, time; "
        f"child = subprocess.Popen([sys.executable, '-c', {benchmark_code!r}, sys.argv[1]], stdin=subprocess.PIPE); "
        "print(child.pid, flush=True); time.sleep(300)"
    )
    server = subprocess.Popen(
        [sys.executable, "-c", server_code, str(folder)],
        stdout=subprocess.PIPE,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    with server:
        child = psutil.Process(int(server.stdout.readline()))
        server.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 60
    while child.is_running() and child.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
    assert not folder.exists()


def test_folders_that_a_killed_server_left_are_removed_and_others_stay(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    kept = tmp_path / "somebody-elses"
    kept.mkdir()
    with benchmark.new_benchmark_folder() as name:
        old = Path(name)
    old.mkdir()  # as if it had never been left
    (old / "config.json").write_text("{}")
    os.utime(old, (1, 1))
    os.utime(kept, (1, 1))
    with benchmark.new_benchmark_folder() as young:
        benchmark.remove_abandoned_folders()
        assert not old.exists() and kept.exists() and Path(young).exists()
