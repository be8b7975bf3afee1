"""Runs an experiment in the background, in a process of its own, when it is its turn in the queue of runs."""

import os
import subprocess
import sys
import tempfile
import time
from functools import partial

import streamlit as st

from pages.paper_lab.choices import PAGE
from pages.shared.background import Background, Tell, Work
from pages.shared.context import say, sentence
from pages.shared.waiting import follow_work, session_watcher
from pages.shared.wording import duration
from transformer.access.people import PERSON, acting
from transformer.experiments.estimate import estimated_s
from transformer.experiments.experiment import Budget, Experiment
from transformer.experiments.results import ExperimentError, load_results, own_file, read_results
from transformer.runs.launch import own_environment
from transformer.runs.queue import place_at_work

_LOOK_S = 0.25
_MEASURING: set[tuple[str, str, str]] = set()
"""The experiments that are being measured on this server; others wait for their turn."""
_MOST_ASKED = 32
"""Experiments that may be measured or wait at a time; any more begin to wait when one of these is over."""


@st.cache_resource
def works() -> Background:
    """Returns the background worker of this server."""
    return Background("paper-lab", at_once=_MOST_ASKED, kept=0)


def render_run_here(experiment: Experiment) -> None:
    """Renders the choice of a budget, what it takes, and the button; or the progress of one that runs."""
    st.markdown("## Run it here")
    watcher = session_watcher()
    for budget in experiment.budgets:
        work = works().find(_key(experiment, budget))
        if work is not None and not work.over.is_set():
            work.join(watcher)
            follow_work(
                work,
                f"{experiment.title}, {budget.name}",
                partial(_stop, experiment, budget),
                key="lab-stop",
                name="stop",
                waits_for=partial(_place_text, experiment, budget),
                at_end=partial(_take_outcome, budget, work),
            )
            return
    names = {each.name: f"{each.name.capitalize()}: {each.says}" for each in experiment.budgets}
    key = f"lab-run-budget-{experiment.name}"  # the browser would look for another experiment's label among these
    name = st.radio("Budget", list(names), index=len(names) - 1, format_func=names.__getitem__, key=key)
    budget = experiment.budget(name)
    done = n_measured(experiment, budget)
    total = len(experiment.plan(budget))
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        if done == total or is_damaged(experiment, budget):
            already = "You've run this. Select *Measured here* to see it."
            st.markdown(already if done == total else "The measurements made here can't be used.")
            st.button("Run again", key="lab-again", on_click=_again, args=(experiment, budget))
        else:
            st.button(
                "Continue" if done else "Run it here",
                type="primary",
                icon=":material/play_arrow:",
                key="lab-run",
                on_click=_start,
                args=(experiment, budget),
            )
            started = f"{done:,} of {total:,} measured so far. " if done else ""
            st.caption(
                f"{started}{_time_text(experiment, budget, 1 - done / total)}You can go on reading, or stop it and "
                "continue later.",
                width="content",
            )
    if refusal := st.session_state.pop("lab-refusal", ""):
        say(refusal)


def _time_text(experiment: Experiment, budget: Budget, share: float) -> str:
    """Returns how long this share of a budget takes, as a sentence; empty without shipped numbers to judge by."""
    try:
        left = duration(estimated_s(experiment, budget) * share)
    except ExperimentError:
        return ""
    return f"About {left} on our test machine (one thread). "


def is_damaged(experiment: Experiment, budget: Budget) -> bool:
    """Tells whether the file of a budget's measurements here can be neither used nor continued."""
    path = own_file(experiment.name, budget.name)
    if not path.is_file():
        return False
    try:
        experiment.check(load_results(experiment.name, budget.name))
    except ExperimentError:
        return True
    return False


def n_measured(experiment: Experiment, budget: Budget) -> int:
    """Returns how many of a budget's measurements are in its file here."""
    if is_damaged(experiment, budget):
        return 0
    try:
        rows = read_results(own_file(experiment.name, budget.name)).rows
    except ExperimentError:
        return 0
    wanted = {(tuple(cell.items()), seed) for cell, seed in experiment.plan(budget)}
    return sum((tuple(row.cell.items()), row.seed) in wanted for row in rows)


def measure_in_background(experiment: Experiment, budget: Budget, tell: Tell) -> None:
    """Waits for its turn in the queue, then runs the command in a process of its own until it ends or nobody waits.

    ValueError with the last words of a command that fails, RunError where a quota is used up.
    """
    with place_at_work(while_waiting=lambda: tell(0.0)) as (place, handle):
        _MEASURING.add(key := _key(experiment, budget))
        try:
            _measure(experiment, budget, tell, place, handle)
        finally:
            _MEASURING.discard(key)


def _measure(experiment: Experiment, budget: Budget, tell: Tell, place: dict[str, str], handle: int) -> None:
    total = len(experiment.plan(budget))
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "transformer", "experiment", "run", experiment.name, "--budget", budget.name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            pass_fds=(handle,),
            env=os.environ | own_environment(threads=1) | place | {PERSON: acting().id},
        )
        try:
            while process.poll() is None:
                tell(n_measured(experiment, budget) / total)
                time.sleep(_LOOK_S)
        finally:
            process.kill()
            process.wait()
        if process.returncode:
            errors.seek(0)
            words = errors.read().strip().splitlines() or ["no reason given"]
            raise ValueError(f"the experiment ended early: {words[-1]}")


def _start(experiment: Experiment, budget: Budget) -> None:
    watcher = session_watcher()
    works().submit(_key(experiment, budget), lambda tell: measure_in_background(experiment, budget, tell), watcher)


def _again(experiment: Experiment, budget: Budget) -> None:
    own_file(experiment.name, budget.name).unlink(missing_ok=True)
    _start(experiment, budget)


def _place_text(experiment: Experiment, budget: Budget) -> str:
    """Returns what the work waits for; empty once it is being done."""
    return "" if _key(experiment, budget) in _MEASURING else "waiting in the queue of trainings"


def _take_outcome(budget: Budget, work: Work) -> None:
    """Shows what was measured, or keeps the reason why there is nothing."""
    if work.error is None:
        PAGE.change(budget=budget.name)
    elif not work.stopped:
        st.session_state["lab-refusal"] = sentence(str(work.error))


def _stop(experiment: Experiment, budget: Budget) -> None:
    works().cancel(_key(experiment, budget))


def _key(experiment: Experiment, budget: Budget) -> tuple[str, str, str]:
    """Returns the key of the work: each visitor's is their own, which nobody else sees or stops."""
    return acting().id, experiment.name, budget.name
