"""The state of the Runs page, kept equal to the URL. Its session keys live here."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import streamlit as st

from pages.shared.url.page_state import UrlPart
from pages.shared.url.url_state import TEXTS as LINK
from pages.shared.url.url_state import Form, Problem, UrlState, param
from pages.training.compare import SHOWN_AT_FIRST, Entry
from transformer.checkpoints.settings import renamed

Doing = Literal["", "rename", "note", "delete"]
TAB, RUNS, SWEEPS = "tab", "Runs", "Sweeps"
BASE = "base"
"""Keys of the controls that choose between runs and sweeps, and the run that a sweep varies. Both are query parameters,
so neither may be `packed_link.PARAMETER`, which is deleted from the URL."""
_KEY = "attention-lab-runs"


@dataclass(frozen=True, kw_only=True)
class Choices(UrlState):
    """The runs and the sweep on show."""

    shown: tuple[str, ...] | None = param(None, Form(str), name="show", many=tuple)
    """The runs whose curves are laid over each other; None before anything was chosen."""
    run: str = param("", Form(str))
    """The selected run, on which the buttons act."""
    sweep: str = param("", Form(str))
    """The sweep on show."""


CHOICES = UrlPart(Choices, key=f"{_KEY}-choices")


@dataclass
class RunTable:
    """The rest of one visitor's table of runs."""

    doing: Doing = ""
    """The pending action on the selected run."""
    refusals: tuple[str, ...] = ()
    """The reasons why the last press of a button came to nothing."""
    hidden: frozenset[str] = frozenset()
    """Runs of the sweep on show whose curves are not drawn."""
    arrived: str = ""
    """The model that was loaded from an archive in the rerun before."""
    uploads: int = 0
    """Counts the archives that were loaded: the field is then empty again."""


def table_state() -> RunTable:
    """This session's memory."""
    return st.session_state.setdefault(_KEY, RunTable())


def select_run(name: str, *also_shown: str) -> None:
    """Makes a run the one that the buttons act on, and shows the curves of others too."""
    now = table_state()
    CHOICES.change(run=name, shown=(*(CHOICES.now.shown or ()), *also_shown))
    now.doing, now.refusals = "", ()


def sweep_over(name: str) -> None:
    """Goes to the sweeps, with a run as what is varied; for callbacks."""
    st.session_state[TAB] = SWEEPS
    st.session_state[BASE] = name
    table_state().refusals = ()


def show_run(name: str) -> None:
    """Goes to the runs, with one selected; for callbacks."""
    st.session_state[TAB] = RUNS
    select_run(name)


def follow_url(found: Sequence[Entry]) -> None:
    """Takes over what a link asks for, under the names of today, and drops what is not there any more."""
    names, before = [entry.name for entry in found], CHOICES.now
    now = CHOICES.follow_url()
    shown, run = now.shown, now.run
    if now is not before:
        asked = [*(shown or ()), *([run] if run else [])]
        today = {name: name if name in names else renamed(name) or name for name in asked}
        shown, run = shown and tuple(today[name] for name in shown), today.get(run, "")
        if gone := [name for name in dict.fromkeys(asked) if today[name] not in names]:
            CHOICES.tell(Problem("show", LINK("absent.entries", names=_listed(gone))))
    if shown is None:
        shown = _shown_at_first(found)
    if run not in names:
        run, table_state().doing = names[0], ""
    CHOICES.put(replace(now, shown=tuple(name for name in dict.fromkeys(shown) if name in names), run=run))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"“{name[:40]}”" for name in names)


def _shown_at_first(found: Sequence[Entry]) -> list[str]:
    """Returns the first runs, else models, that learn what the first of them learns: others are not to be compared."""
    offered = [entry for entry in found if entry.run is not None] or list(found)
    corpus = offered[0].settings.corpus.name
    return [entry.name for entry in offered if entry.settings.corpus.name == corpus][:SHOWN_AT_FIRST]
