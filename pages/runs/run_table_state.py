"""The state of the Runs page, kept equal to the URL. Its session keys live here."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import streamlit as st

from pages.shared.url.page_state import UrlPart
from pages.shared.url.url_state import TEXTS as LINK
from pages.shared.url.url_state import Form, Problem, UrlState, param, text, words
from pages.training.compare import AGAINST, COMPARED, SCALES, SHOWN_AT_FIRST, Entry
from transformer.checkpoints.settings import renamed
from transformer.runs.sweeps import SETTINGS, sweeps_of

Doing = Literal["", "rename", "note", "delete"]
Tab = Literal["Runs", "Sweeps"]
RUNS, SWEEPS = get_args(Tab)
LONGEST_VALUES = 300
"""The most characters of the values of a new sweep."""
_KEY = "attention-lab-runs"


@dataclass(frozen=True, kw_only=True)
class Choices(UrlState):
    """The runs and the sweep on show, and the new sweep that is being filled in."""

    tab: Tab = param(RUNS, words(RUNS, SWEEPS))
    shown: tuple[str, ...] | None = param(None, Form(str), name="show", many=tuple)
    """The runs whose curves are laid over each other; None before anything was chosen."""
    run: str = param("", Form(str))
    """The selected run, on which the buttons act."""
    quantity: str = param(COMPARED[0], words(*COMPARED))
    """The quantity that the curves of runs show."""
    against: str = param("step", words(*AGAINST))
    scale: str = param("log", words(*SCALES))
    sweep: str = param("", Form(str))
    """The sweep on show."""
    metric: str = param(COMPARED[0], words(*COMPARED))
    """The quantity that the results of the sweep show."""
    base: str = param("", Form(str))
    """The run that a new sweep varies; empty for the selected one."""
    setting: str = param("model.n_heads", words(*SETTINGS))
    """The setting that a new sweep varies."""
    values: str = param("1 2 4", text(LONGEST_VALUES))
    """The values that it takes, as the visitor wrote them."""


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
    CHOICES.change(tab=SWEEPS, base=name)
    table_state().refusals = ()


def show_run(name: str) -> None:
    """Goes to the runs, with one selected; for callbacks."""
    select_run(name)
    CHOICES.change(tab=RUNS)


def follow_url(found: Sequence[Entry]) -> None:
    """Takes over what a link asks for, under the names of today, and drops what is not there any more."""
    names, before = [entry.name for entry in found], CHOICES.now
    now = CHOICES.follow_url()
    shown, run, base = now.shown, now.run, now.base
    if now is not before:
        asked = [*(shown or ()), *([run] if run else [])]
        today = {name: name if name in names else renamed(name) or name for name in (*asked, base)}
        shown, run, base = shown and tuple(today[name] for name in shown), today.get(run, ""), today[base]
        _tell_gone("show", [name for name in dict.fromkeys(asked) if today[name] not in names])
        _tell_gone("base", [now.base] if base and base not in names else [])
        sweeps = [sweep.id for sweep in sweeps_of([entry.run for entry in found if entry.run is not None])]
        _tell_gone("sweep", [now.sweep] if now.sweep and now.sweep not in sweeps else [])
    if shown is None:
        shown = _shown_at_first(found)
    if run not in names:
        run, table_state().doing = names[0], ""
    shown = tuple(name for name in dict.fromkeys(shown) if name in names)
    CHOICES.put(replace(now, shown=shown, run=run, base=base if base in names else ""))


def _tell_gone(place: str, gone: Sequence[str]) -> None:
    """Tells beside a control what a link asks for and is not there any more; nothing where it is all there."""
    if gone:
        CHOICES.tell(Problem(place, LINK("absent.entries", names=", ".join(f"“{name[:40]}”" for name in gone))))


def _shown_at_first(found: Sequence[Entry]) -> list[str]:
    """Returns the first runs, else models, that learn what the first of them learns: others are not to be compared."""
    offered = [entry for entry in found if entry.run is not None] or list(found)
    corpus = offered[0].settings.corpus.name
    return [entry.name for entry in offered if entry.settings.corpus.name == corpus][:SHOWN_AT_FIRST]
