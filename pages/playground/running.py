"""Starts, pauses and replaces the run of the Playground."""

from typing import Any

from pages.playground.choices import PAGE, SLOW
from pages.training.live import short_runs
from pages.training.live.short_runs import attempt
from transformer.runs import run_folder
from transformer.runs.run_folder import Run


def current_run() -> Run | None:
    """Returns the run on show; None before the first, and where it was deleted."""
    return short_runs.find(PAGE.now.run)


def play() -> None:
    """Starts a run, or goes on with the one that was paused; for callbacks."""
    run = current_run()
    attempt(PAGE, _resume if run is not None and run.resumable else _begin)


def pause() -> None:
    """Pauses the run; for callbacks."""
    attempt(PAGE, lambda: run_folder.pause(PAGE.now.run))


def step() -> None:
    """Trains for a single step and pauses; for callbacks."""

    def one_step() -> None:
        run = current_run()
        if run is not None and run.resumable:
            _resume()
        else:
            _begin()
        run_folder.pause(PAGE.now.run)  # read after the first step of a trainer

    attempt(PAGE, one_step)


def restart() -> None:
    """Starts anew with the same knobs; for callbacks."""
    attempt(PAGE, _begin)


def turn(**changes: Any) -> None:
    """Turns knobs; a run that has begun is replaced at once by one with the new settings. For callbacks."""
    had_run = current_run() is not None
    PAGE.change(**changes)
    if had_run:
        attempt(PAGE, _begin)


def slow_down(slow: bool) -> None:
    """Lets a run take its time, or not; one at work does so from its next step on. For callbacks."""
    PAGE.change(slow=slow)
    run = current_run()
    if run is not None and run.status.active:
        attempt(PAGE, lambda: run_folder.hold_to(run.id, _pace()))


def _begin() -> None:
    short_runs.abandon([current_run()])
    (run_id,) = short_runs.create(PAGE.now.plan)
    PAGE.change(run=run_id)
    run_folder.start(run_id, _pace())


def _resume() -> None:
    run_folder.start(PAGE.now.run, _pace())


def _pace() -> float | None:
    return SLOW if PAGE.now.slow else None
