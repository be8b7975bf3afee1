"""Where nothing but the step changes, only what belongs to the step runs again: most clicks on the page are such."""

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from pages.shared.context import PageContext
from pages.shared.url.session import session, write_url
from pages.steps.branches import Walk
from pages.steps.choices import PAGE, Choices
from pages.steps.stepper import step_to

_OWN = {"step": 0, "against": -1, "reference": ""}
"""What is chosen in this part alone, so that the rest of the page need not know."""


def stepping(context: PageContext, walk: Walk, draw: Callable[[PageContext, Walk, Choices], None]) -> None:
    """The stepper and what `draw` shows of the step; anything else that is chosen there runs the whole page again."""
    st.fragment(_part)(context, walk.roads, walk.index, draw, _elsewhere())


def _part(
    context: PageContext,
    roads: tuple,
    index: int,
    draw: Callable[[PageContext, Walk, Choices], None],
    drawn_with: object,
) -> None:
    if _elsewhere() != drawn_with:
        st.rerun()
    chosen, memory = PAGE.now, session()
    memory.own = chosen.parameters()
    write_url()
    memory.touched = False
    walk = Walk(roads, index, min(chosen.step, len(roads[index].target_ids) - 1))
    step_to(walk, chosen)
    draw(context, walk, chosen)


def _elsewhere() -> object:
    memory = session()
    return replace(PAGE.now, **_OWN), memory.view, memory.draft, memory.problems, PAGE.said()
