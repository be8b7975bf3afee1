"""One sentence through every snapshot of a run, decoded once and kept."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pages.shared.cache import cached
from transformer.checkpoints.store import CheckpointError, load_checkpoint
from transformer.lab import Lab
from transformer.runs.kept_weights import Snapshot, Stamp
from transformer.runs.run_folder import Run
from transformer.text.tokenizer import BOS, PAD
from transformer.views.training.timeline import DecodedSnapshot, decode_snapshot


@dataclass(frozen=True)
class Frame:
    """One step of the timeline."""

    step: int
    own: DecodedSnapshot
    """The snapshot's own translation, and the pass that wrote it."""
    forced: DecodedSnapshot | None
    """The same snapshot made to write the goal; None where that is not computed yet."""


@dataclass
class Timeline:
    """The frames of one sentence in one run as far as they are computed; a visitor's."""

    run: str = ""
    text: str = ""
    goal: tuple[int, ...] = ()
    """Ids of the newest output when it was last set: what every snapshot is forced to write, to be compared."""
    goal_step: int = -1
    own: dict[tuple[str, Stamp], DecodedSnapshot] = field(default_factory=dict)
    forced: dict[tuple[str, Stamp], DecodedSnapshot] = field(default_factory=dict)
    broken: dict[tuple[str, Stamp], str] = field(default_factory=dict)
    """Snapshots that cannot be used, and why."""
    spent_s: float = 0.0
    """Time that went into `own` and `forced`."""

    def shown(self, found: Sequence[Snapshot]) -> list[Frame]:
        """The frames that can be shown, by step."""
        return [
            Frame(snapshot.step, self.own[_key(snapshot)], self.forced.get(_key(snapshot)))
            for snapshot in found
            if _key(snapshot) in self.own
        ]

    def missing(self, found: Sequence[Snapshot]) -> list[tuple[Snapshot, bool]]:
        """Returns what is left to compute, the most wanted first; True for a forced pass."""
        usable = [snapshot for snapshot in found if _key(snapshot) not in self.broken]
        passes = [(snapshot, forced) for snapshot in halving(usable) for forced in (False, True)]
        return [
            (snapshot, forced)
            for snapshot, forced in passes
            if (bool(self.goal) and _key(snapshot) not in self.forced if forced else _key(snapshot) not in self.own)
        ]

    def left_s(self, found: Sequence[Snapshot]) -> float:
        """Seconds that what is missing will take, by what was computed so far."""
        done = len(self.own) + len(self.forced)
        return self.spent_s / done * len(self.missing(found)) if done else 0.0


def advance(frames: Timeline, run: Run, found: Sequence[Snapshot], *, budget_s: float) -> None:
    """Computes passes for about this long, at least the newest one. ValueError for a text that cannot be read."""
    known = {_key(snapshot) for snapshot in found}
    for passes in (frames.own, frames.forced):
        for key in passes.keys() - known:  # weights of a run at work that were replaced since
            del passes[key]
    _set_goal(frames, run, found)
    start = time.monotonic()
    while (missing := frames.missing(found)) and (not frames.own or time.monotonic() - start < budget_s):
        snapshot, forced = missing[0]
        before = time.monotonic()
        try:
            _compute(frames, run, snapshot, forced=forced)
        except (CheckpointError, OSError) as error:
            frames.broken[_key(snapshot)] = str(error)
        frames.spent_s += time.monotonic() - before
        _set_goal(frames, run, found)


def halving(items: Sequence[Snapshot]) -> Iterator[Snapshot]:
    """The last item, the first, then always the middle of the widest gap: it can be scrubbed from the start."""
    if not items:
        return
    yield items[-1]
    if len(items) > 1:
        yield items[0]
    gaps = [(0, len(items) - 1)]
    while gaps:
        low, high = gaps.pop(0)
        middle = (low + high) // 2
        if low < middle < high:
            yield items[middle]
            gaps += [(low, middle), (middle, high)]


def _set_goal(frames: Timeline, run: Run, found: Sequence[Snapshot]) -> None:
    """Takes the newest output as the goal; of a run at work only when its step has doubled since."""
    if not found or _key(found[-1]) not in frames.own:
        return
    newest, ids = found[-1], frames.own[_key(found[-1])].ids
    if {PAD, BOS} & set(ids):  # an untrained model may write what no sentence holds, and it cannot be forced
        return
    if run.status.active and frames.goal and (ids == frames.goal or newest.step < 2 * frames.goal_step):
        return
    if ids != frames.goal:
        frames.forced.clear()
    frames.goal, frames.goal_step = ids, newest.step


def _compute(frames: Timeline, run: Run, snapshot: Snapshot, *, forced: bool) -> None:
    key = _key(snapshot)
    goal = frames.goal if forced else ()
    if forced and frames.own[key].ids == goal:
        frames.forced[key] = frames.own[key]  # the very pass that would be computed
        return
    (frames.forced if forced else frames.own)[key] = decoded_with(run, snapshot, frames.text, goal)


def decoded_with(run: Run, snapshot: Snapshot, text: str, goal: tuple[int, ...] = ()) -> DecodedSnapshot:
    """Returns a text decoded with one snapshot of a run, made to write the ids of `goal` if there are any, remembered.

    ValueError for a text that cannot be read, CheckpointError or OSError where the weights are gone.
    """
    weights = snapshot.path.relative_to(run.folder).as_posix()
    return _decoded(str(run.folder), weights, snapshot.stamp, text, goal)


@cached(max_entries=300, shared=True)
def _decoded(folder: str, weights: str, stamp: Stamp, text: str, goal: tuple[int, ...]) -> DecodedSnapshot:
    return decode_snapshot(Path(folder), weights, text, goal, lab=_lab(folder, weights, stamp))


@cached(max_entries=3, shared=True)
def _lab(folder: str, weights: str, stamp: Stamp) -> Lab:
    return Lab(load_checkpoint(Path(folder), weights=Path(folder) / weights))


def _key(snapshot: Snapshot) -> tuple[str, Stamp]:
    return str(snapshot.path), snapshot.stamp
