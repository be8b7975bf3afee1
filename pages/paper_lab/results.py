"""One experiment: the claim, the verdict, its figures, how it was judged and the command that made the numbers."""

import math

import streamlit as st

from pages.paper_lab.choices import PAGE, Choices, hidden_factors, level_of, own_budgets, take_level
from pages.paper_lab.overview import badge, get_verdict
from pages.shared import wording
from pages.shared.context import say, sentence
from pages.shared.exhibit import exhibit
from pages.shared.fields import segments
from transformer.experiments.experiment import Competence, Experiment
from transformer.experiments.outcome import Verdict
from transformer.experiments.results import ExperimentError, Results, load_results
from transformer.interventions.names import plural
from transformer.runs.run_folder import list_runs
from transformer.views.experiments import ExperimentCurves, ExperimentFindings, Measured

_ATTENTION = "pages/attention/page.py"


def render_results(experiment: Experiment, chosen: Choices) -> None:
    """Renders everything that an experiment found."""
    st.markdown(f"## {experiment.question}")
    st.markdown(f"**The paper says** ({experiment.section}): {experiment.claim}")
    try:
        results = _choose_results(experiment, chosen)
        verdict = get_verdict(results)
    except ExperimentError as error:
        say(sentence(str(error)))
        return
    _render_verdict(experiment, results, verdict)
    _render_chart(experiment, results, chosen)
    st.markdown("### The measurements behind the verdict")
    exhibit(Measured(results), ExperimentFindings())
    _render_method(experiment, results, verdict)
    if not results.shipped:
        _render_runs(results)


def _choose_results(experiment: Experiment, chosen: Choices) -> Results:
    """Renders the choice between the shipped results and those measured here, where there are any."""
    budget = chosen.budget
    if own := own_budgets(experiment):
        names = {"": "Shipped numbers"} | {name: f"Measured here ({name})" for name in own}
        segments("Whose numbers", list(names), budget, PAGE.take("budget"), key="lab-budget", names=names.__getitem__)
    try:
        return load_results(experiment.name, budget)
    except ExperimentError as error:
        say(sentence(str(error)))
        return load_results(experiment.name)


def _render_verdict(experiment: Experiment, results: Results, verdict: Verdict) -> None:
    with st.container(border=True, key="lab-verdict"):
        st.markdown(f"**Verdict:** {badge(verdict.outcome)}")
        st.markdown(wording.plain(verdict.sentence))
        st.markdown(_deciding_text(verdict))
        if experiment.competence is not None and verdict.unlearned:
            st.markdown(_unlearned_text(experiment, experiment.competence, verdict))
        if len(groups := verdict.groups) > 1:
            st.markdown("Part by part, with all that was explored besides:")
            st.markdown("\n".join(f"- {wording.plain(name)}: {badge(outcome)}" for name, outcome in groups.items()))
    n = len(results.seeds)
    missing = len(experiment.plan(experiment.budget(results.budget))) - len(results.rows)
    said = f"{n} {plural(n, experiment.replicate)} in each cell, the same ones for all."
    if missing:
        said += f" {missing:,} of its measurements are still missing."
    st.caption(said)


def _deciding_text(verdict: Verdict) -> str:
    """Returns what decides the verdict, and how small a difference the experiment can tell."""
    found = verdict.deciding
    if found is None:
        return f"What decides, {wording.plain(verdict.primary)}, is not part of this budget."
    middle, low, high = (wording.number(value) for value in (found.estimate, found.low, found.high))
    said = (
        f"**What decides:** {wording.plain(found.name)} ({wording.plain(found.unit)}): {middle}, 95 % interval {low} "
        f"to {high}; the claim allows {wording.plain(found.allowed)}."
    )
    if math.isfinite(found.smallest) and found.smallest > 0:
        said += (
            f" A true value {wording.number(found.smallest)} away from the border would be told from it in four of "
            "five experiments of this size."
        )
    if not found.settled:
        said += " **Other draws of the bootstrap could change this verdict:** the interval ends almost at the border."
    return said


def _naming(experiment: Experiment) -> str:
    """Returns whether the number that decides was named without knowing what came out."""
    if experiment.named_first:
        return "The number that decides was named before these seeds were measured."
    return "The number that decides was chosen after a first measurement: other seeds would test it more strictly."


def _unlearned_text(experiment: Experiment, asked: Competence, verdict: Verdict) -> str:
    """Returns which arms did not learn enough within this budget for their difference to say anything."""
    label = experiment.metric(asked.metric).label
    arms = "; ".join(f"{wording.plain(name)}: {wording.number(mean)}" for name, mean in verdict.unlearned.items())
    return (
        f"**Not learned within this budget:** {arms} ({wording.plain(label)}; at least {wording.number(asked.least)} "
        "is needed)."
    )


def _render_chart(experiment: Experiment, results: Results, chosen: Choices) -> None:
    charts, number = experiment.charts, chosen.chart
    chart = charts[number]
    where = []
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if len(charts) > 1:
            titles = [each.title for each in charts]
            segments("Chart", range(len(charts)), number, PAGE.take("chart"), key="lab-chart", names=titles.__getitem__)
        for name, levels in hidden_factors(experiment, chart, results).items():
            level = level_of(name, levels, chosen)
            where.append((name, level))
            if len(levels) > 1:
                segments(
                    experiment.factor(name).label,
                    levels,
                    level,
                    lambda level, name=name: take_level(name, level),
                    key=f"lab-{experiment.name}-{number}-{name}",
                    names=lambda level: level if isinstance(level, str) else f"{level:,g}",
                    hide_label=False,
                )
    metric = experiment.metric(chart.metric)
    view = ExperimentCurves(
        metric=chart.metric, x=chart.x, by=chart.by, where=tuple(where), log_x=chart.log_x, log_y=metric.log
    )
    exhibit(Measured(results), view, key=f"{experiment.name}-{number}")
    explained = [f"*{metric.label}*: {metric.explained}"]
    explained += [f"*{factor.label}*: {factor.explained}" for factor in experiment.factors]
    st.caption(
        "; ".join(explained)
        + ". Whiskers are 95 % t intervals of each point alone. Comparisons are paired, seed by seed, so points "
        "may differ clearly although their whiskers overlap: see below."
    )


def _render_runs(results: Results) -> None:
    runs = [run for run in list_runs() if run.settings.command == results.command and run.loadable]
    if not runs:
        return
    with st.expander(f"Its runs: {len(runs)} {plural(len(runs), 'model')} to look into"):
        st.caption(
            "The models that were trained with the first seed are runs like any other. Here they open on the Attention "
            "page; the Runs page has their curves and cards."
        )
        with st.container(horizontal=True):
            for run in sorted(runs, key=lambda run: run.settings.created):
                st.page_link(_ATTENTION, label=run.id, query_params={"model": run.id})
        st.page_link("pages/runs/page.py", label="Compare their curves", icon=":material/show_chart:")


def _render_method(experiment: Experiment, results: Results, verdict: Verdict) -> None:
    st.markdown(f"**What is measured here.** {experiment.setting}")
    intervals = ", ".join(dict.fromkeys(finding.interval for finding in verdict.findings))
    st.markdown(
        f"**How it is judged.** {experiment.rule} What decides needs its whole 95 % interval on one side; what "
        f"explores needs more, the more numbers there are (Holm's correction). Intervals: {intervals}. "
        f"{_naming(experiment)}"
    )
    if (asked := experiment.competence) is not None:
        label = wording.plain(experiment.metric(asked.metric).label)
        st.markdown(
            f"**What must be learned first.** Each of these needs {label} of at least {wording.number(asked.least)}: "
            f"{wording.plain('; '.join(asked.arms))}. Until then the verdict stays open."
        )
    if experiment.objections:
        st.markdown("**What a critic would say, and our answer.**")
        st.markdown("\n".join(f"- *{objection}* {answer}" for objection, answer in experiment.objections.items()))
    st.markdown(f"**What would change our mind.** {experiment.change_of_mind}")
    with st.expander("The command that made these numbers"):
        st.code(results.command, language="bash")
        versions = ", ".join(f"{name} {version}" for name, version in results.versions.items())
        st.caption(
            f"{len(results.rows):,} measurements in {wording.duration(results.elapsed_s)}, {results.created[:10]}; "
            f"{results.machine}; {versions}." + (f" Measured by commit {results.commit}." if results.commit else "")
        )
