"""Activation patching against a second pass whose tensors are put in by hand, and its text form."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from random_models import half_trained_model, random_model

from transformer.decoding.greedy import greedy, teacher_forced_log_probs
from transformer.interventions import (
    COPYABLE,
    PER_HEAD,
    AblateHeads,
    PatchActivation,
    activations,
    compile_interventions,
    parse_intervention,
)
from transformer.model.taps import Recorder, Site, chain

HERE, THERE = [5, 9, 4, 7, 11, 2], [8, 6, 10, 5, 2]
SITES = [
    Site("encoder", None, None, "embedding"),
    Site("encoder", 1, "ffn", "output"),
    Site("encoder", 0, "self", "heads"),
    Site("encoder", 1, "self", "v"),
    Site("decoder", None, None, "embedding"),
    Site("decoder", 0, "self", "k"),
    Site("decoder", 1, "self", "q"),
    Site("decoder", 1, "cross", "heads"),
    Site("decoder", 0, "cross", "k"),
    Site("decoder", 0, "ffn", "normed"),
    Site("decoder", 1, "cross", "residual"),
]


@pytest.fixture(scope="module")
def model():
    return half_trained_model()


def written(model, source, tap=None, *, cache=True):
    return [int(s.tokens[0]) for s in greedy(model, torch.tensor([source]), max_length=12, tap=tap, cache=cache)]


def whole_pass(model, source, target, tap=None):
    """Every tensor of one teacher-forced pass, by its site."""
    recorder = Recorder()
    with torch.no_grad():
        model(torch.tensor([source]), torch.tensor([[1, *target[:-1]]]), tap=chain(tap, recorder))
    return recorder.recording


def position_first(site, tensor):
    return tensor[0].transpose(0, 1) if site.tensor in PER_HEAD else tensor[0]


@pytest.mark.parametrize("site", SITES, ids=str)
def test_what_is_copied_is_what_the_other_sentences_own_decoding_had(model, site, within):
    found = activations(model, THERE, site)
    limit = model.config.max_length
    target = [int(s.tokens[0]) for s in greedy(model, torch.tensor([THERE]), max_length=limit)]
    within(found, position_first(site, whole_pass(model, THERE, target)[site]), 1e-5)


@pytest.mark.parametrize("site", SITES, ids=str)
def test_a_copy_puts_the_rows_in_and_nothing_else_at_its_site(model, site):
    spec = PatchActivation(site, None, ((1, 2), (0, 3)), "there").filled(model, THERE)
    target = written(model, HERE)
    before = position_first(site, whole_pass(model, HERE, target)[site])
    after = position_first(site, whole_pass(model, HERE, target, compile_interventions([spec], model))[site])
    theirs = activations(model, THERE, site)
    assert torch.equal(after[2], theirs[1]) and torch.equal(after[3], theirs[0])
    kept = [i for i in range(len(before)) if i not in (2, 3)]
    assert torch.equal(after[kept], before[kept])
    assert not torch.equal(after[[2, 3]], before[[2, 3]])


@pytest.mark.parametrize("site", SITES, ids=str)
@pytest.mark.parametrize("place", [((1, 2),), ()], ids=["one", "all"])
def test_decoding_under_a_copy_equals_the_teacher_forced_pass_under_it(model, site, place, within):
    there = [*THERE[:-1], 7, 2]  # as long as HERE, which copying all of a source needs
    spec = PatchActivation(site, None, place, "there").filled(model, there)
    tap = compile_interventions([spec], model)
    steps = list(greedy(model, torch.tensor([HERE]), max_length=12, tap=tap))
    target = [int(step.tokens[0]) for step in steps]
    forced = teacher_forced_log_probs(model, torch.tensor([HERE]), torch.tensor([target]), tap=tap)[0]
    within(torch.cat([step.log_probs for step in steps]).exp(), forced.exp(), 1e-5)
    assert written(model, HERE, tap, cache=False) == target
    assert (steps[1].reused == 0) == spec.needs_recomputation


def test_one_head_is_copied_alone(model):
    site = Site("decoder", 1, "cross", "heads")
    spec = PatchActivation(site, 2, ((0, 1),), "there").filled(model, THERE)
    target = written(model, HERE)
    before = whole_pass(model, HERE, target)[site]
    after = whole_pass(model, HERE, target, compile_interventions([spec], model))[site]
    assert torch.equal(after[0, 2, 1], activations(model, THERE, site)[0, 2])
    after[0, 2, 1] = before[0, 2, 1]
    assert torch.equal(after, before)


def test_a_copy_of_the_sentences_own_pass_changes_nothing(model, within):
    site = Site("encoder", 1, "ffn", "output")
    tap = compile_interventions([PatchActivation(site, None, (), "here").filled(model, HERE)], model)
    target = torch.tensor([written(model, HERE)])
    plain, copied = (teacher_forced_log_probs(model, torch.tensor([HERE]), target, tap=t) for t in (None, tap))
    within(copied, plain, 1e-5)


def test_the_memory_of_another_sentence_makes_its_translation(model):
    """Every activation of the encoder's last norm copied: the decoder reads the other sentence."""
    there = [*THERE[:-1], 7, 2]
    spec = PatchActivation(Site("encoder", 1, "ffn", "normed"), None, (), "there").filled(model, there)
    assert written(model, HERE, compile_interventions([spec], model)) == written(model, there)


def test_what_is_switched_off_stays_off_under_a_copy(model):
    site = Site("decoder", 0, "cross", "heads")
    copy, off = (
        PatchActivation(site, None, ((0, 0),), "there").filled(model, THERE),
        AblateHeads("decoder", 0, "cross", (1,)),
    )
    for specs in ([copy, off], [off, copy]):
        found = whole_pass(model, HERE, written(model, HERE), compile_interventions(specs, model))[site]
        assert not found[0, 1].any() and found[0, 0].any()


addresses = st.builds(
    Site,
    st.sampled_from(["encoder", "decoder"]),
    st.integers(0, 99),
    st.sampled_from(["self", "cross", "ffn"]),
    st.sampled_from(COPYABLE),
)


@given(
    addresses,
    st.none() | st.integers(0, 63),
    st.lists(st.tuples(st.integers(0, 999), st.integers(0, 999)), max_size=4),
    st.text(min_size=1, max_size=30),
)
def test_a_copy_is_read_back_from_what_it_prints_and_hashes(site, head, positions, text):
    spec = PatchActivation(site, head, tuple(positions), text)
    again = parse_intervention(str(spec))
    assert again == spec and hash(again) == hash(spec)


@pytest.mark.parametrize(
    "text",
    [
        *("copy:encoder.0.ffn.output:3>5", "copy:encoder.0.ffn.output:3:a", "copy:encoder.0.ffn.output:>:a"),
        *("copy:nowhere:all:a", "copy:encoder.0.ffn.output:3>x:a", "copy:encoder.0.ffn.output:1>2>3:a", "copy:::"),
        "copy:encoder.0.ffn.output:all:" + "a" * 1001,
    ],
)
def test_what_is_no_copy_is_refused(text):
    with pytest.raises(ValueError, match="is not a switch"):
        parse_intervention(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("copy:encoder.9.ffn.output:all:a", "this model has no activation encoder.9.ffn.output"),
        ("copy:encoder.0.self.weights:all:a", "encoder.0.self.weights has no row for each position to copy"),
        ("copy:encoder.0.ffn.output.1:all:a", "encoder.0.ffn.output is not made of heads"),
        ("copy:encoder.0.self.heads.4:all:a", "head 4 does not exist: this model has heads 0 to 3"),
        ("copy:encoder.0.ffn.output:64>0:a", "position 64 does not exist: this model has positions 0 to 63"),
        ("copy:encoder.0.ffn.output:1>2,3>2:a", "two activations are copied onto position 2"),
        ("copy:encoder.0.ffn.output:all: ", "the other sentence is missing"),
        ("copy:encoder.0.ffn.output:all:a", "what copy:.* copies is not known"),
    ],
)
def test_a_copy_that_cannot_be_made_is_refused(text, said):
    with pytest.raises(ValueError, match=said):
        model = random_model()
        model(torch.tensor([HERE]), torch.tensor([[1]]), tap=compile_interventions([parse_intervention(text)], model))


def test_sizes_that_do_not_fit_are_said_with_both_numbers(model):
    site = Site("encoder", 0, "ffn", "output")
    with pytest.raises(ValueError, match="the other sentence has tokens 0 to 4: there is no 9 to copy"):
        PatchActivation(site, None, ((9, 0),), "there").filled(model, THERE)
    with pytest.raises(ValueError, match="the other sentence has 5 tokens and this one 6"):
        PatchActivation(site, None, (), "there").filled(model, THERE).check_source(len(HERE))
    with pytest.raises(ValueError, match="token 6 does not exist: the sentence has tokens 0 to 5"):
        PatchActivation(site, None, ((0, 6),), "there").check_source(len(HERE))
    with pytest.raises(ValueError, match="the other sentence has steps 0 to"):
        PatchActivation(Site("decoder", 0, "ffn", "output"), None, ((60, 0),), "there").filled(model, THERE)
