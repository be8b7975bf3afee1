"""Starts, pauses and drops both runs of a race."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

from pages.race.choices import PAGE, PLACES, Place
from pages.training.live import short_runs
from pages.training.live.short_runs import attempt, is_over
from transformer.runs import run_folder
from transformer.runs.run_folder import Run
from transformer.runs.status import RunError

Lanes = dict[Place, Run | None]


def current_runs() -> Lanes:
    """Returns the run of each side; None before the first race, and where it was deleted."""
    return {"left": short_runs.find(PAGE.now.left_run), "right": short_runs.find(PAGE.now.right_run)}


def both(lanes: Lanes) -> list[Run]:
    """Returns the two runs of a race; none where one of them is not there."""
    found = [run for run in lanes.values() if run is not None]
    return found if len(found) == len(PLACES) else []


def start() -> None:
    """Starts both runs, or goes on with those that were paused; for callbacks."""
    paused = [run.id for run in both(current_runs()) if run.resumable and not is_over(run)]
    attempt(PAGE, (lambda: _start(*paused)) if paused else _begin)


def pause() -> None:
    """Pauses both runs; for callbacks."""

    def pause_both() -> None:
        for run in current_runs().values():
            if run is not None and run.status.active:
                with suppress(RunError):  # it ended a moment ago
                    run_folder.pause(run.id)

    attempt(PAGE, pause_both)


def race_again() -> None:
    """Starts the same race with the next seed; for callbacks."""
    PAGE.change(seed=(PAGE.now.seed + 1) % 1000)
    attempt(PAGE, _begin)


def turn(**changes: Any) -> None:
    """Turns knobs, which drops the race on show: the new one begins with its own question. For callbacks."""
    before = [*current_runs().values()]
    PAGE.change(left_run="", right_run="", **changes)
    attempt(PAGE, lambda: short_runs.abandon(before))


def turn_side(place: Place, **changes: Any) -> None:
    """Turns knobs of one side; for callbacks."""
    turn(**{place: replace(PAGE.now.racer(place), **changes)})


def _begin() -> None:
    before = [*current_runs().values()]
    left, right = short_runs.create(*(PAGE.now.plan(place) for place in PLACES))
    short_runs.abandon(before)
    PAGE.change(left_run=left, right_run=right)
    _start(left, right)


def _start(*run_ids: str) -> None:
    for run_id in run_ids:
        run_folder.start(run_id)
