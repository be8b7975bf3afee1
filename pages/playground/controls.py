"""The buttons, knobs and switches of the Playground, all in sight."""

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from pages.playground.choices import HEADS, LAYERS, LONGEST, PAGE, PARTS, POSITIONS, STRINGS, TASKS, Part
from pages.playground.running import pause, play, restart, step, turn
from pages.shared import fields
from transformer.runs.run_folder import Run


def render_controls(run: Run | None) -> None:
    """Renders everything that can be pressed or turned; each button is always there and in its place."""
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="playground-controls"):
        _buttons(run)
        _knobs()
    with st.container(horizontal=True, gap="medium", vertical_alignment="center", key="playground-parts"):
        for part, label in PARTS.items():
            present = part not in PAGE.now.without
            fields.toggle(label, present, partial(_switch, part), key=f"playground-part-{part}", width="content")


def _buttons(run: Run | None) -> None:
    active = run is not None and run.status.active
    finished = run is not None and run.status.state in ("finished", "stopped")
    if active:
        label, icon, action = "Pause", "pause", pause
    elif finished:
        label, icon, action = "Play again", "play_arrow", restart
    else:
        label, icon, action = "Play", "play_arrow", play
    icon = f":material/{icon}:"
    st.button(label, icon=icon, type="primary", key="playground-play", width=136, on_click=action)
    still = active or finished
    st.button("Step", key="playground-step", disabled=still, on_click=step, help="Trains for one step")
    st.button("Restart", key="playground-restart", disabled=run is None, on_click=restart)


def _knobs() -> None:
    knobs = PAGE.now
    fields.box("Task", TASKS, knobs.task, _turn("task"), key="playground-task", width=150)
    fields.box("Layers", LAYERS, knobs.layers, _turn("layers"), key="playground-layers", width=76)
    fields.box("Heads", HEADS, knobs.heads, _turn("heads"), key="playground-heads", width=76)
    gone = "positions" in knobs.without
    kinds = {knobs.positions: "none"} if gone else POSITIONS
    fields.box(
        "Positions", kinds, knobs.positions, _turn("positions"), key="playground-positions", width=124, disabled=gone
    )
    fields.number("Seed", knobs.seed, _turn("seed"), key="playground-seed", least=0, most=999, step=1, width=76)


def render_input() -> None:
    """Renders the field for the visitor's own input."""
    now, usual = PAGE.now.string, STRINGS[PAGE.now.task]
    fields.line("Your input", now, _take_text, key="playground-text", placeholder=usual, max_chars=LONGEST, width=112)


def _take_text(text: str) -> None:
    PAGE.change(text="" if text.strip() == STRINGS[PAGE.now.task] else text.strip())


def _switch(part: Part, present: bool) -> None:
    others = tuple(other for other in PAGE.now.without if other != part)
    turn(without=others if present else tuple(sorted((*others, part))))


def _turn(name: str) -> Callable[[Any], None]:
    return lambda value: turn(**{name: value})
