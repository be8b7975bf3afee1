"""The run of the Playground while it learns: buttons, curve, the visitor's string, and the clearest head."""

import streamlit as st

from pages.playground.choices import PAGE, Knobs
from pages.playground.controls import render_controls
from pages.playground.ending import Next, ending
from pages.playground.guess import ask, beside, is_asked
from pages.playground.running import current_run, turn
from pages.playground.trials import is_whole
from pages.shared.components.run_progress import draw_curve, draw_readings
from pages.shared.context import say
from pages.shared.exhibit import exhibit
from pages.shared.guard import guarded_fragment
from pages.shared.texts.catalogue import Texts
from pages.training import run_status
from pages.training.live.clearest import clearest_head, output_of, render_head
from pages.training.live.output import decoded, render_output
from pages.training.live.parts import CURVES, described_curves, described_state, live_part
from pages.training.live.reading import reading_of, render_field, render_note
from pages.training.live.settings import TEXTS as KNOBS
from pages.training.live.settings import race_parameters
from pages.training.live.short_runs import is_over, say_refusal, sweep_up
from transformer.runs.live.watched import LiveOutput
from transformer.runs.run_folder import Run
from transformer.views.subjects import Runs

TEXTS = Texts("playground")
EVERY_S = 5.0
"""The seconds between two looks at a run at work: what moves comes by its stream, and its end is reported at once."""


def live_panel() -> None:
    """Renders the run; while it is at work, its components follow it."""
    run = current_run()
    active = run is not None and run.status.active
    guarded_fragment("The run", _panel, every=EVERY_S if active else None)(PAGE.now, active)


def _panel(knobs: Knobs, was_active: bool) -> None:
    sweep_up()
    run = current_run()
    active = run is not None and run.status.active
    if active != was_active or PAGE.now != knobs:
        st.rerun()  # how often this is redrawn, and what the address says, is settled by a full run alone
    reading = reading_of(PAGE, [] if run is None else [run], PAGE.now.plan)
    text = reading.text
    render_controls(run)
    say_refusal(PAGE)
    with st.container(gap="xxsmall"):
        state = st.container(horizontal=True, gap="medium", key="playground-state")
        render_note(PAGE, reading, key="playground-note")
        left, right = st.columns([1, 1], gap="large")
    with left:
        with st.container(gap=None):  # what is shown while it computes takes no room
            snapshot = decoded(run, text)
        with state:
            _state(run, text, None if snapshot is None else output_of(snapshot))
        step = -1 if snapshot is None else snapshot.step
        with st.container(gap="xsmall"):
            with st.container(horizontal=True, gap="small", key="playground-output"):
                render_field(PAGE, key="playground-text", width=112)
                with st.container(width="stretch", gap=None):
                    render_output(run, text, snapshot, key="playground")
            with st.container(gap="xsmall", key="playground-head"):
                if run is None and is_asked(PAGE.now):
                    ask()
                elif run is None:
                    st.caption(TEXTS("head_here"))
                elif not text:
                    st.caption("–")
                if text:
                    render_head(snapshot, live_part(run, text, "head", step), key="playground")
    with right, st.container(key="playground-curve"):
        _curve(run, text)


def _state(run: Run | None, text: str, output: LiveOutput | None) -> None:
    """Renders where the run stands, or what it came to, in room that it always has, and the guess beside it."""
    with st.container(gap="xxsmall"):
        if run is None:
            st.markdown(TEXTS("intro", task=KNOBS(f"tasks.{PAGE.now.task}")))
        elif run.status.active:
            word = run_status.state_word(run).capitalize()
            live = live_part(run, text, "state", run.status.step)
            draw_readings(described_state(run, word), live=live, key="playground-run")
        elif run.status.state == "failed":
            say(run_status.failure(run.status))
        elif run.status.state == "paused":
            st.markdown(TEXTS("paused", step=run.status.step, steps=run.settings.train.max_steps))
        else:
            said, onwards = ending(run, PAGE.now, output)
            st.markdown(f"{said} **{onwards.said}**" if onwards.said else said)
            _lead_on(run, text, onwards, output)
    if run is not None and is_asked(PAGE.now):
        beside(output if is_over(run) else None)


def _lead_on(run: Run, text: str, onwards: Next, output: LiveOutput | None) -> None:
    head = clearest_head(output) if output is not None and output.weights.size else None
    at = {} if head is None else {"layer": head.layer, "head": head.head}
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        for label, knobs in onwards.buttons.items():
            st.button(label, key=f"playground-onwards-{label}", on_click=turn, kwargs=knobs)
        run_status.look_inside(run.id, text, run.settings.model, **at)
        if not is_whole(PAGE.now):
            st.page_link(
                "pages/race/page.py",
                label=TEXTS("race"),
                icon=":material/arrow_forward:",
                query_params=race_parameters(PAGE.now) | {"task": PAGE.now.task, "seed": str(PAGE.now.seed)},
            )


def _curve(run: Run | None, text: str) -> None:
    if run is None or not (run.status.active or (run.folder / "metrics.jsonl").is_file()):
        st.caption(TEXTS("curve_here"))
        return
    live = live_part(run, text, "curves", run.status.step)
    exhibit(
        Runs((run.folder,)),
        CURVES,
        draw=lambda data: draw_curve(described_curves(run, data), live=live, key="playground-curves"),
        live=run.status.active,
    )
