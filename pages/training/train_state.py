"""The state of the Train page: the plan and the run beside it, kept equal to the URL. Its session keys live here."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import streamlit as st

from pages.shared.background import Watcher
from pages.shared.url.page_state import UrlPart
from pages.shared.url.url_state import TEXTS, Parameters, Problem, UrlState, param, words
from pages.shared.waiting import connection
from pages.training import corpora, plans
from pages.training.live.settings import RUN_NAME
from pages.training.plan_fields import PARTS, WHOLE
from pages.training.plan_text import parsed
from pages.training.plans import FIRST_CORPUS, Plan, recommended
from transformer.runs.run_folder import Run

_KEY = "attention-lab-train"
LOOKS = ("run", "corpus", "costs")
"""The right side of the page: the run, the corpus, or the estimate of the plan."""
_THOUSANDS = re.compile(r"\d{1,3}(,\d{3})+")


@dataclass(frozen=True, kw_only=True)
class Chosen(UrlState):
    """The plan in the fields, and the run beside it."""

    run: str = param("", RUN_NAME, nonsense="run")
    look: str = param(LOOKS[0], words(*LOOKS))
    plan: Plan = field(default_factory=lambda: recommended(FIRST_CORPUS))
    is_named: bool = False
    """True if a link or the visitor named the corpus: a run of another then does not come up beside it unasked."""

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The query parameters of the Train page."""
        return (*super().names(), *Plan.names())

    @classmethod
    def read(cls, parameters: Parameters, base: UrlState | None = None) -> tuple[Self, tuple[Problem, ...]]:
        """The plan and the run in these query parameters, and a problem for each value that makes no sense."""
        plan, wrong = Plan.read(parameters)
        chosen, problems = super().read(parameters, base)
        return replace(chosen, plan=plan, is_named="corpus" in parameters), (*wrong, *problems)

    def parameters(self, base: UrlState | None = None) -> dict[str, str | list[str]]:
        """The query parameters that `read` turns into this state again."""
        return super().parameters(base) | self.plan.parameters()


CHOSEN = UrlPart(Chosen, key=f"{_KEY}-chosen")


@dataclass
class Memory:
    """The rest of what one visitor's session remembers of the page."""

    drafts: dict[str, str] = field(default_factory=dict)
    """Texts in number fields that are no numbers; the plan then has the number before."""
    measure: object = None
    """The work whose speed the visitor asked to be measured."""
    watcher: Watcher = field(default_factory=lambda: Watcher(connection()))
    """The session as measurements know it."""
    refusal: str = ""
    """The reason why the last press of a button came to nothing."""


def memory() -> Memory:
    """Returns this session's memory."""
    return st.session_state.setdefault(_KEY, Memory())


def key_of(name: str) -> str:
    """Returns the session key of a field's widget."""
    return f"train-{name}"


def change(name: str, value: Any) -> None:
    """Takes over what a visitor entered in a field."""
    match name:
        case "corpus":
            take_corpus(value)
        case "family":
            _take(CHOSEN.now.plan.with_family(value))
        case "columns":
            _take(CHOSEN.now.plan.with_columns(value))
        case "tokenizer" | "vocab_size":
            _take(CHOSEN.now.plan.with_tokens(**{name: plans.whole(value) if name in WHOLE else value}))
            memory().drafts.pop(name, None)
        case "preset":
            _take(CHOSEN.now.plan.with_preset(value))
        case "sentences":
            put(name, plans.lines_of(value))
        case _:
            put(name, plans.whole(value) if name in WHOLE else value)


def type_number(name: str, text: str) -> None:
    """Takes over a number that was typed as text; what is no number stays in the field, and is refused there."""
    typed = text.strip()
    try:
        change(name, parsed(name, typed.replace(",", "") if _THOUSANDS.fullmatch(typed) else typed))
    except ValueError:
        _take(CHOSEN.now.plan)
        memory().drafts[name] = text


def change_part(part: plans.Part, left_out: bool) -> None:
    """Takes over a switch for a part of the model."""
    assert part in PARTS, part
    _take(CHOSEN.now.plan.with_part(part, present=not left_out))


def put(name: str, value: Any) -> None:
    """Fills a value in; for callbacks."""
    _take(replace(CHOSEN.now.plan, **{name: value}))
    memory().drafts.pop(name, None)


def take_corpus(corpus: str) -> None:
    """Fills in the recipe of another corpus."""
    _take(CHOSEN.now.plan.with_corpus(corpus), is_named=True)
    memory().drafts = {}


def reset() -> None:
    """Puts every field back to what is recommended for the corpus; for callbacks."""
    _take(CHOSEN.now.plan.recipe)
    memory().drafts = {}


def _take(plan: Plan, **changes: Any) -> None:
    CHOSEN.change(plan=plan, **changes)
    memory().refusal = ""


def show_run(run_id: str) -> None:
    """Puts a run on show; for callbacks too."""
    CHOSEN.change(run=run_id, look=LOOKS[0])
    memory().refusal = ""


def settle_run(found: Sequence[Run]) -> None:
    """Keeps the run on show if it is here; else one at work or the newest, of the corpus where one is named."""
    chosen = CHOSEN.now
    if any(run.id == chosen.run for run in found):
        return
    if chosen.run:
        CHOSEN.tell(Problem("run", TEXTS("absent.run", run=chosen.run)))
    fitting = [run for run in found if not chosen.is_named or corpora.of_run(run.settings) == chosen.plan.corpus]
    run = next((run.id for run in [*(run for run in fitting if run.status.active), *fitting]), "")
    CHOSEN.put(replace(chosen, run=run))


def follow_url() -> Chosen:
    """Takes over plan and run from the URL where someone else wrote it: a link, a reload, the back button."""
    before = CHOSEN.now
    if CHOSEN.follow_url() is not before:
        memory().drafts = {}
    return CHOSEN.now
