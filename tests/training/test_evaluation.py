"""Evaluation is honest: losses per real token, translations in their order, nothing left out unsaid."""

import math

import pytest
import torch
from tiny_runs import corpus, settings, state, tokenizer

from transformer.data.batches import make_batch
from transformer.decoding.greedy import translate_ids
from transformer.training.evaluation import evaluate, fitting


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
    with pytest.raises(ValueError, match=r"none of the 20 validation pairs fits into max_length \(1\) tokens"):
        fitting(corpus().validation, tokenizer(), 1, 10)


def test_pairs_that_the_model_cannot_hold_are_left_out():
    short = fitting(corpus().validation, tokenizer(), 5, 100)
    assert short and all(len(tokenizer().encode(pair.source)) < 5 for pair in short)
