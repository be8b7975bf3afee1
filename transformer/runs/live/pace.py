"""The pace of a run that somebody follows with their eyes: pace.json holds the most steps that it makes a second."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from transformer.files import read_json, write_json

PACE_FILE = "pace.json"
SLOWEST = 1.0
"""Steps a second: a trainer that waited longer would look dead."""
LOOK_EVERY_S = 0.1


def set_pace(folder: Path, steps_per_s: float | None) -> None:
    """Holds the run to so many steps a second, SLOWEST at least, at once and while its trainer works; None for as fast
    as it can."""
    if steps_per_s is None:
        with contextlib.suppress(OSError):
            (folder / PACE_FILE).unlink(missing_ok=True)
    else:
        write_json(folder / PACE_FILE, {"steps_per_s": steps_per_s})


def pace_of(folder: Path) -> float | None:
    """Returns the most steps a second; None for as fast as it can, and where the file is damaged."""
    if not (folder / PACE_FILE).exists():
        return None
    found = read_json(folder / PACE_FILE).get("steps_per_s")
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    return max(SLOWEST, float(found)) if is_number and found < 1e6 else None


@dataclass
class Pace:
    """The trainer's side: waits between steps. The steps themselves stay as they are."""

    folder: Path
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _per_s: float | None = None
    _looked_s: float = float("-inf")
    _stepped_s: float = float("-inf")

    def wait(self, is_asked: Callable[[], bool]) -> None:
        """Waits until the next step is due, or something else is asked of the run; for after each step."""
        while (left_s := self._left_s()) > 0 and not is_asked():
            self.sleep(min(left_s, LOOK_EVERY_S))
        self._stepped_s = self.clock()

    def _left_s(self) -> float:
        now = self.clock()
        if now - self._looked_s >= LOOK_EVERY_S:
            self._looked_s, self._per_s = now, pace_of(self.folder)
        return 0.0 if self._per_s is None else self._stepped_s + 1 / self._per_s - now
