"""What is chosen on the Decoder steps page alone: the roads, the one that is walked, the step; in the URL too."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from pages.common.controls import Scene
from pages.common.state import choose, visit, write_url
from transformer.config import LengthNorm

Road = tuple[tuple[int, int], ...]
"""The tokens that were forced, each as (step, id); empty: the model's own way."""
MOST_ROADS = 5
"""Forced roads kept beside the model's own."""
WIDEST_TREE, HIGHEST_ALPHA = 10, 2.0
"""What still makes a readable tree, and where a length norm has long outweighed everything else."""

_KEY, _OWNER = "steps-page", "steps-page-sentence"
_DRAW = {"temperature": (0.1, 5.0), "top_k": (0, 50), "top_p": (0.05, 1.0), "min_p": (0.0, 1.0), "seed": (0, 100)}
"""The settings of sampling, each with its least and its greatest value."""
_NAMES = ("step", "road", "roads", "scale", "reference", "look", "beam", "alpha", "norm", "stop", *_DRAW)
_PROBLEM = "steps-page-problem"


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Where the visitor stands."""

    step: int = 0
    road: int = 0
    """0 for the model's own way, then the forced ones."""
    roads: tuple[Road, ...] = ()
    scale: str = "linear"
    reference: str = ""
    look: str = "steps"
    """steps, the beam's tree, or samples."""
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
        found["alpha"] = f"{self.alpha:g}"
        usual = {"step": "0", "road": "0", "scale": "linear", "look": "steps", "stop": "early"}
        usual |= {"beam": "4", "alpha": "0.6", "norm": "paper"}
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
    road = _number(parameters.get("road", ""))
    return Choices(
        step=_number(parameters.get("step", "")),
        road=road if road <= len(roads) else 0,
        roads=tuple(dict.fromkeys(roads)),
        scale="log" if parameters.get("scale") == "log" else "linear",
        reference=parameters.get("reference", "")[:1_000],
        look=look if (look := parameters.get("look", "")) in ("beam", "samples") else "steps",
        beam=min(max(_number(parameters.get("beam", "4")), 1), WIDEST_TREE),
        alpha=_decimal(parameters.get("alpha", ""), 0.6, 0.0, HIGHEST_ALPHA),
        norm="length" if parameters.get("norm") == "length" else "paper",
        stop="late" if parameters.get("stop") == "late" else "early",
        **{name: _drawn(parameters.get(name, ""), name) for name in _DRAW},  # type: ignore[arg-type]
    )


def choices() -> Choices:
    """What is chosen now: the URL's word where someone else than this session wrote it, else what was chosen before."""
    in_url = {name: st.query_params[name] for name in _NAMES if name in st.query_params}
    kept: Choices = st.session_state.setdefault(_KEY, Choices())
    if in_url and in_url != kept.parameters() and not visit().touched:
        st.session_state[_KEY] = kept = read(in_url)
    return kept


def settled(scene: Scene) -> Choices:
    """The choices as they fit the sentence on the screen: another sentence or model begins with its own way."""
    owner = (scene.view.model, scene.view.text)
    if st.session_state.setdefault(_OWNER, owner) != owner:
        st.session_state[_OWNER] = owner
        st.session_state[_KEY] = replace(st.session_state[_KEY], step=0, road=0, roads=(), reference="")
        visit().own = st.session_state[_KEY].parameters()
        write_url()
    return st.session_state[_KEY]


def change(**changes: Any) -> None:
    """Changes something on behalf of the visitor; for callbacks."""
    st.session_state[_KEY] = replace(st.session_state[_KEY], **changes)
    st.session_state.pop(_PROBLEM, None)
    choose()


def choose_look(chosen: Choices) -> None:
    """Greedy decoding step by step, the beam, or samples."""
    names = {"steps": "Step by step", "beam": "Beam", "samples": "Sampling"}
    st.session_state["look"] = chosen.look
    st.segmented_control(
        "Look at",
        list(names),
        key="look",
        required=True,
        format_func=names.__getitem__,
        label_visibility="collapsed",
        on_change=lambda: change(look=st.session_state["look"]),
    )


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


def _decimal(text: str, usual: float, low: float, high: float) -> float:
    return min(max(float(text), low), high) if re.fullmatch(r"\d{1,3}(\.\d{1,6})?", text, re.ASCII) else usual


def _drawn(text: str, name: str) -> float | int:
    low, high = _DRAW[name]
    value = _decimal(text, getattr(Choices, name), low, high)
    return int(value) if isinstance(low, int) else value
