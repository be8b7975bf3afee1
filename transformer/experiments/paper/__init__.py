"""The claims of the paper, an experiment each: a module holds its data, what it measures and how it judges.

To add one, write its module with an EXPERIMENT, name it here, and ship its results with
`python -m transformer experiment run NAME --out checkpoints/experiments/NAME.json`.
"""

from transformer.experiments.experiment import Experiment
from transformer.experiments.paper import beam_search, heads, scaling, table_1, warm_up, why_attention
from transformer.experiments.results import ExperimentError, shipped_file

_MODULES = (table_1, why_attention, scaling, beam_search, warm_up, heads)
EXPERIMENTS: dict[str, Experiment] = {each.EXPERIMENT.name: each.EXPERIMENT for each in _MODULES}
"""The experiments by name, in the order of the page."""


def find_experiment(name: str) -> Experiment:
    """Returns the experiment of this name; ExperimentError where there is none."""
    if name not in EXPERIMENTS:
        raise ExperimentError(f"there is no experiment {name!r}; there are: {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]


def listed() -> tuple[Experiment, ...]:
    """Returns the experiments that have shipped results."""
    return tuple(each for each in EXPERIMENTS.values() if shipped_file(each.name).is_file())
