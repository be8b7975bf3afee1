"""The Runs page's table, curves and buttons, redrawn every other second while a trainer is at work."""

from collections.abc import Sequence
from typing import Literal

import streamlit as st

from pages.runs.actions import render_actions
from pages.runs.run_table_state import CHOICES, select_run, table_state
from pages.shared import wording
from pages.shared.components.run_table import run_table
from pages.shared.context import say
from pages.shared.fields import segments
from pages.shared.guard import guarded_fragment
from pages.training import run_status
from pages.training.compare import (
    AGAINST,
    SCALES,
    Entry,
    entries,
    quantities_of,
    render_curves,
    table_of,
)
from pages.training.doctor import doctor_panel
from pages.training.run_view import run_note
from pages.training.timeline.panel import timeline_panel
from pages.training.train_state import memory
from transformer.views.training.runs import QUANTITIES

EVERY_S = 2.0


def panel(found: Sequence[Entry]) -> None:
    """Renders table, curves and buttons; below them the Doctor's findings and the timeline of the selected run."""
    active = any(entry.active for entry in found)
    guarded_fragment("The table of runs", _panel, every=EVERY_S if active else None)(active)
    chosen = next((entry for entry in found if entry.name == CHOICES.now.run), None)
    if chosen is not None and chosen.run is not None:
        doctor_panel(chosen.name)
        timeline_panel(chosen.name)


def _panel(was_active: bool) -> None:
    found, now = entries(), CHOICES.now
    names = {entry.name: entry for entry in found}
    if any(entry.active for entry in found) != was_active or now.run not in names:
        st.rerun()
    say(*CHOICES.said("show", "run"))
    shown = [name for name in now.shown or () if name in names]
    columns, rows = table_of(found)
    picks = run_table(rows, columns, shown=shown, chosen=now.run, key="runs-table")
    if picks.ticked is not None:
        name, wanted = picks.ticked
        CHOICES.change(shown=(*(other for other in shown if other != name), *([name] if wanted else [])))
    if picks.chosen is not None:
        select_run(picks.chosen)
        memory().refusal = ""
    if picks.ticked is not None or picks.chosen is not None:
        st.rerun()
    _render_selected(names[now.run], found)
    _render_overlay([names[name] for name in shown])


def _render_selected(entry: Entry, found: Sequence[Entry]) -> None:
    """Renders the buttons for the selected run, and its state."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"## {wording.plain(entry.name)}", width="content")
        if entry.run is not None:
            run_status.actions(entry.run, key="runs")
        text = entry.settings.pinned[0] if entry.settings.pinned else ""
        run_status.look_inside(
            entry.name, text, entry.settings.model, disabled=entry.run is not None and not entry.run.loadable
        )
        if entry.run is not None:
            st.page_link("pages/train/page.py", label="Watch it", query_params={"run": entry.name})
    if entry.run is not None:
        st.caption(f"{run_status.state_word(entry.run).capitalize()} · {run_status.state_rest(entry.run)}")
        run_note(entry.run)
    if (parent := entry.settings.parent) is not None:
        st.caption(f"Started from the weights of {wording.plain(parent.run)} at step {parent.step:,}.")
    if entry.note and table_state().doing != "note":
        st.markdown("  \n".join(wording.plain(line) for line in entry.note.splitlines()))
    render_actions(entry, runs_here=[other.run for other in found if other.run is not None])


def _render_overlay(shown: Sequence[Entry]) -> None:
    """Renders the choice of quantity, axis and scale, and the curves."""
    now = CHOICES.now
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        quantity = choose_quantity("quantity", shown)
        segments("Over", tuple(AGAINST), now.against, CHOICES.take("against"), key="runs-against")
        if has_scale := QUANTITIES[quantity].log:
            segments("Scale", SCALES, now.scale, CHOICES.take("scale"), key="runs-scale")
    say_of_quantity("quantity", quantity, shown)
    say(*CHOICES.said("against", "scale"))
    CHOICES.write_url()
    if not shown:
        st.markdown("Tick a run above to see its curve here.")
        return
    render_curves(shown, quantity=quantity, against=now.against, log=has_scale and now.scale == "log")
    if len(learned := {entry.settings.corpus.name for entry in shown}) > 1:
        st.caption(
            f"These runs learn {len(learned)} different corpora: compare where each curve goes, not how high it is."
        )
    if quantity == "training loss" and any(entry.settings.train.label_smoothing for entry in shown):
        st.caption(
            "Training loss is label-smoothed if the run uses smoothing: it cannot fall to 0 and is not validation loss."
        )


def choose_quantity(name: Literal["quantity", "metric"], shown: Sequence[Entry]) -> str:
    """Renders the choice of what to compare runs by; returns the first quantity where none of them has the chosen."""
    chosen, offered = getattr(CHOICES.now, name), quantities_of(shown)
    quantity = chosen if chosen in offered else offered[0]
    segments("What to compare", offered, quantity, CHOICES.take(name), key=f"runs-{name}")
    return quantity


def say_of_quantity(name: Literal["quantity", "metric"], quantity: str, shown: Sequence[Entry]) -> None:
    """Says why another quantity is on show than was asked for."""
    say(*CHOICES.said(name))
    if shown and quantity != (chosen := getattr(CHOICES.now, name)):
        say(f"None of these runs was scored by {chosen}: you see {quantity}.")
