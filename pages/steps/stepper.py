"""The stepper: a slider, two buttons, the arrow keys and play; and what runs again when only the step changes."""

import time
from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from pages.shared import fields
from pages.shared.context import PageContext, say
from pages.shared.guard import guarded_fragment
from pages.shared.url.session import session, write_url
from pages.steps.branches import Walk
from pages.steps.choices import PAGE, Choices, change

PLAY_S = 1.0
"""The time for which a step is shown while it plays."""
_PLAYING = "steps-page-playing"
_OWN = {"step": 0, "against": -1, "reference": ""}
"""The choices of the part that runs by itself, with their defaults: the rest of the page does not depend on them."""
Render = Callable[[PageContext, Walk, Choices], None]


def render_stepped(context: PageContext, walk: Walk, render: Render) -> None:
    """Renders the stepper and a step; most clicks change the step alone, and run nothing else again."""
    guarded_fragment("This step", _part)(context, walk.branches, walk.index, render, _elsewhere())


def _part(context: PageContext, branches: tuple, index: int, render: Render, rendered_with: object) -> None:
    if _elsewhere() != rendered_with:
        st.rerun()
    chosen = PAGE.now
    session().own = chosen.parameters()
    write_url()
    walk = Walk(branches, index, min(chosen.step, len(branches[index].target_ids) - 1))
    render_stepper(walk, chosen)
    render(context, walk, chosen)


def _elsewhere() -> object:
    memory = session()
    return replace(PAGE.now, **_OWN), memory.view, memory.draft, memory.problems, PAGE.said()


def render_stepper(walk: Walk, chosen: Choices) -> None:
    """Renders a slider with a button on either side, and play."""
    last = len(walk.branch.target_ids) - 1
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
            help="One step per second, starting over if the last step is shown",
            on_click=lambda: _play(not playing, 0 if walk.step == last else walk.step),
        )
        fields.slider("Step", 0, last, walk.step, _go_to, key="step", step=1)
        st.button(
            "Next",
            key="step-on",
            icon=":material/chevron_right:",
            icon_position="right",
            shortcut="Right",
            disabled=walk.step == last,
            on_click=lambda: _go_to(walk.step + 1),
        )
    say(*PAGE.said("step"))
    if chosen.step > last:
        st.caption(f"There is no step {chosen.step}: this output has steps 0 to {last}. The last one is shown.")
    if playing:
        guarded_fragment("The next step", _tick, every=PLAY_S)(walk.step)
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
    """Goes to the next step when this one has been shown long enough."""
    since = st.session_state.get(_PLAYING)
    if since is not None and time.monotonic() - since >= 0.9 * PLAY_S:
        st.session_state[_PLAYING] = time.monotonic()
        change(step=step + 1)
        st.rerun()
