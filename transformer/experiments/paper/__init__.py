"""The claims of the paper, an experiment each: a module holds its data, what it measures and how it judges.

To add one, write its module with an EXPERIMENT, name it here, and ship its results with
`python -m transformer experiment run NAME --out checkpoints/experiments/NAME.json`.
"""

from transformer.experiments.experiment import Experiment
from transformer.experiments.paper import (
    alignment,
    averaging,
    beam_search,
    heads,
    parallel_training,
    regularisation,
    scaling,
    table_1,
    table_3,
    warm_up,
    why_attention,
)
from transformer.experiments.results import ExperimentError, shipped_file

_MODULES = (
    table_1,
    why_attention,
    alignment,
    parallel_training,
    scaling,
    beam_search,
    averaging,
    warm_up,
    heads,
    table_3,
    regularisation,
)
_ALL = [module.EXPERIMENT for module in _MODULES]
_ALL.insert(_ALL.index(why_attention.EXPERIMENT) + 1, why_attention.ELSEWHERE)
EXPERIMENTS: dict[str, Experiment] = {each.name: each for each in _ALL}
"""The experiments by name, in the order of the page."""


def find_experiment(name: str) -> Experiment:
    """Returns the experiment of this name; ExperimentError where there is none."""
    if name not in EXPERIMENTS:
        raise ExperimentError(f"there is no experiment {name!r}; there are: {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]


def listed() -> tuple[Experiment, ...]:
    """Returns the experiments that have shipped results."""
    return tuple(each for each in EXPERIMENTS.values() if shipped_file(each.name).is_file())
