"""Sweeps on the Runs page: their results as one chart with the curves beside it, and the form for a new one."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from pages.runs.actions import REFUSALS, refusal_kept
from pages.runs.run_table import EVERY_S, choose_quantity, say_of_quantity
from pages.runs.run_table_state import CHOICES, LONGEST_VALUES, table_state
from pages.shared import wording
from pages.shared.components.run_table import Column, run_table
from pages.shared.context import say, sentence
from pages.shared.exhibit import exhibit
from pages.shared.fields import box, line
from pages.shared.guard import guarded_fragment
from pages.shared.wording import number
from pages.training import durations, run_status
from pages.training.compare import Entry, column_title, entries, last_of, render_curves
from transformer.access.ownership import may_take, refusal
from transformer.config import label_of, value_text
from transformer.data.corpus_snapshot import located
from transformer.runs.status import RunError
from transformer.runs.sweeps import (
    MOST_VALUES,
    SETTINGS,
    Base,
    Sweep,
    Value,
    cancel_sweep,
    create_sweep,
    start_sweep,
    sweeps_of,
    value_of,
    values_of,
)
from transformer.runs.warm_start import same_start
from transformer.views.subjects import Runs
from transformer.views.training.runs import SweepChart

_COLUMNS: tuple[Column, ...] = (
    *(("run", False), ("state", False), ("step", True), ("exact match, %", True)),
    *(("validation loss", True), ("time", True)),
)


def sweep_panel(found: Sequence[Entry]) -> None:
    """Renders the sweep on show, again and again while its runs are at work, and the form for the next one."""
    made = sweeps_of([entry.run for entry in found if entry.run is not None])
    if CHOICES.now.sweep not in (sweep.id for sweep in made):
        CHOICES.put(replace(CHOICES.now, sweep=made[0].id if made else ""))
    say(*CHOICES.said("sweep"))
    if made:
        active = any(sweep.active for sweep in made)
        guarded_fragment("The sweep", _sweeps, every=EVERY_S if active else None)(active)
    else:
        st.markdown("No sweep yet. A sweep trains with several values of one setting, all else equal.")
    _form(found)


def _sweeps(was_active: bool) -> None:
    found = {entry.name: entry for entry in entries()}
    made = sweeps_of([entry.run for entry in found.values() if entry.run is not None])
    if not made or any(sweep.active for sweep in made) != was_active:
        st.rerun()
    sweep = next((sweep for sweep in made if sweep.id == CHOICES.now.sweep), made[0])
    parts = [found[part.run.id] for part in sweep.parts]
    _head(sweep, made)
    quantity = choose_quantity("metric", parts)
    say_of_quantity("metric", quantity, parts)
    CHOICES.write_url()
    shown = [entry for entry in parts if entry.name not in table_state().hidden]
    left, right = st.columns([2, 3], gap="large")
    if shown:
        with left:
            _chart(sweep, shown, quantity)
        with right:
            render_curves(shown, quantity=quantity, against="step", log=True, key="sweep")
    else:
        st.markdown("Tick a run below to see its curve here.")
    _table(sweep, parts, shown)


def _choose(sweep: str) -> None:
    now = table_state()
    CHOICES.change(sweep=sweep)
    now.hidden, now.refusals = frozenset(), ()


def _head(sweep: Sweep, made: Sequence[Sweep]) -> None:
    now = table_state()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if len(made) > 1:
            names = [sweep.id for sweep in made]
            box("Sweep", names, sweep.id, _choose, key="sweep-on-show", width=260, hide_label=True)
        else:
            st.markdown(f"## {wording.plain(sweep.id)}", width="content")
        if not all(may_take(part.run.folder) for part in sweep.parts):
            st.caption("Shared with you: you can look at it.")
        elif sweep.active:
            st.button("Cancel the sweep", key="sweep-cancel", icon=":material/stop:", on_click=_cancel, args=(sweep,))
        elif any(part.run.status.state != "finished" for part in sweep.parts):
            st.button("Train the rest", key="sweep-rest", icon=":material/play_arrow:", on_click=_rest, args=(sweep,))
    st.caption(_state_of(sweep))
    say(*now.refusals)


def _state_of(sweep: Sweep) -> str:
    """Counts its runs by their state, in a line."""
    counts = Counter(run_status.state_word(part.run) for part in sweep.parts)
    listed = " · ".join(f"{count} {word}" for word, count in counts.items())
    values = ", ".join(value_text(part.value) for part in sweep.parts)
    return wording.plain(f"{label_of(sweep.setting)}: {values} · {listed}")


def _cancel(sweep: Sweep) -> None:
    with refusal_kept():
        cancel_sweep(sweep)


def _rest(sweep: Sweep) -> None:
    with refusal_kept():
        start_sweep(sweep)


def _chart(sweep: Sweep, shown: Sequence[Entry], quantity: str) -> None:
    live = any(entry.active for entry in shown)
    folders = tuple(entry.folder for entry in shown)
    exhibit(Runs(folders), SweepChart(setting=sweep.setting, quantity=quantity), said=sweep.id, live=live)
    if live:
        st.caption("Hollow: still training, at its last evaluation.")


def _table(sweep: Sweep, parts: Sequence[Entry], shown: Sequence[Entry]) -> None:
    short = column_title(sweep.setting)
    rows = [(entry.name, _row(entry, value_text(part.value))) for part, entry in zip(sweep.parts, parts, strict=True)]
    columns = (_COLUMNS[0], (short, True), *_COLUMNS[1:])
    picks = run_table(rows, columns, shown=[entry.name for entry in shown], chosen="", key="sweep-table")
    now = table_state()
    if picks.ticked is not None:
        name, wanted = picks.ticked
        now.hidden = now.hidden - {name} if wanted else now.hidden | {name}
        st.rerun(scope="fragment")
    if picks.chosen is not None:
        now.arrived = picks.chosen
        st.rerun()


def _row(entry: Entry, value: str) -> tuple[str, ...]:
    exact, loss = last_of(entry, "exact match"), last_of(entry, "validation loss")
    assert entry.run is not None, "a sweep is made of runs"
    return (
        entry.name,
        value,
        run_status.state_word(entry.run),
        f"{entry.run.status.step:,}",
        "–" if exact is None else f"{exact:.3g}",
        "–" if loss is None else number(loss),
        durations.duration(entry.run.status.elapsed_s),
    )


def _form(found: Sequence[Entry]) -> None:
    """Renders the form of a new sweep: a run whose settings are kept but for one, and the values of that one."""
    now, names = CHOICES.now, [entry.name for entry in found]
    chosen, setting, text = now.base or now.run, now.setting, now.values
    st.markdown("## A new sweep")
    left, middle, right = st.columns([2, 2, 3], gap="small")
    with left:
        box("Everything else as in", names, chosen, CHOICES.take("base"), key="sweep-base")
    with middle:
        box("Setting", SETTINGS, setting, CHOICES.take("setting"), key="sweep-setting")
    with right:
        explained = f"2 to {MOST_VALUES} of them, separated by spaces or commas."
        take = CHOICES.take("values")
        line("Values", text, take, key="sweep-values", max_chars=LONGEST_VALUES, help=explained)
    say(*CHOICES.said("base", "setting", "values"))
    entry = next(entry for entry in found if entry.name == chosen)
    settings = entry.settings
    base = Base(
        model=settings.model,
        train=settings.train,
        corpus=located(settings.corpus, entry.folder),
        pinned=settings.pinned,
    )
    texts = text.replace(",", " ").split()
    values, fault = _read(setting, texts, base)
    if why := refusal(entry.folder, "train it again"):
        fault = sentence(why)
    if fault:
        say(fault)
    said = f"{label_of(setting)} of {chosen}: {value_text(value_of(setting, base))}."
    if values:
        said += f" The sweep tries {' · '.join(map(value_text, values))}."
    st.caption(f"{wording.plain(said)} All runs wait in one queue.")
    count = f"{len(texts)} runs" if texts else "runs"
    if st.button(
        f"Train {count}", key="sweep-start", type="primary", disabled=bool(fault), icon=":material/play_arrow:"
    ):
        _start(base, entry, setting, texts)


def _read(setting: str, texts: Sequence[str], base: Base) -> tuple[tuple[Value, ...], str]:
    """Returns the values and no fault, or no values and their fault as a sentence."""
    try:
        return values_of(setting, texts, base), ""
    except RunError as error:
        return (), sentence(str(error))


def _start(base: Base, entry: Entry, setting: str, texts: Sequence[str]) -> None:
    now = table_state()
    try:
        with st.spinner("Preparing the corpus and the runs"):
            start = same_start(entry.folder, entry.settings)
            sweep = create_sweep(replace(base, start_from=start), setting, texts)
            CHOICES.change(sweep=sweep.id)
            now.hidden, now.refusals = frozenset(), ()
            start_sweep(sweep)
    except REFUSALS as error:
        say(f"The sweep was not started: {error}.")
        return
    st.rerun()
