"""What is chosen on the Decoder steps page alone: the roads, the one that is walked, the step; in the URL too."""

import re
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import streamlit as st

from pages.shared import fields
from pages.shared.controls import say
from pages.shared.url.page_state import PageState
from pages.shared.url.url_state import Form, Refused, UrlState, decimal, param, text, whole, words
from transformer.config import LengthNorm

Road = tuple[tuple[int, int], ...]
"""The tokens that were forced, each as (step, id); empty: the model's own way."""
MOST_ROADS = 5
"""Forced roads kept beside the model's own."""
WIDEST_TREE, HIGHEST_ALPHA = 10, 2.0
"""What still makes a readable tree, and where a length norm has long outweighed everything else."""

Look = Literal["steps", "inside", "beam", "samples", "reference"]
RoadsAs = Literal["lines", "tree", "pair"]

_PROBLEM = "steps-page-problem"
_A_ROAD = re.compile(r"\d{1,4}:\d{1,7}(,\d{1,4}:\d{1,7})*", re.ASCII)
_SENTENCE = ("model", "text")
_SEARCH = ("beam", "alpha", "norm", "stop")
"""What makes another tree of the beam."""


def _read_roads(text: str) -> tuple[Road, ...]:
    if not text:
        return ()
    found: list[Road] = []
    given = text.split(";")
    for road in given[:MOST_ROADS]:
        if _A_ROAD.fullmatch(road):
            pairs = (pair.split(":") for pair in road.split(","))
            found.append(tuple(sorted({int(step): int(token) for step, token in pairs}.items())))
    roads = tuple(dict.fromkeys(found))
    if len(found) < len(given):
        raise Refused(f"must be at most {MOST_ROADS} roads, each as step:token,step:token", roads)
    return roads


def _write_roads(roads: tuple[Road, ...]) -> str:
    return ";".join(",".join(f"{step}:{token}" for step, token in road) for road in roads)


def _among_roads(state: "Choices") -> range:
    return range(len(state.roads) + 1)


@dataclass(frozen=True, kw_only=True)
class Choices(UrlState):
    """Where the visitor stands."""

    step: int = param(0, whole(0, 9_999), resets=_SENTENCE)
    road: int = param(0, whole(0, 9_999), among=_among_roads, resets=_SENTENCE)
    """0 for the model's own way, then the forced ones."""
    scale: str = param("linear", words("linear", "log"))
    reference: str = param("", text(1_000), resets=_SENTENCE)
    roads: tuple[Road, ...] = param(
        (),
        Form(_read_roads, _write_roads),
        resets=_SENTENCE,
        nonsense="The link names a road that cannot be read, “{text}”: {name} {expected}.",
    )
    look: Look = param("steps", words(*get_args(Look)))
    """One step, its inside, the beam's tree, samples, or a reference read twice."""
    beam: int = param(4, whole(1, WIDEST_TREE, clamp=True))
    alpha: float = param(0.6, decimal(0.0, HIGHEST_ALPHA, clamp=True))
    norm: LengthNorm = param("paper", words(*get_args(LengthNorm)))
    stop: str = param("early", words("early", "late"))
    """early, or late: only when no hypothesis can be overtaken."""
    roads_as: RoadsAs = param("lines", words(*get_args(RoadsAs)))
    """Roads as lines below one another, as one tree, or two of them step by step."""
    beside: int = param(0, whole(0, 9_999), among=_among_roads, resets=_SENTENCE)
    """The road that stands beside the walked one."""
    against: int = param(-1, whole(0, 9_999_999), resets=_SENTENCE)
    """The token that the written one is compared with inside a step; -1 for the next most probable."""
    node: int = param(-1, whole(0, 9_999_999), resets=(*_SENTENCE, *_SEARCH))
    """The candidate of the beam's tree whose attention is shown; -1 for the end of the best result."""
    temperature: float = param(1.0, decimal(0.1, 5.0, clamp=True))
    top_k: int = param(0, whole(0, 50, clamp=True))
    top_p: float = param(1.0, decimal(0.05, 1.0, clamp=True))
    min_p: float = param(0.0, decimal(0.0, 1.0, clamp=True))
    seed: int = param(0, whole(0, 100, clamp=True))


PAGE = PageState(Choices, key="steps-page")


def change(**changes: Any) -> None:
    """Changes something on behalf of the visitor; for callbacks."""
    PAGE.change(**changes)
    st.session_state.pop(_PROBLEM, None)


def choose_look(chosen: Choices) -> None:
    """One of the ways to look at how this sentence is decoded."""
    names: dict[Look, str] = {
        "steps": "Step by step",
        "inside": "Inside the step",
        "beam": "Beam",
        "samples": "Sampling",
        "reference": "Against a reference",
    }
    fields.segments(
        "Look at", list(names), chosen.look, lambda look: change(look=look), key="look", names=names.__getitem__
    )
    say(*PAGE.said("look", "roads"))


def drop(roads: set[Road]) -> None:
    """Takes roads out that cannot be gone."""
    now = PAGE.now
    PAGE.put(replace(now, roads=tuple(road for road in now.roads if road not in roads), road=0))


def complain(sentence: str) -> None:
    """Remembers a sentence for the field where a road is chosen, until the next change."""
    st.session_state[_PROBLEM] = sentence


def complaint() -> str:
    """That sentence, if there is one."""
    return st.session_state.get(_PROBLEM, "")


def take_road(road: Road, step: int) -> None:
    """Goes this road from now on, beside those that are kept; the oldest makes room."""
    now = PAGE.now
    if not road:
        change(road=0, step=step)
        return
    roads = now.roads if road in now.roads else (*now.roads, road)[-MOST_ROADS:]
    change(roads=roads, road=roads.index(road) + 1, step=step)
