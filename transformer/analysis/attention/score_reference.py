"""Scores in float64 and by loops over numbers, sharing nothing with `model.scores`: what checks hold scores against."""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from transformer.model.attention import MultiHeadAttention
from transformer.model.convolutional import ConvolutionalModel
from transformer.model.families import AnyModel
from transformer.model.recurrent import RecurrentModel
from transformer.model.score_forms import SCORE_FORMS
from transformer.model.transformer import Transformer


def reference_terms(
    model: Transformer, attention: MultiHeadAttention, head: int, q: Sequence[float], k: Sequence[float]
) -> list[float]:
    """Returns the numbers that add up to one score times its divisor."""
    if model.config.score == "additive":
        v = attention.score.get_parameter("v")[head].tolist()
        return [a * math.tanh(b + c) for a, b, c in zip(v, q, k, strict=True)]
    if model.config.score == "multiplicative":
        columns = zip(*between(attention, head).tolist(), strict=True)
        q = [math.fsum(a * b for a, b in zip(q, column, strict=True)) for column in columns]
    return [b * c for b, c in zip(q, k, strict=True)]


def reference_divisor(model: Transformer) -> float:
    """Returns the divisor of the sum of the terms."""
    is_scaled = model.config.score != "additive" and model.config.scale_scores
    return math.sqrt(model.config.d_model // model.config.n_heads) if is_scaled else 1.0


def reference_scores(
    model: Transformer,
    attention: MultiHeadAttention,
    q: Float[ndarray, "head query d_head"],
    k: Float[ndarray, "head key d_head"],
) -> Float[ndarray, "head query key"]:
    """Returns the scores of recorded queries and keys, without what positions add to them."""
    if model.config.score == "additive":
        v = attention.score.get_parameter("v").detach().double().numpy()
        return np.stack([[np.tanh(row + k[head]) @ v[head] for row in q[head]] for head in range(len(q))])
    if model.config.score == "multiplicative":
        q = np.stack([rows @ between(attention, head) for head, rows in enumerate(q)])
    return np.einsum("hqd,hkd->hqk", q, k) / reference_divisor(model)


def between(attention: MultiHeadAttention, head: int) -> Float[ndarray, "d_head d_head"]:
    """Returns the matrix between a query and a key of this head, in a model whose scores are bilinear."""
    matrices = dict(attention.score.named_parameters())
    d_head = attention.query.out_features // attention.n_heads
    return matrices["W"][head].detach().double().numpy() if matrices else np.eye(d_head)


def one_head_scores(
    model: RecurrentModel | ConvolutionalModel, q: Float[ndarray, " d_model"], k: Float[ndarray, "key d_model"]
) -> Float[ndarray, " key"]:
    """Returns the scores of one recorded query with each key, in a model whose blocks have one head."""
    if isinstance(model, ConvolutionalModel):
        return np.array([q @ key for key in k]) / math.sqrt(model.config.d_model)
    if model.config.attention == "additive":
        v = model.get_parameter("attention.score.v")[0].detach().double().numpy()
        return np.array([v @ np.tanh(q + key) for key in k])
    return np.array([q @ key for key in k])


def softmax_over(scores: Float[ndarray, " key"], allowed: Bool[ndarray, " key"]) -> Float[ndarray, " key"]:
    """Returns the softmax over the allowed keys; 0 at all others."""
    found = np.zeros(len(scores))
    if allowed.any():
        powers = np.exp(scores[allowed] - scores[allowed].max())
        found[allowed] = powers / powers.sum()
    return found


def score_formula(model: AnyModel) -> str:
    """Returns the score in plain text."""
    if isinstance(model, RecurrentModel):
        return {"additive": "v · tanh(W s + U h)", "general": "s · W h"}.get(model.config.attention, "s · h")
    if isinstance(model, ConvolutionalModel):
        return "(W s + b + g) · h / √d"
    return SCORE_FORMS[model.config.score].formula(model.config.scale_scores)
