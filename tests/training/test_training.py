"""Training: its events in order, its limits, which weights remain, and that tasks are learned."""

import itertools
from collections import deque
from dataclasses import replace

import pytest
import torch
from random_models import OTHER_SCORES
from tiny_runs import corpus, events, settings, state, tokenizer

from transformer.data.corpora import load_corpus
from transformer.data.recipes import RECIPES
from transformer.text.tokenizer import train_tokenizer
from transformer.training import step
from transformer.training.evaluation import Evaluation, evaluate
from transformer.training.events import Evaluated, Finished, StepDone
from transformer.training.loop import train_steps
from transformer.training.state import mean_weights, weights_of


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
    monkeypatch.setattr(step, "evaluate", lambda *_, **__: Evaluation(next(script), 1.0, exact, None, None, 10, ()))


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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["copy", "reverse"])
def test_a_task_is_learned_to_99_percent_in_under_a_thousand_steps(name):
    recipe, task = RECIPES[name], load_corpus(name)
    words = train_tokenizer("words", task.vocabulary)
    model = replace(recipe.model, vocab_size=words.vocab_size)
    assert (model.n_encoder_layers, model.n_decoder_layers, model.d_model, model.n_heads) == (2, 2, 64, 4)
    config = replace(recipe.train, precision="float32", device="cpu", evaluate_every=100, target_exact_match=0.995)
    now = state(config, model)
    *_, last = train_steps(now, config, task, words)
    assert last.step < 1_000
    assert evaluate(now.model, task.held_out["random"], words).exact_match >= 0.99


@pytest.mark.slow
@pytest.mark.parametrize("changes", OTHER_SCORES, ids=lambda changes: changes["score"])
def test_other_scores_than_dot_products_learn_to_reverse(changes):
    recipe, task = RECIPES["reverse"], load_corpus("reverse")
    words = train_tokenizer("words", task.vocabulary)
    model = replace(recipe.model, vocab_size=words.vocab_size, **changes)
    config = replace(recipe.train, precision="float32", device="cpu", evaluate_every=100, target_exact_match=0.995)
    now = state(config, model)
    *_, last = train_steps(now, config, task, words)
    assert last.step < 1_000
    assert evaluate(now.model, task.held_out["random"], words).exact_match >= 0.99
