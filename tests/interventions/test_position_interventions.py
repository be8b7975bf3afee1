"""Positions changed in a pass: what each edit does to the rows, to the output, and what it refuses."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from random_models import random_ids, random_model

from transformer.decoding.greedy import greedy, teacher_forced_log_probs
from transformer.interventions import EditPositions, compile_interventions, parse_intervention, shuffled
from transformer.model.positions import sinusoidal_table
from transformer.model.taps import Recorder, chain, needs_recomputation

EDITS = {
    "remove": EditPositions("encoder", "remove"),
    "shuffle": EditPositions("encoder", "shuffle", 3),
    "shift": EditPositions("encoder", "shift", 4),
    "scale": EditPositions("encoder", "scale", 0.5),
    "same": EditPositions("encoder", "same", tokens=(1, 4)),
}
IN_DECODER = [
    EditPositions("decoder", spec.edit, spec.value, spec.tokens) for spec in EDITS.values() if spec.edit != "shuffle"
]


def rows_under(spec, model, length=9):
    """The rows that a pass adds under a switch, and without it."""
    recorder = Recorder(lambda site: site.tensor == "positions")
    source, target = random_ids(2, length), random_ids(2, length)
    with torch.no_grad():
        model(source, target, tap=chain(compile_interventions([spec], model), recorder))
    changed = recorder.recording[f"{spec.stack}.positions"][0]
    other = recorder.recording[f"{'decoder' if spec.stack == 'encoder' else 'encoder'}.positions"][0]
    return changed, other


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
@pytest.mark.parametrize("spec", [*EDITS.values(), *IN_DECODER], ids=str)
def test_each_edit_changes_the_rows_of_its_stack_as_it_says(within, spec, positions):
    model = random_model(positions=positions)
    table, other_table = (
        getattr(model, stack).embedding.positions.table.detach()
        for stack in (("encoder", "decoder") if spec.stack == "encoder" else ("decoder", "encoder"))
    )
    changed, untouched = rows_under(spec, model)
    expected = {
        "remove": torch.zeros(9, 16),
        "shuffle": table[shuffled(9, 3)],
        "shift": table[4:13],
        "scale": table[:9] / 2,
        "same": table[[0, 1, 2, 3, 1, 5, 6, 7, 8]],
    }
    within(changed, expected[spec.edit], 1e-6)
    within(untouched, other_table[:9], 0)


def test_a_shift_past_the_end_follows_the_formula_or_takes_the_learned_tables_last_row(within):
    spec = EditPositions("encoder", "shift", 60)
    within(rows_under(spec, random_model())[0], sinusoidal_table(69, 16)[60:], 0)
    learned = random_model(positions="learned")
    table = learned.encoder.embedding.positions.table.detach()
    within(rows_under(spec, learned)[0], table[[60, 61, 62, 63, 63, 63, 63, 63, 63]], 0)


@torch.no_grad()
def test_without_positions_the_encoder_reads_a_bag_of_words():
    model, source = random_model(torch.float64), random_ids(1, 8)
    tap, order = compile_interventions([EDITS["remove"]], model), torch.randperm(8)
    moved = model.encode(source[:, order], tap=tap) - model.encode(source, tap=tap)[:, order]
    assert moved.abs().max() < 1e-12


@torch.no_grad()
def test_two_tokens_in_one_place_can_be_swapped():
    model, source = random_model(torch.float64), random_ids(1, 8)
    swap = [0, 4, 2, 3, 1, 5, 6, 7]
    tap = compile_interventions([EDITS["same"]], model)
    moved = model.encode(source[:, swap], tap=tap) - model.encode(source, tap=tap)[:, swap]
    assert moved.abs().max() < 1e-12


@pytest.mark.parametrize("spec", [*EDITS.values(), *IN_DECODER], ids=str)
@torch.no_grad()
def test_decoding_under_an_edit_equals_the_teacher_forced_pass(within, spec):
    model, source = random_model(), random_ids(1, 8)
    tap = compile_interventions([spec], model)
    assert needs_recomputation(tap) == (spec.stack == "decoder" and spec.edit in ("shift", "same"))
    steps = list(greedy(model, source, max_length=9, tap=tap))
    written = torch.stack([step.tokens for step in steps], dim=1)
    forced = teacher_forced_log_probs(model, source, written, tap=tap)
    within(torch.stack([step.log_probs[0] for step in steps]), forced[0], 1e-5)
    assert (forced - teacher_forced_log_probs(model, source, written)).abs().max() > 1e-3


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (EditPositions("decoder", "shuffle", 1), "the decoder's positions cannot be shuffled"),
        (EditPositions("encoder", "shift", 0), r"a shift \(0\) must be a whole number from 1 to 63"),
        (EditPositions("encoder", "shift", 64), r"a shift \(64\) must be a whole number from 1 to 63"),
        (EditPositions("encoder", "shift", 1.5), r"a shift \(1.5\)"),
        (EditPositions("encoder", "scale", 1), r"a scale \(1\) must lie above 0, at most at 100, and not be 1"),
        (EditPositions("encoder", "scale", 0), r"a scale \(0\)"),
        (EditPositions("encoder", "scale", -2), r"a scale \(-2\)"),
        (EditPositions("encoder", "same", tokens=(3,)), "must name two different tokens from 0 to 63"),
        (EditPositions("encoder", "same", tokens=(3, 64)), "must name two different tokens from 0 to 63"),
    ],
    ids=str,
)
def test_an_edit_that_does_nothing_or_cannot_be_done_is_refused(spec, said):
    with pytest.raises(ValueError, match=said):
        compile_interventions([spec], random_model())


def test_a_token_that_the_sentence_lacks_is_refused_in_the_encoder_and_waited_for_in_the_decoder():
    spec = EditPositions("encoder", "same", tokens=(0, 9))
    with pytest.raises(ValueError, match="token 9 does not exist: the sentence has tokens 0 to 8"):
        rows_under(spec, random_model())
    assert len(rows_under(EditPositions("decoder", "same", tokens=(0, 9)), random_model())[0]) == 9


@pytest.mark.parametrize("positions", ["none", "rotary", "alibi"])
def test_a_model_that_adds_no_positions_refuses_every_edit(positions):
    with pytest.raises(ValueError, match=f"adds no positions to its embeddings: it has {positions} positions"):
        compile_interventions([EDITS["remove"]], random_model(positions=positions))


def test_two_edits_of_one_stack_are_refused():
    with pytest.raises(ValueError, match=r"positions:encoder:scale:0\.5 changes positions of the encoder that another"):
        compile_interventions([EDITS["remove"], EDITS["scale"]], random_model())
    assert compile_interventions([EDITS["remove"], IN_DECODER[0]], random_model()) is not None


@given(st.integers(2, 40), st.integers(0, 10**6))
def test_a_shuffle_is_another_order_of_the_same_and_always_the_same_for_a_seed(length, seed):
    order = shuffled(length, seed)
    assert sorted(order) == list(range(length)) and order != list(range(length))
    assert order == shuffled(length, seed)


@given(
    st.sampled_from(["encoder", "decoder"]),
    st.sampled_from(["remove", "shuffle", "shift", "scale", "same"]),
    st.integers(1, 999_999),
    st.floats(1e-3, 100),
    st.sets(st.integers(0, 999), min_size=2, max_size=2),
)
def test_an_edit_is_read_back_from_what_it_prints_and_hashes(stack, edit, whole, factor, tokens):
    value = {"shuffle": whole, "shift": whole, "scale": factor}.get(edit, 0)
    spec = EditPositions(stack, edit, value, tuple(sorted(tokens)) if edit == "same" else ())
    again = parse_intervention(str(spec))
    assert again == spec and hash(again) == hash(spec)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "positions",
            "positions:encoder",
            "positions:both:remove",
            "positions:encoder:remove:1",
            "positions:encoder:x",
        ),
        *("positions:encoder:shift:1,2", "positions:encoder:shift:a", "positions:encoder:shift:-1"),
        *(
            "positions:encoder:scale:nan",
            "positions:encoder:scale:",
            "positions:encoder:same:a,b",
            "positions:encoder:same",
        ),
    ],
)
def test_what_is_no_edit_is_refused(text):
    with pytest.raises(ValueError, match="is not a switch"):
        parse_intervention(text)
