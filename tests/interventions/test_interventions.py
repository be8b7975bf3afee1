from itertools import permutations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from random_models import ragged_batch, random_ids, random_model

from transformer.interventions import AblateHeads, DisableMask, compile_interventions, parse_intervention
from transformer.model.taps import Recorder, Site, chain, needs_recomputation, touches_attention

SUBLAYERS = [("encoder", 0, "self"), ("encoder", 1, "self"), ("decoder", 0, "self"), ("decoder", 2, "cross")]
EVERY_HEAD = (0, 1, 2, 3)


@torch.no_grad()
def run(model, specs=(), tap=None):
    """The logits and the recording of a pass under the given switches, on the same batch each time."""
    torch.manual_seed(1)
    source, target = ragged_batch()
    recorder = Recorder()
    logits = model(source, target, tap=chain(compile_interventions(specs, model), tap, recorder))
    return logits, recorder.recording


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("sublayer", SUBLAYERS, ids=str)
def test_all_heads_off_equals_replacing_the_output_by_the_bias_of_w_o(sublayer, norm):
    model = random_model(norm=norm)
    stack, layer, name = sublayer
    site = Site(stack, layer, name, "output")
    bias = getattr(getattr(model, stack).layers[layer], f"{name}_attention").output.bias
    assert (bias != 0).all()
    logits, recording = run(model, [AblateHeads(stack, layer, name, EVERY_HEAD)])
    expected, _ = run(model, tap=lambda at, tensor: bias.expand_as(tensor) if at == site else tensor)
    assert torch.equal(recording[site], bias.expand_as(recording[site]))
    assert torch.equal(logits, expected)
    assert (logits - run(model)[0]).abs().max() > 1e-3


@pytest.mark.parametrize("sublayer", SUBLAYERS, ids=str)
@pytest.mark.parametrize("heads", [(0,), (3,), (1, 2)], ids=str)
def test_a_head_off_equals_zeroing_its_columns_of_w_o(within, sublayer, heads):
    model, cut = (random_model(torch.float64) for _ in range(2))
    cut.load_state_dict(model.state_dict())
    stack, layer, name = sublayer
    attention = getattr(getattr(cut, stack).layers[layer], f"{name}_attention")
    with torch.no_grad():
        for head in heads:
            attention.output.weight[:, 4 * head : 4 * head + 4] = 0
    logits, recording = run(model, [AblateHeads(stack, layer, name, heads)])
    within(logits, run(cut)[0], 1e-12)
    contexts = recording[f"{stack}.{layer}.{name}.heads"]
    assert (contexts[:, list(heads)] == 0).all()
    kept = [head for head in EVERY_HEAD if head not in heads]
    assert torch.equal(contexts[:, kept], run(model)[1][f"{stack}.{layer}.{name}.heads"][:, kept])
    # The effect of one head is measured, not assumed.
    assert (logits - run(model)[0]).abs().max() > 1e-3


def test_a_switch_changes_nothing_before_its_place_and_nothing_in_the_model():
    model = random_model()
    before, plain = run(model)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    spec = AblateHeads("decoder", 1, "self", (2,))
    _, changed = run(model, [spec])
    place = model.sites().index(Site("decoder", 1, "self", "heads"))
    for index, site in enumerate(model.sites()):
        assert torch.equal(plain[site], changed[site]) == (
            index < place or site.tensor == "mask" or site in untouched_by_decoder_states(model)
        ), site
    assert all(torch.equal(tensor, state[name]) for name, tensor in model.state_dict().items())
    assert torch.equal(run(model)[0], before)


def untouched_by_decoder_states(model):
    """Keys and values of cross-attention come from the encoder."""
    return {site for site in model.sites() if site.sublayer == "cross" and site.tensor in ("k", "v")}


def near(n, window):
    """True at keys at most this far from the query; everywhere for a window of 0."""
    places = torch.arange(n)
    return (places[:, None] - places).abs() <= (window or n)


def expected_mask(kinds, source, target, window=0):
    """The masks of encoder self, decoder self and cross attention once the named restrictions are lifted."""
    window = 0 if "window" in kinds else window
    real_source, real_target = (source != 0)[:, None, None, :], (target != 0)[:, None, None, :]
    n_source, n_target = source.size(1), target.size(1)
    causal = torch.ones(n_target, n_target, dtype=torch.bool).tril()[None, None]
    free_causal = torch.ones_like(causal)
    padding_off = "padding" in kinds
    encoder = (torch.ones_like(real_source) if padding_off else real_source) & near(n_source, window)
    decoder = (torch.ones_like(real_target) if padding_off else real_target) & (
        free_causal if "causal" in kinds else causal
    )
    decoder = decoder & near(n_target, window)
    cross = (torch.ones_like(real_source) if "cross" in kinds else real_source).expand(-1, 1, n_target, -1)
    return {("encoder", "self"): encoder, ("decoder", "self"): decoder, ("decoder", "cross"): cross}


@pytest.mark.parametrize(
    "kinds",
    [
        ("causal",),
        ("padding",),
        ("cross",),
        ("causal", "padding"),
        ("padding", "causal"),
        ("cross", "causal", "padding"),
    ],
    ids=str,
)
def test_a_lifted_mask_lifts_that_restriction_alone_in_every_layer(within, kinds):
    model = random_model(torch.float64)
    logits, recording = run(model, [DisableMask(kind) for kind in kinds])
    torch.manual_seed(1)
    expected = expected_mask(kinds, *ragged_batch())
    for site, mask in recording.items():
        if site.tensor != "mask":
            continue
        assert torch.equal(mask, expected[site.stack, site.sublayer]), site
        scores = recording[str(site).replace("mask", "scores")]
        within(
            recording[str(site).replace("mask", "weights")],
            scores.masked_fill(~mask, -torch.inf).softmax(-1),
            1e-12,
        )
    assert (logits - run(model)[0]).abs().max() > 1e-3


WINDOWED = ("causal", "padding", "cross", "window")


@pytest.mark.parametrize("kinds", [kinds for n in range(1, 5) for kinds in permutations(WINDOWED, n)], ids=str)
def test_masks_of_a_model_with_a_window_are_lifted_in_any_order(kinds):
    model = random_model(torch.float64, window=2)
    _, recording = run(model, [DisableMask(kind) for kind in kinds])
    torch.manual_seed(1)
    expected = expected_mask(kinds, *ragged_batch(), window=2)
    for site, mask in recording.items():
        if site.tensor == "mask":
            assert torch.equal(mask, expected[site.stack, site.sublayer]), site


def test_a_window_is_lifted_only_where_there_is_one():
    with pytest.raises(ValueError, match="trained without a window of self-attention"):
        DisableMask("window").sites(random_model())


@torch.no_grad()
def test_without_the_causal_mask_later_tokens_change_earlier_logits():
    model = random_model()
    source, target = random_ids(1, 6), random_ids(1, 8)
    changed = target.clone()
    changed[0, -1] = 4 + (changed[0, -1] - 3) % 19
    tap = compile_interventions([DisableMask("causal")], model)
    assert (model(source, target, tap=tap) - model(source, changed, tap=tap))[0, 0].abs().max() > 1e-3
    assert torch.equal(model(source, target)[0, 0], model(source, changed)[0, 0])


def test_switches_add_up_in_any_order(within):
    model = random_model()
    specs = [AblateHeads("encoder", 0, "self", (0,)), DisableMask("causal"), AblateHeads("encoder", 0, "self", (2, 3))]
    together, _ = run(model, specs)
    assert torch.equal(together, run(model, specs[::-1])[0])
    assert torch.equal(together, run(model, [*specs, *specs])[0])
    assert torch.equal(together, run(model, [AblateHeads("encoder", 0, "self", (0, 2, 3)), DisableMask("causal")])[0])


def test_no_switch_is_no_tap():
    model = random_model()
    assert compile_interventions([], model) is None


def test_a_compiled_tap_says_what_the_pass_must_do():
    model = random_model()
    heads = compile_interventions([AblateHeads("decoder", 0, "cross", (1,))], model)
    causal = compile_interventions([AblateHeads("decoder", 0, "cross", (1,)), DisableMask("causal")], model)
    assert touches_attention(heads) and touches_attention(causal)
    assert not needs_recomputation(heads) and needs_recomputation(causal)
    assert not needs_recomputation(compile_interventions([DisableMask("padding"), DisableMask("cross")], model))


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (AblateHeads("decoder", 7, "cross", (0,)), "this model has no attention block decoder.7.cross"),
        (AblateHeads("encoder", 0, "cross", (0,)), "this model has no attention block encoder.0.cross"),
        (AblateHeads("encoder", 0, "ffn", (0,)), "this model has no attention block encoder.0.ffn"),
        (AblateHeads("encoder", 1, "self", (1, 4)), "head 4 does not exist: this model has heads 0 to 3"),
        (AblateHeads("encoder", 1, "self", (-1,)), "head -1 does not exist: this model has heads 0 to 3"),
        (AblateHeads("encoder", 1, "self", ()), "off:encoder.1.self: names no head and would do nothing"),
    ],
    ids=str,
)
def test_a_switch_that_the_model_lacks_or_that_does_nothing_is_refused(spec, text):
    with pytest.raises(ValueError) as refusal:
        compile_interventions([spec], random_model())
    assert str(refusal.value) == text


@given(
    st.sampled_from(["encoder", "decoder"]),
    st.integers(0, 99),
    st.sampled_from(["self", "cross"]),
    st.sets(st.integers(0, 63), min_size=1),
)
def test_heads_off_is_read_back_from_what_it_prints_and_hashes(stack, layer, sublayer, heads):
    spec = AblateHeads(stack, layer, sublayer, tuple(sorted(heads)))
    again = parse_intervention(str(spec))
    assert again == spec and hash(again) == hash(spec)


@pytest.mark.parametrize("mask", ["padding", "causal", "cross"])
def test_mask_off_is_read_back_from_what_it_prints_and_hashes(mask):
    again = parse_intervention(str(DisableMask(mask)))
    assert again == DisableMask(mask) and hash(again) == hash(DisableMask(mask))


@pytest.mark.parametrize(
    "text",
    ["", "off", "mask:all", "off:decoder.0.cross:", "off:decoder.0.cross:a", "off:decoder.0.ffn:1", "off:embedding:1"],
)
def test_what_is_no_switch_is_refused(text):
    with pytest.raises(ValueError, match="is not a"):
        parse_intervention(text)


def test_the_order_in_which_heads_are_named_does_not_matter():
    assert parse_intervention("off:decoder.0.cross:3,1,3") == AblateHeads("decoder", 0, "cross", (1, 3))
