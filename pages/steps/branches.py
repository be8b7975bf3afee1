"""The roads through one sentence: the model's own way and those on which a token was forced, side by side."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import streamlit as st

from pages.shared import fields, loading, wording
from pages.shared.checks import check_road
from pages.shared.components.token_chips import token_chips
from pages.shared.context import is_dark
from pages.shared.controls import PageContext, say
from pages.shared.scrolling_figure import scrolling_figure
from pages.steps.choices import PAGE, Choices, Road, RoadsAs, change, complain, complaint, drop, take_road
from pages.steps.export_branches import WITHOUT, take_pair_away, take_roads_away, take_tree_away
from transformer.analysis.steps.branches import road_changes, road_twigs
from transformer.figures.steps.branches import branches_figure, two_branches_figure
from transformer.lab import Inspection

Take = Callable[[], None]
"""Draws the popover in which a figure is taken away."""


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


def walk_of(context: PageContext, chosen: Choices) -> Walk:
    """The chosen roads decoded; roads that this model cannot go are left out with a sentence."""
    roads, lost = [context.inspection], set()
    for road in chosen.roads:
        try:
            roads.append(loading.get_branch(context.lab, context.view.text, context.view.switches, road))
        except ValueError as error:
            lost.add(road)
            say(f"A road is left out: {error}.")
    if lost:
        drop(lost)
    index = 0 if lost else min(chosen.road, len(roads) - 1)
    return Walk(tuple(roads), index, min(chosen.step, len(roads[index].target_ids) - 1))


def show_roads(context: PageContext, walk: Walk, chosen: Choices) -> None:
    """The model's own way and the forced ones, as lines of chips, one tree, or two of them; and the one to walk."""
    names = [_name(context, road, index) for index, road in enumerate(walk.roads)]
    if len(names) == 1 or chosen.roads_as == "lines":
        take = _show_lines(context, walk)
    elif chosen.roads_as == "tree":
        take = _show_tree(context, walk, names)
    else:
        take = _show_pair(context, walk, names, chosen)
    if len(names) > 1:
        _choose_roads(walk, names, chosen)
        st.caption(" · ".join(_total(road, index) for index, road in enumerate(walk.roads)))
    else:
        st.caption("Under each token: its probability when it was written.")
    with st.container(horizontal=True):
        check_road(context.lab, *walk.roads, key="proof-road")
        take()
    say(*PAGE.said("road", "beside", "roads_as"))
    if not walk.road.ended and (walk.index or context.view.switches):  # the frame says it of the plain output
        st.caption(f"No end mark was written: this was cut off at the model's {len(walk.road.target_ids)} tokens.")


def _show_lines(context: PageContext, walk: Walk) -> Take:
    usual = loading.get_inspection(context.lab, context.view.text) if context.view.switches else None
    if usual is not None:
        token_chips(usual.target_tokens, label=WITHOUT, probabilities=usual.probabilities.tolist(), key="road-usual")
    changes = road_changes([usual or walk.roads[0], *walk.roads], own=1)[1:]
    for index, (road, changed) in enumerate(zip(walk.roads, changes, strict=True)):
        token_chips(
            road.target_tokens,
            label="output" if index == 0 else f"road {index}",
            changed=np.flatnonzero(changed).tolist(),
            probabilities=road.probabilities.tolist(),
            key=f"road-{index}",
        )
    return partial(take_roads_away, context, walk.roads, usual)


def _show_tree(context: PageContext, walk: Walk, names: Sequence[str]) -> Take:
    figure = branches_figure(road_twigs(walk.roads, names, walk.index), dark=is_dark())
    scrolling_figure(figure, key="roads-tree")
    st.caption(
        "Roads grow to the right and part where another token was forced (!). Under each token its probability; "
        "the road that is walked is blue."
    )
    return partial(take_tree_away, context, walk.roads, names, walk.index, figure)


def _show_pair(context: PageContext, walk: Walk, names: Sequence[str], chosen: Choices) -> Take:
    others = [index for index in range(len(names)) if index != walk.index]
    beside = chosen.beside if chosen.beside in others else others[0]
    pair = (walk.index, beside)
    figure = two_branches_figure(
        [names[index] for index in pair],
        [walk.roads[index].target_tokens for index in pair],
        [walk.roads[index].probabilities for index in pair],
        dark=is_dark(),
    )
    scrolling_figure(figure, key="roads-pair")
    totals = [_log_probability(walk.roads[index]) for index in pair]
    own, other = (
        f"{wording.plain(names[index])}: {wording.number(total)}" for index, total in zip(pair, totals, strict=True)
    )
    st.caption(
        f"How probable each token was where it was written. {own} nats in all; {other}. "
        f"The first is e^({wording.number(totals[0] - totals[1])}) times as probable."
    )
    if len(others) > 1:
        fields.box(
            "Beside it", others, beside, lambda other: change(beside=other), key="beside", names=names.__getitem__
        )
    return partial(take_pair_away, context, walk.roads, names, pair, figure)


def _choose_roads(walk: Walk, names: Sequence[str], chosen: Choices) -> None:
    """Which road is walked and how all are drawn."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        fields.segments(
            "Walk",
            range(len(names)),
            walk.index,
            lambda road: change(road=road),
            key="walk-road",
            names=[wording.plain(name) for name in names].__getitem__,
        )
        ways: dict[RoadsAs, str] = {"lines": "As lines", "tree": "As a tree", "pair": "Two side by side"}
        fields.segments(
            "Roads",
            list(ways),
            chosen.roads_as,
            lambda way: change(roads_as=way),
            key="roads-as",
            names=ways.__getitem__,
        )
        st.button(
            "Forget the other roads", key="forget", type="tertiary", on_click=lambda: change(roads=(), road=0, beside=0)
        )


def take_another_road(context: PageContext, walk: Walk, offered: Sequence[int]) -> None:
    """A box of tokens, one of which is forced at this step, and a field for a whole beginning."""

    def force() -> None:
        token = st.session_state["force"]
        st.session_state["force"] = None
        if token is not None:
            go_on_with(context, walk, token)

    written = context.lab.tokenizer.decode(walk.road.target_ids[: walk.step])
    typed = st.session_state.get("begin", written) if complaint() else written  # what was typed wrongly stays
    left, right = st.columns(2)
    with left:
        st.selectbox(
            f"Write another token at step {walk.step}",
            offered,
            key="force",
            index=None,
            placeholder="a candidate, the most probable first",
            format_func=lambda token: _piece(context, token),
            on_change=force,
        )
    with right:
        fields.line(
            f"Or edit what stands before step {walk.step}",
            typed,
            lambda text: _begin_with(context, text),
            key="begin",
            placeholder="some words",
        )
    if complaint():
        say(complaint())


def go_on_with(context: PageContext, walk: Walk, token: int) -> None:
    """Forces a token at this step and walks on from there; for callbacks."""
    config = context.lab.model.config
    if token == walk.written:
        change()
        complain(f"{_piece(context, token)} is what this road writes at step {walk.step} already.")
    elif token in (config.pad_id, config.bos_id):
        change()
        complain(f"{_piece(context, token)} fills or starts sentences and cannot be written.")
    else:
        take_road(walk.forcing(token), walk.step)


def _begin_with(context: PageContext, text: str) -> None:
    ids, longest = context.lab.tokenizer.encode_target(text.strip()), context.lab.model.config.max_length
    unseen = wording.unseen_plainly(context.lab.tokenizer, text)
    change()
    if unseen:
        complain(f"{unseen} Such a beginning cannot be forced.")
    elif len(ids) > longest - 1:
        complain(
            f"That beginning has {len(ids)} tokens; {context.lab.name} writes at most {longest}, its end mark included."
        )
    elif ids:
        take_road(tuple(enumerate(ids)), min(len(ids), longest - 1))


def _piece(context: PageContext, token: int) -> str:
    return context.lab.tokenizer.piece(token)


def _name(context: PageContext, road: Inspection, index: int) -> str:
    if index == 0:
        return "Output"
    step, token = road.forced[-1]
    return f"Road {index}: {_piece(context, token).strip('▁')} at step {step}"


def _log_probability(road: Inspection) -> float:
    chosen = road.log_probs[np.arange(len(road.target_ids)), list(road.target_ids)].astype(np.float64)
    return float(chosen.sum())


def _total(road: Inspection, index: int) -> str:
    """A road's log-probability, and a word where a forced token was never reached."""
    said = f"{f'road {index}' if index else 'output'}: log-probability {wording.number(_log_probability(road))} nats"
    missed = [step for step, _ in road.forced if step >= len(road.target_ids)]
    return f"{said}, ended before the token forced at step {missed[0]}" if missed else said
