"""Dropout itself: how much it takes away and how it scales the rest, that its draws are independent, and that it is
silent outside of training. Where it stands in a model is tested with the model."""

import math

import pytest
import torch
from random_models import (
    CONVOLUTIONAL_BUILDS,
    DECODER_BUILDS,
    RECURRENT_BUILDS,
    assert_lawful,
    dropout_factors,
    ragged_batch,
    random_convolutional,
    random_model,
    random_recurrent,
)

from transformer.model.attention import MultiHeadAttention
from transformer.model.layers import Dropout
from transformer.model.masks import AttentionMask
from transformer.model.scores import Additive, DotProduct, Multiplicative
from transformer.model.taps import Address, Recorder

RATE = 0.3
RATES = ("dropout", "embedding_dropout", "attention_dropout", "activation_dropout")
"""The rates of a Transformer; other models have the first one."""
SHAPE = (16, 64, 32)
NOTHING = Recorder(lambda site: False)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.75])
def test_dropout_zeroes_its_share_and_divides_the_rest_by_what_is_kept(rate):
    dropout = Dropout(rate)
    with dropout_factors(dropout) as factors:
        for shape in (SHAPE, (3, 5), (1, 1, 7)):  # the last two are no multiples of the four that one draw serves
            dropout(torch.rand(shape) + 1)
    assert_lawful(factors, rate)


def test_whether_an_element_is_dropped_says_nothing_of_its_neighbours():
    gone = (Dropout(RATE)(torch.ones(SHAPE)) == 0).flatten().double()
    _, length, d_model = SHAPE
    for lag in (1, 2, 3, 4, d_model, length * d_model):  # in a row, a position apart, a sentence apart
        both = (gone[lag:] * gone[:-lag]).mean().item()
        # The variance of a product of two independent draws, and its covariance with the two that share one of them.
        variance = RATE**2 * (1 - RATE**2) + 2 * RATE**3 * (1 - RATE)
        assert abs(both - RATE**2) < 5 * math.sqrt(variance / (len(gone) - lag))


def test_gradients_pass_where_values_did():
    x = torch.rand(SHAPE).add(1).requires_grad_()
    out = Dropout(RATE)(x)
    out.sum().backward()
    assert torch.allclose(x.grad * x, out, rtol=1e-6)


@pytest.mark.parametrize("tap", [None, NOTHING], ids=["plain", "watched"])
@pytest.mark.parametrize("score", [DotProduct(), Additive(1, 64), Multiplicative(1, 64)], ids=lambda score: score.kind)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_attention_in_training_drops_its_share_of_the_weights_of_any_score(score, dtype, tap):
    d = 64
    attention = MultiHeadAttention(
        d,
        1,
        dropout=RATE,
        address=Address("decoder", 0, "cross"),
        score=score,
    )
    for linear in (attention.value, attention.output):  # so that the output is the weights
        torch.nn.init.eye_(linear.weight)
        torch.nn.init.zeros_(linear.bias)
    asked, memory = torch.randn(1, d, d), torch.eye(d)[None]
    mask = AttentionMask.of(torch.ones(1, 1, 1, d, dtype=torch.bool), torch.float32)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
        weights = attention.eval()(asked, memory, mask, tap=tap).float()
        dropped = attention.train()(asked, memory, mask, tap=tap).float()
    gone = dropped == 0
    # A bfloat16 keeps 8 bits; weights are rounded before dropout or after, and each output again.
    tolerance = 4 * 2**-8 if dtype == torch.bfloat16 else 1e-5
    assert torch.allclose(dropped[~gone] * (1 - RATE), weights[~gone], rtol=tolerance)
    assert abs(gone.double().mean().item() - RATE) < 5 * math.sqrt(RATE * (1 - RATE) / gone.numel())


@pytest.mark.parametrize(
    ("make", "build"),
    [
        *((random_model, build) for build in DECODER_BUILDS),
        *((random_recurrent, build) for build in RECURRENT_BUILDS),
        *((random_convolutional, build) for build in CONVOLUTIONAL_BUILDS),
    ],
    ids=lambda value: value.__name__ if callable(value) else str(value),
)
def test_with_dropout_a_model_says_the_same_as_without_until_it_is_trained(make, build):
    rates = dict.fromkeys(RATES if make is random_model else RATES[:1], RATE)
    model, without = make(**build, **rates), make(**build)
    without.load_state_dict(model.state_dict())
    batch = ragged_batch()
    with torch.no_grad():
        assert torch.equal(model(*batch), without(*batch))
        assert torch.equal(without.train()(*batch), without.eval()(*batch))
        model.train()
        assert not torch.equal(model(*batch), model(*batch))
