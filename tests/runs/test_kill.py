"""kill -9 at fifty random moments: of a trainer, its server, the server's warm worker. Nothing finished is lost.

Fifty starts of an interpreter with torch would take minutes, so all three are forked from a process that has imported
everything (kill_forks.py). From there on they run the app's own code. test_run_processes.py kills a
trainer that was started the usual way.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest
import torch

from transformer.checkpoints.settings import read_settings
from transformer.checkpoints.store import load_tensors
from transformer.runs import run_folder
from transformer.runs.status import STATE_FILE, STATUS_FILE, is_alive, status
from transformer.runs.status import run_folder as folder_of

HERE = Path(__file__).parents[1] / "support"
KILLS = int(os.environ.get("KILLS", "50"))
"""More of them make a soak test: `make storm`."""
SEED = int(os.environ.get("SEED", "0"))
VICTIMS = (
    ("trainer",),
    ("server",),
    ("worker",),
    ("server", "trainer"),
    ("trainer", "server"),
    ("worker", "trainer"),
)
PATIENCE_S = 300.0


class Forks:
    """The server, its warm worker and the trainer of the moment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.parent = subprocess.Popen(
            [sys.executable, str(HERE / "kill_forks.py"), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join((str(HERE), str(HERE.parents[1])))},
        )
        assert self.parent.stdout is not None and self.parent.stdout.readline() == "ready\n"
        self.cmdline = psutil.Process(self.parent.pid).cmdline()

    def serve(self, name: str) -> None:
        """Forks a server that makes the run of this name where there is none, starts it, and watches it."""
        assert self.parent.stdin is not None
        self.kill("server")
        (self.folder / "server").unlink(missing_ok=True)
        self.parent.stdin.write(f"{name}\n")
        self.parent.stdin.flush()
        wait_until((self.folder / "server").exists)

    def pid(self, who: str) -> int | None:
        """The process id of the server, worker or trainer; None where there is none, or no longer."""
        try:
            pid = int((self.folder / who).read_text())
            mine = psutil.Process(pid).cmdline() == self.cmdline
        except (FileNotFoundError, psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            return None
        return pid if mine and is_alive(pid, None) else None

    def kill(self, who: str) -> bool:
        """kill -9, if it lives; whether it did."""
        pid = self.pid(who)
        if pid is None:
            return False
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not is_alive(pid, None))
        return True

    def end(self) -> None:
        """Ends them all."""
        self.kill("server")
        self.kill("trainer")
        self.parent.kill()
        self.parent.communicate()


@pytest.fixture
def room(tmp_path, monkeypatch):
    """A folder of runs."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


@pytest.fixture
def forks(room, tmp_path):
    """What is forked here is gone afterwards, come what may."""
    forks = Forks(tmp_path)
    yield forks
    forks.end()


@pytest.mark.slow
@pytest.mark.timeout(max(3_600, 20 * KILLS))  # a minute on a quiet machine
def test_killed_fifty_times_at_any_moment_runs_lose_nothing_and_end_bit_equal(room, forks):
    moment, met, ended = random.Random(SEED), Counter(), Counter()
    forks.serve("whole")
    begin = time.monotonic()
    wait_until(lambda: is_made("whole") and status("whole").state == "finished")
    whole, longest_s = rows("whole"), 0.4 * (time.monotonic() - begin)
    kept, number, kills = {}, 1, 0
    while kills < KILLS:
        name = f"killed-{number}"
        if forks.pid("trainer") is None or not is_made(name):
            forks.serve(name)
        time.sleep(moment.uniform(0, longest_s))
        killed = [victim for victim in moment.choice(VICTIMS) if forks.kill(victim)]
        kills += bool(killed)
        ended.update(killed)
        if kills % 50 == 0:
            print(f"{kills} of {KILLS}: {dict(ended)}; runs found {dict(met)}", flush=True)
        if not is_made(name):  # nothing of it is to be seen
            met["not made yet"] += 1
            assert name not in {run.id for run in run_folder.list_runs()}
            continue
        now = settled(name)
        met[now.state] += 1
        if now.state == "failed":
            assert "the trainer ended without a message, as when it is killed" in now.error
        kept = lost_nothing(name, kept, whole)
        if now.state == "finished":
            number, kept = number + 1, {}
    wait_until(lambda: forks.pid("trainer") is None)  # whoever still lives goes on to its end
    last = f"killed-{number}"
    forks.serve(last)  # a run may wait in the queue of a server that was killed
    wait_until(lambda: is_made(last) and status(last).state == "finished")
    for name in [f"killed-{n + 1}" for n in range(number)]:
        assert rows(name) == whole
        assert_equal_weights(room / name, room / "whole")
    assert met["failed"] >= KILLS // 5, met
    assert min(ended["server"], ended["worker"], ended["trainer"]) >= KILLS // 6, ended
    assert met["running"], met  # a trainer whose server was killed goes on


def settled(name):
    """The run's status once a start that is under way has come to a trainer, or to nothing."""
    wait_until(lambda: status(name).phase != "starting")
    now = status(name)
    assert now.state in ("running", "failed", "finished") or now.waiting or not now.active, now
    return now


def lost_nothing(name, before, whole):
    """What had been written is still there, equal to the run that nobody interrupted, and every file is whole."""
    folder = folder_of(name)
    read_settings(folder)
    found, snapshots, step = rows(name), run_folder.snapshots(name), saved_step(folder)
    assert before.get("rows", {}).keys() <= found.keys()
    assert all(whole[key] == value for key, value in found.items())
    assert step >= before.get("step", 0)
    assert before.get("snapshots", set()) <= snapshots.keys()
    for path in [*snapshots.values(), *folder.glob("weights.safetensors")]:
        assert weights(path)
    return {"rows": found, "step": step, "snapshots": snapshots.keys()}


def rows(name):
    """Every loss and every translation, without the times that they took."""
    found = {(row["split"], row["step"]): row["loss"] for row in run_folder.metrics(name)}
    return found | {(row["source"], row["step"]): row["translation"] for row in run_folder.samples(name)}


def is_made(name):
    return (run_folder.runs_folder() / name / STATUS_FILE).exists()


def saved_step(folder):
    path = folder / STATE_FILE
    return json.loads(load_tensors(path)[1]["facts"])["step"] if path.exists() else 0


def weights(path):
    return load_tensors(path)[0]


def assert_equal_weights(folder, other):
    for path in [other / "weights.safetensors", *other.glob("snapshots/*.safetensors")]:
        first, second = weights(path), weights(folder / path.relative_to(other))
        assert all(torch.equal(value, second[key]) for key, value in first.items()), path


def wait_until(holds):
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)
