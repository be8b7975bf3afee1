"""What the Train page remembers of a visitor, kept equal to the URL. All its session keys live here."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from pages.training import corpora, plans
from pages.training.plan_fields import PARTS, WHOLE
from pages.training.plan_text import parsed
from pages.training.plans import FIRST_CORPUS, Plan, recommended
from pages.training.url_memory import UrlMemory
from transformer.checkpoints.settings import is_name
from transformer.runs.run_folder import Run

_KEY = "attention-lab-train"
LOOKS = ("run", "corpus", "costs")
"""What the right side shows: the run, the corpus, or what the plan will take."""
_OWN = ("run", "look")
PARAMETERS = (*_OWN, *plans.PARAMETERS)
"""The query parameters of the Train page."""
_THOUSANDS = re.compile(r"\d{1,3}(,\d{3})+")


@dataclass
class Memory:
    """One visitor's plan, and the run that is on show."""

    plan: Plan = field(default_factory=lambda: recommended(FIRST_CORPUS))
    run: str = ""
    look: str = LOOKS[0]
    named: bool = False
    """Whether a link or the visitor named the corpus: a run of another then does not come up beside it unasked."""
    drafts: dict[str, str] = field(default_factory=dict)
    """What stands in number fields and is no number; the plan then has the number before it."""
    problems: dict[str, str] = field(default_factory=dict)
    """Sentences about a link, by field; gone with the next change."""
    url: UrlMemory = field(default_factory=lambda: UrlMemory(PARAMETERS))
    asked: dict[str, str] = field(default_factory=dict)
    """What each run was asked to do and has not done yet: "pause" or "stop"."""
    measure: object = None
    """The work whose speed the visitor asked to be measured."""
    refusal: str = ""
    """Why the last press of a button came to nothing."""


def memory() -> Memory:
    """This session's memory."""
    if _KEY not in st.session_state:
        st.session_state[_KEY] = Memory()
    return st.session_state[_KEY]


def key_of(name: str) -> str:
    """The session key of a field's widget."""
    return f"train-{name}"


def change(name: str, value: Any) -> None:
    """Takes over what a visitor entered in a field."""
    now = memory()
    match name:
        case "corpus":
            take_corpus(value)
        case "preset":
            now.plan = now.plan.with_preset(value)
        case "sentences":
            now.plan = replace(now.plan, sentences=plans.lines_of(value))
        case _:
            now.plan = replace(now.plan, **{name: plans.whole(value) if name in WHOLE else value})
    _changed(now)


def type_number(name: str, text: str) -> None:
    """Takes over a number that was typed as text; what is no number stays in the field, and is refused there."""
    now, typed = memory(), text.strip()
    now.drafts.pop(name, None)
    try:
        change(name, parsed(name, typed.replace(",", "") if _THOUSANDS.fullmatch(typed) else typed))
    except ValueError:
        now.drafts[name] = text
        _changed(now)


def change_part(part: plans.Part, left_out: bool) -> None:
    """Takes over a switch for a part of the model."""
    now = memory()
    assert part in PARTS, part
    now.plan = now.plan.with_part(part, present=not left_out)
    _changed(now)


def put(name: str, value: Any) -> None:
    """Fills a value in, as a button offers it; for callbacks."""
    now = memory()
    now.plan = replace(now.plan, **{name: value})
    now.drafts.pop(name, None)
    _changed(now)


def take_corpus(corpus: str) -> None:
    """Fills in the recipe of another corpus."""
    now = memory()
    now.plan, now.drafts, now.named = now.plan.with_corpus(corpus), {}, True
    _changed(now)


def show(look: str) -> None:
    """Chooses what the right side shows; for callbacks too."""
    now = memory()
    now.look, now.url.touched = look, True


def _changed(now: Memory) -> None:
    now.problems, now.url.touched, now.refusal = {}, True, ""


def reset() -> None:
    """Puts every field back to what is recommended for the corpus; for callbacks."""
    now = memory()
    now.plan, now.drafts = recommended(now.plan.corpus), {}
    _changed(now)


def show_run(run_id: str) -> None:
    """Puts a run on show; for callbacks too."""
    now = memory()
    now.run, now.look, now.url.touched, now.refusal = run_id, LOOKS[0], True, ""


def settle_run(found: Sequence[Run]) -> None:
    """Keeps the run on show if it is here; else one at work or the newest, of the corpus where one is named."""
    now = memory()
    if any(run.id == now.run for run in found):
        return
    if now.run:
        now.problems["run"] = f"There is no run {now.run} here any more."
    fitting = [run for run in found if not now.named or corpora.of_run(run.settings) == now.plan.corpus]
    now.run = next((run.id for run in [*(run for run in fitting if run.status.active), *fitting]), "")


def follow_url() -> None:
    """Takes over plan and run from the URL where someone else wrote it: a link, a reload, the back button."""
    now = memory()
    if (in_url := now.url.read()) is not None:
        now.plan, wrong = plans.read(in_url)
        now.drafts, now.problems, now.named = {}, dict(wrong), "corpus" in in_url
        now.run = in_url["run"][-1] if "run" in in_url else ""
        if now.run and not is_name(now.run):
            now.problems["run"] = f"The link asks for the run “{now.run[:40]}”, which cannot be a run's name."
            now.run = ""
        now.look = in_url["look"][-1] if in_url.get("look", [""])[-1] in LOOKS else LOOKS[0]


def write_url() -> None:
    """Puts plan and run into the URL."""
    now = memory()
    own = {"run": now.run, "look": now.look if now.look != LOOKS[0] else ""}
    now.url.write({name: value for name, value in own.items() if value} | now.plan.parameters())
