"""What a plan will take, said beside the button, and drawn in full: parameters, memory, steps an epoch, time."""

import numpy as np
import streamlit as st

from pages.shared import wording
from pages.shared.context import is_dark
from pages.shared.controls import say
from pages.train import measuring
from pages.train.costs import Costs, measured, size
from pages.train.export_plan import take_course_away
from pages.train.plan_checks import check_costs, check_course
from pages.train.previews import text_of
from pages.train.start import elsewhere
from pages.training import durations
from pages.training.plan_fields import NO_STEP_LIMIT
from pages.training.plans import Plan
from pages.training.train_state import memory
from transformer.config import TrainConfig
from transformer.figures.training.plan import schedule_figure
from transformer.runs.benchmark import Benchmark, forecast
from transformer.training.schedule import learning_rate

LOOK_EVERY_S = 0.7
_POINTS = 200


def forecast_line(plan: Plan, found: Costs) -> None:
    """Parameters, memory, steps an epoch and time, in two lines; the time is measured meanwhile where it can be."""
    waits = measured(found) is None and (found.is_light or memory().measure == found.work)
    st.fragment(_lines, run_every=LOOK_EVERY_S if waits else None)(plan, found, waits)


def costs_panel(plan: Plan, found: Costs) -> None:
    """Every cost with what it counts, and the course of the learning rate."""
    train, needed = plan.configs()[1], found.memory
    known = measured(found)
    rows = [
        ("Parameters", f"{found.parameters:,}", "all trained numbers; a shared matrix counts once"),
        (
            "Memory",
            size(needed.total),
            f"weights {size(needed.weights)}, gradients {size(needed.gradients)}, Adam's two means "
            f"{size(needed.optimizer)}, and {size(needed.activations)} that the forward pass of a full batch keeps "
            f"for the backward pass; the program itself, about 400 MB, not counted. {size(found.free)} are free",
        ),
        (
            "Steps an epoch",
            f"{found.steps_an_epoch:,.0f}" if found.steps_an_epoch >= 10 else f"{found.steps_an_epoch:.2g}",
            _epochs(found, train),
        ),
        *_time_rows(known, train),
    ]
    lines = [
        "| what | how much | of which |",
        "|---|---:|---|",
        *(f"| {a} | **{b}** | {wording.plain(c)} |" for a, b, c in rows),
    ]
    st.markdown("\n".join(lines))
    if not isinstance(known, Benchmark):
        st.caption("The time shows up here once it has been measured.")
    check_costs(plan, found)
    st.markdown("##### The learning rate, step by step")
    schedule_curve(plan, found, key="schedule-in-full")


def schedule_curve(plan: Plan, found: Costs, *, key: str = "schedule-curve") -> None:
    """The course of the learning rate over the run."""
    train = plan.configs()[1]
    last = max(2, int(plan.steps if plan.steps is not None else _steps_by_clock(found, train)))
    steps = np.unique(np.linspace(1, last, _POINTS).astype(int))
    course = {"kind": train.schedule, "peak": train.learning_rate, "warmup_steps": train.warmup_steps}
    rates = np.array([learning_rate(int(step), **course, max_steps=train.max_steps) for step in steps])
    figure = schedule_figure(steps, rates, warmup_steps=train.warmup_steps, dark=is_dark())
    st.plotly_chart(figure, key=key, theme=None, width="stretch", config={"displayModeBar": False})
    with st.container(horizontal=True, gap="small"):
        check_course(steps, rates, train, key=f"proof-{key}")
        take_course_away(train, last, _POINTS, key=f"take-{key}")


def _lines(plan: Plan, found: Costs, waits: bool) -> None:
    train = plan.configs()[1]
    known = measured(found)
    if waits and known is not None:
        st.rerun()
    st.caption(
        wording.plain(
            f"{found.parameters:,} parameters · {size(found.memory.total)} of memory · "
            f"{_several(found.steps_an_epoch)} an epoch"
        )
    )
    if not found.fits:
        say(
            f"This needs about {size(found.memory.total)} of memory and {size(found.free)} are free: take smaller "
            "sizes or fewer tokens a batch."
        )
    match known:
        case Benchmark():
            said = durations.said(train, known, beside=found.beside)
            st.markdown(wording.plain(f"{said[:1].upper()}{said[1:]}."))
        case str():
            say(f"The time could not be measured: {known}.")
        case None if waits:
            measuring.measurements().begin(found.work, text_of(plan).tokenizer, owner=memory())
            st.caption(_waiting(plan))
        case None:
            shipped = elsewhere(plan)
            st.caption(f"The time is not measured here yet{_because(found)}{f'; {shipped}' if shipped else ''}.")
            st.button("Measure a few steps", key="measure", icon=":material/timer:", on_click=_measure, args=(found,))


def _measure(found: Costs) -> None:
    memory().measure = found.work


def _waiting(plan: Plan) -> str:
    shipped = elsewhere(plan)
    return f":material/timer: Measuring a few steps here …{f' ({shipped})' if shipped else ''}"


def _because(found: Costs) -> str:
    if found.beside:
        return f": {wording.plain(' and '.join(found.beside))} is training, and both would share the cores"
    heavy = f": even a few steps of this size take {size(found.memory.total)} of memory"
    return heavy if measuring.is_unasked() else ""


def _time_rows(known: Benchmark | str | None, train: TrainConfig) -> list[tuple[str, str, str]]:
    if not isinstance(known, Benchmark):
        return []
    found, estimate = forecast(known, train), durations.estimate_of(known, train)
    how = f"on {known.device} in {known.precision}, {known.threads} thread{'s' * (known.threads != 1)}"
    parts = (
        f"{found.steps:,} steps at {durations.each(known.step_s)} (measured over {known.steps} {how}) and "
        f"{found.evaluations:,} evaluations at {durations.each(known.evaluation_s)}, saving included"
    )
    return [
        ("Training", durations.duration(estimate.training_s), parts),
        ("Held-out pairs", durations.duration(estimate.scoring_s), "translated and scored once at the end"),
    ]


def _epochs(found: Costs, train: TrainConfig) -> str:
    epochs = train.max_steps / found.steps_an_epoch
    if train.max_seconds is not None and train.max_steps >= NO_STEP_LIMIT:
        return "in which every pair is seen once; the clock ends the run"
    often = f"{epochs:,.0f}" if epochs >= 10 else f"{epochs:.2g}"
    times = f"{often} times" if epochs >= 1 else f"to {100 * epochs:.2g} %"
    return f"in which every pair is seen once; {train.max_steps:,} steps go through the pairs {times}"


def _steps_by_clock(found: Costs, train: TrainConfig) -> int:
    known = measured(found)
    if isinstance(known, Benchmark):
        return forecast(known, train).steps
    return max(1_000, 10 * train.warmup_steps)


def _several(steps: float) -> str:
    shown = f"{steps:,.0f}" if steps >= 10 else f"{steps:.2g}"
    return f"{shown} steps"
