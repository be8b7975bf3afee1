"""The equations of the stations inside multi-head attention (section 3.2), computed in float64."""

import torch
from torch import Tensor

from transformer.analysis.trace.parts import At, Sum, Value, entering_sublayer, joined, linear, memory_of, split
from transformer.analysis.trace.steps import by_station
from transformer.model.attention import masked_softmax
from transformer.model.positions import AlibiPositions, RotaryPositions


def _qkv(at: At) -> Sum:
    x, attention = entering_sublayer(at), at.attention
    memory = x if at.part == "self" else memory_of(at)
    heads = attention.n_heads
    q, k = split(linear(attention.query, x), heads), split(linear(attention.key, memory), heads)
    v = split(linear(attention.value, memory), heads)
    if isinstance(attention.relative, RotaryPositions):
        q, k = attention.relative(q[None], 0)[0], attention.relative(k[None], 0)[0]
    comes_in = (at.hidden("x", x),)
    if at.part == "cross":
        comes_in += (Value("memory", memory, "source", "d_model", at.model.config.norm != "none", every_row=True),)
    return Sum(
        comes_in,
        (
            Value("q", at.taken("q"), at.rows, "d_head"),
            Value("k", at.taken("k"), at.keys, "d_head", every_row=at.part == "cross"),
            Value("v", at.taken("v"), at.keys, "d_head", every_row=at.part == "cross"),
        ),
        ((q, at.offered("q")), (k, at.offered("k")), (v, at.offered("v"))),
        "queries, keys and values of all heads, computed from what came in, against the recorded ones",
    )


def _products(at: At) -> Sum:
    raw, bias = _raw_products(at), _bias(at)
    name = "QKᵀ" if at.attention.scale is None or bias is not None else "scores"
    return Sum(
        (Value("q", at.taken("q"), at.rows, "d_head"), Value("k", at.taken("k"), at.keys, "d_head", every_row=True)),
        (Value(name, raw, at.rows, at.keys, recorded=False),),
        ((raw / at.attention.divisor + (0 if bias is None else bias), at.offered("scores")),),
        "these products, brought to the scale of the recorded scores, against those",
    )


def _scaled(at: At) -> Sum:
    raw, bias = _raw_products(at), _bias(at)
    scaled = raw / at.attention.divisor
    shown = at.taken("scores") if bias is None else scaled
    return Sum(
        (Value("QKᵀ", raw, at.rows, at.keys, recorded=False),),
        (Value("scores", shown, at.rows, at.keys, recorded=bias is None),),
        ((scaled + (0 if bias is None else bias), at.offered("scores")),),
        "all products divided by √d_k, against the recorded scores",
    )


def _penalty(at: At) -> Sum:
    scaled, bias = _raw_products(at) / at.attention.divisor, _bias(at)
    assert bias is not None, "only a model with ALiBi has this station"
    return Sum(
        (
            Value("scaled", scaled, at.rows, at.keys, recorded=False),
            Value("penalty", bias.expand_as(scaled), at.rows, at.keys, recorded=False),
        ),
        (Value("scores", at.taken("scores"), at.rows, at.keys),),
        ((scaled + bias, at.offered("scores")),),
        "products and penalties added up, against the recorded scores",
    )


def _masked(at: At) -> Sum:
    mask = at.taken("mask")[0]
    scores = at.taken("scores")
    return Sum(
        (Value("scores", scores, at.rows, at.keys),),
        (Value("masked", scores, at.rows, at.keys, recorded=True, allowed=mask),),
        ((_rule(at).double(), at.offered("mask")[0].double()),),
        "who may see whom by the rule, against the recorded mask; largest difference of a cell",
    )


def _weights(at: At) -> Sum:
    scores, mask = at.taken("scores"), at.taken("mask")
    expected = masked_softmax(scores.double()[None], mask[None])[0]
    return Sum(
        (Value("scores", scores, at.rows, at.keys, allowed=mask[0]),),
        (Value("weights", at.taken("weights"), at.rows, at.keys, allowed=mask[0]),),
        ((expected, at.offered("weights")),),
        "the softmax of the recorded scores under the recorded mask, against the recorded weights",
    )


def _context(at: At) -> Sum:
    weights, v = at.taken("weights"), at.taken("v")
    return Sum(
        (
            Value("weights", weights, at.rows, at.keys, allowed=at.taken("mask")[0]),
            Value("v", v, at.keys, "d_head", every_row=True),
        ),
        (Value("head", at.taken("heads"), at.rows, "d_head"),),
        ((weights.double() @ v.double(), at.offered("heads")),),
        "the recorded weights times the recorded values, against the recorded context of every head",
    )


def _concat(at: At) -> Sum:
    heads = at.taken("heads")
    row = joined(heads)
    parts = tuple(Value(f"head {i}", part, at.rows, "d_head") for i, part in enumerate(heads))
    return Sum(
        parts,
        (at.hidden("concat", row, recorded=False),),
        ((linear(at.attention.output, row), at.offered("output")),),
        "what W_O makes of this row of heads, against the recorded output",
    )


def _output(at: At) -> Sum:
    row = joined(at.taken("heads"))
    return Sum(
        (at.hidden("concat", row, recorded=False),),
        (at.hidden("output", at.taken("output")),),
        ((linear(at.attention.output, row), at.offered("output")),),
        "the joined heads times W_O plus its bias, against the recorded output",
    )


def _raw_products(at: At) -> Tensor:
    return at.taken("q").double() @ at.taken("k").double().transpose(-2, -1)


def _bias(at: At) -> Tensor | None:
    relative = at.attention.relative
    if not isinstance(relative, AlibiPositions):
        return None
    return relative(at.taken("q").size(1), at.taken("k").size(1))[0].double()


def _rule(at: At) -> Tensor:
    """Who may see whom in a batch of one sentence: no padding, and in the decoder nothing later."""
    every = torch.ones_like(at.offered("mask")[0])
    causal = at.station.stack == "decoder" and at.part == "self" and at.model.config.causal_mask
    return every.tril() if causal else every


ATTENTION_SUMS = by_station(_qkv, _products, _scaled, _penalty, _masked, _weights, _context, _concat, _output)
"""By the station's name."""
