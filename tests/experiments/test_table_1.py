"""Table 1, measured: the layers compute what they are called, and the counts are those of the table."""

import math
from statistics import fmean

import pytest
import torch

from transformer.experiments import recount
from transformer.experiments.paper import table_1
from transformer.experiments.paper.layers import LAYERS, WINDOW
from transformer.experiments.paper.table_1 import crossing, measure
from transformer.experiments.results import Cell, Results, Row


@pytest.mark.parametrize("n", [5, 32, 33, 100, 128])
def test_restricted_self_attention_is_self_attention_under_a_mask(n, within):
    x = torch.randn(n, 8)
    place = torch.arange(n)
    far = (place[:, None] - place).abs() > WINDOW // 2
    scores = (x @ x.T / math.sqrt(8)).masked_fill(far, -math.inf)
    within(LAYERS["restricted"](8)(x), torch.softmax(scores, dim=-1) @ x, 1e-5)


@pytest.mark.parametrize("layer", LAYERS)
def test_every_layer_keeps_the_shape_of_its_input(layer):
    assert LAYERS[layer](16)(torch.randn(40, 16)).shape == (40, 16)


def test_each_convolution_sees_its_neighbours_alone():
    for name in ("convolution", "separable"):
        layer, x = LAYERS[name](8), torch.randn(9, 8)
        moved = (layer(x + torch.eye(9)[:, 4:5]) - layer(x)).abs().sum(dim=1) > 0
        assert moved.nonzero().flatten().tolist() == [3, 4, 5]


@pytest.mark.parametrize(
    ("layer", "path"),
    [("self-attention", 1), ("with projections", 1), ("restricted", 4), ("recurrent", 128), ("convolution", 127)],
)
def test_paths_are_as_long_as_the_table_says(layer, path):
    with torch.random.fork_rng():
        assert table_1._path(LAYERS[layer], 128) == path  # 127 steps of 1, or 4 of half a window of 64


def test_operations_of_a_recurrent_layer_alone_grow_with_the_sequence():
    counts = {
        name: [table_1._operations(make(8), torch.randn(n, 8)) for n in (32, 128)] for name, make in LAYERS.items()
    }
    assert {name for name, (short, long) in counts.items() if short != long} == {"recurrent"}
    assert counts["recurrent"][1] - counts["recurrent"][0] == 3 * 96  # a product, a sum and a tanh each step
    assert counts["self-attention"] == [4, 4]  # two products, a division, a softmax


def test_what_is_kept_for_the_way_back_is_counted_once():
    x = torch.randn(64, 16)
    kept = table_1._kept_mb(LAYERS["self-attention"](16), x)
    assert kept == pytest.approx((4 * 64 * 64 + 4 * 64 * 16 + 4 * 64 * 64) / 1e6, rel=0.6)
    assert table_1._kept_mb(LAYERS["convolution"](16), x) == pytest.approx(4 * 64 * 16 / 1e6)


def test_a_measurement_has_what_its_cell_can_tell():
    found = measure({"layer": "recurrent", "n": 16, "d": 64}, 0, 1)
    assert set(found) == {"time_ms", "forward_ms", "kept_mb", "operations", "path"}
    assert found["time_ms"] >= found["forward_ms"] > 0 and found["path"] == 16
    assert set(measure({"layer": "recurrent", "n": 16, "d": 8}, 0, 1)) == {"time_ms", "forward_ms", "kept_mb"}


def test_crossings_are_read_between_the_sizes():
    assert crossing({16: 0.25, 64: 4.0, 256: 9.0}) == pytest.approx(32.0)
    assert crossing({16: 2.0, 64: 4.0}) == 16
    assert crossing({16: 0.2, 64: 0.4}) == 64


def test_both_layers_are_said_to_take_as_long_at_the_n_where_they_do_for_each_width():
    plan = table_1.EXPERIMENT.plan(table_1.EXPERIMENT.budget())
    rows = [Row(cell=cell, seed=seed, values=made_up(cell), elapsed_s=1.0) for cell, seed in plan]
    results = Results(experiment="table-1", budget="full", rows=tuple(rows))
    findings = {each.name: each for each in table_1.EXPERIMENT.verdict(results).findings}
    for d in results.levels("d"):
        assert findings[f"n where both take as long, d = {d}"].estimate == pytest.approx(0.5 * d)
    shorter = [(n, d) for n in results.levels("n") for d in results.levels("d") if n < d]
    for name, ratio in (
        ("time of self-attention over recurrent, n < d", lambda n, d: 2 * n / d),
        ("the same with projections", lambda n, d: 2 * (n + 4 * d) / d),
    ):
        logs = [math.log(ratio(n, d)) for n, d in shorter]
        assert findings[name].estimate == pytest.approx(math.exp(fmean(logs)))
    again = table_1.again([{**row.cell, "seed": row.seed, **row.values} for row in rows])
    for name, one in findings.items():
        assert recount.mean_and_ends(again[name], one.method)[0] == pytest.approx(one.estimate, abs=1e-6)


def made_up(cell: Cell) -> dict[str, float]:
    """Returns times that grow as the table says, with self-attention twice as slow as its count."""
    n, d = int(cell["n"]), int(cell["d"])
    attention = 2e-6 * n * n * d
    times = {"self-attention": attention, "with projections": attention + 8e-6 * n * d * d}
    return {
        "time_ms": times.get(str(cell["layer"]), 1e-6 * n * d * d),
        "operations": 1.0 * n,
        "path": 1.0 * n,
    }
