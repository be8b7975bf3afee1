"""The queue of runs. Only so many work at once; the others wait, and visitors take turns.

The queue is on disk: a run waits by its status.json, and its ticket.json says for whom and since when. Whichever
process calls `start_waiting` starts what there is room for: the app on every visit and every other second, and each
trainer as its last act. A trainer in the foreground of a terminal does not wait, but counts as one at work. Work that
is no run, such as an experiment, waits and counts in the same way: `place_at_work`.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from transformer.access import audit
from transformer.access.people import acting, for_the_operator
from transformer.checkpoints.settings import CheckpointError
from transformer.files import disk_refusal, read_json, runs_folder, write_json
from transformer.locks import holding
from transformer.runs.launch import launch
from transformer.runs.limits.places import PLACE, asked_place, grant, is_granted, is_place, places, work_in
from transformer.runs.limits.quota import Ticket, check_quota, check_waiting, read_ticket, write_ticket
from transformer.runs.run_lock import check_startable, claim, usable_cpus
from transformer.runs.status import (
    WAITING,
    RunError,
    State,
    Status,
    own_folder,
    read_status,
    run_ids,
    status,
    write_status,
)

LIMIT = "ATTENTION_LAB_MAX_RUNS"
"""The number of runs that may work at once; not set: one for each CPU."""
_LOCK, _TURNS = ".queue.lock", ".turns.json"
_LOOK_S = 0.25


@dataclass(frozen=True)
class Waiting:
    """A run that waits for its turn, or other work that waits for a place."""

    run_id: str
    """The name of the run, or of the place's file: no run can have that."""
    ticket: Ticket


def max_runs() -> int:
    """Returns how many runs may work at once; raises RunError for a setting that is not a number."""
    text = os.environ.get(LIMIT, "").strip()
    if not text:
        return usable_cpus()
    if not text.isdecimal() or int(text) < 1:
        raise RunError(f"{LIMIT} ({text!r}) must be a whole number of at least 1, or not be set")
    return int(text)


def enqueue(run_id: str) -> None:
    """Puts a run at the end of its owner's queue. RunError for one that is at work, waits or has finished."""
    owner = read_ticket(own_folder(run_id)).owner or acting().id
    check_room(owner)
    with holding(runs_folder() / _LOCK):
        folder, now = own_folder(run_id), status(run_id)
        check_startable(run_id, now)
        check_waiting(owner, _waiting_of(owner))
        write_ticket(folder, owner, now.elapsed_s)
        waits = Status(state="queued", phase=WAITING, heartbeat=time.time(), step=now.step, elapsed_s=now.elapsed_s)
        write_status(folder, waits)
    audit.record("start" if now.step == 0 else "resume", folder)


def check_room(owner: str, *, runs: int = 1) -> None:
    """RunError where this owner may not add so many runs: a quota is used up, too many wait, or the disk is full."""
    check_quota(owner)
    if refusal := disk_refusal():
        raise RunError(refusal)
    if PLACE not in os.environ:  # an experiment's own runs have its place in the queue
        check_waiting(owner, _waiting_of(owner), adding=runs)


def cancel(run_id: str, state: State) -> bool:
    """Takes a waiting run out of the queue and leaves it in this state; False where it does not wait (any more)."""
    with holding(runs_folder() / _LOCK):
        folder = own_folder(run_id)
        now = read_status(folder)
        if now.waiting:
            write_status(folder, replace(now, state=state, phase="", reason="asked" if state == "stopped" else ""))
        return now.waiting


@for_the_operator
def start_waiting() -> list[str]:
    """Starts as much of what waits as there is room for, in its order; the ids of runs and names of places."""
    root, started = runs_folder(), []
    if not _survey(root)[1]:
        return []
    with holding(root / _LOCK):
        while True:
            working, waiting = _survey(root)
            order = [run_id for run_id in in_order(waiting, working, _turns(root)) if run_id not in started]
            if not order or working.total() >= max_runs():
                return started
            (first,) = (one for one in waiting if one.run_id == order[0])
            _start(root, first)
            started.append(first.run_id)


@contextmanager
def place_at_work(while_waiting: Callable[[], object]) -> Iterator[tuple[dict[str, str], int]]:
    """A block that waits until it is its turn, as runs do, and then counts as a run at work.

    Yields what goes on to a process that does the work: its environment and a handle. What `while_waiting` raises ends
    it. RunError where the quota of whom the code runs for is used up.
    """
    owner = acting().id
    check_room(owner)
    try:
        with asked_place(owner) as (path, handle):
            start_waiting()
            while not is_granted(path):
                while_waiting()
                time.sleep(_LOOK_S)
                start_waiting()
            yield {PLACE: str(path)}, handle
    finally:
        start_waiting()


@contextmanager
def working_at_once() -> Iterator[None]:
    """A block that does not wait, as in a terminal, but counts as a run at work; in its starter's place, if it has one.

    Afterwards it starts the runs that waited.
    """
    if given := os.environ.get(PLACE):
        work_in(Path(given))
        yield
        return
    try:
        with asked_place(acting().id, granted=True) as (path, _):
            work_in(path)
            yield
    finally:
        start_waiting()


@for_the_operator
def _waiting_of(owner: str) -> int:
    return sum(one.ticket.owner == owner for one in _survey(runs_folder())[1])


@for_the_operator
def place(run_id: str) -> int:
    """A waiting run's place in the order of starts, 1 for the next one; 0 where it does not wait."""
    root = runs_folder()
    working, waiting = _survey(root)
    order = in_order(waiting, working, _turns(root))
    return order.index(run_id) + 1 if run_id in order else 0


def in_order(waiting: Sequence[Waiting], working: Mapping[str, int], turns: Mapping[str, float]) -> list[str]:
    """The order in which waiting runs start: the next one is always of the owner with the fewest runs at work.

    Among equals it is the turn of whoever was last served longest ago, and an owner's own runs start as they were asked
    for. `working` counts the runs at work by owner; `turns` says when each owner was last served.
    """
    left = sorted(waiting, key=lambda one: (one.ticket.asked, one.run_id))
    working, turns, order = Counter(working), dict(turns), []
    latest = max(turns.values(), default=0.0)
    while left:
        # min keeps the first of equals, and `left` is sorted by when each was asked for.
        chosen = min(left, key=lambda one: (working[one.ticket.owner], turns.get(one.ticket.owner, 0.0)))
        owner = chosen.ticket.owner
        working[owner] += 1
        latest += 1.0
        turns[owner] = latest
        left.remove(chosen)
        order.append(chosen.run_id)
    return order


def _start(root: Path, first: Waiting) -> None:
    folder, served = root / first.run_id, _turns(root) | {first.ticket.owner: time.time()}
    if is_place(folder):
        grant(folder)
        write_json(root / _TURNS, served)
        return
    try:
        claimed = claim(first.run_id, waiting=True)
    except (RunError, CheckpointError) as error:
        _give_up(folder, str(error))
        return
    try:
        launch(folder, claimed.threads, claimed.lock)
        write_json(root / _TURNS, served)
    except OSError as error:
        _give_up(folder, f"the trainer could not be started: {error.strerror or error}")
    finally:
        os.close(claimed.lock)


def _give_up(folder: Path, sentence: str) -> None:
    write_status(folder, replace(read_status(folder), state="failed", phase="", error=sentence))


def _survey(root: Path) -> tuple[Counter[str], list[Waiting]]:
    """How many runs and experiments of each owner are at work, and those that wait."""
    working: Counter[str] = Counter()
    waiting, pids = [], set()
    for place in places():
        if place.granted:
            working[place.ticket.owner] += 1
            pids.add(place.pid)
        else:
            waiting.append(Waiting(str(place.path.relative_to(root)), place.ticket))
    for run_id in run_ids(root):
        if not read_status(root / run_id).active:
            continue
        now, ticket = status(run_id), read_ticket(root / run_id)
        if now.waiting:
            waiting.append(Waiting(run_id, ticket))
        elif now.active and (now.pid is None or now.pid not in pids):  # an experiment's own run has its place
            working[ticket.owner] += 1
    return working, waiting


def _turns(root: Path) -> dict[str, float]:
    return {owner: at for owner, at in read_json(root / _TURNS).items() if isinstance(at, int | float)}
