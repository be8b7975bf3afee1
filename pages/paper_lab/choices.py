"""The Paper lab's choices, kept in the URL: the experiment, whose results, which chart and at which levels."""

from dataclasses import dataclass

from pages.shared.url.page_state import UrlPart
from pages.shared.url.url_state import UrlState, param, text, whole, words
from transformer.experiments.experiment import Chart, Experiment
from transformer.experiments.paper import EXPERIMENTS, listed
from transformer.experiments.results import ExperimentError, Level, Results, load_results, own_file

_LONGEST = 80


def own_budgets(experiment: Experiment) -> list[str]:
    """Returns the budgets of which there are results that were measured here."""
    return [each.name for each in experiment.budgets if own_file(experiment.name, each.name).is_file()]


def _measured(state: "Choices") -> list[str]:
    return ["", *(each.name for each in listed())]


def _budgets(state: "Choices", experiment: Experiment) -> list[str]:
    return ["", *own_budgets(experiment)]


def _charts(state: "Choices", experiment: Experiment) -> range:
    return range(len(experiment.charts))


def _levels(state: "Choices", experiment: Experiment) -> list[str]:
    try:
        results = load_results(experiment.name, state.budget)
    except ExperimentError:  # the page says why in their place
        return list(state.at)
    hidden = hidden_factors(experiment, experiment.charts[state.chart], results)
    return [f"{factor}={level}" for factor, levels in hidden.items() for level in levels]


@dataclass(frozen=True, kw_only=True)
class Choices(UrlState):
    """The visitor's choices; an experiment without a name is the first."""

    experiment: str = param("", words("", *EXPERIMENTS), among=_measured, absent="experiment")
    budget: str = param("", text(_LONGEST), resets=("experiment",), offered=_budgets, absent="measured")
    """The budget whose own results are shown; empty for the shipped ones."""
    chart: int = param(0, whole(0, 9), resets=("experiment",), offered=_charts)
    at: tuple[str, ...] = param(
        (), text(_LONGEST), many=tuple, resets=("experiment", "chart"), offered=_levels, absent="levels"
    )
    """Levels of the factors that a chart does not show, as "d=64"."""


PAGE = UrlPart(Choices, key="paper-lab")


def fit(experiment: Experiment) -> Choices:
    """Returns the choices as they fit the experiment; what of a link does not is told in a sentence."""
    chosen, problems = PAGE.now.fit(experiment)
    PAGE.put(chosen)
    PAGE.tell(*problems)
    return chosen


def level_of(name: str, levels: tuple[Level, ...], chosen: Choices) -> Level:
    """Returns the chosen level of a factor, else the largest number or the first word."""
    said = {part.partition("=")[0]: part.partition("=")[2] for part in chosen.at}
    return next(
        (level for level in levels if str(level) == said.get(name)), levels[0 if isinstance(levels[0], str) else -1]
    )


def take_level(name: str, level: Level) -> None:
    """Takes over the level of a factor; for callbacks."""
    others = tuple(part for part in PAGE.now.at if part.partition("=")[0] != name)
    PAGE.change(at=(*others, f"{name}={level}"))


def hidden_factors(experiment: Experiment, chart: Chart, results: Results) -> dict[str, tuple[Level, ...]]:
    """Returns the factors that a chart leaves out, with the levels at which its metric is measured."""
    return {
        factor.name: results.levels(factor.name, chart.metric)
        for factor in experiment.factors
        if factor.name not in (chart.x, chart.by)
    }
