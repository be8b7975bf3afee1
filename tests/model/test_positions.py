import math
from dataclasses import replace
from functools import cache
from shutil import copyfile, copytree, ignore_patterns
from typing import get_args

import pytest
import torch
import transformers  # which loads its parts when they are asked for
from hypothesis import given, settings
from hypothesis import strategies as st
from random_models import random_ids, random_model

from transformer.checkpoints.position_history import STACKS, read_history, write_history
from transformer.checkpoints.settings import SHIPPED_FOLDER
from transformer.checkpoints.store import POSITIONS_FILE, export_checkpoint, load_checkpoint, save_tensors
from transformer.config import ModelConfig, PositionKind
from transformer.decoding.greedy import greedy
from transformer.model.position_extension import EXTENSIONS, extended, extended_table
from transformer.model.positions import LearnedPositions, SinusoidalPositions, build_positions, sinusoidal_table
from transformer.model.transformer import Transformer


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
    theirs = transformers.models.marian.modeling_marian.MarianSinusoidalPositionalEmbedding
    marian = theirs(128, 64).create_weight()
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


KINDS = get_args(PositionKind)


@given(
    kind=st.sampled_from(KINDS),
    how=st.sampled_from(EXTENSIONS),
    source=st.integers(1, 1_000),
    target=st.integers(1, 1_000),
    limit=st.sampled_from((8, 64, 1_000)),
)
@settings(max_examples=40)
@torch.no_grad()
def test_any_kind_answers_any_length_to_1000_or_refuses_with_a_sentence(kind, how, source, target, limit):
    model = small_model(kind, limit)
    if max(source, target) <= limit:
        assert torch.isfinite(model(random_ids(1, source), random_ids(1, target))).all()
    else:
        with pytest.raises(ValueError, match=rf"has \d+ tokens; this model takes at most {limit} \(max_length\)"):
            model(random_ids(1, source), random_ids(1, target))
    longest, trained = max(source, target), limit // 2
    refused = kind == "learned" and longest > {"refuse": trained, "noise": limit}.get(how, longest)
    if refused:
        with pytest.raises(ValueError, match=rf"{longest} tokens need positions 0 to {longest - 1}; .*clamp or interp"):
            extended(model, longest, how, trained=trained)
    else:
        longer = extended(model, longest, how, trained=trained)
        assert torch.isfinite(longer(random_ids(1, source), random_ids(1, target))).all()
        with pytest.raises(ValueError, match=f"this model takes at most {longest}"):
            longer(random_ids(1, longest + 1), random_ids(1, 1))


@cache
def small_model(kind, limit):
    torch.manual_seed(0)
    config = ModelConfig(
        vocab_size=23, d_model=8, n_heads=2, d_ff=8, n_encoder_layers=1, n_decoder_layers=1, max_length=limit,
        positions=kind,
    )  # fmt: skip
    return Transformer(config).eval()


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_an_extended_model_shares_its_weights_and_reads_short_sentences_alike(within, kind):
    model = random_model(positions=kind)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    longer = extended(model, 200, "clamp", trained=40)
    tables = {id(p) for stack in (longer.encoder, longer.decoder) for p in stack.embedding.parameters(recurse=True)}
    shared = {id(p) for p in model.parameters()}
    assert {id(p) for p in longer.parameters()} - shared <= tables
    assert len({id(p) for p in longer.parameters()} & shared) >= len(shared) - 2
    source, target = random_ids(2, 30), random_ids(2, 25)
    within(longer(source, target), model(source, target), 0)
    assert longer(random_ids(1, 200), random_ids(1, 200)).shape == (1, 200, 23)
    assert model.config.max_length == 64 and all(torch.equal(v, before[k]) for k, v in model.state_dict().items())


@pytest.mark.parametrize("kind", ["sinusoidal", "rotary", "alibi", "none"])
@torch.no_grad()
def test_formulas_go_on_where_they_ended(within, kind):
    """A model built long, with the same weights, is the model extended."""
    short = random_model(positions=kind)
    built = Transformer(replace(short.config, max_length=300)).eval()
    built.load_state_dict(short.state_dict())
    source, target = random_ids(1, 300), random_ids(1, 120)
    within(extended(short, 300, "refuse", trained=10)(source, target), built(source, target), 0)


def test_what_a_learned_table_does_past_its_trained_rows(within):
    table = torch.randn(20, 6)
    within(extended_table(table, 15, "noise", trained=9), table[:15], 0)
    clamped = extended_table(table, 30, "clamp", trained=9)
    within(clamped, table[[*range(9), *[8] * 21]], 0)
    stretched = extended_table(table, 17, "interpolate", trained=9)
    within(stretched[0::2], table[:9], 1e-6)  # 17 places over 9 rows: every second one is a row
    within(stretched[1::2], (table[:8] + table[1:9]) / 2, 1e-6)
    for how in EXTENSIONS:
        within(extended_table(table, 9, how, trained=9), table[:9], 0)
    within(extended_table(table, 5, "interpolate", trained=1), table[[0] * 5], 1e-6)


def test_a_learned_table_that_ends_says_where_and_what_to_do():
    table = torch.randn(20, 6)
    with pytest.raises(ValueError, match=r"15 tokens need positions 0 to 14; training reached 0 to 8\. Shorten"):
        extended_table(table, 15, "refuse", trained=9)
    with pytest.raises(ValueError, match=r"21 tokens need positions 0 to 20; the table ends at 19\. Shorten"):
        extended_table(table, 21, "noise", trained=9)
    with pytest.raises(ValueError, match=r"trained \(21\) must lie between 1 and the table's 20 rows"):
        extended_table(table, 5, "clamp", trained=21)


@torch.no_grad()
def test_extended_models_decode_with_their_cache(within):
    for kind in KINDS:
        longer = extended(random_model(positions=kind, max_length=8), 14, "interpolate", trained=6)
        source = random_ids(2, 12)
        cached, whole = (list(greedy(longer, source, max_length=14, cache=cache)) for cache in (True, False))
        for a, b in zip(cached, whole, strict=True):
            within(a.log_probs, b.log_probs, 1e-5)


def test_a_run_s_learned_tables_are_kept_apart_from_its_snapshots(tmp_path, within):
    tables = {step: torch.randn(10, 4) for step in (0, 1, 2)}
    for step, table in tables.items():
        table[6:] = 1.25  # never reached
        weights = {f"{stack}.embedding.positions.table": table * (1 + i) for i, stack in enumerate(STACKS)}
        save_tensors(tmp_path / f"{step}.safetensors", {**weights, "other": torch.zeros(3)}, {})
    assert write_history(tmp_path, tmp_path)
    history = read_history(tmp_path)
    assert history is not None and history.steps == (0, 1, 2)
    assert history.tables["encoder"].shape == (3, 6, 4)
    own = (2 * tables[2]).numpy()
    within(torch.tensor(history.at(1, "decoder", own)), 2 * tables[1], 5e-3)  # half precision
    assert (history.at(1, "decoder", own)[6:] == 2.5).all()


@pytest.mark.skipif(not (SHIPPED_FOLDER / "reverse-learned").exists(), reason="the shipped model is not there")
def test_an_exported_checkpoint_keeps_the_learned_tables_and_no_snapshots(tmp_path):
    run, exported = tmp_path / "run", tmp_path / "exported"
    copytree(SHIPPED_FOLDER / "reverse-learned", run, ignore=ignore_patterns(POSITIONS_FILE))
    (run / "snapshots").mkdir()
    copyfile(run / "weights.safetensors", run / "snapshots" / "600.safetensors")
    assert write_history(run, run / "snapshots")
    export_checkpoint(run, exported)
    assert not (exported / "snapshots").exists()
    history, model = read_history(exported), load_checkpoint(exported).model
    assert history is not None and history.steps == (600,)
    own = model.encoder.embedding.positions.table.detach().numpy()
    assert abs(history.at(600, "encoder", own) - own).max() < 1e-3 * abs(own).max()


def test_there_is_no_history_without_learned_positions(tmp_path):
    save_tensors(tmp_path / "0.safetensors", {"other": torch.zeros(3)}, {})
    assert not write_history(tmp_path, tmp_path) and read_history(tmp_path) is None
    (tmp_path / POSITIONS_FILE).write_bytes(b"not safetensors")
    assert read_history(tmp_path) is None
