"""Where nothing but the step changes, only what belongs to the step runs again: most clicks on the page are such."""

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from pages.common.scene import Scene
from pages.common.state import visit, write_url
from pages.common.step_choices import PAGE, Choices
from pages.common.step_roads import Walk
from pages.common.stepper import step_to

_OWN = {"step": 0, "against": -1, "reference": ""}
"""What is chosen in this part alone, so that the rest of the page need not know."""


def stepping(scene: Scene, walk: Walk, draw: Callable[[Scene, Walk, Choices], None]) -> None:
    """The stepper and what `draw` shows of the step; anything else that is chosen there runs the whole page again."""
    st.fragment(_part)(scene, walk.roads, walk.index, draw, _elsewhere())


def _part(
    scene: Scene, roads: tuple, index: int, draw: Callable[[Scene, Walk, Choices], None], drawn_with: object
) -> None:
    if _elsewhere() != drawn_with:
        st.rerun()
    chosen, memory = PAGE.now, visit()
    memory.own = chosen.parameters()
    write_url()
    memory.touched = False
    walk = Walk(roads, index, min(chosen.step, len(roads[index].target_ids) - 1))
    step_to(walk, chosen)
    draw(scene, walk, chosen)


def _elsewhere() -> object:
    memory = visit()
    return replace(PAGE.now, **_OWN), memory.view, memory.draft, memory.problems, PAGE.said()
