"""The costs of a plan, in a line beside the button and in full: parameters, memory, steps an epoch, time."""

import streamlit as st

from pages.shared import wording
from pages.shared.context import say, sentence
from pages.shared.exhibit import exhibit
from pages.shared.guard import guard, guarded_fragment
from pages.train import measuring
from pages.train.costs import Costs, measured, measured_alone, size
from pages.train.previews import text_of
from pages.train.start import elsewhere
from pages.training import durations
from pages.training.plan_fields import NO_STEP_LIMIT
from pages.training.plans import Plan
from pages.training.train_state import memory
from transformer.config import TrainConfig
from transformer.interventions.names import plural
from transformer.runs.benchmark import Benchmark, forecast
from transformer.views import subjects
from transformer.views.training.plan import LearningRate, MemoryData, TrainingMemory

LOOK_EVERY_S = 0.7


def forecast_line(plan: Plan, found: Costs) -> None:
    """Renders parameters, memory, steps an epoch and time in two lines; measures the time meanwhile if it may."""
    waits = measured(found) is None and (found.is_light or memory().measure == found.work)
    guarded_fragment("The estimate", _lines, every=LOOK_EVERY_S if waits else None)(plan, found, waits)


@guard("The estimate")
def costs_panel(plan: Plan, found: Costs) -> None:
    """Renders every cost with what it counts, and the learning rate step by step."""
    train = plan.configs()[1]
    known = measured(found)

    def draw(data: MemoryData) -> None:
        needed = data.memory
        rows = [
            ("Parameters", f"{data.parameters:,}", "all trained numbers; a shared matrix counts once"),
            (
                "Memory",
                size(needed.total),
                f"weights {size(needed.weights)}, gradients {size(needed.gradients)}, the optimiser's means "
                f"{size(needed.optimizer)}, and about {size(needed.activations)} that the forward pass of a full batch "
                f"keeps for the backward pass; the program itself, about 400 MB, not counted. {size(found.free)} are "
                "free",
            ),
            ("Steps per epoch", _count(found.steps_an_epoch), _epochs(found, train)),
            *_time_rows(known, train),
        ]
        lines = [f"| {a} | **{b}** | {wording.plain(c)} |" for a, b, c in rows]
        st.markdown("\n".join(["| quantity | amount | details |", "|---|---:|---|", *lines]))

    exhibit(subjects.Plan(found.model, train), TrainingMemory(width=found.width), draw=draw)
    if not isinstance(known, Benchmark):
        st.caption("The time appears here once it has been measured.")
    st.markdown("## The learning rate, step by step")
    schedule_curve(plan, found, key="in-full")


@guard("The learning rate")
def schedule_curve(plan: Plan, found: Costs, *, key: str = "") -> None:
    """Renders the learning rate over the run."""
    train = plan.configs()[1]
    last = max(2, int(plan.steps if plan.steps is not None else _steps_by_clock(found, train)))
    exhibit(subjects.Plan(found.model, train), LearningRate(last=last), key=key)


def _lines(plan: Plan, found: Costs, waits: bool) -> None:
    train = plan.configs()[1]
    known = measured(found)
    if waits and known is not None:
        st.rerun()
    st.caption(
        wording.plain(
            f"{found.parameters:,} parameters · {size(found.memory.total)} of memory · "
            f"{_count(found.steps_an_epoch)} steps per epoch"
        )
    )
    if not found.fits:
        say(
            f"This needs about {size(found.memory.total)} of memory and {size(found.free)} are free: take smaller "
            "sizes or fewer tokens per batch."
        )
    match known:
        case Benchmark():
            st.markdown(wording.plain(sentence(durations.said(train, known, beside=found.beside))))
        case str():
            say(f"The time could not be measured: {known}.")
        case None if waits:
            measuring.begin(found.work, text_of(plan).tokenizer, memory().watcher)
            st.caption(_waiting(plan))
        case None:
            if alone := measured_alone(found):
                st.markdown(wording.plain(sentence(durations.said(train, alone, after=found.beside))))
                st.caption(wording.plain(f"The time beside {' and '.join(found.beside)} is not measured here yet."))
            else:
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
        verb = "is" if len(found.beside) == 1 else "are"
        return f": {wording.plain(wording.listed(found.beside))} {verb} training, and would share the cores with it"
    heavy = f": even a few steps of this size take {size(found.memory.total)} of memory"
    return heavy if measuring.is_unasked() else ""


def _time_rows(known: Benchmark | str | None, train: TrainConfig) -> list[tuple[str, str, str]]:
    if not isinstance(known, Benchmark):
        return []
    found, estimate = forecast(known, train), durations.estimate_of(known, train)
    how = f"on {known.device} in {known.precision}, {known.threads} {plural(known.threads, 'thread')}"
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
    times = f"{_count(epochs)} times" if epochs >= 1 else f"to {100 * epochs:.2g} %"
    return f"in which every pair is seen once; {train.max_steps:,} steps go through the pairs {times}"


def _steps_by_clock(found: Costs, train: TrainConfig) -> int:
    known = measured(found)
    if isinstance(known, Benchmark):
        return forecast(known, train).steps
    return max(1_000, 10 * train.warmup_steps)


def _count(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"
