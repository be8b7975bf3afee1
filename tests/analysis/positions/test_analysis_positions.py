"""Position tables measured, and first-layer scores split, against formulas and recorded passes."""

import math

import numpy as np
import pytest
import torch
from random_models import random_ids, random_model

from transformer.analysis.positions.score_decomposition import decompose_scores
from transformer.analysis.positions.tables import (
    by_offset,
    concatenated,
    fit_shift,
    initial_model,
    model_table,
    rotation,
    shift_error,
    similarity,
    sinusoids,
    untouched_rows,
    wavelengths,
)
from transformer.interventions import AblateHeads, compile_interventions
from transformer.model.positions import sinusoidal_table
from transformer.model.transformer import Transformer


def exact_table(length: int, d_model: int, base: float) -> np.ndarray:
    table = np.empty((length, d_model))
    for position in range(length):
        for i in range(d_model // 2):
            angle = position / base ** (2 * i / d_model)
            table[position, 2 * i : 2 * i + 2] = math.sin(angle), math.cos(angle)
    return table


@pytest.mark.parametrize("base", [2.0, 100.0, 10_000.0, 1e6])
def test_the_table_of_any_base_is_the_formula_rounded_once(base):
    expected = exact_table(200, 24, base)
    assert np.abs(sinusoidal_table(200, 24, base=base, dtype=torch.float64).numpy() - expected).max() < 1e-12
    assert np.abs(sinusoids(200, 24, base) - expected).max() < 6e-8  # half a unit in the last place of a float32


def test_wavelengths_run_from_2_pi_towards_base_times_2_pi():
    found = wavelengths(512)
    assert found[0] == 2 * math.pi
    assert (np.diff(found) > 0).all()
    assert found[-1] == pytest.approx(10_000 * 2 * math.pi * 10_000 ** (-2 / 512))
    assert wavelengths(100_000)[-1] == pytest.approx(10_000 * 2 * math.pi, rel=1e-3)


def test_a_dimension_repeats_after_its_wavelength():
    length = 3_000
    for i, wavelength in enumerate(wavelengths(8, base=100.0)):
        whole = round(1_000 * wavelength)  # a thousand turns, to the nearest position
        drift = 2 * math.pi * (whole - 1_000 * wavelength) / wavelength
        table = sinusoidal_table(whole + 2, 8, base=100.0, dtype=torch.float64).numpy()
        assert abs(table[whole, 2 * i] - math.sin(drift)) < 1e-8, (i, length)


def test_concatenated_holds_the_same_numbers_sines_first():
    table = sinusoids(5, 6)
    found = concatenated(table)
    assert (found[:, :3] == table[:, [0, 2, 4]]).all() and (found[:, 3:] == table[:, [1, 3, 5]]).all()
    assert np.abs(similarity(found, "dot") - similarity(table, "dot")).max() < 1e-12


def test_likeness_of_sinusoids_depends_on_the_offset_alone():
    table = sinusoidal_table(50, 32, dtype=torch.float64).numpy()
    matrix = similarity(table, "dot")
    frequency = 10_000.0 ** (-np.arange(0, 32, 2) / 32)
    offsets = by_offset(matrix)
    assert np.abs(offsets.mean - np.cos(np.arange(50)[:, None] * frequency).sum(axis=1)).max() < 1e-12
    assert np.abs(offsets.high - offsets.low).max() < 1e-12
    assert matrix[3, 3] == pytest.approx(16)  # half of d_model
    assert np.abs(similarity(table, "cosine") * 16 - matrix).max() < 1e-12


def test_the_cosine_of_any_row_with_itself_is_1_and_a_zero_row_is_like_none():
    table = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    table[2] = 0
    matrix = similarity(table, "cosine")
    assert np.abs(np.diagonal(matrix) - [1, 1, 0, 1, 1, 1]).max() < 1e-12
    assert not matrix[2].any()


@pytest.mark.parametrize("k", [0, 1, 7, 100])
@pytest.mark.parametrize("base", [100.0, 10_000.0])
def test_the_rotation_is_the_shift_exactly(k, base):
    table = sinusoidal_table(160, 16, base=base, dtype=torch.float64).numpy()
    turn = rotation(16, k, base)
    assert shift_error(table, turn, k).max() < 1e-12
    assert np.abs(turn @ turn.T - np.eye(16)).max() < 1e-12
    assert np.abs(rotation(16, 2, base) @ turn - rotation(16, k + 2, base)).max() < 1e-12
    assert len(shift_error(table, turn, k)) == 160 - k


def test_least_squares_finds_a_linear_map_that_is_there_and_says_where_there_is_none():
    rotated = fit_shift(sinusoidal_table(80, 8, dtype=torch.float64).numpy(), 3)
    assert np.abs(rotated.matrix - rotation(8, 3)).max() < 1e-6
    assert rotated.unexplained_held_out < 1e-12
    noise = fit_shift(np.random.default_rng(0).normal(size=(80, 8)), 3)
    assert noise.unexplained_held_out > 0.9
    assert set(noise.fitted) | set(noise.held_out) == set(range(77)) and not set(noise.fitted) & set(noise.held_out)


def test_a_shift_that_leaves_too_few_pairs_is_refused_with_both_numbers():
    with pytest.raises(ValueError, match="a shift by 8 leaves 2 pairs of positions in a table of 10; 4 are needed"):
        fit_shift(sinusoids(10, 4), 8)
    with pytest.raises(ValueError, match="a shift by 10 leaves no pair of positions in a table of 10"):
        shift_error(sinusoids(10, 4), rotation(4, 10), 10)


def test_a_models_table_is_what_it_adds_and_its_start_is_found_again():
    config = random_model(positions="learned").config
    torch.manual_seed(5)
    model = Transformer(config)
    again = initial_model(model, 5)
    table = model_table(again, "encoder")
    assert (table == model_table(model, "encoder")).all()
    with torch.no_grad():
        model.encoder.embedding.positions.table[:7] += 1e-3
    assert untouched_rows(model_table(model, "encoder"), table).tolist() == list(range(7, 64))
    assert model_table(random_model(positions="none"), "encoder") is None
    assert (model_table(random_model(), "decoder") == sinusoids(64, 16)).all()


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_the_four_parts_sum_to_the_recorded_score(stack, norm, positions):
    model = random_model(norm=norm, positions=positions)
    split = decompose_scores(model, random_ids(1, 9), random_ids(1, 7), stack)
    length = 9 if stack == "encoder" else 7
    assert split.parts.shape == (4, 4, length, length) and split.mask.shape == (length, length)
    assert split.largest_error < 1e-5


def test_each_part_moves_with_what_it_is_named_after():
    model, same = random_model(), torch.full((1, 6), 9)
    one_word = decompose_scores(model, same, same, "encoder").parts
    assert np.ptp(one_word[0], axis=(1, 2)).max() < 1e-6  # one word everywhere: content is the same everywhere
    assert np.ptp(one_word[1], axis=1).max() < 1e-6  # content-position: the same for every query
    assert np.ptp(one_word[2], axis=2).max() < 1e-6  # position-content: the same for every key
    another = decompose_scores(model, same + 1, same, "encoder").parts
    assert np.abs(another[3] - one_word[3]).max() == 0  # position-position: the words do not matter
    assert np.abs(another[0] - one_word[0]).max() > 1e-2


def test_biases_count_as_content():
    model = random_model()
    with torch.no_grad():
        model.encoder.embedding.tokens.weight.zero_()
    layer = model.encoder.layers[0].self_attention
    split = decompose_scores(model, random_ids(1, 4), random_ids(1, 3), "encoder")
    q, k = layer.query.bias.view(4, 4).double(), layer.key.bias.view(4, 4).double()
    assert np.abs(split.parts[0] - ((q * k).sum(-1) / 2).detach().numpy()[:, None, None]).max() < 1e-6


def test_the_split_holds_under_switches_and_is_refused_without_positions():
    model = random_model()
    tap = compile_interventions([AblateHeads("encoder", 0, "self", (1,))], model)
    assert decompose_scores(model, random_ids(1, 5), random_ids(1, 4), "decoder", tap=tap).largest_error < 1e-5
    with pytest.raises(ValueError, match="scores cannot be split: no positions are added to the embeddings"):
        decompose_scores(random_model(positions="none"), random_ids(1, 5), random_ids(1, 4), "encoder")
