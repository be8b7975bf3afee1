"""What is chosen on the Decoder steps page alone: the roads, the one that is walked, the step; in the URL too."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import streamlit as st

from pages.common import fields
from pages.common.controls import Scene, say
from pages.common.state import choose, visit, write_url
from transformer.config import LengthNorm

Road = tuple[tuple[int, int], ...]
"""The tokens that were forced, each as (step, id); empty: the model's own way."""
MOST_ROADS = 5
"""Forced roads kept beside the model's own."""
WIDEST_TREE, HIGHEST_ALPHA = 10, 2.0
"""What still makes a readable tree, and where a length norm has long outweighed everything else."""

Look = Literal["steps", "inside", "beam", "samples", "reference"]
RoadsAs = Literal["lines", "tree", "pair"]

_KEY, _OWNER = "steps-page", "steps-page-sentence"
_DRAW = {"temperature": (0.1, 5.0), "top_k": (0, 50), "top_p": (0.05, 1.0), "min_p": (0.0, 1.0), "seed": (0, 100)}
"""The settings of sampling, each with its least and its greatest value."""
_LIMITS = {"beam": (1, WIDEST_TREE), "alpha": (0.0, HIGHEST_ALPHA), **_DRAW}
_WORDS = {
    "scale": ("linear", "log"),
    "look": get_args(Look),
    "norm": get_args(LengthNorm),
    "stop": ("early", "late"),
    "roads_as": get_args(RoadsAs),
}
_NAMES = ("step", "road", "roads", "reference", "against", "beside", "node", *_WORDS, *_LIMITS)
_PROBLEM, _MISREAD = "steps-page-problem", "steps-page-misread"


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Where the visitor stands."""

    step: int = 0
    road: int = 0
    """0 for the model's own way, then the forced ones."""
    roads: tuple[Road, ...] = ()
    scale: str = "linear"
    reference: str = ""
    look: Look = "steps"
    """One step, its inside, the beam's tree, samples, or a reference read twice."""
    roads_as: RoadsAs = "lines"
    """Roads as lines below one another, as one tree, or two of them step by step."""
    beside: int = 0
    """The road that stands beside the walked one."""
    against: int = -1
    """The token that the written one is compared with inside a step; -1 for the next most probable."""
    node: int = -1
    """The candidate of the beam's tree whose attention is shown; -1 for the end of the best result."""
    beam: int = 4
    alpha: float = 0.6
    norm: LengthNorm = "paper"
    stop: str = "early"
    """early, or late: only when no hypothesis can be overtaken."""
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0

    def parameters(self) -> dict[str, str]:
        """The query parameters that `read` turns into this again; defaults are left out."""
        found = {"step": str(self.step), "road": str(self.road), "scale": self.scale, "reference": self.reference}
        found["roads"] = ";".join(",".join(f"{step}:{token}" for step, token in road) for road in self.roads)
        found |= {"look": self.look, "beam": str(self.beam), "norm": self.norm, "stop": self.stop}
        found |= {"roads_as": self.roads_as, "beside": str(self.beside), "against": str(self.against)}
        found["node"] = str(self.node)
        found["alpha"] = f"{self.alpha:g}"
        usual = {"step": "0", "road": "0", "scale": "linear", "look": "steps", "stop": "early"}
        usual |= {"beam": "4", "alpha": "0.6", "norm": "paper", "roads_as": "lines", "beside": "0", "against": "-1"}
        usual["node"] = "-1"
        found |= {name: f"{getattr(self, name):g}" for name in _DRAW}
        usual |= {"temperature": "1", "top_k": "0", "top_p": "1", "min_p": "0", "seed": "0"}
        return {name: text for name, text in found.items() if text != usual.get(name, "")}


def read(parameters: Mapping[str, str]) -> Choices:
    """The choices in these query parameters; what makes no sense is left at its default."""
    roads: list[Road] = []
    for text in parameters.get("roads", "").split(";")[:MOST_ROADS]:
        if re.fullmatch(r"\d{1,4}:\d{1,7}(,\d{1,4}:\d{1,7})*", text, re.ASCII):
            pairs = (pair.split(":") for pair in text.split(","))
            roads.append(tuple(sorted({int(step): int(token) for step, token in pairs}.items())))
    road, beside = _number(parameters.get("road", "")), _number(parameters.get("beside", ""))
    words = {name: _word(parameters.get(name, ""), name) for name in _WORDS}
    numbers = {name: _limited(parameters.get(name, ""), name) for name in _LIMITS}
    return Choices(
        step=_number(parameters.get("step", "")),
        road=road if road <= len(roads) else 0,
        roads=tuple(dict.fromkeys(roads)),
        reference=parameters.get("reference", "")[:1_000],
        beside=beside if beside <= len(roads) else 0,
        against=_or_none(parameters.get("against", "")),
        node=_or_none(parameters.get("node", "")),
        **words,  # type: ignore[arg-type]
        **numbers,  # type: ignore[arg-type]
    )


def misread(parameters: Mapping[str, str]) -> dict[str, str]:
    """A sentence for each of these query parameters that could not be taken as it stands, by its name."""
    found, taken = {}, read(parameters)
    for name, (low, high) in _LIMITS.items():
        text = parameters.get(name)
        if text is not None and not _is_within(text, low, high):
            found[name] = (
                f"The link says {name} {text[:30]}, which must lie between {low:g} and {high:g}; "
                f"this is with {getattr(taken, name):g}."
            )
    for name, words in _WORDS.items():
        text = parameters.get(name)
        if text is not None and text not in words:
            found[name] = f"The link says {name} {text[:30]}, which must be one of: {', '.join(words)}."
    for name in ("step", "road", "beside"):
        text = parameters.get(name)
        if text is not None and not re.fullmatch(r"\d{1,4}", text, re.ASCII):
            found[name] = f"The link says {name} {text[:30]}, which is no number of a {name}; this is the first."
    text = parameters.get("roads")
    if text and len(taken.roads) < len(text.split(";")):
        found["roads"] = (
            f"The link names a road that cannot be read; it keeps at most {MOST_ROADS}, each as step:token,step:token."
        )
    return found


def choices() -> Choices:
    """What is chosen now: the URL's word where someone else than this session wrote it, else what was chosen before."""
    in_url = {name: st.query_params[name] for name in _NAMES if name in st.query_params}
    kept: Choices = st.session_state.setdefault(_KEY, Choices())
    if in_url and in_url != kept.parameters() and not visit().touched:
        st.session_state[_KEY] = kept = read(in_url)
        st.session_state[_MISREAD] = misread(in_url)
    return kept


def current() -> Choices:
    """What is chosen now, whatever the URL says."""
    return st.session_state[_KEY]


def said() -> tuple[str, ...]:
    """All that is to be said about the link that was followed."""
    return tuple(st.session_state.get(_MISREAD, {}).values())


def said_of(*names: str) -> tuple[str, ...]:
    """What is to be said at the fields of these names about the link that was followed."""
    found: dict[str, str] = st.session_state.get(_MISREAD, {})
    return tuple(found[name] for name in names if name in found)


def settled(scene: Scene) -> Choices:
    """The choices as they fit the sentence on the screen: another sentence or model begins with its own way."""
    owner = (scene.view.model, scene.view.text)
    if st.session_state.setdefault(_OWNER, owner) != owner:
        st.session_state[_OWNER] = owner
        st.session_state[_KEY] = replace(
            st.session_state[_KEY], step=0, road=0, roads=(), reference="", against=-1, beside=0, node=-1
        )
        visit().own = st.session_state[_KEY].parameters()
        write_url()
    return st.session_state[_KEY]


def change(**changes: Any) -> None:
    """Changes something on behalf of the visitor; for callbacks."""
    st.session_state[_KEY] = replace(st.session_state[_KEY], **changes)
    st.session_state.pop(_PROBLEM, None)
    st.session_state.pop(_MISREAD, None)
    choose()


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
    say(*said_of("look", "roads"))


def drop(roads: set[Road]) -> None:
    """Takes roads out that cannot be gone."""
    now: Choices = st.session_state[_KEY]
    st.session_state[_KEY] = replace(now, roads=tuple(road for road in now.roads if road not in roads), road=0)
    visit().own = st.session_state[_KEY].parameters()
    write_url()


def complain(sentence: str) -> None:
    """Remembers a sentence for the field where a road is chosen, until the next change."""
    st.session_state[_PROBLEM] = sentence


def complaint() -> str:
    """That sentence, if there is one."""
    return st.session_state.get(_PROBLEM, "")


def take_road(road: Road, step: int) -> None:
    """Goes this road from now on, beside those that are kept; the oldest makes room."""
    now: Choices = st.session_state[_KEY]
    if not road:
        change(road=0, step=step)
        return
    roads = now.roads if road in now.roads else (*now.roads, road)[-MOST_ROADS:]
    change(roads=roads, road=roads.index(road) + 1, step=step)


def _number(text: str) -> int:
    return int(text) if re.fullmatch(r"\d{1,4}", text, re.ASCII) else 0


def _or_none(text: str) -> int:
    """The number; -1 for what is none."""
    return int(text) if re.fullmatch(r"\d{1,7}", text, re.ASCII) else -1


def _word(text: str, name: str) -> str:
    return text if text in _WORDS[name] else getattr(Choices, name)


def _limited(text: str, name: str) -> float | int:
    """The number, brought between its limits; the usual one for what is no number."""
    low, high = _LIMITS[name]
    if re.fullmatch(r"-?\d{1,9}(\.\d{1,6})?", text, re.ASCII):
        value = min(max(float(text), low), high)
        return int(value) if isinstance(low, int) else value
    return getattr(Choices, name)


def _is_within(text: str, low: float, high: float) -> bool:
    pattern = r"\d{1,9}" if isinstance(low, int) else r"\d{1,9}(\.\d{1,6})?"
    return re.fullmatch(pattern, text, re.ASCII) is not None and low <= float(text) <= high
