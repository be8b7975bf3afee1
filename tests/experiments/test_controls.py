"""The controls of the experiments: what measures a difference sees one that must be there, and none where none is.

Each arm is measured as its experiment measures it, with far fewer steps. Two groups of trainings that differ in their
seeds alone must not be told apart; a training of a tenth of the steps must be.
"""

import pytest
import torch

from transformer.experiments.intervals import t_interval
from transformer.experiments.outcome import Finding, Outcome, finding
from transformer.experiments.paper import EXPERIMENTS, averaging, scaling, table_3, warm_up
from transformer.experiments.paper.why_attention import SHORT, WITH

SEEDS = (0, 1, 2, 3)
LOWER, HIGHER = 1, -1
"""Which way a metric is better."""
CONTROLS = {
    "heads": ({"task": "sort", "heads": 4}, "validation_loss", LOWER),
    "averaging": ({"task": "sort", "averaged": max(averaging.COUNTS)}, "loss", LOWER),
    "table-3": ({"task": "sort", "model": table_3.BASE}, "validation_loss", LOWER),
    "scaling": ({"score": "scaled", "d_k": scaling.LARGE}, "loss", LOWER),
    "warm-up": ({"norm": "post", "rate": 0.001, "start": warm_up.WITHOUT}, "validation_loss", LOWER),
    "regularisation": ({"dropout": 0.1, "smoothing": 0.1}, "accuracy", HIGHER),
    "why-attention": ({"task": "reverse", "model": WITH, "length": SHORT}, "symbols", HIGHER),
}
STEPS = 60


@pytest.fixture(autouse=True)
def one_thread():
    """Leaves the other cores to the other tests: models so small are no faster with more threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def measured(name: str, seeds: tuple[int, ...], steps: int) -> list[float]:
    """Returns the metric of the experiment's arm with each seed after so many steps, the less the better."""
    cell, metric, sign = CONTROLS[name]
    if any(factor.name == "steps" for factor in EXPERIMENTS[name].factors):
        cell = cell | {"steps": steps}
    return [sign * EXPERIMENTS[name].measure(cell, seed, steps)[metric] for seed in seeds]


def above_zero(first: list[float], second: list[float]) -> Finding:
    """Returns the finding that the first are larger than the second."""
    gaps = [a - b for a, b in zip(first, second, strict=True)]
    return finding("control", t_interval(gaps), group="", unit="", least=0.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTROLS)
def test_what_must_differ_is_told_and_what_differs_by_chance_is_not(name):
    usual = measured(name, SEEDS, STEPS)
    others = measured(name, tuple(seed + len(SEEDS) for seed in SEEDS), STEPS)
    assert above_zero(usual, others).outcome is Outcome.UNKNOWN
    assert above_zero(measured(name, SEEDS, STEPS // 10), usual).outcome is Outcome.HOLDS
