"""The pace of a run: its steps wait for the clock, what is asked does not, and a damaged file holds nothing up."""

import pytest
import tiny_runs

from transformer.runs import run_folder
from transformer.runs.live.pace import LOOK_EVERY_S, PACE_FILE, SLOWEST, Pace, pace_of, set_pace
from transformer.runs.worker import train_run


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self):
        self.now = 100.0
        self.slept = []

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds


def paced(folder):
    clock = Clock()
    return Pace(folder, clock, clock.sleep), clock


def test_steps_come_at_the_pace_that_is_set_and_at_once_without_one(tmp_path):
    pace, clock = paced(tmp_path)
    for _ in range(5):
        pace.wait(lambda: False)
    assert not clock.slept
    set_pace(tmp_path, 4)
    clock.now += 2 * LOOK_EVERY_S
    pace.wait(lambda: False)
    began = clock.now
    for _ in range(8):
        pace.wait(lambda: False)
    assert clock.now - began == pytest.approx(2.0) and max(clock.slept) <= LOOK_EVERY_S
    set_pace(tmp_path, None)
    clock.now += 2 * LOOK_EVERY_S
    before = clock.now
    for _ in range(8):
        pace.wait(lambda: False)
    assert clock.now == before and not (tmp_path / PACE_FILE).exists()


def test_time_that_a_step_takes_counts(tmp_path):
    pace, clock = paced(tmp_path)
    set_pace(tmp_path, 2)
    pace.wait(lambda: False)
    clock.now += 0.4
    before = clock.now
    pace.wait(lambda: False)
    assert clock.now - before == pytest.approx(0.1)


def test_a_request_and_another_pace_end_the_wait(tmp_path):
    pace, clock = paced(tmp_path)
    set_pace(tmp_path, 1)
    pace.wait(lambda: False)
    before = clock.now
    pace.wait(lambda: clock.now > before + 0.15)
    assert clock.now - before < 0.5
    before = clock.now
    pace.sleep = lambda seconds: (clock.sleep(seconds), set_pace(tmp_path, None))
    pace.wait(lambda: False)
    assert clock.now - before < 0.5


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ('{"steps_per_s": 5}', 5.0),
        ('{"steps_per_s": 0}', SLOWEST),
        ('{"steps_per_s": -3}', SLOWEST),
        ('{"steps_per_s": 1e-300}', SLOWEST),
        ('{"steps_per_s": true}', None),
        ('{"steps_per_s": "5"}', None),
        ('{"steps_per_s": NaN}', None),
        ('{"steps_per_s": 1' + "0" * 400 + "}", None),
        ("[]", None),
        ("{", None),
        ("\ud800".encode("utf-8", "surrogatepass"), None),
    ],
)
def test_whatever_stands_in_the_file_holds_a_run_up_for_a_second_at_most(tmp_path, content, found):
    (tmp_path / PACE_FILE).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert pace_of(tmp_path) == found


def test_a_trainer_waits_after_each_step_and_leaves_no_pace_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    run_id = tiny_runs.create(pinned=())
    run_folder.hold_to(run_id, 50)
    paces = []
    monkeypatch.setattr(Pace, "wait", lambda pace, is_asked: paces.append((pace_of(pace.folder), is_asked())))
    train_run(run_id)
    assert len(paces) >= run_folder.get_run(run_id).status.step > 0 and set(paces) == {(50.0, False)}
    assert not (tmp_path / run_id / PACE_FILE).exists()
