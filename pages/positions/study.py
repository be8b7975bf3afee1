"""The paired study on the Positions page: start it, watch it, and read its results beside the paper's."""

from functools import partial

import streamlit as st

from pages.positions.choices import PAGE, Choices, box, segments
from pages.positions.verdict import LATER_KINDS, THE_PAPER, render_verdict, settings_text
from pages.shared.context import PageContext, say
from pages.shared.exhibit import exhibit
from pages.shared.guard import guarded_fragment
from pages.shared.waiting import show_progress
from transformer.experiments import study
from transformer.experiments.plan import KINDS, Study, StudyPlan, StudyRun
from transformer.experiments.study import StudyError
from transformer.runs.status import RunError, status
from transformer.views.study.learning import StudyLearning
from transformer.views.subjects import PairedStudy

EVERY_S = 3.0
_SEEDS, _STEPS = (1, 2, 3, 5), (300, 600, 1_000, 1_500, 2_000)
_CORPORA = ("reverse", "copy", "sort")
_REFUSAL = "study-refusal"
"""The key of a sentence that says why a study was not started."""
_WITHOUT_RESULT = ("stopped", "failed", "deleted")


def render_study(context: PageContext, chosen: Choices) -> None:
    """Renders the choice of a study, its curves, its verdict, and the paper's findings."""
    name, found = choose_study(chosen)
    if not name:
        st.markdown("No study yet. Start one: it trains each kind of positions on the same data with the same seeds.")
    _render_start()
    if found is None:
        return
    active = study.is_active(name)
    guarded_fragment("The study", _render_results, every=EVERY_S if active else None)(name, chosen, active)
    st.markdown(THE_PAPER)
    st.markdown(LATER_KINDS)
    st.markdown(settings_text(found))
    with st.expander("The command that runs it again"):
        st.code(found.command, language="bash")
        st.caption(f"{found.machine}. Speeds were measured on a machine that may have had other work to do.")


def choose_study(chosen: Choices) -> tuple[str, Study | None]:
    """Renders the boxes for the study and its corpus.

    Returns the study's name, empty where there is none, and the study where it can be read.
    """
    names = study.list_studies()
    if not names:
        return "", None
    if chosen.study and chosen.study not in names:
        say(f"There is no study {chosen.study} here; the first one is shown.")
    name = chosen.study if chosen.study in names else _first(names)
    found = _load(name)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if len(names) > 1:
            box("study", "Study", names, name, lambda name: "shipped" if study.is_shipped(name) else name)
        if found is not None and len(found.plan.corpora) > 1:
            segments("task", "Task", {corpus: corpus for corpus in found.plan.corpora}, corpus_of(found, chosen))
    return name, found


def corpus_of(found: Study, chosen: Choices) -> str:
    """Returns the chosen corpus of the study, else its first."""
    return chosen.task if chosen.task in found.plan.corpora else found.plan.corpora[0]


def _first(names: tuple[str, ...]) -> str:
    """Returns a study in progress, else the shipped one, else the newest."""
    active = [name for name in names if study.is_active(name)]
    return (*active, *(name for name in names if study.is_shipped(name)), *names)[0]


def _load(name: str) -> Study | None:
    try:
        return study.load_study(name)
    except StudyError as error:
        say(f"{error}.")
        return None


def _render_results(name: str, chosen: Choices, was_active: bool) -> None:
    found = _load(name)
    if found is None:
        return
    if study.is_active(name) != was_active:
        st.rerun()
    corpus = corpus_of(found, chosen)
    if not study.is_shipped(name):
        _render_progress(found, was_active)
    exhibit(PairedStudy(found), StudyLearning(corpus=corpus))
    if not any(run.corpus == corpus for run in found.done):
        st.caption("The results appear here as soon as a run has finished and its lengths are tested.")
        return
    render_verdict(found, corpus, chosen)


def _render_progress(found: Study, active: bool) -> None:
    done, total = sum(run.state not in ("waiting", "running") for run in found.runs), len(found.runs)
    running = next((run for run in found.runs if run.state == "running"), None)
    text = f"{done} of {total} runs done"
    share = done / total
    if running is not None:
        step = _step(running)
        text += f" · {running.corpus}, {running.positions}, seed {running.seed}: step {step:,} of {found.plan.steps:,}"
        share += min(step / found.plan.steps, 1) / total
    if active:
        show_progress(text, share, partial(study.stop_study, found.name), key="study-stop", name="stop")
    elif done < total:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.progress(share, text=text)
            args = (found.name,)
            st.button("Continue", key="study-go-on", icon=":material/play_arrow:", on_click=_continue, args=args)
    if lost := [f"{run.id or run.positions} ({run.state})" for run in found.runs if run.state in _WITHOUT_RESULT]:
        st.caption(f"Without a result, and left out below: {', '.join(lost)}.")


def _step(run: StudyRun) -> int:
    try:
        return status(run.id).step
    except RunError:
        return 0


def _render_start() -> None:
    """Renders the button that starts a study, and what it will train."""
    if _REFUSAL in st.session_state:
        say(st.session_state.pop(_REFUSAL))
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        pressed = st.container(width="content")
        with st.popover("What it trains"):
            corpora = st.pills("Tasks", _CORPORA, default=["reverse"], selection_mode="multi", key="study-corpora")
            n_seeds = st.segmented_control("Seeds", _SEEDS, default=1, required=True, key="study-seeds")
            steps = st.select_slider("Steps", _STEPS, value=1_000, format_func="{:,}".format, key="study-steps")
        n = len(corpora) * len(KINDS) * n_seeds
        st.caption(
            f"{', '.join(corpora)}: {n} runs of {steps:,} steps, one after another, on one thread; trained on 1 to 16 "
            "symbols, tested up to 40. They are ordinary runs: look inside them, pause or stop them."
            if corpora
            else "Choose at least one task."
        )
    pressed.button(
        "Run the study here",
        type="primary",
        key="study-start",
        icon=":material/play_arrow:",
        disabled=not corpora,
        on_click=_create,
        args=(tuple(corpora), n_seeds, steps),
    )


def _create(corpora: tuple[str, ...], n_seeds: int, steps: int) -> None:
    plan = StudyPlan(corpora=corpora, seeds=tuple(range(n_seeds)), steps=steps)
    seeds = " ".join(map(str, plan.seeds))
    command = f"python -m transformer study positions --corpora {' '.join(corpora)} --seeds {seeds} --steps {steps}"
    try:
        name = study.create_study(plan, command=command)
        study.start_study(name)
    except StudyError as error:
        st.session_state[_REFUSAL] = f"The study was not started: {error}."
    else:
        PAGE.change(study=name, task=corpora[0])


def _continue(name: str) -> None:
    """Continues a study; keeps the reason for the next rerun where that fails."""
    try:
        study.start_study(name)
    except StudyError as error:
        st.session_state[_REFUSAL] = f"{error}."
