"""Comparisons as data: what they judge is what they compute again, and pairs are of one seed."""

from dataclasses import replace

import pytest

from transformer.experiments import recount
from transformer.experiments.comparisons import Comparison, again_by, findings_of, judge_by
from transformer.experiments.outcome import Outcome
from transformer.experiments.paper import (
    EXPERIMENTS,
    averaging,
    beam_search,
    heads,
    regularisation,
    scaling,
    table_3,
    warm_up,
)
from transformer.experiments.results import Cell, Results, Row

LESS = Comparison(
    name="a − b", group="less", metric="loss", unit="nats", first={"kind": "a"}, second={"kind": "b"}, most=0.0
)


def row(seed: int, kind: str, loss: float) -> Row:
    """Returns a made-up row."""
    return Row(cell={"kind": kind}, seed=seed, values={"loss": loss}, elapsed_s=1.0)


def test_a_comparison_pairs_seeds_and_is_computed_again_by_other_code():
    gaps = [-0.3, -0.2, -0.4]
    rows = [row(seed, "b", 10.0 * seed) for seed in range(4)]
    rows += [row(seed, "a", 10.0 * seed + gap) for seed, gap in enumerate(gaps)]  # the last seed lacks its pair
    judge = judge_by((LESS,), lambda results: "Less.", primary="a − b")
    found = judge(Results(experiment="fake", budget="full", rows=tuple(rows)))
    assert found.outcome is Outcome.HOLDS and found.findings[0].estimate == pytest.approx(-0.3)
    again = again_by((LESS,))([{**each.cell, "seed": each.seed, **each.values} for each in rows])
    (only,) = found.findings
    assert recount.mean_and_ends(again["a − b"], "t") == pytest.approx((only.estimate, only.low, only.high), rel=1e-3)


def test_a_difference_of_differences_needs_all_four_cells_of_a_seed():
    loss = {"a": 5.0, "b": 2.0, "c": 1.5, "d": 1.0}
    rows = [row(seed, kind, value + 0.1 * seed * (kind == "a")) for seed in range(4) for kind, value in loss.items()]
    both = replace(LESS, beside=({"kind": "c"}, {"kind": "d"}))
    found = both.finding(Results(experiment="fake", budget="full", rows=tuple(rows[:-1])))  # the last seed lacks "d"
    assert found.estimate == pytest.approx(2.6) and "3 seeds" in found.interval
    again = both.again([{**each.cell, "seed": each.seed, **each.values} for each in rows[:-1]])
    assert recount.mean_and_ends(again, "t") == pytest.approx((found.estimate, found.low, found.high), rel=1e-3)


def test_comparisons_of_levels_that_a_budget_leaves_out_are_left_out():
    rows = [row(seed, kind, 1.0) for seed in range(3) for kind in "ab"]
    results, other = Results(experiment="fake", budget="small", rows=tuple(rows)), replace(LESS, second={"kind": "c"})
    assert [each.name for each in findings_of((LESS, other), results)] == ["a − b"]
    assert list(again_by((other,))([{"kind": "a", "seed": 0, "loss": 1.0}])) == []


COMPARED = [averaging, beam_search, heads, regularisation, scaling, table_3, warm_up]


@pytest.mark.parametrize("module", COMPARED, ids=lambda module: module.EXPERIMENT.name)
def test_every_comparison_is_between_cells_that_are_measured_together(module):
    experiment = module.EXPERIMENT
    for budget in experiment.budgets:
        cells = [cell for cell, _ in experiment.plan(budget)]
        measured = [all(_is_measured(cell, each.best_of, cells) for cell in each.cells) for each in module.COMPARISONS]
        assert all(measured) if budget == experiment.budget() else any(measured)
    for each in module.COMPARISONS:
        assert each.first != each.second
        assert each.metric in {metric.name for metric in experiment.metrics}


def _is_measured(cell: Cell, best_of: str, cells: list[Cell]) -> bool:
    return any(cell == {factor: level for factor, level in each.items() if factor != best_of} for each in cells)


def test_names_of_experiments_fit_their_files():
    assert all(name == each.name for name, each in EXPERIMENTS.items())
