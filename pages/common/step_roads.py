"""The roads through one sentence: the model's own way and those on which a token was forced, side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from pages.common import loading, wording
from pages.common.components.token_chips import token_chips
from pages.common.controls import Scene, edit_marks, say
from pages.common.step_choices import Choices, Road, change, complain, complaint, drop, take_road
from transformer.lab import Inspection


@dataclass(frozen=True)
class Walk:
    """The road that is walked and the step at which the visitor stands."""

    roads: tuple[Inspection, ...]
    """The model's own way first."""
    index: int
    step: int

    @property
    def road(self) -> Inspection:
        """The one that is walked."""
        return self.roads[self.index]

    @property
    def written(self) -> int:
        """The id of the token that this step wrote."""
        return self.road.target_ids[self.step]

    def forcing(self, token: int) -> Road:
        """The road that leaves this one at this step with another token."""
        before = tuple((step, forced) for step, forced in self.road.forced if step < self.step)
        return (*before, (self.step, token))


def walk_of(scene: Scene, chosen: Choices) -> Walk:
    """The chosen roads decoded; roads that this model cannot go are left out with a sentence."""
    roads, lost = [scene.inspection], set()
    for road in chosen.roads:
        try:
            roads.append(loading.get_road(scene.lab, scene.view.text, scene.view.switches, road))
        except ValueError as error:
            lost.add(road)
            say(f"A road is left out: {error}.")
    if lost:
        drop(lost)
    index = 0 if lost else min(chosen.road, len(roads) - 1)
    return Walk(tuple(roads), index, min(chosen.step, len(roads[index].target_ids) - 1))


def show_roads(scene: Scene, walk: Walk) -> None:
    """Every road as a line of chips with what became different marked, and the choice of the one to walk."""
    own = walk.roads[0]
    for index, road in enumerate(walk.roads):
        _, changed = edit_marks(own.target_tokens, road.target_tokens) if index else ((), frozenset())
        token_chips(
            road.target_tokens,
            label="output" if index == 0 else f"road {index}",
            changed=changed,
            probabilities=road.probabilities.tolist(),
            key=f"road-{index}",
        )
    names = {index: _name(scene, road, index) for index, road in enumerate(walk.roads)}
    if len(names) > 1:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.session_state["walk-road"] = walk.index
            st.segmented_control(
                "Walk",
                list(names),
                key="walk-road",
                required=True,
                format_func=names.__getitem__,
                label_visibility="collapsed",
                on_change=lambda: change(road=st.session_state["walk-road"]),
            )
            st.button(
                "Forget the other roads", key="forget", type="tertiary", on_click=lambda: change(roads=(), road=0)
            )
        st.caption(" · ".join(_total(road, index) for index, road in enumerate(walk.roads)))
    else:
        st.caption("Under each token: its probability when it was written.")


def step_to(walk: Walk) -> None:
    """The stepper: a slider with a button on either side, and the arrow keys."""
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
            on_click=lambda: change(step=walk.step - 1),
        )
        st.session_state["step"] = walk.step
        st.slider("Step", 0, last, key="step", on_change=lambda: change(step=st.session_state["step"]))
        st.button(
            "On",
            key="step-on",
            icon=":material/chevron_right:",
            icon_position="right",
            shortcut="Right",
            disabled=walk.step == last,
            on_click=lambda: change(step=walk.step + 1),
        )


def take_another_road(scene: Scene, walk: Walk, offered: Sequence[int]) -> None:
    """A box of tokens, one of which is forced at this step, and a field for a whole beginning."""

    def force() -> None:
        token = st.session_state["force"]
        st.session_state["force"] = None
        if token is not None:
            go_on_with(scene, walk, token)

    def begin() -> None:
        _begin_with(scene, st.session_state["begin"])

    left, right = st.columns(2)
    with left:
        st.selectbox(
            f"Write another token at step {walk.step}",
            offered,
            key="force",
            index=None,
            placeholder="a candidate, the most probable first",
            format_func=lambda token: _piece(scene, token),
            on_change=force,
        )
    with right:
        st.text_input("Or begin the output with", key="begin", placeholder="some words", on_change=begin)
    if complaint():
        say(complaint())


def go_on_with(scene: Scene, walk: Walk, token: int) -> None:
    """Forces a token at this step and walks on from there; for callbacks."""
    config = scene.lab.model.config
    if token == walk.written:
        change()
        complain(f"{_piece(scene, token)} is what this road writes at step {walk.step} already.")
    elif token in (config.pad_id, config.bos_id):
        change()
        complain(f"{_piece(scene, token)} fills or starts sentences and cannot be written.")
    else:
        take_road(walk.forcing(token), walk.step)


def _begin_with(scene: Scene, text: str) -> None:
    ids, longest = scene.lab.tokenizer.encode(text.strip()), scene.lab.model.config.max_length
    unknown = scene.lab.unknown(text)
    change()
    if unknown:
        complain(f"{wording.unseen(unknown)} Such a beginning cannot be forced.")
    elif len(ids) > longest - 1:
        complain(
            f"That beginning has {len(ids)} tokens; {scene.lab.name} writes at most {longest}, its end mark included."
        )
    elif ids:
        take_road(tuple(enumerate(ids)), min(len(ids), longest - 1))


def _piece(scene: Scene, token: int) -> str:
    return scene.lab.tokenizer.piece(token)


def _name(scene: Scene, road: Inspection, index: int) -> str:
    if index == 0:
        return "Output"
    step, token = road.forced[-1]
    return f"Road {index}: {wording.plain(_piece(scene, token).strip('▁'))} at step {step}"


def _total(road: Inspection, index: int) -> str:
    """A road's log-probability, and a word where a forced token was never reached."""
    chosen = road.log_probs[np.arange(len(road.target_ids)), list(road.target_ids)].astype(np.float64)
    said = f"{f'road {index}' if index else 'output'}: log-probability {wording.number(float(chosen.sum()))} nats"
    missed = [step for step, _ in road.forced if step >= len(road.target_ids)]
    return f"{said}, ended before the token forced at step {missed[0]}" if missed else said
