"""One step of training: normalisation by real tokens, clipping, the optimiser, a loss that is no number."""

import math
import re
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from random_models import EVERY_BUILD
from tiny_runs import CPU, MODEL, corpus, event_losses, events, settings, state, tokenizer

from transformer.data.batches import BatchStream, make_batch
from transformer.training import evaluation, step
from transformer.training.devices import avoid_faulty_kernels
from transformer.training.evaluation import summed_loss
from transformer.training.events import TrainingError
from transformer.training.loop import _width_multiple, train_steps
from transformer.training.loss import Smoothing, smoothing_of
from transformer.training.optimizer import build_optimizer
from transformer.training.state import new_state, weights_of


def gradients_of_a_step(parts, accumulate):
    """Each parameter's gradient as one step over these micro-batches leaves it to the optimiser."""
    now = state(settings(), replace(MODEL, dropout=0.0, embedding_dropout=0.0))
    kept = {}
    for name, parameter in now.model.named_parameters():
        parameter.register_post_accumulate_grad_hook(lambda p, name=name: kept.update({name: p.grad.clone()}))
    config = settings(label_smoothing=0.1, accumulate=accumulate)
    stepper = step.Stepper(now, config, tokenizer(), "float32", lambda: 0.0, smoothing=Smoothing(0.1))
    stepper.step(iter([(make_batch(part), now.position) for part in parts]))
    assert stepper.read()[0].tokens == 19
    return kept


def test_accumulated_gradients_are_those_of_one_large_batch(within):
    pairs = [(list(range(4, 4 + n)), list(range(4, 4 + n))) for n in (1, 2, 9, 3)]
    together = gradients_of_a_step([pairs], accumulate=1)
    in_parts = gradients_of_a_step([pairs[:1], pairs[1:]], accumulate=2)
    for name, expected in together.items():
        within(in_parts[name], expected, 1e-6)


def test_the_reported_loss_is_the_smoothed_one_per_real_token():
    config = settings(label_smoothing=0.1)
    now = state(config, replace(MODEL, dropout=0.0, embedding_dropout=0.0))
    batch = make_batch([([5, 6, 7], [7, 6, 5]), ([8], [8])])
    with torch.no_grad():
        logits = now.model(batch.source, batch.target_in)
    expected = F.cross_entropy(
        logits.flatten(0, 1), batch.target_out.flatten(), ignore_index=0, label_smoothing=0.1, reduction="mean"
    )
    stepper = step.Stepper(now, config, tokenizer(), "float32", lambda: 0.0, smoothing=Smoothing(0.1))
    stepper.step(iter([(batch, now.position)]))
    assert stepper.read()[0].loss == pytest.approx(expected.item(), abs=1e-5)


def unlike(config):
    """A training whose model finds some tokens far more probable than others, always the same ones."""
    start = state(config, replace(MODEL, dropout=0.0, embedding_dropout=0.0))
    with torch.no_grad():
        start.model.projection.weight *= torch.arange(MODEL.vocab_size)[:, None]
    return start


def test_a_training_aims_at_the_distribution_that_its_config_names():
    config = settings(smoothing="unigram", label_smoothing=0.5, max_steps=1)
    few = replace(corpus(), train=corpus().train[:300])
    stream = BatchStream(few.train, tokenizer(), batch_tokens=64, seed=0, max_length=32)
    now, (batch, _) = unlike(config), next(iter(stream))
    aimed = smoothing_of(config, stream, MODEL.vocab_size, CPU)
    for smoothing in (aimed, Smoothing(0.5)):
        expected = summed_loss(now.model, batch, CPU, smoothing).item() / batch.n_tokens
        asked = "uniform" if smoothing.over is None else "unigram"
        first, *_ = train_steps(unlike(config), replace(config, smoothing=asked), few, tokenizer())
        assert first.loss == pytest.approx(expected, rel=1e-5)
    assert summed_loss(now.model, batch, CPU, aimed).item() / batch.n_tokens != pytest.approx(expected, rel=1e-3)


def test_cudnn_s_attention_is_kept_out_of_training_on_cuda_alone(monkeypatch):
    allowed = []
    monkeypatch.setattr(torch.backends.cuda, "enable_cudnn_sdp", allowed.append)
    monkeypatch.setattr(step, "avoid_faulty_kernels", lambda _: avoid_faulty_kernels(torch.device("cuda")))
    step.Stepper(state(settings()), settings(), tokenizer(), "float32", lambda: 0.0, smoothing=Smoothing())
    assert allowed == [False]
    avoid_faulty_kernels(CPU)
    assert allowed == [False]


@pytest.mark.parametrize(("limit", "left"), [(1e-3, 1e-3), (0.0, None), (1e6, None)])
def test_gradients_are_scaled_down_to_the_limit_and_never_up(limit, left):
    model = state(settings()).model
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    before = torch.cat([p.grad.flatten() for p in model.parameters()]).norm().item()
    assert step._clip(list(model.parameters()), limit).item() == pytest.approx(before, rel=1e-5)
    after = torch.cat([p.grad.flatten() for p in model.parameters()]).norm().item()
    assert after == pytest.approx(left or before, rel=1e-3)


def test_gradients_within_the_limit_are_not_even_multiplied(monkeypatch):
    """Their factor is 1: leaving it out changes no bit, and a small step is spared a product for each parameter."""
    model = state(settings()).model
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 1e-6)
    expected = [p.grad.clone() for p in model.parameters()]
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    assert all(torch.equal(p.grad, e) for p, e in zip(model.parameters(), expected, strict=True))
    monkeypatch.setattr(torch.nn.utils, "clip_grads_with_norm_", None)
    step._clip(list(model.parameters()), 1.0)
    with pytest.raises(TypeError):
        step._clip(list(model.parameters()), 1e-6)


DECAYED = {
    "transformer": (
        r"(en|de)coder\.embedding\.tokens\.weight|(en|de)coder\.embedding\.positions\.table|projection\.weight"
        r"|(en|de)coder\.layers\.\d\.(self|cross)_attention\.((query|key|value|output)\.weight|score\.W)"
        r"|(en|de)coder\.layers\.\d\.feed_forward\.(inner|outer)\.weight"
    ),
    "recurrent": (
        r"(source|target)_tokens\.weight|projection\.weight|start\.weight|combine\.weight"
        r"|(en|de)coder\.\d\.(for|back)wards\.weight_(ih|hh)_l0|attention\.(query|key)\.weight"
    ),
    "convolutional": (
        r"(source|target)_tokens\.weight|projection\.weight|combine\.weight"
        r"|(en|de)coder\.\d\.convolution\.mix\.weight|decoder\.\d\.query\.weight"
    ),
}
"""The names of the matrices of each family; v of additive scores and depthwise weights are vectors."""


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("build", EVERY_BUILD)
@pytest.mark.parametrize("ties", [{}, {"tie_embeddings": False, "tie_output": False}], ids=["tied", "untied"])
def test_weight_decay_shrinks_exactly_the_matrices_of_every_build(within, build, ties, optimizer):
    model = EVERY_BUILD[build](**ties)
    named = dict(model.named_parameters())
    with torch.no_grad():
        for parameter in named.values():
            parameter.fill_(1.0)
            parameter.grad = torch.zeros_like(parameter)  # so that a step does nothing but decay
    build_optimizer(model, settings(learning_rate=0.1, weight_decay=0.5, optimizer=optimizer)).step()
    for name, value in named.items():
        decays = re.fullmatch(DECAYED[build.split()[0]], name) is not None
        within(value.detach(), torch.full_like(value, 1 - 0.1 * 0.5 if decays else 1.0), 1e-6)


def test_training_uses_the_configs_betas():
    group = build_optimizer(state(settings()).model, settings(beta1=0.8, beta2=0.9, epsilon=1e-7)).param_groups[0]
    assert (group["betas"], group["eps"]) == ((0.8, 0.9), 1e-7)


def test_a_loss_that_is_not_finite_ends_training_with_advice():
    now = state(settings())
    with torch.no_grad():
        next(now.model.parameters()).fill_(math.nan)
    with pytest.raises(TrainingError, match="the loss is no longer a finite number at step 1: lower the learning rate"):
        events(now, settings())


def test_compiling_is_asked_for_with_changing_shapes_and_changes_no_loss(monkeypatch):
    asked = []
    monkeypatch.setattr(torch, "compile", lambda function, **options: asked.append(options) or function)
    expected = event_losses(events(state(settings()), settings()))
    assert event_losses(events(state(settings()), settings(compile=True))) == expected
    assert asked == [{"dynamic": True}]


@pytest.mark.parametrize("compiles", [False, True])
def test_the_loss_is_compiled_where_the_training_is(monkeypatch, compiles):
    given = []
    plain = evaluation.projected_cross_entropy
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    monkeypatch.setattr(
        evaluation,
        "projected_cross_entropy",
        lambda *args, compiled: given.append(compiled) or plain(*args, compiled=compiled),
    )
    config = settings(compile=compiles, max_steps=2, evaluate_every=2)
    events(state(config), config)
    assert given[:2] == [compiles] * 2 and not any(given[2:])  # evaluations stay as they are


@pytest.mark.parametrize(
    ("change", "because"),
    [
        (torch.Tensor.long, "holds values of type int64"),
        (lambda value: value * 0 + 3e38, "holds a value of size 3e\\+38"),
    ],
)
def test_no_training_begins_with_weights_that_are_none(change, because):
    weights = weights_of(state(settings()).model)
    name = next(iter(weights))
    with pytest.raises(ValueError, match=because):
        new_state(MODEL, settings(), CPU, weights | {name: change(weights[name])})


@pytest.mark.parametrize(
    ("precision", "device", "max_length", "multiple"),
    [
        ("float32", "cpu", 256, 1),
        ("bfloat16", "cpu", 256, 4),
        ("bfloat16", "cpu", 30, 1),
        ("float32", "cuda", 256, 1),
        ("bfloat16", "cuda", 256, 8),
        ("bfloat16", "cuda", 36, 4),
        ("bfloat16", "cuda", 30, 1),
    ],
)
def test_widths_of_batches_suit_the_device_and_never_pass_the_model(precision, device, max_length, multiple):
    assert _width_multiple(precision, torch.device(device), max_length) == multiple
