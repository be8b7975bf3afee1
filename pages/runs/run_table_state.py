"""What the Runs page remembers of a visitor, kept equal to the URL. Its session keys live here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import streamlit as st

from pages.training.compare import SHOWN_AT_FIRST, Entry
from transformer.checkpoints.settings import renamed

Doing = Literal["", "rename", "note", "delete"]
TAB, RUNS, SWEEPS = "tab", "Runs", "Sweeps"
BASE = "base"
"""Keys of the controls that choose between runs and sweeps, and the run that a sweep varies. Both are query parameters,
so neither may be `packed_link.PARAMETER`, which is deleted from the URL."""
_KEY = "attention-lab-runs"


@dataclass
class RunTable:
    """One visitor's table of runs."""

    shown: list[str] | None = None
    """Whose curves are laid over each other; None before anything was chosen."""
    chosen: str = ""
    """Which one the buttons act on."""
    doing: Doing = ""
    """What the selected run is about to get: another name, a note, its end."""
    refusals: tuple[str, ...] = ()
    """Why the last press of a button came to nothing."""
    problems: tuple[str, ...] = ()
    """Sentences about a link."""
    sweep: str = ""
    """The sweep on show."""
    hidden: frozenset[str] = frozenset()
    """Runs of that sweep whose curves are not drawn."""
    arrived: str = ""
    """The model that was loaded from an archive in the rerun before."""
    uploads: int = 0
    """Counts the archives that were loaded: the field is then empty again."""
    written: dict[str, list[str]] | None = None


def table_state() -> RunTable:
    """This session's memory."""
    if _KEY not in st.session_state:
        st.session_state[_KEY] = RunTable()
    return st.session_state[_KEY]


def select_run(name: str) -> None:
    """Makes a run the one that the buttons act on."""
    now = table_state()
    now.chosen, now.doing, now.refusals, now.problems = name, "", (), ()


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
    now, names = table_state(), [entry.name for entry in found]
    in_url = {name: st.query_params.get_all(name) for name in ("show", "run", "sweep")}
    if any(in_url.values()) and in_url != now.written:
        asked = [*in_url["show"], *in_url["run"]]
        today = {name: name if name in names else renamed(name) or name for name in asked}
        now.shown = [today[name] for name in in_url["show"]] or None
        now.chosen = today[in_url["run"][-1]] if in_url["run"] else ""
        now.sweep = in_url["sweep"][-1] if in_url["sweep"] else ""
        gone = [name for name in dict.fromkeys(asked) if today[name] not in names]
        now.problems = (f"The link asks for {_listed(gone)}, which is not here.",) if gone else ()
    if now.shown is None:
        now.shown = [entry.name for entry in found if entry.run is not None][:SHOWN_AT_FIRST] or names[:SHOWN_AT_FIRST]
    now.shown = [name for name in dict.fromkeys(now.shown) if name in names]
    if now.chosen not in names:
        now.chosen, now.doing = names[0], ""


def write_url() -> None:
    """Puts what was chosen into the URL, beside the parameters of the widgets."""
    now = table_state()
    now.written = {"show": list(now.shown or []), "run": [now.chosen], "sweep": [now.sweep] if now.sweep else []}
    for name, values in now.written.items():
        if st.query_params.get_all(name) != values:
            st.query_params[name] = values


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"“{name[:40]}”" for name in names)
