"""The buttons, knobs and switches of the Playground, all in sight."""

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.playground.choices import PAGE, SLOW
from pages.playground.running import pause, play, restart, slow_down, step, turn
from pages.shared import fields
from pages.shared.fields import Options
from pages.shared.texts.catalogue import Texts
from pages.training.live.settings import HEADS, LAYERS, PARTS, Part
from pages.training.live.settings import TEXTS as KNOBS
from pages.training.live.short_runs import is_over
from transformer.runs.run_folder import Run

TEXTS = Texts("playground")


def render_controls(run: Run | None) -> None:
    """Renders everything that can be pressed or turned; each button is always there and in its place.

    On a phone the style sheet moves the knobs and the parts below what they change.
    """
    with st.container(gap="xsmall", key="playground-bar"):
        with st.container(horizontal=True, gap="xsmall", vertical_alignment="bottom", key="playground-controls"):
            with _row("buttons"):
                _buttons(run)
            with _row("knobs"):
                _knobs()
        _parts()


def _row(name: str) -> DeltaGenerator:
    return st.container(
        horizontal=True, gap="xsmall", vertical_alignment="bottom", width="content", key=f"playground-{name}"
    )


def _parts() -> None:
    with st.container(horizontal=True, gap="medium", vertical_alignment="center", key="playground-parts"):
        for part in PARTS:
            present = part not in PAGE.now.without
            is_rnn = PAGE.now.model == "rnn"
            key = f"playground-part-{part}"
            fields.toggle(
                KNOBS(f"parts.{part}"), present, partial(_switch, part), key=key, width="content", disabled=is_rnn
            )
        said = TEXTS("slow_help", steps=SLOW)
        fields.toggle(TEXTS("slow"), PAGE.now.slow, slow_down, key="playground-slow", width="content", help=said)


def _buttons(run: Run | None) -> None:
    active = run is not None and run.status.active
    finished = run is not None and is_over(run)
    if active:
        label, icon, action = TEXTS("pause"), "pause", pause
    elif finished:
        label, icon, action = TEXTS("again"), "play_arrow", restart
    else:
        label, icon, action = TEXTS("play"), "play_arrow", play
    icon = f":material/{icon}:"
    st.button(label, icon=icon, type="primary", key="playground-play", width=124, on_click=action)
    still = active or finished
    st.button(TEXTS("step"), key="playground-step", disabled=still, on_click=step, help=TEXTS("step_help"))
    st.button(TEXTS("restart"), key="playground-restart", disabled=run is None, on_click=restart)


def _knobs() -> None:
    knobs = PAGE.now
    fields.box(KNOBS("task"), KNOBS.table("tasks"), knobs.task, _turn("task"), key="playground-task", width=146)
    fields.box(KNOBS("model"), KNOBS.table("models"), knobs.model, _turn("model"), key="playground-model", width=136)
    _box("layers", LAYERS, width=72, absent=knobs.model == "rnn")
    _box("heads", HEADS, width=72, absent=knobs.model == "rnn")
    _box("positions", KNOBS.table("positions"), width=116, absent=knobs.model == "rnn" or "positions" in knobs.without)
    fields.number(KNOBS("seed"), knobs.seed, _turn("seed"), key="playground-seed", least=0, most=999, step=1, width=76)


def _box(name: str, options: Options, *, width: int, absent: bool) -> None:
    """Renders a knob of the Transformer; where what it turns is absent, it shows a dash and cannot be turned."""
    value = None if absent else getattr(PAGE.now, name)
    key = f"playground-{name}"
    fields.box(
        KNOBS(f"labels.{name}"), options, value, _turn(name), key=key, width=width, disabled=absent, placeholder="–"
    )


def _switch(part: Part, present: bool) -> None:
    others = tuple(other for other in PAGE.now.without if other != part)
    turn(without=others if present else tuple(sorted((*others, part))))


def _turn(name: str) -> Callable[[Any], None]:
    return lambda value: turn(**{name: value})
