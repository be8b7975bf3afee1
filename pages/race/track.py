"""Both sides of a race while they learn: state, output and clearest head of each, and the curves of both."""

import streamlit as st

from pages.race.choices import PAGE, PLACES, Place, Race
from pages.race.controls import render_controls, render_knobs
from pages.race.curves import curves_of, parts_of, render_curves
from pages.race.ending import verdict
from pages.race.running import Lanes, current_runs
from pages.race.titles import summary, titles
from pages.shared import fields
from pages.shared.components.frontend import run_colours
from pages.shared.components.run_progress import draw_readings
from pages.shared.context import say
from pages.shared.guard import guarded_fragment
from pages.shared.live.watches import LivePart
from pages.training import run_status
from pages.training.live.clearest import render_head
from pages.training.live.output import decoded, render_output
from pages.training.live.parts import OF_SIDE, described_briefly, live_part
from pages.training.live.reading import reading_of, render_note
from pages.training.live.results import result_of
from pages.training.live.settings import TEXTS
from pages.training.live.short_runs import is_over, say_refusal, sweep_up
from transformer.runs.run_folder import Run

EVERY_S = 5.0
"""The seconds between two looks at runs at work: what moves comes by their streams, and their ends are reported."""


def race_panel() -> None:
    """Renders the race; while it goes on, its components follow it."""
    active = _active(current_runs())
    guarded_fragment("The race", _panel, every=EVERY_S if any(active) else None)(PAGE.now, active)


def _active(lanes: Lanes) -> tuple[bool, ...]:
    return tuple(run is not None and run.status.active for run in lanes.values())


def _panel(race: Race, was_active: tuple[bool, ...]) -> None:
    sweep_up()
    lanes = current_runs()
    active = _active(lanes)
    if active != was_active or PAGE.now != race:
        st.rerun()  # how often this is redrawn, and what the address says, is settled by a full run alone
    left, right = lanes["left"], lanes["right"]
    reading = reading_of(PAGE, [run for run in (left, right) if run is not None], race.plan("left"))
    text = reading.text
    curves = None if left is None or right is None else curves_of(left, right, titles(race))
    with st.container(gap="xsmall"):
        with st.container(gap="xxsmall"):
            render_controls(lanes)
            render_note(PAGE, reading, key="race-note")
            say_refusal(PAGE)
            with st.container(key="race-state"):
                _state(race, lanes, text)
        with st.container(horizontal=True, gap="small", key="race-track"):
            for place, title in zip(PLACES, titles(race), strict=True):
                with st.container(key=f"race-{place}", gap="xsmall"):
                    parts = parts_of(curves) if curves and place == "left" else OF_SIDE
                    _side(place, title, lanes[place], text, parts)
            with st.container(key="race-curves", gap="xsmall"):
                if left is None or curves is None:
                    st.caption("The loss and the share of right answers of both will be drawn here as they learn.")
                else:
                    render_curves(left, text, curves, live=any(active))


def _state(race: Race, lanes: Lanes, text: str) -> None:
    """Renders the question before the race, or how it ended, in room that it always has."""
    left, right = lanes["left"], lanes["right"]
    names = titles(race)
    if left is None or right is None:
        if race.left_run or race.right_run:
            say("A run of this race is no longer here.")
        st.markdown(
            f"Both learn to {TEXTS(f'tasks.{race.task}')} from the same examples in the same order. "
            "**A guess first: which one gets it right first?**"
        )
        labels = dict(zip(("left", "right", "neither"), (*names, "Neither"), strict=True))
        fields.segments("Which is right first?", labels, race.expected, PAGE.take("expected"), key="race-expected")
    elif is_over(left) and is_over(right):
        st.markdown(verdict(race, names, result_of(left), result_of(right)))
        st.page_link(
            "pages/compare/page.py",
            label="Look into both, side by side",
            icon=":material/arrow_forward:",
            query_params={"model": left.id, "other": right.id} | ({"text": text} if text else {}),
        )
    else:
        guessed = {"": "", "neither": "neither", **dict(zip(PLACES, names, strict=True))}[race.expected]
        said = f" You expect: **{guessed}** first." if guessed else ""
        st.markdown(f"Both learn to {TEXTS(f'tasks.{race.task}')} from the same examples in the same order.{said}")


def _side(place: Place, title: str, run: Run | None, text: str, parts: tuple[LivePart, ...]) -> None:
    key, colour = f"race-{place}", run_colours(PLACES.index(place))
    st.html(f"<style>.st-key-{key} {{--run: light-dark({colour['light']}, {colour['dark']})}}</style>")
    st.markdown(f"## {title}")
    with st.container(gap=None):
        snapshot = decoded(run, text)
    with st.container(horizontal=True, gap="small"):
        with st.container(gap=None):
            if run is None:
                st.caption(f"{summary(PAGE.now.racer(place))}. Its output and its clearest head will be drawn here.")
            else:
                _where_it_stands(run, text, parts, key=f"{key}-run")
        render_knobs(place)
    if run is None:
        return
    if run.status.state == "failed":
        say(run_status.failure(run.status))
    render_output(run, text, snapshot, parts=parts, key=key)
    if text:
        step = -1 if snapshot is None else snapshot.step
        render_head(snapshot, live_part(run, text, "head", step, parts=parts), key=key)


def _where_it_stands(run: Run, text: str, parts: tuple[LivePart, ...], *, key: str) -> None:
    live = live_part(run, text, "state", run.status.step, parts=parts)
    draw_readings(described_briefly(run, run_status.state_word(run).capitalize()), live=live, key=key)
