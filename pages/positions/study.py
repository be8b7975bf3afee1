"""The paired study on the Positions page: start it, watch it, and read its verdict beside the paper's."""

import numpy as np
import streamlit as st

from pages.positions.checks import check_curves
from pages.positions.choices import Choices, box, segments
from pages.positions.export_study import take_learning_away
from pages.positions.frame import beneath
from pages.positions.study_start import REFUSAL, draw_start
from pages.positions.verdict import LATER_KINDS, THE_PAPER, draw_verdict, settings_said
from pages.shared.context import is_dark
from pages.shared.controls import PageContext, say
from transformer.experiments import study
from transformer.experiments.figure_data import learning_curves
from transformer.experiments.study import TARGET, Study, StudyError, StudyRun
from transformer.experiments.verdict import verdicts
from transformer.figures.positions.study import Learning, learning_figure
from transformer.runs import run_folder

EVERY_S = 3.0
_QUIET = {"displayModeBar": False}


def draw_study(context: PageContext, chosen: Choices) -> None:
    """Which study, its curves, its verdict, what the paper says."""
    name, found = _choose(chosen)
    if not name:
        st.markdown("No study yet. Start one: each kind of positions is trained on the same data with the same seeds.")
    draw_start()
    if found is None:
        return
    active = study.is_active(name)
    st.fragment(_panel, run_every=EVERY_S if active else None)(context, name, chosen, active)
    st.markdown(THE_PAPER)
    st.markdown(LATER_KINDS)
    st.markdown(settings_said(found))
    _command(found)


def choose_study(chosen: Choices) -> Study | None:
    """The chosen study, or the first one that can be read; the boxes to choose it and its corpus are drawn."""
    return _choose(chosen)[1]


def corpus_of(found: Study, chosen: Choices) -> str:
    """The chosen corpus of the study, else its first."""
    return chosen.task if chosen.task in found.plan.corpora else found.plan.corpora[0]


def _choose(chosen: Choices) -> tuple[str, Study | None]:
    """The name of the study to show, empty where there is none, and the study where it can be read."""
    names = study.list_studies()
    if not names:
        return "", None
    if chosen.study and chosen.study not in names:
        say(f"There is no study {chosen.study} here; the first one is shown.")
    name = chosen.study if chosen.study in names else _first(names)
    found = _load(name)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if len(names) > 1:
            box("study", "Study", names, name, _label)
        if found is not None and len(found.plan.corpora) > 1:
            segments("task", "Task", {corpus: corpus for corpus in found.plan.corpora}, corpus_of(found, chosen))
    return name, found


def _first(names: tuple[str, ...]) -> str:
    """One that is at work, else the shipped one, else the newest."""
    at_work = [name for name in names if study.is_active(name)]
    return (*at_work, *(name for name in names if study.is_shipped(name)), *names)[0]


def _label(name: str) -> str:
    return "shipped with the lab" if study.is_shipped(name) else name


def _load(name: str) -> Study | None:
    try:
        return study.load_study(name)
    except StudyError as error:
        say(f"{error}.")
        return None


def _panel(context: PageContext, name: str, chosen: Choices, was_active: bool) -> None:
    found = _load(name)
    if found is None:
        return
    if study.is_active(name) != was_active:
        st.rerun()
    corpus = corpus_of(found, chosen)
    if not study.is_shipped(name):
        _progress(found, was_active)
    curves = learning_curves(found, corpus)
    figure = learning_figure(
        [curve for curve in curves if len(curve.step)],
        list(found.plan.positions),
        budget=found.plan.steps,
        target=TARGET,
        dark=is_dark(),
    )
    st.plotly_chart(figure, key="study-curves", theme=None, config=_QUIET)
    beneath(
        lambda: check_curves(lambda: _points(curves), lambda: _points(_again(name, corpus))),
        lambda: take_learning_away(context, found, corpus, curves),
    )
    rows = verdicts(found, corpus, chosen.past)
    if not rows:
        st.caption("The verdict stands here as soon as a run has finished and its lengths are tested.")
        return
    draw_verdict(found, rows, chosen)


def _progress(found: Study, active: bool) -> None:
    done, total = sum(run.state not in ("waiting", "running") for run in found.runs), len(found.runs)
    running = next((run for run in found.runs if run.state == "running"), None)
    said = f"{done} of {total} runs done"
    share = done / total
    if running is not None:
        step = _step(running)
        said += f" · {running.corpus}, {running.positions}, seed {running.seed}: step {step:,} of {found.plan.steps:,}"
        share += min(step / found.plan.steps, 1) / total
    lost = [f"{run.id or run.positions} ({run.state})" for run in found.runs if run.state in _LOST]
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        if done < total:
            st.progress(min(share, 1.0), text=said)
        if active:
            st.button("Stop", key="study-stop", icon=":material/stop:", on_click=_stop, args=(found.name,))
        elif done < total:
            st.button("Go on", key="study-go-on", icon=":material/play_arrow:", on_click=_go_on, args=(found.name,))
    if lost:
        st.caption(f"Without a result, and left out below: {', '.join(lost)}.")


_LOST = ("stopped", "failed", "deleted")


def _step(run: StudyRun) -> int:
    try:
        return run_folder.status(run.id).step
    except run_folder.RunError:
        return 0


def _stop(name: str) -> None:
    study.stop_study(name)


def _go_on(name: str) -> None:
    try:
        study.start_study(name)
    except StudyError as error:
        st.session_state[REFUSAL] = f"{error}."


def _again(name: str, corpus: str) -> list[Learning]:
    found = _load(name)
    return [] if found is None else learning_curves(found, corpus)


def _points(curves: list[Learning]) -> np.ndarray:
    """(step, exact match) of all curves, one after the other."""
    found = [np.column_stack((curve.step, curve.exact_match)) for curve in curves]
    return np.concatenate(found) if found else np.zeros((0, 2))


def _command(found: Study) -> None:
    with st.expander("The command that makes it again"):
        st.code(found.command, language="bash")
        st.caption(f"{found.machine}. Speeds were measured as the machine stood, whatever else it had to do.")
