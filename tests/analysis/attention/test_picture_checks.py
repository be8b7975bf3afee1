"""The roads by which pictures of attention are computed again lead where the pictures do, and notice what is off."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from random_models import randomise

from transformer.analysis.attention import entry_reference
from transformer.analysis.attention.aggregation import combine_heads, leave_out, merge_words, renormalise
from transformer.analysis.attention.matrix_checks import (
    check_combination,
    check_contributions,
    check_rollout,
    walk_back,
    walk_back_to_source,
)
from transformer.analysis.attention.rollout import cross_rollout, rollout
from transformer.analysis.attention.vectors import record_vectors
from transformer.config import ModelConfig
from transformer.interventions import MeanAblateHeads, compile_interventions, parse_intervention
from transformer.model.kinds import AttentionKind
from transformer.model.taps import Address, chain
from transformer.model.transformer import Transformer

SOURCE = [5, 6, 7, 8, 3]
SWITCHES = [
    "off:{}.0.{}:1",
    "mean:{}.0.{}:1",
    "row:{}.0.{}.2:1:uniform",
    "off:{}.1.{}:0,1,2,3",
    "scale:{}.0.{}:1,2:0.5",
]


@pytest.fixture(scope="module")
def model() -> Transformer:
    config = ModelConfig(
        vocab_size=12, d_model=16, n_heads=4, d_ff=16, n_encoder_layers=2, n_decoder_layers=2, max_length=12
    )
    torch.manual_seed(3)
    model = Transformer(config)
    randomise(model)
    return model.eval()


def attention(seed: int, layers: int, queries: int, keys: int, causal: bool = False) -> np.ndarray:
    weights = np.random.default_rng(seed).random((layers, 3, queries, keys))
    if causal:
        weights = np.tril(weights)
    return (weights / weights.sum(axis=-1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("residual", [[True] * 3, [False] * 3, [True, False, True]])
@pytest.mark.parametrize("dead", [(), (0, slice(None)), (1, 0), (0, slice(None), 1)])
def test_walks_end_where_rollout_says(residual, dead):
    weights = attention(1, 3, 5, 5)
    if dead:
        weights[dead] = 0
    shown = rollout(weights, residual)[-1]
    sums = shown.sum(axis=-1)
    np.testing.assert_allclose(sums, sums > 0, atol=1e-12)
    assert check_rollout(shown, walk_back(weights, residual), "").holds
    moved = shown.copy()
    moved[2, 1] += 1e-3
    assert not check_rollout(moved, walk_back(weights, residual), "").holds


@pytest.mark.parametrize("kept", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("dead", ["", "cross", "decoder"])
def test_walks_into_the_source_end_where_cross_rollout_says(kept, dead):
    parts = {"decoder": attention(2, 2, 4, 4, causal=True), "cross": attention(3, 2, 4, 5)}
    if dead:
        parts[dead][0] = 0
    encoder = rollout(attention(4, 2, 5, 5), [True, True])[-1]
    given = encoder, parts["decoder"], parts["cross"], [kept[0]] * 2, [kept[1]] * 2
    assert check_rollout(cross_rollout(*given).source[-1], walk_back_to_source(*given)[0], "").holds


@pytest.mark.parametrize("site", [("encoder", "self"), ("decoder", "self"), ("decoder", "cross")])
@pytest.mark.parametrize("switch", ["", *SWITCHES, "mask:causal", "block:{}.0.{}"])
def test_contributions_are_multiplied_out(model, site, switch):
    switches, address, norms = shown_contributions(model, site, switch)
    checks = check_contributions(model, SOURCE, switches, address, norms)
    assert all(check.holds for check in checks), checks


@pytest.mark.parametrize("site", [("encoder", "self"), ("decoder", "self"), ("decoder", "cross")])
@pytest.mark.parametrize("switch", ["", *SWITCHES])
def test_a_contribution_of_any_head_that_is_off_by_little_is_noticed_whatever_is_switched(model, site, switch):
    switches, address, norms = shown_contributions(model, site, switch)
    for head in range(len(norms)):
        wrong = norms.copy()
        wrong[head, head, 0] += 1e-3
        assert not check_contributions(model, SOURCE, switches, address, wrong)[0].holds, head


@pytest.mark.parametrize("site", [("encoder", "self"), ("decoder", "self"), ("decoder", "cross")])
@pytest.mark.parametrize("switch", ["", *SWITCHES])
def test_a_head_that_passes_on_something_else_than_its_cells_is_noticed_unless_a_switch_did_it(
    model, site, switch, monkeypatch
):
    switches, address, norms = shown_contributions(model, site, switch)

    def faulty(site, tensor):
        return tensor * torch.tensor([1, 1, 1.5, 1])[:, None, None] if site == address.site("heads") else tensor

    compiled = compile_interventions(switches, model)
    monkeypatch.setattr(entry_reference, "compile_interventions", lambda *_: chain(compiled, faulty))
    norms[2] = 0.0  # as a picture has it that takes the fault for a switch's work
    assert not all(check.holds for check in check_contributions(model, SOURCE, switches, address, norms))


def shown_contributions(model, site, switch):
    switches = [parse_intervention(switch.format(*site))] if switch else []
    switches = [
        replace(spec, means=torch.ones(4, 4)) if isinstance(spec, MeanAblateHeads) else spec for spec in switches
    ]
    address = Address(site[0], 0, site[1])
    vectors = record_vectors(model, SOURCE, switches, *site)
    weights = recorded_weights(model, switches, address, vectors.q.shape[2], vectors.k.shape[2])
    return switches, address, vectors.contributions(np.stack([weights, weights]))[0]


def recorded_weights(model, switches, address, n_queries, n_keys):
    from transformer.analysis.attention.weight_checks import recomputed_attention

    kind = AttentionKind.at(address.stack, address.sublayer)
    found = recomputed_attention(model, SOURCE, switches, {}, kind).weights[0]
    assert found.shape[1:] == (n_queries, n_keys)
    return found


@pytest.mark.parametrize("how", ["mean", "max"])
def test_heads_and_words_are_put_together_again_cell_by_cell(how):
    values = attention(5, 1, 5, 6)[0]
    row_groups, column_groups = (0, 1, 1, 2, 3), (0, 0, 1, 2, 3, 4)
    merged = combine_heads(merge_words(values, row_groups, column_groups), [0, 2], how)
    kept, _ = leave_out(merged, [False] * 3 + [True], [False] * 4 + [True])
    rows, columns = [[0], [1, 2], [3]], [[0, 1], [2], [3], [4]]
    given = {"rows": rows, "columns": columns, "largest": how == "max"}
    assert check_combination(kept, values[[0, 2]], **given, rescaled=False).holds
    assert check_combination(renormalise(kept), values[[0, 2]], **given, rescaled=True).holds
    assert not check_combination(renormalise(kept), values[[0, 2]], **given, rescaled=False).holds


def test_one_head_as_it_is_must_agree_bit_by_bit():
    values = attention(6, 1, 3, 3)[0][:1]
    single = [[0], [1], [2]]
    assert check_combination(values[0], values, single, single, largest=False, rescaled=False).tolerance == 0
    moved = np.nextafter(values[0], 2)
    assert not check_combination(moved, values, single, single, largest=False, rescaled=False).holds
