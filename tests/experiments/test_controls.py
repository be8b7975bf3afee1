"""The controls of the experiments: what measures a difference sees one that must be there, and none where none is.

Each arm is measured as its experiment measures it, with far fewer steps. Two groups of trainings that differ in their
seeds alone must not be told apart; a training of a tenth of the steps must be. Experiments that decode, align or time
have controls of their own.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from transformer.experiments.intervals import bootstrap_interval, t_interval
from transformer.experiments.outcome import Finding, Outcome, finding
from transformer.experiments.paper import (
    EXPERIMENTS,
    alignment,
    averaging,
    beam_search,
    parallel_training,
    scaling,
    table_1,
    table_3,
    warm_up,
)
from transformer.experiments.paper.why_attention import ALONE, SHORT, VECTOR, WITH
from transformer.experiments.results import Results, Row

SEEDS = (0, 1, 2, 3)
LOWER, HIGHER = 1, -1
"""Which way a metric is better."""
CONTROLS = {
    "heads": ({"task": "sort", "heads": 4}, "validation_loss", LOWER),
    "averaging": ({"task": "sort", "averaged": max(averaging.COUNTS)}, "loss", LOWER),
    "table-3": ({"task": "addition", "model": table_3.BASE}, "validation_loss", LOWER),
    "scaling": ({"rate": 0.003, "score": "scaled", "d_k": scaling.LARGE}, "validation_loss", LOWER),
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


def above_zero(first: Sequence[float], second: Sequence[float], interval=t_interval) -> Finding:
    """Returns the finding that the first are larger than the second."""
    gaps = [a - b for a, b in zip(first, second, strict=True)]
    return finding("control", interval(gaps), group="", unit="", least=0.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTROLS)
def test_what_must_differ_is_told_and_what_differs_by_chance_is_not(name):
    usual = measured(name, SEEDS, STEPS)
    others = measured(name, tuple(seed + len(SEEDS) for seed in SEEDS), STEPS)
    assert above_zero(usual, others).outcome is Outcome.UNKNOWN
    assert above_zero(measured(name, SEEDS, STEPS // 10), usual).outcome is Outcome.HOLDS


@pytest.mark.slow
def test_a_beam_is_told_by_the_probability_that_it_finds_and_halves_of_the_names_are_not():
    model, groups = beam_search.MODELS[0], range(beam_search.GROUPS)
    beam, greedy = (
        [beam_search.measure(cell, group, 1) for group in groups]
        for cell in (beam_search._cell(model, 4, alpha=0.0), beam_search._greedy(model))
    )
    found, given = ([each["log_prob"] for each in measured] for measured in (beam, greedy))
    assert above_zero(found, given, bootstrap_interval).outcome is Outcome.HOLDS
    points = [each["chrf"] for each in beam]
    assert above_zero(points[::2], points[1::2], bootstrap_interval).outcome is Outcome.UNKNOWN


@pytest.mark.slow
def test_links_of_new_models_are_told_from_the_same_place_and_not_from_those_of_others(monkeypatch):
    monkeypatch.setattr(alignment, "_share_right", lambda trained, pairs: 0.0)
    monkeypatch.setattr(alignment, "PAIRS", 50)
    alignment._measured.cache_clear()
    errors = {
        look: [alignment.measure({"steps": 1, "look": look}, seed, 1)["error"] for seed in range(6)]
        for look in (alignment.LSTM, alignment.DIAGONAL)
    }
    alignment._measured.cache_clear()
    new = errors[alignment.LSTM]
    assert above_zero(new, errors[alignment.DIAGONAL]).outcome is Outcome.HOLDS
    assert above_zero(new[:3], new[3:]).outcome is Outcome.UNKNOWN


@pytest.fixture
def counted():
    """A clock that counts products instead of seconds and is off by up to five percent, as clocks are."""
    rng = np.random.default_rng(0)

    def time_of(step) -> float:
        with FlopCounterMode(display=False) as counter:
            step()
        return counter.get_total_flops() * rng.uniform(0.95, 1.05)

    return time_of


@pytest.mark.slow
def test_a_model_of_twice_the_layers_is_told_to_be_slower_and_the_same_model_is_not(counted, monkeypatch):
    usual = parallel_training.MODELS[ALONE]
    deeper = replace(usual, n_encoder_layers=4, n_decoder_layers=4)
    monkeypatch.setattr(parallel_training, "TOKENS", 64)
    monkeypatch.setattr(parallel_training, "MODELS", {VECTOR: usual, WITH: deeper, ALONE: usual})
    monkeypatch.setattr(parallel_training, "_timed", lambda step, device: counted(step))
    parallel_training._seconds.cache_clear()
    rows = [
        Row(cell=cell, seed=seed, values=parallel_training.measure(cell, seed, 1), elapsed_s=1.0)
        for seed in SEEDS
        for length in (8, 16)
        for model in parallel_training.MODELS
        for cell in [{"device": parallel_training.CPU, "model": model, "length": length}]
    ]
    parallel_training._seconds.cache_clear()
    found = parallel_training.judge(Results(experiment="parallel-training", budget="full", rows=tuple(rows)))
    outcomes = {each.name: each.outcome for each in found.findings}
    assert outcomes["attention, 16"] is Outcome.HOLDS and outcomes["one vector, 16"] is Outcome.UNKNOWN


@pytest.mark.parametrize(("layers", "outcome"), [(1, Outcome.UNKNOWN), (2, Outcome.HOLDS)])
def test_a_layer_is_told_to_be_faster_than_two_of_its_kind_and_not_than_itself(layers, outcome, counted, monkeypatch):
    make = table_1.LAYERS["self-attention"]
    rival = {"recurrent": lambda d: torch.nn.Sequential(*(make(d) for _ in range(layers)))}
    monkeypatch.setattr(table_1, "LAYERS", table_1.LAYERS | rival)
    monkeypatch.setattr(table_1, "_times", lambda layer, x, repeats: {"time_ms": counted(lambda: layer(x))})
    rows = [
        Row(cell=cell, seed=seed, values=table_1.measure(cell, seed, 1), elapsed_s=1.0)
        for seed in SEEDS
        for n in (8, 16)
        for layer in ("self-attention", "recurrent")
        for cell in [{"layer": layer, "n": n, "d": 32}]
    ]
    faster, *_ = table_1._against_recurrent(Results(experiment="table-1", budget="full", rows=tuple(rows)))
    assert faster.outcome is outcome
