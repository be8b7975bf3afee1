"""The Decoder steps page's own choices: the branches, the selected one, the step, and the settings of each view."""

import re
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import streamlit as st

from pages.shared import fields
from pages.shared.context import say
from pages.shared.url.page_state import PageState
from pages.shared.url.url_state import TEXTS, Form, Refused, UrlState, decimal, param, text, whole, words
from transformer.config import LengthNorm

Forced = tuple[tuple[int, int], ...]
"""The tokens that are forced on a branch, each as (step, id); empty for the model's own output."""
MAX_BRANCHES = 5
"""The number of branches kept beside the model's own output."""
MAX_BEAM, MAX_ALPHA = 10, 2.0
"""The largest tree that is still readable, and an α with which the length norm has long outweighed everything else."""

Look = Literal["steps", "inside", "beam", "samples", "reference"]
BranchesAs = Literal["lines", "tree", "pair"]

_PROBLEM = "steps-page-problem"
_FORCED = re.compile(r"\d{1,4}:\d{1,7}(,\d{1,4}:\d{1,7})*", re.ASCII)
_SENTENCE = ("model", "text")
_SEARCH = ("beam", "alpha", "norm", "stop")
"""The fields whose change makes another beam tree."""


def _read_branches(text: str) -> tuple[Forced, ...]:
    if not text:
        return ()
    found: list[Forced] = []
    given = text.split(";")
    for branch in given[:MAX_BRANCHES]:
        if _FORCED.fullmatch(branch):
            pairs = (pair.split(":") for pair in branch.split(","))
            found.append(tuple(sorted({int(step): int(token) for step, token in pairs}.items())))
    branches = tuple(dict.fromkeys(found))
    if len(found) < len(given):
        raise Refused(TEXTS("expected.branches", most=MAX_BRANCHES), branches)
    return branches


def _write_branches(branches: tuple[Forced, ...]) -> str:
    return ";".join(",".join(f"{step}:{token}" for step, token in branch) for branch in branches)


def _among_branches(state: "Choices") -> range:
    return range(len(state.branches) + 1)


@dataclass(frozen=True, kw_only=True)
class Choices(UrlState):
    """The visitor's choices: the branches, the step, and the settings of each view."""

    step: int = param(0, whole(0, 9_999), resets=_SENTENCE)
    branch: int = param(0, whole(0, 9_999), name="road", among=_among_branches, resets=_SENTENCE, absent="branch")
    """The number of the selected branch; 0 is the model's own output."""
    scale: str = param("linear", words("linear", "log"))
    reference: str = param("", text(1_000), resets=_SENTENCE)
    branches: tuple[Forced, ...] = param(
        (),
        Form(_read_branches, _write_branches),
        name="roads",
        resets=_SENTENCE,
        nonsense="branches",
    )
    look: Look = param("steps", words(*get_args(Look)))
    """One step, its logit lens, the beam's tree, samples, or a reference teacher-forced."""
    beam: int = param(4, whole(1, MAX_BEAM, clamp=True))
    alpha: float = param(0.6, decimal(0.0, MAX_ALPHA, clamp=True))
    norm: LengthNorm = param("paper", words(*get_args(LengthNorm)))
    stop: str = param("late", words("early", "late"))
    """"late", when no hypothesis can be overtaken, or "early"."""
    branches_as: BranchesAs = param("lines", words(*get_args(BranchesAs)), name="roads_as")
    """Branches as lines below one another, as one tree, or two of them step by step."""
    beside: int = param(0, whole(0, 9_999), among=_among_branches, resets=_SENTENCE, absent="branch")
    """The branch that is compared with the selected one."""
    against: int = param(-1, whole(0, 9_999_999), resets=_SENTENCE)
    """The token that the written one is compared with; -1 for the next most probable."""
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


def render_look(chosen: Choices) -> None:
    """Renders the choice among the ways to look at how this sentence is decoded."""
    names: dict[Look, str] = {
        "steps": "Step by step",
        "inside": "Inside the step",
        "beam": "Beam search",
        "samples": "Sampling",
        "reference": "Against a reference",
    }
    fields.segments("Look at", names, chosen.look, lambda look: change(look=look), key="look")
    say(*PAGE.said("look", "roads"))


def drop(branches: set[Forced]) -> None:
    """Removes branches that cannot be decoded."""
    now = PAGE.now
    kept = tuple(branch for branch in now.branches if branch not in branches)
    PAGE.put(replace(now, branches=kept, branch=0))


def complain(sentence: str) -> None:
    """Remembers a sentence for the field where a token is forced, until the next change."""
    st.session_state[_PROBLEM] = sentence


def complaint() -> str:
    """Returns that sentence, or nothing."""
    return st.session_state.get(_PROBLEM, "")


def take_branch(forced: Forced, step: int) -> None:
    """Selects this branch, beside those that are kept; the oldest makes room."""
    now = PAGE.now
    if not forced:
        change(branch=0, step=step)
        return
    branches = now.branches if forced in now.branches else (*now.branches, forced)[-MAX_BRANCHES:]
    change(branches=branches, branch=branches.index(forced) + 1, step=step)
