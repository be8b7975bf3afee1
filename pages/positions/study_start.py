"""Starting a paired study: what it trains, how long, and the button."""

import streamlit as st

from pages.positions.choices import PAGE
from pages.shared.controls import say
from transformer.experiments import study
from transformer.experiments.study import StudyError, StudyPlan

_SEEDS, _STEPS = (1, 2, 3, 5), (300, 600, 1_000, 1_500, 2_000)
_CORPORA = ("reverse", "copy", "sort")
REFUSAL = "study-refusal"
"""Key of a sentence that says why a study was not started."""


def draw_start() -> None:
    """The button and what it will do."""
    if REFUSAL in st.session_state:
        say(st.session_state.pop(REFUSAL))
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        pressed = st.container(width="content")
        with st.popover("What it trains"):
            corpora = st.pills("Tasks", _CORPORA, default=["reverse"], selection_mode="multi", key="study-corpora")
            n_seeds = st.segmented_control("Seeds", _SEEDS, default=1, required=True, key="study-seeds")
            steps = st.select_slider("Steps", _STEPS, value=1_000, format_func="{:,}".format, key="study-steps")
        n = len(corpora) * len(study.KINDS) * n_seeds
        st.caption(
            f"{', '.join(corpora)}: {n} runs of {steps:,} steps, one after another, on one thread; trained on 1 to 16 "
            "symbols, tested to 40. They are ordinary runs: look inside them, pause or stop them."
            if corpora
            else "Choose at least one task."
        )
    pressed.button(
        "Run the study here",
        type="primary",
        key="study-start",
        icon=":material/play_arrow:",
        disabled=not corpora,
        on_click=_start,
        args=(tuple(corpora), n_seeds, steps),
    )


def _start(corpora: tuple[str, ...], n_seeds: int, steps: int) -> None:
    plan = StudyPlan(corpora=corpora, seeds=tuple(range(n_seeds)), steps=steps)
    command = (
        f"python -m transformer study positions --corpora {' '.join(corpora)} "
        f"--seeds {' '.join(map(str, plan.seeds))} --steps {steps}"
    )
    try:
        name = study.create_study(plan, command=command)
        study.start_study(name)
    except StudyError as error:
        st.session_state[REFUSAL] = f"The study was not started: {error}."
    else:
        PAGE.change(study=name, task=corpora[0])
