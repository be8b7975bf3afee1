"""The pace of a run: its steps wait for the clock, what is asked does not, and a damaged file holds nothing up."""

import pytest

from transformer.runs.live.pace import LOOK_EVERY_S, PACE_FILE, SLOWEST, Pace, pace_of, set_pace


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
