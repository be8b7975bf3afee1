"""The button and the knobs of a race: those of both sides, and those of each."""

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from pages.race.choices import MATCHES, OPTIMIZERS, PAGE, Place
from pages.race.running import Lanes, both, pause, race_again, start, turn, turn_side
from pages.shared import fields
from pages.training.live.reading import render_field
from pages.training.live.settings import HEADS, LAYERS, PARTS, TEXTS
from pages.training.live.short_runs import is_over
from transformer.access.ownership import may_change


def render_controls(runs: Lanes) -> None:
    """Renders the button and what both sides have in common."""
    race = PAGE.now
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="race-controls"):
        _button(runs)
        fields.box(
            "Match",
            list(MATCHES),
            race.match,
            _take_match,
            key="race-match",
            width=292,
            placeholder="Your own settings",
        )
        fields.box("Task", TEXTS.table("tasks"), race.task, lambda task: turn(task=task), key="race-task", width=146)
        fields.number("Seed", race.seed, lambda n: turn(seed=n), key="race-seed", least=0, most=999, step=1, width=76)
        render_field(PAGE, key="race-text", width=132)


def _button(runs: Lanes) -> None:
    found = both(runs)
    if any(run is not None and run.status.active for run in runs.values()):
        label, icon, action = "Pause", "pause", pause
    elif found and all(is_over(run) for run in found):
        label, icon, action = "Race with another seed", "play_arrow", race_again
    else:
        label, icon, action = "Go on" if found else "Start the race", "play_arrow", start
    foreign = any(not (is_over(run) or may_change(run.folder)) for run in found)
    st.button(
        label, disabled=foreign, icon=f":material/{icon}:", type="primary", key="race-start", width=204, on_click=action
    )


def _take_match(name: str) -> None:
    left, right = MATCHES[name]
    turn(left=left, right=right)


def render_knobs(place: Place) -> None:
    """Renders the knobs of one side, behind a quiet button."""
    racer, take = PAGE.now.racer(place), partial(_taking, place)
    no_transformer = racer.model == "rnn"
    with st.popover("Change", icon=":material/tune:", type="tertiary", key=f"race-{place}-knobs"):
        fields.box("Model", TEXTS.table("models"), racer.model, take("model"), key=f"race-{place}-model")
        for name, options, absent in (
            ("layers", LAYERS, no_transformer),
            ("heads", HEADS, no_transformer),
            ("positions", TEXTS.table("positions"), no_transformer or "positions" in racer.without),
            ("optimizer", OPTIMIZERS, no_transformer),
        ):
            value = None if absent else getattr(racer, name)
            key = f"race-{place}-{name}"
            fields.box(name.title(), options, value, take(name), key=key, disabled=absent, placeholder="–")
        for part in PARTS:
            switch = partial(_switch, place, part)
            key = f"race-{place}-part-{part}"
            fields.toggle(TEXTS(f"parts.{part}"), part not in racer.without, switch, key=key, disabled=no_transformer)


def _taking(place: Place, name: str) -> Callable[[Any], None]:
    return lambda value: turn_side(place, **{name: value})


def _switch(place: Place, part: str, present: bool) -> None:
    others = tuple(other for other in PAGE.now.racer(place).without if other != part)
    turn_side(place, without=others if present else tuple(sorted((*others, part))))
