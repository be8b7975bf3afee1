"""An entry taken apart: against a slow recomputation in float64 that shares no code with it."""

import math

import numpy as np
import pytest
import torch
from page_models import REVERSE
from random_models import half_trained_model, random_model

from transformer.analysis.attention.entry import explain_entry
from transformer.decoding.greedy import Constraints, greedy
from transformer.interventions import AblateHeads, DisableMask, compile_interventions
from transformer.lab import load
from transformer.model.taps import Address, Recorder

SOURCE = [5, 9, 4, 7, 11, 2]
SUBLAYERS = [("encoder", "self"), ("decoder", "self"), ("decoder", "cross")]


def slow_entry(model, stack, sublayer, layer, head, query, key):
    """Score, weight, contribution and output of one entry by loops over plain lists, from the block's input."""
    recorder = Recorder()
    source = torch.tensor([SOURCE])
    target = [int(step.tokens[0]) for step in greedy(model, source, max_length=model.config.max_length)]
    with torch.no_grad():
        model.double()(source, torch.tensor([[1, *target[:-1]]]), tap=recorder)
    inputs = recorder.recording[f"{stack}.{layer}.{sublayer}.input"][0]
    asked = inputs
    if sublayer == "cross":
        last = f"encoder.{model.config.n_encoder_layers - 1}.ffn.normed"
        asked = recorder.recording[last][0]
    if sublayer == "self" and stack == "decoder":
        asked = inputs[: query + 1]
    attention = model.get_submodule(f"{stack}.layers.{layer}.{sublayer}_attention")
    size = model.config.d_model // model.config.n_heads

    def linear(module, x):
        return [
            sum(w * a for w, a in zip(row, x, strict=True)) + b
            for row, b in zip(module.weight.tolist(), module.bias.tolist(), strict=True)
        ]

    def part(vector, h):
        return vector[h * size : (h + 1) * size]

    weights, values = [], []
    for h in range(model.config.n_heads):
        q = part(linear(attention.query, inputs[query].tolist()), h)
        ks = [part(linear(attention.key, x.tolist()), h) for x in asked]
        vs = [part(linear(attention.value, x.tolist()), h) for x in asked]
        scores = [sum(a * b for a, b in zip(q, k, strict=True)) / math.sqrt(size) for k in ks]
        total = sum(math.exp(s) for s in scores)
        weights.append([math.exp(s) / total for s in scores])
        values.append(vs)
        if h == head:
            chosen = scores[key]
    matrix = attention.output.weight.tolist()

    def projected(h, k):
        return [
            weights[h][k] * sum(row[h * size + i] * values[h][k][i] for i in range(size)) for row in matrix
        ]  # alpha * (v W_O)

    output = attention.output.bias.tolist()
    for h in range(model.config.n_heads):
        for k in range(len(asked)):
            output = [a + b for a, b in zip(output, projected(h, k), strict=True)]
    return chosen, weights[head][key], projected(head, key), output


@pytest.mark.parametrize(("stack", "sublayer"), SUBLAYERS)
def test_a_cell_is_what_a_slow_recomputation_in_float64_says(stack, sublayer):
    query, key = (3, 2) if stack == "encoder" else (2, 1)
    model = half_trained_model()
    entry = explain_entry(model, SOURCE, address=Address(stack, 1, sublayer), head=2, query=query, key=key)
    score, weight, contribution, output = slow_entry(half_trained_model(), stack, sublayer, 1, 2, query, key)
    assert entry.scaled == pytest.approx(score, abs=2e-5)
    assert entry.scores[key] == pytest.approx(score, abs=2e-5)
    assert entry.softmax == pytest.approx(weight, abs=1e-5)
    assert entry.weights[key] == pytest.approx(weight, abs=1e-5)
    np.testing.assert_allclose(entry.contribution, contribution, atol=1e-5)
    np.testing.assert_allclose(entry.output, output, atol=5e-5)
    length = sum(o * o for o in output)
    assert entry.share == pytest.approx(
        sum(c * o for c, o in zip(contribution, output, strict=True)) / length, abs=1e-5
    )


@pytest.mark.parametrize(("stack", "sublayer"), SUBLAYERS)
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_shares_of_all_entries_and_of_the_bias_sum_to_one(stack, sublayer, norm):
    entry = explain_entry(random_model(norm=norm), SOURCE, address=Address(stack, 0, sublayer), head=1, query=2, key=0)
    assert entry.shares.sum() + entry.bias_share == pytest.approx(1, abs=1e-5)
    assert entry.rest_share == pytest.approx(0, abs=1e-5)
    assert entry.reached


@pytest.mark.parametrize("switches", [(), (AblateHeads("encoder", 0, "self", (0,)),), (DisableMask("causal"),)])
@pytest.mark.parametrize(("stack", "sublayer"), SUBLAYERS)
def test_the_row_is_bit_for_bit_the_one_that_decoding_recorded(stack, sublayer, switches):
    model, tap = half_trained_model(), compile_interventions(switches, half_trained_model())
    steps = list(
        greedy(
            model,
            torch.tensor([SOURCE]),
            max_length=model.config.max_length,
            tap=tap,
            record=lambda s: s.tensor == "weights",
        )
    )
    entry = explain_entry(model, SOURCE, switches, address=Address(stack, 1, sublayer), head=3, query=1, key=1)
    if stack == "encoder":
        row = steps[0].recording["encoder.1.self.weights"][0, 3, 1]
    elif sublayer == "self" and switches == (DisableMask("causal"),):
        row = steps[-1].recording["decoder.1.self.weights"][0, 3, 1]
    else:
        row = steps[1].recording[f"decoder.1.{sublayer}.weights"][0, 3, -1]
    np.testing.assert_array_equal(entry.weights, row.numpy())


def test_a_head_that_is_off_adds_nothing_and_the_rest_still_sums_to_one():
    switch = AblateHeads("decoder", 0, "cross", (1,))
    entry = explain_entry(
        random_model(), SOURCE, [switch], address=Address("decoder", 0, "cross"), head=1, query=0, key=3
    )
    assert not entry.reached and entry.share == 0 and not entry.contribution.any()
    assert entry.weights[3] > 0
    assert entry.shares.sum() + entry.bias_share + entry.rest_share == pytest.approx(1)
    assert entry.rest_share == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"query": 99}, "row 99 does not exist: there are rows 0 to"),
        ({"query": -1}, "row -1 does not exist"),
        ({"key": 3}, "key 3 did not exist when row 2 was computed: there were keys 0 to 2"),
        ({"head": 4}, "head 4 does not exist: this model has heads 0 to 3"),
        ({"address": Address("decoder", 9, "self")}, "this model has no attention block decoder.9.self"),
    ],
)
def test_a_cell_that_does_not_exist_is_refused(changes, said):
    asked = {"address": Address("decoder", 0, "self"), "head": 0, "query": 2, "key": 1, **changes}
    with pytest.raises(ValueError, match=said):
        explain_entry(random_model(max_length=12), SOURCE, **asked)


@pytest.mark.parametrize(("stack", "sublayer"), [("decoder", "self"), ("decoder", "cross")])
@pytest.mark.parametrize("switches", [(), (DisableMask("causal"),)])
def test_under_a_forced_token_the_row_is_the_one_that_the_forced_decoding_recorded(stack, sublayer, switches):
    model = half_trained_model()
    tap, limit = compile_interventions(switches, model), model.config.max_length
    free = [int(step.tokens[0]) for step in greedy(model, torch.tensor([SOURCE]), max_length=limit, tap=tap)]
    forced = {0: next(token for token in range(4, 12) if token != free[0]), 1: 5, 2: 6}
    steps = list(
        greedy(
            model,
            torch.tensor([SOURCE]),
            max_length=limit,
            constraints=Constraints(forced=forced),
            tap=tap,
            record=lambda s: s.tensor == "weights",
        )
    )
    asked = {"address": Address(stack, 1, sublayer), "head": 1, "query": 2, "key": 1}
    entry = explain_entry(model, SOURCE, switches, forced=forced, **asked)
    last = sublayer == "self" and bool(switches)
    recorded = steps[-1 if last else 2].recording[f"decoder.1.{sublayer}.weights"][0, 1, 2 if last else -1]
    np.testing.assert_array_equal(entry.weights, recorded.numpy())
    freely = explain_entry(model, SOURCE, switches, **asked)
    assert freely.weights.shape != entry.weights.shape or np.abs(freely.weights - entry.weights).max() > 1e-4


def test_the_lab_takes_a_cell_of_a_road_with_forced_tokens_apart(untrained_models):
    lab = load(REVERSE)
    free = lab.inspect("a b c d")
    road = lab.inspect("a b c d", (), {0: 4 if free.target_ids[0] != 4 else 5})
    entry = lab.explain_entry(road, "decoder_self", 0, 2, 3, 1)
    assert entry.weights[1] == road.decoder_self.weights[0, 2, 3, 1] != free.decoder_self.weights[0, 2, 3, 1]
