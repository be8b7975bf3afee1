"""Training: exact resume, normalisation by real tokens, limits, which weights remain, and honest evaluation."""

import itertools
import json
import math
from collections import deque
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from tiny_runs import CPU, MODEL, corpus, events, settings, state, tokenizer

from transformer import training
from transformer.corpora import load_corpus
from transformer.data import make_batch
from transformer.decoding import translate_ids
from transformer.evaluation import evaluate, fitting
from transformer.recipes import RECIPES
from transformer.state import build_optimizer, mean_weights, new_state, restored_state, weights_of
from transformer.tokenizer import train_tokenizer
from transformer.training import (
    Evaluated,
    Evaluation,
    Finished,
    StepDone,
    TrainingError,
    measured_precision,
    train_steps,
)


def losses(found):
    return [(type(event).__name__, event.step, event.loss) for event in found if not isinstance(event, Finished)]


def saved_and_restored(before, config, model=MODEL):
    """The state after a trip through what a file holds: tensors, and text."""
    tensors = {name: value.clone() for name, value in before.tensors().items()}
    return restored_state(model, config, CPU, tensors, json.loads(json.dumps(before.facts())))


def until(found, step, kind=StepDone):
    """The events up to and with the one of this kind at this step."""
    taken = []
    for event in found:
        taken.append(event)
        if isinstance(event, kind) and event.step == step:
            return taken
    raise AssertionError(f"step {step} was not reached")


def resumed_losses(config, stops, model=MODEL):
    """The losses of a run that is saved, thrown away and restored at each of these steps."""
    now, taken = state(config, model), []
    for step in stops:
        taken += until(train_steps(now, config, corpus(), tokenizer()), step)
        now = saved_and_restored(now, config, model)
    return losses(taken + events(now, config)), weights_of(now.model)


# Resuming


@pytest.mark.parametrize(
    "changes",
    [
        dict(),
        dict(average_last=3),
        dict(patience=100, weight_decay=0.1),
        dict(accumulate=2, schedule="cosine"),
        dict(label_smoothing=0.0, clip_norm=0.0, precision="bfloat16"),
    ],
    ids=lambda changes: ",".join(changes) or "default",
)
def test_saving_and_resuming_changes_no_loss_and_no_weight_by_a_bit(changes):
    config = settings(max_steps=60, **changes)
    precision = config.precision
    whole = state(config)
    expected = losses(train_steps(whole, config, corpus(), tokenizer(), precision=precision))
    now = state(config)
    taken = until(train_steps(now, config, corpus(), tokenizer(), precision=precision), 25)
    now = saved_and_restored(now, config)
    taken += train_steps(now, config, corpus(), tokenizer(), precision=precision)
    assert losses(taken) == expected
    assert all(torch.equal(value, weights_of(now.model)[name]) for name, value in weights_of(whole.model).items())


def test_a_run_saved_between_the_last_step_and_its_evaluation_makes_up_for_it():
    config = settings(max_steps=40, average_last=2)
    expected = losses(events(state(config), config))
    found, _ = resumed_losses(config, stops=(10, 20))
    assert found == expected


@pytest.mark.slow
def test_two_thousand_steps_equal_a_thousand_and_a_thousand_more():
    config = settings(max_steps=2_000, evaluate_every=500)
    model = replace(MODEL, d_model=8, d_ff=16)
    expected = losses(events(state(config, model), config))
    found, _ = resumed_losses(config, stops=(1_000,), model=model)
    assert len(expected) == 2_004
    assert found == expected


def test_a_state_of_another_model_is_refused():
    config = settings()
    tensors, facts = state(config).tensors(), state(config).facts()
    with pytest.raises(ValueError, match=r"encoder\.embedding\.tokens\.weight has shape \(24, 16\)"):
        restored_state(replace(MODEL, d_model=32), config, CPU, tensors, facts)


# Randomness belongs to the run


def test_training_leaves_the_callers_generator_alone():
    config = settings()
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    events(state(config), config)
    assert torch.equal(torch.rand(3), expected)


def test_draws_of_others_do_not_change_a_run():
    config = settings()
    expected = losses(events(state(config), config))
    found = []
    for event in train_steps(state(config), config, corpus(), tokenizer()):
        torch.rand(5)
        found.append(event)
    assert losses(found) == expected


def test_another_seed_is_another_run():
    first, second = (losses(events(state(config), config)) for config in (settings(seed=1), settings(seed=2)))
    assert first != second


def test_measuring_precision_changes_nothing(monkeypatch):
    monkeypatch.setattr(training, "TRIAL_FROM", 0)
    config = settings(precision="auto")
    expected = losses(events(state(config), config))
    start = state(config)
    assert measured_precision(start, config, corpus(), tokenizer()) in ("float32", "bfloat16")
    assert losses(events(start, config)) == expected


def test_a_small_model_trains_in_float32_on_a_cpu():
    config = settings(precision="auto")
    assert measured_precision(state(config), config, corpus(), tokenizer()) == "float32"


# One step


def gradients_of_a_step(parts, accumulate):
    """Each parameter's gradient as one step over these micro-batches leaves it to the optimiser."""
    now = state(settings(), replace(MODEL, dropout=0.0, embedding_dropout=0.0))
    kept = {}
    for name, parameter in now.model.named_parameters():
        parameter.register_post_accumulate_grad_hook(lambda p, name=name: kept.update({name: p.grad.clone()}))
    config = settings(label_smoothing=0.1, accumulate=accumulate)
    trainer = training._Trainer(now, config, tokenizer(), "float32", lambda: 0.0)
    trainer.step(iter([(make_batch(part), now.position) for part in parts]))
    assert trainer.read()[0].tokens == 19
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
    trainer = training._Trainer(now, config, tokenizer(), "float32", lambda: 0.0)
    trainer.step(iter([(batch, now.position)]))
    assert trainer.read()[0].loss == pytest.approx(expected.item(), abs=1e-5)


@pytest.mark.parametrize(("limit", "left"), [(1e-3, 1e-3), (0.0, None), (1e6, None)])
def test_gradients_are_scaled_down_to_the_limit_and_never_up(limit, left):
    model = state(settings()).model
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    before = torch.cat([p.grad.flatten() for p in model.parameters()]).norm().item()
    assert training._clip(model, limit).item() == pytest.approx(before, rel=1e-5)
    after = torch.cat([p.grad.flatten() for p in model.parameters()]).norm().item()
    assert after == pytest.approx(left or before, rel=1e-3)


def test_weight_decay_spares_gains_and_biases():
    model = state(settings()).model
    decayed, spared = build_optimizer(model, settings(weight_decay=0.1)).param_groups
    assert (decayed["weight_decay"], spared["weight_decay"]) == (0.1, 0.0)
    assert {p.dim() for p in decayed["params"]} == {2} and {p.dim() for p in spared["params"]} == {1}
    assert len(decayed["params"]) + len(spared["params"]) == len(list(model.parameters()))


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
    expected = losses(events(state(settings()), settings()))
    assert losses(events(state(settings()), settings(compile=True))) == expected
    assert asked == [{"dynamic": True}]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_same_code_trains_on_a_gpu_and_resumes_there(precision):
    config = settings(max_steps=60, device="cuda", precision=precision)
    cuda = torch.device("cuda")
    whole, now = new_state(MODEL, config, cuda), new_state(MODEL, config, cuda)
    expected = list(train_steps(whole, config, corpus(), tokenizer(), precision=precision))
    taken = []
    for event in train_steps(now, config, corpus(), tokenizer(), precision=precision):
        taken.append(event)
        if event.step == now.step == 30:
            break
    now = restored_state(MODEL, config, cuda, now.tensors(), now.facts())
    taken += train_steps(now, config, corpus(), tokenizer(), precision=precision)
    assert [event.step for event in taken] == [event.step for event in expected]
    for (*_, loss), (*_, wanted) in zip(losses(taken), losses(expected), strict=True):
        assert loss == pytest.approx(wanted, abs=1e-3)  # CUDA's sums need not come in the same order twice
    assert expected[-2].loss < expected[0].loss


# Events and limits


def test_steps_and_evaluations_come_in_order_and_the_end_comes_last():
    found = events(state(settings()), settings())
    steps = [event.step for event in found if isinstance(event, StepDone)]
    assert steps == list(range(1, 21))
    assert [event.step for event in found if isinstance(event, Evaluated)] == [10, 20]
    assert found[-1] == Finished("max_steps", 20, found[-1].elapsed_s)
    assert [event.elapsed_s for event in found] == sorted(event.elapsed_s for event in found)


def test_an_end_between_evaluations_is_evaluated_too():
    found = events(state(settings(max_steps=13)), settings(max_steps=13))
    assert [event.step for event in found if isinstance(event, Evaluated)] == [10, 13]


def test_the_learning_rate_of_each_step_is_the_schedules():
    config = settings(warmup_steps=4, learning_rate=1e-3)
    rates = [event.learning_rate for event in events(state(config), config) if isinstance(event, StepDone)]
    assert rates[:4] == pytest.approx([0.25e-3, 0.5e-3, 0.75e-3, 1e-3])
    assert rates[15] == pytest.approx(0.5e-3)


def test_training_ends_when_its_seconds_are_over_and_counts_those_before_a_pause():
    config = settings(max_seconds=50.0)
    now = state(config)
    now.elapsed_s = 40.0
    ticks = itertools.count()
    *_, last = train_steps(now, config, corpus(), tokenizer(), clock=lambda: float(next(ticks)))
    assert last.reason == "max_seconds"
    assert last.step < 12


def scripted(monkeypatch, values, exact=0.0):
    """Makes every evaluation of training return the next of these losses."""
    script = iter(values)
    monkeypatch.setattr(
        training,
        "evaluate",
        lambda *_, **__: Evaluation(next(script), 1.0, exact, None, None, 10, ()),
    )


def test_patience_ends_training_and_the_best_weights_remain(monkeypatch):
    scripted(monkeypatch, [3.0, 2.0, 2.5, 2.1, 2.0])
    config = settings(max_steps=100, patience=2)
    now, kept = state(config), {}
    for event in train_steps(now, config, corpus(), tokenizer()):
        if isinstance(event, Evaluated) and event.step not in kept:
            kept[event.step] = weights_of(now.model)
    assert (event.reason, event.step) == ("patience", 40)
    assert all(torch.equal(value, kept[20][name]) for name, value in weights_of(now.model).items())


def test_the_weights_of_the_last_evaluations_are_averaged(monkeypatch):
    scripted(monkeypatch, itertools.repeat(1.0))
    config = settings(max_steps=40, average_last=3)
    now, kept = state(config), []
    for event in train_steps(now, config, corpus(), tokenizer()):
        if isinstance(event, Evaluated):
            kept.append(weights_of(now.model))
    assert len(kept) == 5  # four on the way, and one of the mean
    expected = mean_weights(deque(kept[1:4]))
    assert all(torch.equal(value, expected[name]) for name, value in weights_of(now.model).items())


def test_reaching_the_exact_match_that_was_asked_for_ends_training(monkeypatch):
    scripted(monkeypatch, itertools.repeat(1.0), exact=0.9)
    assert events(state(settings()), settings(target_exact_match=0.9))[-1].reason == "target_exact_match"
    assert events(state(settings()), settings(target_exact_match=0.91))[-1].reason == "max_steps"


# Evaluation


def test_perplexity_is_the_exponential_of_the_unsmoothed_loss_per_real_token():
    model, pairs = state(settings()).model.eval(), corpus().validation
    total = count = 0
    for pair in pairs:
        batch = make_batch([(tokenizer().encode(pair.source), tokenizer().encode(pair.target))])
        with torch.no_grad():
            log_probs = model(batch.source, batch.target_in).log_softmax(dim=-1)
        total -= log_probs[0].gather(1, batch.target_out[0][:, None]).sum().item()
        count += batch.n_tokens
    found = evaluate(model, pairs, tokenizer(), batch_tokens=50)
    assert found.loss == pytest.approx(total / count, abs=1e-5)
    assert found.perplexity == pytest.approx(math.exp(total / count), rel=1e-5)
    assert found.count == len(pairs)


def test_translations_stand_in_the_order_of_the_pairs_whatever_the_batches():
    model, pairs = state(settings()).model.eval(), corpus().validation
    found = evaluate(model, pairs, tokenizer(), batch_tokens=40, max_length=8)
    for pair, translation in zip(pairs, found.translations, strict=True):
        batch = make_batch([(tokenizer().encode(pair.source), [4])])
        assert translation == tokenizer().decode(translate_ids(model, batch.source, max_length=8)[0])


def test_evaluation_leaves_the_model_in_its_mode_and_adds_overlap_scores_where_asked():
    model = state(settings()).model.train()
    assert evaluate(model, corpus().validation, tokenizer()).bleu is None
    found = evaluate(model, corpus().validation, tokenizer(), overlap_scores=True)
    assert model.training
    assert found.bleu is not None and found.bleu.signature.startswith("nrefs:1")
    assert found.chrf is not None


def test_evaluating_on_nothing_is_refused():
    with pytest.raises(ValueError, match="there are no pairs to evaluate on"):
        evaluate(state(settings()).model, [], tokenizer())
    with pytest.raises(ValueError, match=r"none of the 20 pairs fits into max_length \(1\) tokens"):
        fitting(corpus().validation, tokenizer(), 1, 10)


def test_pairs_that_the_model_cannot_hold_are_left_out():
    short = fitting(corpus().validation, tokenizer(), 5, 100)
    assert short and all(len(tokenizer().encode(pair.source)) < 5 for pair in short)


# Learning


@pytest.mark.slow
@pytest.mark.parametrize("name", ["copy", "reverse"])
def test_a_task_is_learned_to_99_percent_in_under_a_thousand_steps(name):
    recipe, task = RECIPES[name], load_corpus(name)
    words = train_tokenizer("words", task.vocabulary)
    model = replace(recipe.model, vocab_size=words.vocab_size)
    assert (model.n_encoder_layers, model.n_decoder_layers, model.d_model, model.n_heads) == (2, 2, 64, 4)
    config = replace(recipe.train, precision="float32", device="cpu")
    now = state(config, model)
    *_, last = train_steps(now, config, task, words)
    assert last.step < 1_000
    assert evaluate(now.model, task.held_out["random"], words).exact_match >= 0.99
