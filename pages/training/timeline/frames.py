"""One sentence through every snapshot of a run: what each wrote and where its heads looked, computed once and kept."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import streamlit as st
from jaxtyping import Float
from numpy import ndarray
from safetensors import SafetensorError, safe_open

from transformer.checkpoints.settings import WEIGHTS_FILE
from transformer.checkpoints.store import CheckpointError, load_checkpoint
from transformer.lab import Attention, AttentionKind, Inspection, Lab
from transformer.runs import run_folder
from transformer.runs.run_folder import Run
from transformer.text.tokenizer import BOS, PAD

MOST_ROWS = 40
"""Rows of a decoder's attention that are kept of a pass: what an untrained model writes has no end."""

Stamp = tuple[int, int]


@dataclass(frozen=True)
class Snapshot:
    """Weights kept on the way, or those that the run offers now."""

    step: int
    path: Path
    stamp: Stamp
    newest: bool
    """Whether these are the run's own weights file."""


@dataclass(frozen=True)
class Take:
    """A sentence decoded by one snapshot. Read-only; shared by all visitors."""

    tokens: tuple[str, ...]
    """What was written, its end mark included."""
    ids: tuple[int, ...]
    translation: str
    probabilities: Float[ndarray, "token"]
    ended: bool
    attention: Mapping[AttentionKind, Attention]
    """At most MOST_ROWS rows of the decoder's kinds."""

    @property
    def loss(self) -> float:
        """Cross-entropy of the written tokens in nats each."""
        return float(-np.log(np.maximum(self.probabilities, 1e-30)).mean())


@dataclass(frozen=True)
class Frame:
    """One step of the film."""

    step: int
    own: Take
    """The snapshot's own translation, and the pass that wrote it."""
    forced: Take | None
    """The same snapshot made to write the goal; None where that is not computed yet."""


@dataclass
class Timeline:
    """The frames of one sentence in one run as far as they are computed; a visitor's."""

    run: str = ""
    text: str = ""
    goal: tuple[int, ...] = ()
    """Ids of the newest output when it was last set: what every snapshot is forced to write, to be compared."""
    goal_step: int = -1
    own: dict[tuple[str, Stamp], Take] = field(default_factory=dict)
    forced: dict[tuple[str, Stamp], Take] = field(default_factory=dict)
    broken: dict[tuple[str, Stamp], str] = field(default_factory=dict)
    """Snapshots that cannot be used, and why."""
    spent_s: float = 0.0
    """Time that went into `own` and `forced`."""

    def frames(self, found: Sequence[Snapshot]) -> list[Frame]:
        """What there is to show, by step."""
        return [
            Frame(snapshot.step, self.own[_key(snapshot)], self.forced.get(_key(snapshot)))
            for snapshot in found
            if _key(snapshot) in self.own
        ]

    def missing(self, found: Sequence[Snapshot]) -> list[tuple[Snapshot, bool]]:
        """What is left to compute, in the order in which a visitor wants it; True for a forced take."""
        usable = [snapshot for snapshot in found if _key(snapshot) not in self.broken]
        takes = [(snapshot, forced) for snapshot in halving(usable) for forced in (False, True)]
        return [
            (snapshot, forced)
            for snapshot, forced in takes
            if (bool(self.goal) and _key(snapshot) not in self.forced if forced else _key(snapshot) not in self.own)
        ]

    def left_s(self, found: Sequence[Snapshot]) -> float:
        """Seconds that what is missing will take, by what was computed so far."""
        done = len(self.own) + len(self.forced)
        return self.spent_s / done * len(self.missing(found)) if done else 0.0


def snapshots_of(run: Run) -> list[Snapshot]:
    """The weights of a run by step, the newest last. Steps that a resumed run has not reached again are left out."""
    reached = run.status.step if run.status.active else None
    kept = [
        Snapshot(step, path, stamp, False)
        for step, path in run_folder.snapshots(run.id).items()
        if (stamp := _stamp(path)) is not None and (reached is None or step <= reached)
    ]
    path = run.folder / WEIGHTS_FILE
    stamp = _stamp(path)
    if stamp is None:
        return kept
    newest = Snapshot(_step_of(str(path), stamp), path, stamp, True)
    last = kept[-1].step if kept else -1
    same = newest.step == last and run.settings.train.final_weights == "latest"
    if newest.step >= last and not same and (reached is None or newest.step <= reached or not kept):
        kept = [snapshot for snapshot in kept if snapshot.step != newest.step] + [newest]
    return kept


def newest_step(run: Run) -> int | None:
    """The step of the weights that can be looked into now; None where there are none."""
    path = run.folder / WEIGHTS_FILE
    return step_of(path) if path.is_file() else None


def step_of(path: Path) -> int:
    """The step that a file of weights says it is of; 0 where it says none."""
    stamp = _stamp(path)
    return 0 if stamp is None else _step_of(str(path), stamp)


def advance(reel: Timeline, run: Run, found: Sequence[Snapshot], *, budget_s: float) -> None:
    """Computes takes for about this long, at least the newest one. ValueError for a text that cannot be read."""
    known = {_key(snapshot) for snapshot in found}
    for takes in (reel.own, reel.forced):
        for key in takes.keys() - known:  # weights of a run at work that were replaced since
            del takes[key]
    _set_goal(reel, run, found)
    start = time.monotonic()
    while (missing := reel.missing(found)) and (not reel.own or time.monotonic() - start < budget_s):
        snapshot, forced = missing[0]
        before = time.monotonic()
        try:
            _compute(reel, run, snapshot, forced=forced)
        except (CheckpointError, OSError) as error:
            reel.broken[_key(snapshot)] = str(error)
        reel.spent_s += time.monotonic() - before
        _set_goal(reel, run, found)


def halving(items: Sequence[Snapshot]) -> Iterator[Snapshot]:
    """The last item, the first, then always the middle of the widest gap: a film that can be seen from the start."""
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


def _set_goal(reel: Timeline, run: Run, found: Sequence[Snapshot]) -> None:
    """Takes the newest output as the goal; of a run at work only when its step has doubled since."""
    if not found or _key(found[-1]) not in reel.own:
        return
    newest, ids = found[-1], reel.own[_key(found[-1])].ids
    if {PAD, BOS} & set(ids):  # an untrained model may write what no sentence holds, and it cannot be forced
        return
    if ids == reel.goal or (run.status.active and reel.goal and newest.step < 2 * reel.goal_step):
        return
    reel.goal, reel.goal_step = ids, newest.step
    reel.forced.clear()


def _compute(reel: Timeline, run: Run, snapshot: Snapshot, *, forced: bool) -> None:
    key = _key(snapshot)
    goal = reel.goal if forced else ()
    if forced and reel.own[key].ids == goal:
        reel.forced[key] = reel.own[key]  # the very pass that would be computed
        return
    take = _take(str(run.folder), str(snapshot.path), snapshot.stamp, reel.text, goal)
    (reel.forced if forced else reel.own)[key] = take


@st.cache_resource(max_entries=300, show_spinner=False)
def _take(folder: str, path: str, stamp: Stamp, text: str, goal: tuple[int, ...]) -> Take:
    lab = _lab(folder, path, stamp)
    seen = lab.inspect(text, forced=dict(enumerate(goal)))
    return Take(
        tokens=seen.target_tokens,
        ids=seen.target_ids,
        translation=seen.translation,
        probabilities=seen.probabilities,
        ended=seen.ended,
        attention={kind: _cropped(seen, kind) for kind in AttentionKind},
    )


@st.cache_resource(max_entries=3, show_spinner=False)
def _lab(folder: str, path: str, stamp: Stamp) -> Lab:
    return Lab(load_checkpoint(Path(folder), weights=Path(path)))


@st.cache_data(max_entries=256, show_spinner=False)
def _step_of(path: str, stamp: Stamp) -> int:
    """The step in a weights file's notes; no tensor is read."""
    try:
        with safe_open(path, framework="np") as file:
            step = (file.metadata() or {}).get("step", "0")
    except (SafetensorError, OSError):
        return 0
    return int(step) if step.isdecimal() else 0


def _cropped(seen: Inspection, kind: AttentionKind) -> Attention:
    whole = seen.attention(kind)
    if kind == "encoder_self" or len(whole.queries) <= MOST_ROWS:
        return whole
    columns = MOST_ROWS if kind != "cross" else len(whole.keys)
    return replace(
        whole,
        weights=whole.weights[:, :, :MOST_ROWS, :columns].copy(),
        mask=whole.mask[:, :MOST_ROWS, :columns].copy(),
        queries=whole.queries[:MOST_ROWS],
        keys=whole.keys[:columns],
    )


def _key(snapshot: Snapshot) -> tuple[str, Stamp]:
    return str(snapshot.path), snapshot.stamp


def _stamp(path: Path) -> Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
