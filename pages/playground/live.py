"""The run of the Playground while it learns: buttons, curve, the visitor's string, and the clearest head."""

import streamlit as st

from pages.playground.choices import PAGE, TASKS, Knobs
from pages.playground.clearest import output_of, render_head
from pages.playground.controls import render_controls, render_input
from pages.playground.ending import Next, ending
from pages.playground.following import CURVES, described_curves, described_output, described_state, live_part
from pages.playground.guess import ask, beside, is_asked
from pages.playground.running import current_run, refusal, sweep_up, turn
from pages.shared.components.run_progress import draw_curve, draw_readings
from pages.shared.components.tokens import draw_chips
from pages.shared.context import say, sentence
from pages.shared.exhibit import exhibit
from pages.shared.guard import guarded_fragment
from pages.training import run_status
from pages.training.timeline.frames import decoded_with
from transformer.checkpoints.settings import CheckpointError
from transformer.runs.kept_weights import snapshots_of
from transformer.runs.live.watched import LiveOutput
from transformer.runs.run_folder import Run
from transformer.views.subjects import Runs
from transformer.views.training.timeline import DecodedSnapshot

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
    render_controls(run)
    if refusal():
        say(sentence(refusal()))
    state = st.container(horizontal=True, gap="medium", key="playground-state")
    left, right = st.columns([1, 1], gap="large")
    with left:
        with st.container(gap=None):  # what is shown while it computes takes no room
            snapshot = _decoded(run)
        with state:
            _state(run, None if snapshot is None else output_of(snapshot))
        step = -1 if snapshot is None else snapshot.step
        with st.container(gap="xsmall"):
            with st.container(horizontal=True, gap="small", key="playground-output"):
                render_input()
                with st.container(width="stretch", gap=None):
                    _output(run, snapshot)
            with st.container(gap="xsmall", key="playground-head"):
                if run is None and is_asked(PAGE.now):
                    ask()
                elif run is None:
                    st.caption("The attention of its clearest head will be drawn here: what it looks at.")
                render_head(snapshot, live_part(run, "head", step))
    with right, st.container(key="playground-curve"):
        _curve(run)


def _state(run: Run | None, output: LiveOutput | None) -> None:
    """Renders where the run stands, or what it came to, in room that it always has, and the guess beside it."""
    is_over = run is not None and run.status.state in ("finished", "stopped")
    with st.container(gap="xxsmall"):
        if run is None:
            st.markdown(
                f"A small Transformer learns to {TASKS[PAGE.now.task]} from examples alone; nobody tells it the rule. "
                "Then take a part away and see what breaks."
            )
        elif run.status.active:
            word = run_status.state_word(run).capitalize()
            live = live_part(run, "state", run.status.step)
            draw_readings(described_state(run, word), live=live, key="playground-run")
        elif run.status.state == "failed":
            say(run_status.failure(run.status))
        elif run.status.state == "paused":
            st.markdown(f"**Paused** at step {run.status.step:,} of {run.settings.train.max_steps:,}.")
        else:
            said, onwards = ending(run, PAGE.now, output)
            st.markdown(said)
            _lead_on(run, onwards)
    if run is not None and is_asked(PAGE.now):
        beside(output if is_over else None)


def _lead_on(run: Run, onwards: Next) -> None:
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        if onwards.said:
            st.markdown(onwards.said, width="content")
        for label, knobs in onwards.buttons.items():
            st.button(label, key=f"playground-onwards-{label}", on_click=turn, kwargs=knobs)
        run_status.look_inside(run.id, PAGE.now.string, run.settings.model)


def _curve(run: Run | None) -> None:
    if run is None or not (run.status.active or (run.folder / "metrics.jsonl").is_file()):
        st.caption("The loss and the share of right answers will be drawn here as it learns.")
        return
    live = live_part(run, "curves", run.status.step)
    exhibit(
        Runs((run.folder,)),
        CURVES,
        draw=lambda data: draw_curve(described_curves(run, data), live=live, key="playground-curves"),
        live=run.status.active,
    )


def _decoded(run: Run | None) -> DecodedSnapshot | None:
    """Returns the visitor's string decoded with the newest weights; None where there are none yet, or it cannot be."""
    if run is None or not (found := snapshots_of(run)):
        return None
    try:
        return decoded_with(run, found[-1], PAGE.now.string)
    except (CheckpointError, OSError):  # replaced by newer weights a moment ago
        return None
    except ValueError as error:
        say(sentence(str(error)))
        return None


def _output(run: Run | None, snapshot: DecodedSnapshot | None) -> None:
    live = live_part(run, "output", -1 if snapshot is None else snapshot.step)
    if snapshot is None and live is None:
        st.caption("What it writes will stand here.")
        return
    draw_chips(None if snapshot is None else described_output(output_of(snapshot)), live=live, key="playground-chips")
