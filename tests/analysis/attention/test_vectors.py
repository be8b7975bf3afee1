"""Recorded queries, keys and value norms: against loops over the model's own weights, and against single cells."""

import math

import numpy as np
import pytest
import torch
from random_models import half_trained_model, random_model

from transformer.analysis.attention.entry import explain_entry
from transformer.analysis.attention.vectors import record_vectors
from transformer.decoding.greedy import greedy
from transformer.interventions import AblateHeads, DisableMask, compile_interventions, parse_intervention
from transformer.model.taps import Address, Recorder

SOURCE = [5, 9, 4, 7, 11, 2]
SUBLAYERS = [("encoder", "self"), ("decoder", "self"), ("decoder", "cross")]


def recorded_weights(model, stack, sublayer, switches=()):
    """[layer head query key] of the real decoding, rows of steps put together."""
    tap = compile_interventions(switches, model)
    steps = list(
        greedy(model, torch.tensor([SOURCE]), max_length=64, tap=tap, record=lambda site: site.tensor == "weights")
    )
    layers = model.config.n_encoder_layers if stack == "encoder" else model.config.n_decoder_layers
    if stack == "encoder" or (sublayer == "self" and model.needs_recomputation(tap)):
        last = steps[0 if stack == "encoder" else -1].recording
        return np.stack([last[f"{stack}.{layer}.{sublayer}.weights"][0].numpy() for layer in range(layers)])
    keys = len(steps) if sublayer == "self" else len(SOURCE)
    rows = np.zeros((layers, model.config.n_heads, len(steps), keys), np.float32)
    for row, step in enumerate(steps):
        for layer in range(layers):
            found = step.recording[f"{stack}.{layer}.{sublayer}.weights"][0, :, -1].numpy()
            rows[layer, :, row, : found.shape[-1]] = found
    return rows


@pytest.mark.parametrize(("stack", "sublayer"), SUBLAYERS)
def test_norms_are_what_loops_over_the_weights_of_the_model_say(stack, sublayer):
    model, layer = half_trained_model(), 1
    vectors = record_vectors(model, SOURCE, (), stack, sublayer)
    weights = recorded_weights(model, stack, sublayer)
    found = vectors.contributions(weights)
    assert found.shape == weights.shape and found.dtype == np.float32

    recorder = Recorder()
    target = [int(step.tokens[0]) for step in greedy(model, torch.tensor([SOURCE]), max_length=64)]
    with torch.no_grad():
        model(torch.tensor([SOURCE]), torch.tensor([[1, *target[:-1]]]), tap=recorder)
    values = recorder.recording[f"{stack}.{layer}.{sublayer}.v"][0]
    output = model.get_submodule(f"{stack}.layers.{layer}.{sublayer}_attention").output.weight.tolist()
    size = values.size(-1)
    for head in range(model.config.n_heads):
        for key in range(values.size(1)):
            v = values[head, key].tolist()
            moved = [sum(row[head * size + i] * v[i] for i in range(size)) for row in output]
            length = math.sqrt(sum(x * x for x in moved))
            for query in range(weights.shape[2]):
                expected = float(weights[layer, head, query, key]) * length
                assert found[layer, head, query, key] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(("stack", "sublayer"), SUBLAYERS)
@pytest.mark.parametrize(
    "switch",
    [
        None,
        "off:decoder.1.cross:2",
        "mask:causal",
        "row:decoder.0.cross.1:2:uniform",
        "scale:decoder.1.cross:2:0.25",
        "block:decoder.1.self",
    ],
)
def test_every_cell_is_the_length_of_the_contribution_that_the_cell_panel_shows(stack, sublayer, switch):
    model = half_trained_model()
    switches = () if switch is None else (parse_intervention(switch),)
    vectors = record_vectors(model, SOURCE, switches, stack, sublayer)
    found = vectors.contributions(recorded_weights(model, stack, sublayer, switches))
    last = found.shape[2] - 1
    for layer, head, query, key in [
        (0, 0, 1, 0),
        (1, 2, last, 1),
        (1, 3, last, min(last, found.shape[3] - 1)),
        (0, 1, 2, 2),
    ]:
        entry = explain_entry(
            model, SOURCE, switches, address=Address(stack, layer, sublayer), head=head, query=query, key=key
        )
        assert found[layer, head, query, key] == pytest.approx(np.linalg.norm(entry.contribution), abs=1e-5)
        np.testing.assert_allclose(vectors.q[layer, head, query], entry.q, atol=1e-6)
        np.testing.assert_allclose(vectors.k[layer, head, key], entry.k, atol=1e-6)


def test_a_head_that_is_off_contributes_exactly_nothing():
    model = random_model(max_length=10)
    off = AblateHeads("decoder", 0, "cross", (1, 3))
    vectors = record_vectors(model, SOURCE, (off,), "decoder", "cross")
    norms = vectors.contributions(np.full((3, 4, vectors.q.shape[2], len(SOURCE)), 0.5, np.float32))
    assert not norms[0, [1, 3]].any() and (norms[0, [0, 2]] > 0).all() and (norms[1:] > 0).all()


@pytest.mark.parametrize(("stack", "sublayer"), SUBLAYERS)
def test_of_a_sublayer_that_is_off_nothing_arrives(stack, sublayer):
    model = random_model(max_length=10)
    vectors = record_vectors(model, SOURCE, (parse_intervention(f"block:{stack}.1.{sublayer}"),), stack, sublayer)
    assert not vectors.reached[1].any() and vectors.reached[0].all()


@pytest.mark.parametrize("changes", [{"positions": "rotary"}, {"positions": "alibi"}, {"scale_scores": False}, {}])
def test_queries_and_keys_are_those_whose_products_the_scores_are(changes):
    model = random_model(max_length=12, **changes)
    vectors = record_vectors(model, SOURCE, (), "encoder", "self")
    recorder = Recorder()
    with torch.no_grad():
        model.encode(torch.tensor([SOURCE]), tap=recorder)
    for layer in range(2):
        scores = recorder.recording[f"encoder.{layer}.self.scores"][0].numpy()
        products = np.einsum("hqd,hkd->hqk", vectors.q[layer], vectors.k[layer])
        if changes.get("scale_scores") is not False:
            products = products / math.sqrt(vectors.q.shape[-1])
        if changes.get("positions") != "alibi":
            np.testing.assert_allclose(products, scores, atol=1e-4)
        else:
            assert np.abs(products - scores).max() > 0.01


def test_a_long_decoding_without_the_causal_mask_gives_the_last_pass():
    model = random_model(max_length=12)
    vectors = record_vectors(model, SOURCE, (DisableMask("causal"),), "decoder", "self")
    assert vectors.q.shape[2] == vectors.k.shape[2] == vectors.reached.shape[2]
