"""Scores: each against loops in double precision, and what other ones than dot products change in a model."""

import math
from typing import get_args

import pytest
import torch
from random_models import OTHER_SCORES, random_model, staircase
from torch.autograd import gradcheck

from transformer.config import ModelConfig, ScoreKind
from transformer.decoding.greedy import greedy
from transformer.model.attention import explicit_attention
from transformer.model.score_forms import SCORE_FORMS
from transformer.model.scores import SCORES, Additive, DotProduct, Multiplicative, build_score, score_equation
from transformer.model.taps import Address, Recorder
from transformer.model.transformer import Transformer, parameter_count


def queries_and_keys(n_queries=3, n_keys=4):
    return torch.randn(2, 2, n_queries, 5, dtype=torch.float64), torch.randn(2, 2, n_keys, 5, dtype=torch.float64)


def by_loops(score, q, k):
    """The published formula, number by number."""
    expected = torch.zeros(q.shape[:3] + k.shape[2:3], dtype=torch.float64)
    for index in torch.cartesian_prod(*(torch.arange(n) for n in expected.shape)).tolist():
        batch, head, query, key = index
        ours, theirs = q[batch, head, query].tolist(), k[batch, head, key].tolist()
        if isinstance(score, Additive):
            v = score.v[head].tolist()
            found = math.fsum(v[i] * math.tanh(ours[i] + theirs[i]) for i in range(5))
        else:
            if isinstance(score, Multiplicative):
                w = score.W[head].tolist()
                ours = [math.fsum(ours[i] * w[i][j] for i in range(5)) for j in range(5)]
            found = math.fsum(a * b for a, b in zip(ours, theirs, strict=True)) / (5**0.5 if score.scaled else 1)
        expected[batch, head, query, key] = found
    return expected


@pytest.mark.parametrize(
    "make",
    [
        DotProduct,
        lambda: DotProduct(scaled=False),
        lambda: Additive(2, 5).double(),
        lambda: Multiplicative(2, 5).double(),
        lambda: Multiplicative(2, 5, scaled=False).double(),
    ],
)
def test_a_score_is_what_loops_over_numbers_say(make, within):
    score, (q, k) = make(), queries_and_keys()
    found = score(q, k)
    within(found.detach(), by_loops(score, q, k), 1e-12)
    for head in range(2):
        terms = score.terms(q[0, head, 1], k[0, head, 2], head)
        within((terms.sum() / score.divisor(5)).detach(), found[0, head, 1, 2].detach(), 1e-12)


def test_gradients_of_additive_attention_are_those_of_differences():
    score, (q, k) = Additive(2, 5).double(), queries_and_keys()
    v, mask = torch.randn_like(k), staircase(3, 4)[None, None]

    def attend(q, k, v, weights):
        found = torch.func.functional_call(score, {"v": weights}, (q, k))
        given_score = Additive(2, 5)
        given_score.forward = lambda q, k: found
        return explicit_attention(q, k, v, mask, score=given_score)

    given = [x.detach().requires_grad_() for x in (q, k, v, score.v)]
    assert gradcheck(attend, given)


def test_an_additive_model_hides_what_its_masks_hide():
    score, (q, k) = Additive(2, 5).double(), queries_and_keys(4, 4)
    v, recorder = torch.randn_like(k), Recorder()
    mask = staircase(4, 4)[None, None].clone()
    mask[..., 2, :] = False
    out = explicit_attention(q, k, v, mask, score=score, address=Address("decoder", 0, "self"), tap=recorder)
    weights = recorder.recording["decoder.0.self.weights"]
    assert (weights[~mask.expand_as(weights)] == 0).all() and (out[:, :, 2] == 0).all()
    assert torch.allclose(weights.sum(-1)[..., [0, 1, 3]], torch.ones((), dtype=torch.float64), atol=1e-12)


@pytest.mark.parametrize(
    "changes", [*OTHER_SCORES, {"score": "multiplicative", "positions": "alibi", "scale_scores": False}], ids=str
)
def test_with_and_without_a_tap_and_a_cache_any_score_says_the_same(changes, within):
    model = random_model(torch.float64, **changes)
    source = torch.tensor([[5, 6, 7, 8, 2], [9, 4, 2, 0, 0]])
    with torch.no_grad():
        tapped, plain = model(source, source, tap=Recorder()), model(source, source)
    within(tapped, plain, 1e-12)
    cached, whole = (list(greedy(model, source, max_length=8, cache=cache)) for cache in (True, False))
    within(torch.stack([s.log_probs for s in cached]), torch.stack([s.log_probs for s in whole]), 1e-12)


@pytest.mark.parametrize(("kind", "name", "shape"), [("additive", "v", (2, 8)), ("multiplicative", "W", (2, 8, 8))])
def test_another_score_has_a_vector_or_a_matrix_a_head_more(kind, name, shape):
    dot, other = (ModelConfig(score=score, **SMALL) for score in ("dot", kind))
    model = Transformer(other)
    assert model.n_parameters() == parameter_count(other) == parameter_count(dot) + 5 * math.prod(shape)
    added = [p for full_name, p in model.named_parameters() if full_name.endswith(f"attention.score.{name}")]
    assert [tuple(p.shape) for p in added] == [shape] * 5 and all(p.std() > 0 for p in added)


def test_a_multiplicative_score_is_a_dot_product_whose_query_matrix_holds_w(within):
    """Holds the Walkthrough to its word: with W_Q times W, a model of dot products gives the same logits."""
    model = random_model(torch.float64, score="multiplicative")
    plain = random_model(torch.float64)
    weights = model.state_dict()
    for name in [name for name in weights if name.endswith("score.W")]:
        w, query = weights.pop(name), name.replace("score.W", "query.")
        for part in ("weight", "bias"):  # of a head: W^T times its rows
            rows = weights[query + part].unflatten(0, (4, -1))
            weights[query + part] = torch.einsum("hij,hi...->hj...", w, rows).flatten(0, 1)
    plain.load_state_dict(weights)
    ids = torch.tensor([[5, 6, 7, 8, 2]])
    with torch.no_grad():
        within(plain(ids, ids), model(ids, ids), 1e-12)


SMALL = dict(vocab_size=12, d_model=16, n_heads=2, d_ff=8, n_encoder_layers=1, n_decoder_layers=2, max_length=16)


def test_models_of_dot_products_have_the_weights_that_they_always_had():
    assert not [name for name in Transformer(ModelConfig(**SMALL)).state_dict() if "score" in name]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            dict(score="additive", scale_scores=False),
            r"score \('additive'\) is never divided by √d_k, so that scale_scores \(False\) would do nothing",
        ),
        (dict(score="additive", positions="rotary"), r"score \('additive'\) cannot go with positions \('rotary'\)"),
        (dict(score="multiplicative", positions="rotary"), r"score \('multiplicative'\) cannot go with"),
    ],
)
def test_settings_that_contradict_a_score_are_refused(changes, said):
    with pytest.raises(ValueError, match=said):
        ModelConfig(**changes)


@pytest.mark.parametrize("kind", get_args(ScoreKind))
def test_every_score_has_a_module_and_a_form_that_agree(kind):
    config = ModelConfig(**SMALL, score=kind)
    score, form = build_score(config), SCORE_FORMS[kind]
    assert type(score) is SCORES[kind] and score.kind == kind
    assert form.is_divided == (score.divisor(16) == 4)
    assert (r"\sqrt{d_k}" in score_equation(config)) == form.formula(True).endswith(" / √d") == form.is_divided
    assert r"\sqrt" not in form.scaled(False) and form.formula(False) == form.written
    q, other, k = torch.randn(3, 1, 2, 3, 8)
    with torch.no_grad():
        apart = (score(q + other, k) - score(q, k) - score(other, k)).abs().max()
    assert form.is_bilinear == (apart < 1e-4)


def test_masks_of_training_serve_an_additive_model():
    model = random_model(score="additive").train()
    ids = torch.tensor([[5, 6, 2, 0]])
    loss = model(ids, ids).logsumexp(-1).sum()
    loss.backward()
    grads = [p.grad for name, p in model.named_parameters() if name.endswith("score.v")]
    assert grads and all(g is not None and torch.isfinite(g).all() and g.any() for g in grads)
