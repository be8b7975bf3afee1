"""The stepper of the Decoder steps page: a slider with a button on either side, the arrow keys, and play."""

import time

import streamlit as st

from pages.shared import fields
from pages.shared.context import say
from pages.steps.branches import Walk
from pages.steps.choices import PAGE, Choices, change

PLAY_S = 1.0
"""A step is shown for this long while the walk plays."""
_PLAYING = "steps-page-playing"


def step_to(walk: Walk, chosen: Choices) -> None:
    """The stepper: a slider with a button on either side, the arrow keys, and play."""
    last = len(walk.road.target_ids) - 1
    if last == 0:
        st.caption("The output is one token long: there is one step.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.button(
            "Back",
            key="step-back",
            icon=":material/chevron_left:",
            shortcut="Left",
            disabled=walk.step == 0,
            on_click=lambda: _go_to(walk.step - 1),
        )
        playing = walk.step < last and st.session_state.get(_PLAYING) is not None
        st.button(
            "Pause" if playing else "Play",
            key="step-play",
            icon=":material/pause:" if playing else ":material/play_arrow:",
            help="One step a second, from the first where the last one is shown",
            on_click=lambda: _play(not playing, 0 if walk.step == last else walk.step),
        )
        fields.slider("Step", 0, last, walk.step, _go_to, key="step", step=1)
        st.button(
            "On",
            key="step-on",
            icon=":material/chevron_right:",
            icon_position="right",
            shortcut="Right",
            disabled=walk.step == last,
            on_click=lambda: _go_to(walk.step + 1),
        )
    say(*PAGE.said("step"))
    if chosen.step > last:
        st.caption(f"There is no step {chosen.step}: this output has steps 0 to {last}. Shown is the last.")
    if playing:
        st.fragment(_tick, run_every=PLAY_S)(walk.step)
    else:
        st.session_state.pop(_PLAYING, None)


def _go_to(step: int) -> None:
    st.session_state.pop(_PLAYING, None)
    change(step=step)


def _play(on: bool, step: int) -> None:
    if on:
        st.session_state[_PLAYING] = time.monotonic()
    else:
        st.session_state.pop(_PLAYING, None)
    change(step=step)


def _tick(step: int) -> None:
    """Goes a step further when this one has been shown long enough."""
    since = st.session_state.get(_PLAYING)
    if since is not None and time.monotonic() - since >= 0.9 * PLAY_S:
        st.session_state[_PLAYING] = time.monotonic()
        change(step=step + 1)
        st.rerun()
