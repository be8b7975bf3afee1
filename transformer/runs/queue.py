"""The queue of runs. Only so many work at once; the others wait, and visitors take turns.

The queue is on disk: a run waits by its status.json, and its ticket.json says for whom and since when. Whichever
process calls `start_waiting` starts what there is room for: the app on every visit and every other second, and each
trainer as its last act. A trainer in the foreground of a terminal does not wait, but counts as one at work.
"""

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from transformer.checkpoints.settings import CheckpointError
from transformer.files import read_json, runs_folder, write_json
from transformer.locks import holding
from transformer.runs.launch import launch
from transformer.runs.quota import Ticket, check_quota, read_ticket, write_ticket
from transformer.runs.run_lock import check_startable, claim, usable_cpus
from transformer.runs.status import (
    WAITING,
    RunError,
    State,
    Status,
    read_status,
    run_folder,
    run_ids,
    status,
    write_status,
)

LIMIT = "ATTENTION_LAB_MAX_RUNS"
"""The number of runs that may work at once; not set: one for each CPU."""
_LOCK, _TURNS = ".queue.lock", ".turns.json"


@dataclass(frozen=True)
class Waiting:
    """A run that waits for its turn."""

    run_id: str
    ticket: Ticket


def max_runs() -> int:
    """Returns how many runs may work at once; raises RunError for a setting that is not a number."""
    text = os.environ.get(LIMIT, "").strip()
    if not text:
        return usable_cpus()
    if not text.isdecimal() or int(text) < 1:
        raise RunError(f"{LIMIT} ({text!r}) must be a whole number of at least 1, or not be set")
    return int(text)


def enqueue(run_id: str, owner: str = "") -> None:
    """Puts a run at the end of its owner's queue. RunError for one that is at work, waits or has finished."""
    check_quota(owner)
    with holding(runs_folder() / _LOCK):
        folder, now = run_folder(run_id), status(run_id)
        check_startable(run_id, now)
        write_ticket(folder, owner, now.elapsed_s)
        waits = Status(state="queued", phase=WAITING, heartbeat=time.time(), step=now.step, elapsed_s=now.elapsed_s)
        write_status(folder, waits)


def cancel(run_id: str, state: State) -> bool:
    """Takes a waiting run out of the queue and leaves it in this state; False where it does not wait (any more)."""
    with holding(runs_folder() / _LOCK):
        folder = run_folder(run_id)
        now = read_status(folder)
        if now.waiting:
            write_status(folder, replace(now, state=state, phase="", reason="asked" if state == "stopped" else ""))
        return now.waiting


def start_waiting() -> list[str]:
    """Starts as many of the waiting runs as there is room for, in their order; their ids."""
    root, started = runs_folder(), []
    if not any(read_status(root / run_id).waiting for run_id in run_ids(root)):
        return []
    with holding(root / _LOCK):
        while True:
            working, waiting = _survey(root)
            order = in_order(waiting, _owners(root, working), _turns(root))
            order = [run_id for run_id in order if run_id not in started]
            if not order or len(working) >= max_runs():
                return started
            _start(root, order[0])
            started.append(order[0])


def place(run_id: str) -> int:
    """A waiting run's place in the order of starts, 1 for the next one; 0 where it does not wait."""
    root = runs_folder()
    working, waiting = _survey(root)
    order = in_order(waiting, _owners(root, working), _turns(root))
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


def _start(root: Path, run_id: str) -> None:
    folder = root / run_id
    owner = read_ticket(folder).owner
    try:
        claimed = claim(run_id, waiting=True)
    except (RunError, CheckpointError) as error:
        _give_up(folder, str(error))
        return
    try:
        launch(folder, claimed.threads, claimed.lock)
        write_json(root / _TURNS, _turns(root) | {owner: time.time()})
    except OSError as error:
        _give_up(folder, f"the trainer could not be started: {error.strerror or error}")
    finally:
        os.close(claimed.lock)


def _give_up(folder: Path, sentence: str) -> None:
    write_status(folder, replace(read_status(folder), state="failed", phase="", error=sentence))


def _survey(root: Path) -> tuple[list[str], list[Waiting]]:
    """The runs at work, and those that wait."""
    working, waiting = [], []
    for run_id in run_ids(root):
        if not read_status(root / run_id).active:
            continue
        now = status(run_id)
        if now.waiting:
            waiting.append(Waiting(run_id, read_ticket(root / run_id)))
        elif now.active:
            working.append(run_id)
    return working, waiting


def _owners(root: Path, run_ids: Sequence[str]) -> Counter[str]:
    return Counter(read_ticket(root / run_id).owner for run_id in run_ids)


def _turns(root: Path) -> dict[str, float]:
    return {owner: at for owner, at in read_json(root / _TURNS).items() if isinstance(at, int | float)}
