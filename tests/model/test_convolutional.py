"""Convolutional models against torch's convolutions and the equations written out, at 1e-12 in float64; and what must
change nothing: padding, later tokens, one token at a time."""

import math

import pytest
import torch
import torch.nn.functional as F
from random_models import (
    CONVOLUTIONAL_BUILDS,
    assert_lawful,
    dropout_factors,
    ragged_batch,
    random_convolutional,
    random_ids,
)
from torch import nn

from transformer.analysis.attention.convolutional_reference import pass_from_ids
from transformer.config import ConvolutionalConfig
from transformer.model.convolutional import Convolution, windows_of
from transformer.model.families import build_model, count_hidden, count_parameters
from transformer.model.seq2seq import CarriesState, Seq2Seq, attention_layers
from transformer.model.taps import Recorder

BUILDS = pytest.mark.parametrize("build", CONVOLUTIONAL_BUILDS, ids=str)


@pytest.mark.parametrize("separable", [False, True])
@pytest.mark.parametrize(("kernel", "dilation"), [(3, 1), (3, 4), (5, 2), (9, 1)])
def test_a_convolution_is_torchs_and_learns_as_it_does(separable, kernel, dilation, within):
    ours = Convolution(6, kernel, separable=separable).double()
    x = torch.randn(4, 20, 6, dtype=torch.float64)
    found = ours(windows_of(x, kernel, dilation))
    turned = x.transpose(1, 2)
    if ours.depthwise is None:
        weight = ours.mix.weight.detach().unflatten(1, (kernel, 6)).transpose(1, 2).contiguous().requires_grad_()
        theirs = F.conv1d(turned, weight, ours.mix.bias, dilation=dilation)
    else:
        depthwise = ours.depthwise.detach().T[:, None].contiguous().requires_grad_()
        weight = ours.mix.weight.detach()[..., None].contiguous().requires_grad_()
        theirs = F.conv1d(F.conv1d(turned, depthwise, groups=6, dilation=dilation), weight, ours.mix.bias)
    expected = F.glu(theirs, dim=1).transpose(1, 2)
    within(found, expected, 1e-12)
    direction = torch.randn_like(found)
    (found * direction).sum().backward()
    (expected * direction).sum().backward()
    if ours.depthwise is None:
        within(ours.mix.weight.grad, weight.grad.transpose(1, 2).flatten(1), 1e-12)
    else:
        within(ours.mix.weight.grad, weight.grad[..., 0], 1e-12)
        within(ours.depthwise.grad, depthwise.grad[:, 0].T, 1e-12)


@BUILDS
@pytest.mark.parametrize("ties", [dict(), dict(tie_embeddings=False, tie_output=False)], ids=str)
def test_the_whole_equals_the_equations_written_out(build, ties, within):
    model = random_convolutional(torch.float64, **build, **ties)
    source, target = ragged_batch()
    recorder = Recorder()
    found = model(source, target, tap=recorder)
    for row in range(len(source)):
        ids = [token for token in source[row].tolist() if token != 0]
        written = [token for token in target[row].tolist() if token != 0]
        weights, logits = pass_from_ids(model, ids, written)
        within(found[row, : len(written)].detach(), torch.from_numpy(logits), 1e-12)
        for layer, expected in enumerate(weights):
            seen = recorder.recording[f"decoder.{layer}.cross.weights"][row, 0, : len(written)]
            within(seen[:, : len(ids)], torch.from_numpy(expected[0]), 1e-12)
            assert (seen[:, len(ids) :] == 0).all()


@BUILDS
def test_in_training_dropout_falls_on_embeddings_and_on_what_a_convolution_reads_alone(build, within):
    model = random_convolutional(torch.float64, **build, dropout=0.3).train()
    source, target = random_ids(2, 7), random_ids(2, 6)
    with dropout_factors(model) as factors:
        found = model(source, target)
    within(found.detach(), written_out(model, source, target, factors), 1e-12)
    assert_lawful(factors, 0.3)


@BUILDS
def test_padding_of_any_length_changes_nothing(build, within):
    model = random_convolutional(torch.float64, **build)
    source, target = random_ids(2, 7), random_ids(2, 6)
    plain = model(source, target)
    for n in range(1, 33):
        padding = torch.zeros(2, n, dtype=torch.long)
        longer = torch.cat((source, padding), dim=1), torch.cat((target, padding), dim=1)
        within(model(*longer)[:, :6], plain, 1e-12)


@BUILDS
def test_no_later_token_reaches_an_earlier_output(build):
    model = random_convolutional(torch.float64, **build)
    source, target = random_ids(1, 5), random_ids(1, 12)
    vectors = []

    def watched(site, tensor):
        if str(site) == "decoder.embedding":
            vectors.append(tensor.detach().requires_grad_())
            return vectors[-1]
        return tensor

    logits = model(source, target, tap=watched)
    reach = model.config.reach(model.config.n_decoder_layers)
    for t in range(12):
        (gradient,) = torch.autograd.grad(logits[0, t].square().sum(), vectors[-1], retain_graph=True)
        lengths = gradient[0].norm(dim=-1)
        assert (lengths[t + 1 :] == 0).all() and (lengths[: max(0, t - reach)] == 0).all()
        assert lengths[t] > 0


@BUILDS
def test_one_token_at_a_time_equals_the_whole_pass(build, within):
    model = random_convolutional(torch.float64, **build)
    source, target = random_ids(3, 6), random_ids(3, 20)
    source[1, 4:] = source[2, 1:] = 0
    memory, whole = model.encode(source), model(source, target)
    carried = model.begin(memory, source != 0)
    for t in range(12):
        within(model.project(carried.advance(target[:, t])), whole[:, t], 1e-12)
    kept = torch.tensor([2, 0, 0])
    carried.rows(kept)
    for t in range(12, 20):
        within(model.project(carried.advance(target[kept, t])), whole[kept, t], 1e-12)
    assert sum(past[0].numel() for past in carried._past) == model.config.carried


@BUILDS
def test_every_site_comes_by_in_order(build, within):
    model, recorder = random_convolutional(**build), Recorder()
    source, target = ragged_batch()
    within(model(source, target, tap=recorder), model(source, target), 2e-6)
    assert tuple(recorder.recording) == model.sites()
    assert isinstance(model, Seq2Seq) and isinstance(model, CarriesState)
    assert attention_layers(model) == {"cross": model.config.n_decoder_layers}


@BUILDS
def test_parameters_are_counted_without_building(build):
    for more in (dict(), dict(tie_output=False), dict(tie_embeddings=False)):
        config = ConvolutionalConfig(vocab_size=30, d_model=12, **build, **more)
        model = build_model(config)
        hidden = [m.weight for m in model.modules() if isinstance(m, nn.Linear) and m is not model.projection]
        assert count_parameters(config) == sum(p.numel() for p in model.parameters())
        assert count_hidden(config) == sum(weight.numel() for weight in hidden)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (dict(kernel=4), "kernel .4. must be odd: take 3 or 5"),
        (dict(kernel=11), "at most 9"),
        (dict(n_decoder_layers=9), "at most 8"),
        (dict(family="rnn"), "must be conv"),
        (dict(dropout=1.0), r"lie in \[0, 1\)"),
    ],
    ids=str,
)
def test_settings_that_contradict_are_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        ConvolutionalConfig(**wrong)


def test_a_sentence_longer_than_the_model_takes_is_refused():
    model = random_convolutional(max_length=4)
    with pytest.raises(ValueError, match="source has 5 tokens"):
        model(random_ids(1, 5), random_ids(1, 3))


@torch.no_grad()
def written_out(model, source, target, factors):
    """The logits of sentences without padding; `factors` are those of dropout, in the order of a pass."""
    draws, half = (factor.nan_to_num(0.0) for factor in factors), math.sqrt(0.5)
    table, scale = model.source_tokens.weight, math.sqrt(model.config.d_model)
    x = embedded = table[source] * scale * next(draws)
    for layer in model.encoder:
        reach = (layer.kernel - 1) * layer.dilation // 2
        x = (x + convolved(layer, x * next(draws), reach, reach)) * half
    keys, values = x, x + embedded
    y = asking = table[target] * scale * next(draws)
    for layer in model.decoder:
        past = (layer.kernel - 1) * layer.dilation
        h = convolved(
            layer, y * next(draws)[:, past:], past, 0
        )  # dropout falls on the zeros before the first token too
        scores = (layer.query(h) + asking) @ keys.mT / scale
        y = (y + (h + scores.softmax(dim=-1) @ values) * half) * half
    assert next(draws, None) is None, "dropout falls in more places"
    return (y @ model.combine.weight.T + model.combine.bias) @ table.T


def convolved(layer, x, before, after):
    """The gated convolution of a layer with so many zeros on either side."""
    padded, weights = F.pad(x, (0, 0, before, after)), layer.convolution
    seen = [padded[:, i * layer.dilation :][:, : x.size(1)] for i in range(layer.kernel)]
    read = torch.cat(seen, -1) if weights.depthwise is None else sum(map(torch.mul, seen, weights.depthwise))
    return F.glu(read @ weights.mix.weight.T + weights.mix.bias)
