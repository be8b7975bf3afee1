"""The Runs page's table, curves and buttons, redrawn every other second while a trainer is at work."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import streamlit as st

from pages.common.components.run_table import run_table
from pages.common.controls import say
from pages.common.training import run_state
from pages.common.training.compare import (
    AGAINST,
    QUANTITIES,
    SCALES,
    SHOWN_AT_FIRST,
    Entry,
    draw_curves,
    entries,
    row_of,
)
from pages.common.training.memory import memory
from pages.common.training.view import run_note
from transformer import runs
from transformer.runs import RunError

EVERY_S = 2.0
_KEY = "attention-lab-runs"


@dataclass
class Ledger:
    """What the Runs page remembers of a visitor."""

    shown: list[str] | None = None
    """Whose curves are laid over each other; None before anything was chosen."""
    chosen: str = ""
    """Which one the buttons act on."""
    deleting: str = ""
    """The run whose deletion has been asked for once."""
    problems: list[str] = field(default_factory=list)
    written: tuple[list[str], list[str]] | None = None


def ledger() -> Ledger:
    """This session's memory."""
    if _KEY not in st.session_state:
        st.session_state[_KEY] = Ledger()
    return st.session_state[_KEY]


def follow_url(found: Sequence[Entry]) -> None:
    """Takes over what a link asks for, and drops what is not there any more."""
    now, names = ledger(), [entry.name for entry in found]
    in_url = (st.query_params.get_all("show"), st.query_params.get_all("run"))
    if any(in_url) and in_url != now.written:
        now.shown, now.chosen = list(in_url[0]) or None, (in_url[1] or [""])[-1]
        gone = [name for name in dict.fromkeys([*in_url[0], *in_url[1]]) if name not in names]
        now.problems = [f"The link asks for {_listed(gone)}, which is not here."] if gone else []
    if now.shown is None:
        now.shown = [entry.name for entry in found if entry.run is not None][:SHOWN_AT_FIRST] or names[:SHOWN_AT_FIRST]
    now.shown = [name for name in now.shown if name in names]
    if now.chosen not in names:
        now.chosen = names[0]


def write_url() -> None:
    """Puts what was chosen into the URL, beside the parameters of the widgets."""
    now = ledger()
    now.written = (list(now.shown or []), [now.chosen])
    if (st.query_params.get_all("show"), st.query_params.get_all("run")) != now.written:
        st.query_params["show"], st.query_params["run"] = now.written


def panel(*, active: bool) -> None:
    """Table, curves and buttons."""
    st.fragment(_panel, run_every=EVERY_S if active else None)(active)


def _panel(was_active: bool) -> None:
    found, now = entries(), ledger()
    names = {entry.name: entry for entry in found}
    if any(entry.active for entry in found) != was_active or now.chosen not in names:
        st.rerun()
    for sentence in now.problems:
        say(sentence)
    shown = [name for name in now.shown or [] if name in names]
    picks = run_table([row_of(entry) for entry in found], shown=shown, chosen=now.chosen, key="runs-table")
    if picks.ticked is not None:
        name, wanted = picks.ticked
        now.shown = [*(other for other in shown if other != name), *([name] if wanted else [])]
    if picks.chosen is not None:
        now.chosen, now.deleting, memory().refusal = picks.chosen, "", ""
    if picks.ticked is not None or picks.chosen is not None:
        now.problems = []
        st.rerun()
    _in_hand(names[now.chosen])
    _overlay([names[name] for name in shown])


def _in_hand(entry: Entry) -> None:
    """The buttons for the run in hand, and what there is to say of it."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{entry.name}**", width="content")
        if entry.run is not None:
            run_state.forget_answered(entry.run)
            run_state.actions(entry.run, key="ledger")
        if entry.run is None or entry.run.loadable:
            text = entry.settings.pinned[0] if entry.settings.pinned else ""
            run_state.look_inside(entry.name, text, key="ledger-look")
        if entry.run is not None:
            st.page_link("pages/train.py", label="Watch it", query_params={"run": entry.name})
            if not entry.active:
                st.button("Delete", key="ledger-delete", type="tertiary", on_click=_ask_delete, args=(entry.name,))
    if entry.run is not None:
        st.caption(f"{run_state.state_word(entry.run).capitalize()} · {run_state.state_rest(entry.run)}")
        run_note(entry.run)
    if ledger().deleting == entry.name:
        _confirm(entry.name)


def _confirm(name: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"Delete {name} with its weights and its curves? This cannot be undone.", width="content")
        st.button("Delete for good", key="ledger-confirm", type="primary", on_click=_delete, args=(name,))
        st.button("Keep it", key="ledger-keep", on_click=_ask_delete, args=("",))


def _ask_delete(name: str) -> None:
    ledger().deleting = name


def _delete(name: str) -> None:
    now = ledger()
    now.deleting = ""
    try:
        runs.delete(name)
    except (RunError, OSError) as error:
        now.problems = [f"{name} could not be deleted: {error}."]


def _overlay(shown: Sequence[Entry]) -> None:
    """What to compare, over what, on which scale; and the curves."""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        quantity = _segments("quantity", "What to compare", QUANTITIES)
        against = _segments("against", "Over", tuple(AGAINST))
        scale = _segments("scale", "Scale", SCALES) if quantity != "exact match" else "linear"
    if not shown:
        st.markdown("Tick a run above to see its curve here.")
        return
    draw_curves(shown, quantity=quantity, against=against, log=scale == "log", key="overlay")
    if quantity == "training loss" and any(entry.settings.train.label_smoothing for entry in shown):
        st.caption(
            "Training loss is label-smoothed where a run smooths: it cannot fall to 0, and is not validation loss."
        )


def _segments(key: str, label: str, options: Sequence[str]) -> str:
    found = st.segmented_control(
        label, options, default=options[0], key=key, bind="query-params", label_visibility="collapsed", required=True
    )
    return str(found or options[0])


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"“{name[:40]}”" for name in names)
