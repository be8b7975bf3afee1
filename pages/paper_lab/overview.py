"""All experiments in one picture, each with its verdict, and the choice of one."""

from collections.abc import Sequence
from contextlib import suppress

import streamlit as st

from pages.paper_lab.choices import PAGE, Choices
from pages.shared import wording
from pages.shared.cache import cached
from pages.shared.context import sentence
from pages.shared.exhibit import exhibit
from pages.shared.fields import segments
from transformer.experiments.experiment import Experiment
from transformer.experiments.outcome import Outcome, Verdict
from transformer.experiments.paper import EXPERIMENTS, find_experiment, listed
from transformer.experiments.results import ExperimentError, Results, load_results
from transformer.views.experiments import AllMeasured, Claims

LOOKS = {
    Outcome.HOLDS: ("blue", ":material/check_circle:"),
    Outcome.FAILS: ("red", ":material/cancel:"),
    Outcome.UNKNOWN: ("gray", ":material/help:"),
    Outcome.UNLEARNED: ("gray", ":material/hourglass_empty:"),
}
"""The colour and the icon of each outcome; the words always stand beside them."""


def choose_experiment(chosen: Choices) -> Experiment | None:
    """Renders the page's question, the verdicts of all experiments and their choice; None where there is none."""
    st.markdown("# Is it true? The paper's claims, tested at a size you can rerun here.")
    found = listed()
    if not found:
        st.markdown("No experiment has been measured yet. Run one: `python -m transformer experiment list`.")
        return None
    if judged := _judged(found):
        exhibit(AllMeasured(judged), Claims())
    st.caption(
        "A verdict is about this size and this machine. It says *holds here* only if the whole uncertainty of the "
        "measurement lies inside what the claim allows, and *cannot be told* where it lies across the border, or where "
        "the models learned too little to be compared. One number decides each claim; below, each says whether that "
        "number was named before it was measured."
    )
    with st.expander("The same in words"):
        st.markdown("\n".join(_line(experiment) for experiment in found))
    names = [experiment.name for experiment in found]
    name = chosen.experiment if chosen.experiment in names else names[0]
    titles = {each.name: each.title for each in found}
    segments("Experiment", names, name, PAGE.take("experiment"), key="lab-experiment", names=titles.__getitem__)
    return find_experiment(name)


def badge(outcome: Outcome) -> str:
    """Returns the outcome as a coloured mark with its words."""
    colour, icon = LOOKS[outcome]
    return f":{colour}[{icon} **{outcome}**]"


@cached(max_entries=32)
def get_verdict(results: Results) -> Verdict:
    """Returns the verdict of an experiment's own rule on results."""
    return EXPERIMENTS[results.experiment].verdict(results)


def _judged(found: Sequence[Experiment]) -> tuple[Results, ...]:
    """Returns the shipped results that hold what decides; the others say in words why there is no verdict."""
    judged = []
    for experiment in found:
        with suppress(ExperimentError):
            results = load_results(experiment.name)
            if get_verdict(results).deciding is not None:
                judged.append(results)
    return tuple(judged)


def _line(experiment: Experiment) -> str:
    try:
        verdict = get_verdict(load_results(experiment.name))
    except ExperimentError as error:
        return f"- **{experiment.title}.** {experiment.question} {wording.plain(sentence(str(error)))}"
    return f"- **{experiment.title}.** {experiment.question} {badge(verdict.outcome)}"
