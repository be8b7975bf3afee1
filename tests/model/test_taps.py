from threading import Barrier, Thread

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from random_models import TINY, ragged_batch, random_model

from transformer.model import attention
from transformer.model.taps import (
    ATTENTION_TENSORS,
    Recorder,
    Recording,
    Site,
    Tap,
    chain,
    needs_recomputation,
    touches_attention,
)

SHAPES = [
    dict(norm=norm, positions=positions, n_encoder_layers=encoder, n_decoder_layers=decoder)
    for norm in ("post", "pre")
    for positions, encoder, decoder in (("sinusoidal", 2, 3), ("learned", 1, 2), ("none", 3, 1))
]


def identity(site, tensor):
    return tensor


class FusedSites:
    """A tap that declares to leave attention alone, and keeps what it is offered."""

    touches_attention = False

    def __init__(self):
        self.seen = []

    def __call__(self, site, tensor):
        self.seen.append(site)
        return tensor


@torch.no_grad()
def run(model, tap=None, source_mask=None):
    source, target = ragged_batch()
    return model(source, target, source_mask, tap=tap)


def record(model, **options):
    recorder = Recorder()
    run(model, recorder, **options)
    return recorder.recording


layers = st.integers(0, 99)


@given(
    st.one_of(
        st.builds(
            Site,
            st.sampled_from(["encoder", "decoder"]),
            layers,
            st.sampled_from(["self", "cross", "ffn"]),
            st.sampled_from(ATTENTION_TENSORS),
        ),
        st.builds(Site, st.sampled_from(["encoder", "decoder"]), st.none(), st.none(), st.just("embedding")),
        st.builds(Site, st.sampled_from(["encoder", "decoder"]), st.none(), st.just("final"), st.just("normed")),
    )
)
def test_a_site_is_read_back_from_what_it_prints(site):
    assert Site.parse(str(site)) == site


def test_a_site_prints_as_its_address():
    assert str(Site("decoder", 2, "cross", "weights")) == "decoder.2.cross.weights"
    assert str(Site("encoder", None, None, "embedding")) == "encoder.embedding"
    assert str(Site("decoder", None, "final", "normed")) == "decoder.final.normed"


@pytest.mark.parametrize("text", ["", "encoder", "encoder.x.self.q", "middle.0.self.q", "decoder.1.self", "a.b.c.d.e"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ValueError) as refusal:
        Site.parse(text)
    expected = "is not an address; one looks like decoder.0.cross.weights or encoder.embedding"
    assert str(refusal.value) == f"{text!r} {expected}"


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_recording_holds_every_site_of_the_model_in_order(shape):
    model = random_model(**shape)
    recording = record(model)
    assert tuple(recording) == model.sites()
    assert len(set(model.sites())) == len(model.sites()) == len(recording)
    assert all(Site.parse(str(site)) == site for site in recording)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_tap_on_fused_sites_keeps_the_fused_path_and_sees_all_other_sites(monkeypatch, shape):
    model, tap = random_model(**shape), FusedSites()
    monkeypatch.setattr(attention, "explicit_attention", None)
    torch.manual_seed(1)
    tapped = run(model, tap)
    torch.manual_seed(1)
    assert torch.equal(tapped, run(model))
    assert tap.seen == [site for site in model.sites() if site.tensor not in ATTENTION_TENSORS]


def test_any_other_tap_takes_the_explicit_path(monkeypatch):
    model = random_model()
    monkeypatch.setattr(attention, "fused_attention", None)
    for tap in (identity, Recorder(), chain(FusedSites(), identity)):
        run(model, tap)
    with pytest.raises(TypeError):
        run(model)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_an_identity_tap_equals_the_recorder_s_pass_bit_by_bit(norm):
    model = random_model(norm=norm)
    outputs = []
    for tap in (identity, Recorder(), Recorder(lambda site: False), chain(identity, Recorder(), identity)):
        torch.manual_seed(1)
        outputs.append(run(model, tap))
    assert all(torch.equal(outputs[0], other) for other in outputs[1:])


@pytest.mark.parametrize("shape", SHAPES[:4], ids=str)
def test_every_site_is_live(shape):
    """The pass continues with what a tap returns, at each site: a change there changes the logits."""
    model = random_model(torch.float64, **shape)
    torch.manual_seed(1)
    plain = run(model, identity)
    for changed in model.sites():

        def change(site, tensor, changed=changed):
            if site != changed:
                return tensor
            if tensor.dtype == torch.bool:
                return torch.zeros_like(tensor)
            return tensor + torch.linspace(-1, 1, tensor.numel(), dtype=tensor.dtype).view_as(tensor)

        torch.manual_seed(1)
        assert (run(model, change) - plain).abs().max() > 1e-6, changed


def test_weights_of_every_sublayer_are_zero_where_masked_and_sum_to_one(within):
    model = random_model()
    source, _ = ragged_batch()
    source_mask = source != 0
    source_mask[2] = False
    recording = record(model, source_mask=source_mask)
    sublayers = [site for site in recording if site.tensor == "weights"]
    for site in sublayers:
        weights = recording[site]
        mask = recording[str(site).replace("weights", "mask")].expand_as(weights)
        assert (weights[~mask] == 0).all()
        assert (weights >= 0).all()
        seen = mask.any(-1)
        within(weights.sum(-1)[seen], torch.ones(int(seen.sum())), 1e-6)
        assert (weights.sum(-1)[~seen] == 0).all()
        assert (recording[str(site).replace("weights", "heads")][~seen] == 0).all()
    assert len(sublayers) == TINY["n_encoder_layers"] + 2 * TINY["n_decoder_layers"]
    fully_masked = [site for site in sublayers if (recording[site][2] == 0).all()]
    assert len(fully_masked) == TINY["n_encoder_layers"] + TINY["n_decoder_layers"]


def test_recorded_weights_agree_with_a_recomputation_in_float64(within):
    recording = record(random_model())
    for site in recording:
        if site.tensor != "weights":
            continue
        q, k, v, mask, scores, heads = (
            recording[str(site).replace("weights", name)].double().numpy()
            for name in ("q", "k", "v", "mask", "scores", "heads")
        )
        expected_scores = np.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1])
        powers = np.exp(expected_scores - expected_scores.max(-1, keepdims=True)) * mask
        weights = powers / powers.sum(-1, keepdims=True)
        # float32 rounding of scores of size up to about 10
        within(torch.from_numpy(scores), torch.from_numpy(expected_scores), 5e-6)
        within(recording[site], torch.from_numpy(weights), 1e-6)
        within(torch.from_numpy(heads), torch.from_numpy(weights @ v), 5e-6)


def test_a_recording_is_a_detached_copy_read_by_site_or_address():
    model, recorder = random_model(), Recorder()
    source, target = ragged_batch()
    model(source, target, tap=recorder)  # with gradients
    recording = recorder.recording
    kept = recording["decoder.0.self.output"]
    assert kept is recording[Site("decoder", 0, "self", "output")]
    assert not any(tensor.requires_grad for tensor in recording.values())
    assert "decoder.9.self.output" not in recording
    with pytest.raises(KeyError):
        recording["decoder.9.self.output"]

    def overwrite(site, tensor):
        return tensor.zero_() if site.tensor == "output" else tensor

    before = Recorder()
    with torch.no_grad():
        model(source, target, tap=chain(before, overwrite))
    assert (before.recording["decoder.0.self.output"] != 0).any()


def test_a_recorder_keeps_what_is_wanted_only():
    recorder = Recorder(lambda site: site.tensor == "weights" and site.sublayer == "cross")
    run(random_model(), recorder)
    assert [str(site) for site in recorder.recording] == [f"decoder.{i}.cross.weights" for i in range(3)]
    assert isinstance(Recorder().recording, Recording) and len(Recorder().recording) == 0


def test_chained_taps_act_in_order_each_on_what_the_one_before_returned():
    def add(site, tensor):
        return tensor + 1

    def double(site, tensor):
        return tensor * 2

    site = Site("encoder", None, None, "embedding")
    one = torch.ones(1)
    assert chain(add, None, double)(site, one).item() == 4
    assert chain(double, add)(site, one).item() == 3
    assert chain(None, add) is add
    assert chain() is None and chain(None, None) is None


def test_a_chain_asks_for_what_any_of_its_taps_asks_for():
    class Stale(FusedSites):
        needs_recomputation = True

    assert not touches_attention(None) and touches_attention(identity) and not touches_attention(FusedSites())
    assert not touches_attention(chain(FusedSites(), FusedSites()))
    assert touches_attention(chain(FusedSites(), Recorder()))
    assert not needs_recomputation(None) and not needs_recomputation(chain(identity, Recorder()))
    assert needs_recomputation(Stale()) and needs_recomputation(chain(identity, chain(Stale(), Recorder())))


def test_a_tap_is_any_callable():
    assert isinstance(identity, Tap) and isinstance(Recorder(), Tap) and isinstance(chain(identity, identity), Tap)


def test_threads_that_share_a_model_never_see_each_other_s_taps():
    """Each thread's recording and output is, bit by bit, what it gets when it runs alone."""
    model = random_model()
    source, target = ragged_batch()

    def scale(factor):
        return lambda site, tensor: tensor * factor if site.tensor == "heads" else tensor

    def one_pass(factor):
        recorder = Recorder()
        tap = None if factor is None else chain(scale(factor), recorder)
        with torch.no_grad():
            return model(source, target, tap=tap), recorder.recording

    factors = [None, 0.0, 0.5, 2.0]
    alone = {factor: one_pass(factor) for factor in factors}
    failures, start = [], Barrier(len(factors))

    def visitor(factor):
        logits, recording = alone[factor]
        start.wait()
        for _ in range(15):
            mine, seen = one_pass(factor)
            if not torch.equal(mine, logits) or list(seen) != list(recording):
                failures.append(factor)
            failures.extend(site for site in recording if not torch.equal(seen[site], recording[site]))

    threads = [Thread(target=visitor, args=(factor,)) for factor in factors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len({float(logits.sum()) for logits, _ in alone.values()}) == len(factors)
