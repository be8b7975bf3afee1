import math

import pytest
import torch
from random_models import random_ids, random_model
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

from transformer.positions import LearnedPositions, SinusoidalPositions, build_positions, sinusoidal_table


def test_the_table_is_the_paper_s_formula_cell_by_cell(within):
    length, d_model = 300, 32
    expected = torch.empty(length, d_model, dtype=torch.float64)
    for position in range(length):
        for i in range(d_model // 2):
            angle = position / 10_000 ** (2 * i / d_model)
            expected[position, 2 * i], expected[position, 2 * i + 1] = math.sin(angle), math.cos(angle)
    # An angle of 300 carries a rounding error of 300 * 2**-52.
    within(sinusoidal_table(length, d_model, dtype=torch.float64), expected, 1e-12)
    assert torch.equal(sinusoidal_table(length, d_model), expected.float())


def test_far_positions_are_as_exact_as_near_ones(within):
    table = sinusoidal_table(100_001, 8)
    angles = [100_000 / 10_000 ** (2 * i / 8) for i in range(4)]
    expected = torch.tensor([f(a) for a in angles for f in (math.sin, math.cos)], dtype=torch.float64)
    within(table[100_000], expected, 2**-24)  # half a unit in the last place of a float32 below 1


def test_the_table_is_marian_s_with_its_halves_interleaved():
    marian = MarianSinusoidalPositionalEmbedding(128, 64).create_weight()
    even, odd = marian[:, :32], marian[:, 32:]
    assert torch.equal(sinusoidal_table(128, 64), torch.stack((even, odd), dim=-1).flatten(1))


def test_a_shift_is_the_same_rotation_at_every_position(within):
    """Section 3.5: PE(pos + k) is a linear function of PE(pos)."""
    table = sinusoidal_table(60, 16, dtype=torch.float64).unflatten(1, (8, 2))
    angle = 7 / 10_000 ** (torch.arange(0, 16, 2, dtype=torch.float64) / 16)
    rotation = torch.stack(
        (torch.stack((angle.cos(), angle.sin()), -1), torch.stack((-angle.sin(), angle.cos()), -1)), -2
    )
    within(torch.einsum("frc,pfc->pfr", rotation, table[:50]), table[7:57], 1e-12)


def test_an_odd_width_is_refused():
    with pytest.raises(ValueError, match=r"d_model \(7\) must be even"):
        sinusoidal_table(4, 7)


def test_a_kind_of_position_is_the_module_it_names():
    assert isinstance(build_positions("sinusoidal", 8, 4), SinusoidalPositions)
    assert isinstance(build_positions("learned", 8, 4), LearnedPositions)
    assert build_positions("none", 8, 4) is None


def test_the_sinusoidal_table_is_neither_trained_nor_saved():
    assert not random_model(positions="sinusoidal").state_dict().keys() & {"encoder.embedding.positions.table"}
    learned = random_model(positions="learned")
    assert {"encoder.embedding.positions.table", "decoder.embedding.positions.table"} <= learned.state_dict().keys()
    source, target = learned.encoder.embedding.positions, learned.decoder.embedding.positions
    assert source.table is not target.table


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "none", "rotary", "alibi"])
def test_a_sequence_past_the_model_s_length_is_refused_with_both_numbers(positions):
    model = random_model(positions=positions, max_length=8)
    assert model(random_ids(1, 8), random_ids(1, 8)).shape == (1, 8, 23)
    with pytest.raises(ValueError, match=r"source has 9 tokens; this model takes at most 8 \(max_length\)"):
        model(random_ids(1, 9), random_ids(1, 8))
    with pytest.raises(ValueError, match=r"target has 9 tokens; this model takes at most 8 \(max_length\)"):
        model(random_ids(1, 8), random_ids(1, 9))


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "none", "rotary", "alibi"])
def test_cached_decoding_past_the_length_is_refused_too(positions):
    model = random_model(positions=positions, max_length=4)
    source = random_ids(1, 3)
    real, memory, cache = source != 0, model.encode(source), model.new_cache()
    for _ in range(4):
        model.decode(random_ids(1, 1), memory, real, cache=cache)
    with pytest.raises(ValueError, match="target has 5 tokens; this model takes at most 4"):
        model.decode(random_ids(1, 1), memory, real, cache=cache)


@pytest.mark.parametrize(
    ("positions", "moves"),
    [("none", False), ("learned", True), ("sinusoidal", True), ("rotary", True), ("alibi", True)],
)
def test_without_positions_the_encoder_cannot_tell_word_order(positions, moves):
    model = random_model(torch.float64, positions=positions)
    source = random_ids(2, 10)
    order = torch.randperm(10)
    shift = (model.encode(source[:, order]) - model.encode(source)[:, order]).abs().max().item()
    assert shift > 1e-2 if moves else shift < 1e-12
