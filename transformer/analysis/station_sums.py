"""The equation of every station, computed in float64 from what the pass let into it (sections 3.1 to 3.5).

Not here: which stations there are (stations.py), and the verdict on the comparison (walkthrough.py).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.analysis.stations import Part, Station, n_layers
from transformer.analysis.whole_pass import WholePass
from transformer.attention import MultiHeadAttention, masked_softmax
from transformer.layers import AddNorm, FeedForward
from transformer.model import Embedding, Transformer
from transformer.positions import AlibiPositions, RotaryPositions, SinusoidalPositions, sinusoidal_table
from transformer.taps import Site

Axis = Literal["source", "target", "d_model", "d_head", "d_ff", "vocab", "id"]


@dataclass(frozen=True)
class Value:
    """A named tensor [row column] or [head row column] and what its rows and columns are."""

    name: str
    tensor: Tensor
    rows: Axis
    columns: Axis
    recorded: bool = True
    """False where it was computed from recorded tensors, because the pass keeps no such tensor."""
    allowed: Tensor | None = None
    """[row column]: False where a mask forbids the cell."""
    every_row: bool = False
    """Whether all rows take part in one row of the result, as keys and values do."""


@dataclass(frozen=True)
class Sum:
    """What goes in and out of a station, and the pairs of tensors that its equation makes equal."""

    comes_in: tuple[Value, ...]
    comes_out: tuple[Value, ...]
    equal: tuple[tuple[Tensor, Tensor], ...]
    """(computed here, recorded): what the equation gives, and what the model offered."""
    how: str
    """What is compared with what."""


@dataclass(frozen=True)
class At:
    """A station of a layer in a recorded pass, with the modules that computed it."""

    model: Transformer
    walk: WholePass
    station: Station
    layer: int

    @property
    def rows(self) -> Axis:
        return "source" if self.station.stack == "encoder" else "target"

    @property
    def keys(self) -> Axis:
        """What stands at the keys of this attention block."""
        return "source" if self.station.block == "cross" else self.rows

    @property
    def part(self) -> Part:
        assert self.station.block is not None, "only a block's stations ask for it"
        return self.station.block

    def offered(self, tensor: str) -> Tensor:
        """What the model computed in this block."""
        return self.walk.offered[Site(self.station.stack, self.layer, self.part, tensor)]

    def taken(self, tensor: str) -> Tensor:
        """What the pass went on with."""
        return self.walk.taken[Site(self.station.stack, self.layer, self.part, tensor)]

    @property
    def embedding(self) -> Embedding:
        return self.model.get_submodule(f"{self.station.stack}.embedding")  # type: ignore[return-value]

    @property
    def attention(self) -> MultiHeadAttention:
        return self._module(f"{self.part}_attention")  # type: ignore[return-value]

    @property
    def feed_forward(self) -> FeedForward:
        return self._module("feed_forward")  # type: ignore[return-value]

    @property
    def add_norm(self) -> AddNorm:
        return self._module(f"add_norm_{self.part}")  # type: ignore[return-value]

    def _module(self, name: str) -> nn.Module:
        return self.model.get_submodule(f"{self.station.stack}.layers.{self.layer}.{name}")

    def hidden(self, name: str, tensor: Tensor, *, recorded: bool = True) -> Value:
        """States of this stack's tokens."""
        return Value(name, tensor, self.rows, "d_model", recorded)


def sum_of(at: At) -> Sum:
    """The station's equation, worked out on the recorded pass."""
    if at.station.name == "output" and at.station.block == "ffn":
        return _outer(at)
    return _SUMS[at.station.name](at)


def _ids(at: At) -> Sum:
    encoder = at.station.stack == "encoder"
    ids = torch.tensor(at.walk.source if encoder else at.walk.inputs)[:, None]
    shown = Value("ids", ids, at.rows, "id")
    if encoder:
        again = torch.tensor(at.walk.source_again)
        how = "the sentence looked up again in the vocabulary; largest difference of an id"
        return Sum((), (shown,), ((again, torch.tensor(at.walk.source)),), how)
    best = torch.tensor(at.walk.log_probs).clone()
    best[:, at.model.config.pad_id] = -torch.inf
    wrong = (best.argmax(dim=-1) != torch.tensor(at.walk.target)).sum()
    how = "the most probable token of each step against what the next one read; tokens that differ"
    return Sum((), (shown,), ((wrong, torch.zeros_like(wrong)),), how)


def _embedding(at: At) -> Sum:
    ids = torch.tensor(at.walk.source if at.station.stack == "encoder" else at.walk.inputs)
    rows = at.embedding.tokens.weight.detach()[ids]
    site = Site(at.station.stack, None, None, "embedding")
    return Sum(
        (Value("ids", ids[:, None], at.rows, "id"), at.hidden("row of E", rows, recorded=False)),
        (at.hidden("embedding", at.walk.taken[site]),),
        ((rows.double() * at.embedding.scale, at.walk.offered[site]),),
        "the rows of the embedding matrix times √d_model, against the recorded embeddings",
    )


def _positions(at: At) -> Sum:
    stack, positions = at.station.stack, at.embedding.positions
    site = Site(stack, None, None, "positions")
    embedded, added = at.walk.taken[Site(stack, None, None, "embedding")], at.walk.taken[site]
    entering = at.walk.offered[Site(stack, 0, "self", "input")]
    length, width = added.shape
    if isinstance(positions, SinusoidalPositions):
        table, what = sinusoidal_table(length, width, dtype=torch.float64), "sines and cosines computed anew"
    else:
        table, what = positions.table.detach()[:length], "the learned table's rows"  # type: ignore[union-attr,index]
    return Sum(
        (at.hidden("embedding", embedded), at.hidden("position", added)),
        (at.hidden("sum", entering),),
        ((table, at.walk.offered[site]), (embedded.double() + added.double(), entering)),
        f"{what} against the recorded positions, and the sum against what enters the first layer",
    )


def _norm(at: At) -> Sum:
    x = at.taken("input")
    norm = at.add_norm.norm
    return Sum(
        (at.hidden("x", x),),
        (at.hidden("normed", at.taken("normed")),),
        ((_normed(norm, x), at.offered("normed")),),
        "the layer norm of what came in, against the recorded one",
    )


def _qkv(at: At) -> Sum:
    x, attention = entering_sublayer(at), at.attention
    memory = x if at.part == "self" else memory_of(at)
    heads = attention.n_heads
    q, k = _split(_linear(attention.query, x), heads), _split(_linear(attention.key, memory), heads)
    v = _split(_linear(attention.value, memory), heads)
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
    joined = _joined(heads)
    parts = tuple(Value(f"head {i}", part, at.rows, "d_head") for i, part in enumerate(heads))
    return Sum(
        parts,
        (at.hidden("concat", joined, recorded=False),),
        ((_linear(at.attention.output, joined), at.offered("output")),),
        "what W_O makes of this row of heads, against the recorded output",
    )


def _output(at: At) -> Sum:
    joined = _joined(at.taken("heads"))
    return Sum(
        (at.hidden("concat", joined, recorded=False),),
        (at.hidden("output", at.taken("output")),),
        ((_linear(at.attention.output, joined), at.offered("output")),),
        "the joined heads times W_O plus its bias, against the recorded output",
    )


def _hidden(at: At) -> Sum:
    x, block = entering_sublayer(at), at.feed_forward
    inner = block.activation(_linear(block.inner, x))
    return Sum(
        (at.hidden("x", x),),
        (Value("hidden", inner, at.rows, "d_ff", recorded=False),),
        ((_linear(block.outer, inner), at.offered("output")),),
        "what W_2 makes of these numbers, against the recorded output",
    )


def _outer(at: At) -> Sum:
    block = at.feed_forward
    inner = block.activation(_linear(block.inner, entering_sublayer(at)))
    return Sum(
        (Value("hidden", inner, at.rows, "d_ff", recorded=False),),
        (at.hidden("output", at.taken("output")),),
        ((_linear(block.outer, inner), at.offered("output")),),
        "the hidden numbers times W_2 plus its bias, against the recorded output",
    )


def _add(at: At) -> Sum:
    config, output = at.model.config, at.taken("output")
    total = _block_sum(at)
    comes_in = (at.hidden("sublayer", output),)
    if config.residual:
        comes_in = (at.hidden("x", at.taken("residual")), *comes_in)
    if config.norm == "post":
        middle = (at.hidden("sum", total, recorded=False),) if config.residual else ()
        return Sum(
            comes_in,
            (*middle, at.hidden("normed", at.taken("normed"))),
            ((_normed(at.add_norm.norm, total), at.offered("normed")),),
            "sum and layer norm of what came in, against the recorded one",
        )
    expected, recorded, where = _met_again(at, total)
    return Sum(comes_in, (at.hidden("sum", total, recorded=False),), ((expected, recorded),), where)


def _layers(at: At) -> Sum:
    stack = at.station.stack
    last_block: Part = "ffn"
    after = [
        block_output(At(at.model, at.walk, Station(stack, last_block, "add"), layer))
        for layer in range(n_layers(at.model, stack))
    ]
    entering = [at.walk.offered[Site(stack, layer, "self", "input")] for layer in range(1, len(after))]
    return Sum(
        (at.hidden("into layer 0", at.walk.taken[Site(stack, 0, "self", "input")]),),
        tuple(at.hidden(f"after layer {i}", x, recorded=at.model.config.norm == "post") for i, x in enumerate(after)),
        tuple(zip(after[:-1], entering, strict=True)),
        "what each layer gave, against what the next one took in",
    )


def _final(at: At) -> Sum:
    x = _stack_sum(at)
    site = Site(at.station.stack, None, "final", "normed")
    return Sum(
        (at.hidden("x", x, recorded=False),),
        (at.hidden("normed", at.walk.taken[site]),),
        ((_normed(getattr(at.model, at.station.stack).norm, x), at.walk.offered[site]),),
        "the layer norm of what the last layer gave, against the recorded one",
    )


def _logits(at: At) -> Sum:
    x, site = stack_output(at), Site("decoder", None, None, "logits")
    return Sum(
        (at.hidden("x", x, recorded=at.model.config.norm != "none"),),
        (Value("logits", at.walk.taken[site], at.rows, "vocab"),),
        ((_linear(at.model.projection, x), at.walk.offered[site]),),
        "the last states times the output matrix, against all recorded logits",
    )


def _probabilities(at: At) -> Sum:
    logits = at.walk.taken[Site("decoder", None, None, "logits")]
    probabilities = logits.double().softmax(dim=-1)
    decoded = torch.tensor(at.walk.log_probs).double().exp()
    first = len(decoded) - 1 if at.walk.sees_later else 0
    rows = "of the last step" if at.walk.sees_later else f"of all {len(decoded)} steps"
    return Sum(
        (Value("logits", logits, at.rows, "vocab"),),
        (Value("probabilities", probabilities, at.rows, "vocab", recorded=False),),
        ((probabilities[first:], decoded[first:]),),
        f"the softmax of these logits, against the probabilities {rows} of the decoding that wrote the output",
    )


_SUMS: dict[str, Callable[[At], Sum]] = {
    "ids": _ids,
    "embedding": _embedding,
    "positions": _positions,
    "norm": _norm,
    "qkv": _qkv,
    "products": _products,
    "scaled": _scaled,
    "penalty": _penalty,
    "masked": _masked,
    "weights": _weights,
    "context": _context,
    "concat": _concat,
    "output": _output,
    "hidden": _hidden,
    "add": _add,
    "layers": _layers,
    "final": _final,
    "logits": _logits,
    "probabilities": _probabilities,
}


def entering_sublayer(at: At) -> Tensor:
    """What the block itself reads: its input, in pre-norm after the norm."""
    return at.taken("normed") if at.model.config.norm == "pre" else at.taken("input")


def memory_of(at: At) -> Tensor:
    """What the encoder hands to every decoder layer."""
    return stack_output(At(at.model, at.walk, Station("encoder", None, "layers"), 0))


def stack_output(at: At) -> Tensor:
    """What the station's stack hands on after its last layer."""
    if at.model.config.norm == "pre":
        return at.walk.taken[Site(at.station.stack, None, "final", "normed")]
    return _stack_sum(at)


def block_output(at: At) -> Tensor:
    """What a block hands on to the next one."""
    return at.taken("normed") if at.model.config.norm == "post" else _block_sum(at)


def _stack_sum(at: At) -> Tensor:
    last = n_layers(at.model, at.station.stack) - 1
    return block_output(At(at.model, at.walk, Station(at.station.stack, "ffn", "add"), last))


def _block_sum(at: At) -> Tensor:
    """Residual and output added, in the precision of the pass: it keeps no such tensor."""
    return at.taken("residual") + at.taken("output") if at.model.config.residual else at.taken("output")


def _met_again(at: At, x: Tensor) -> tuple[Tensor, Tensor, str]:
    """Where the pass meets what a block gave, which has no site of its own, the next time."""
    stack, offered, model = at.station.stack, at.walk.offered, at.model
    order = ("self", "ffn") if stack == "encoder" else ("self", "cross", "ffn")
    following = order.index(at.part) + 1
    if following < len(order):
        entering = offered[Site(stack, at.layer, order[following], "input")]
        return x, entering, "the sum, against what the next block took in"
    if at.layer + 1 < n_layers(model, stack):
        entering = offered[Site(stack, at.layer + 1, "self", "input")]
        return x, entering, "the sum, against what the next layer took in"
    if model.config.norm == "pre":
        normed = offered[Site(stack, None, "final", "normed")]
        return _normed(getattr(model, stack).norm, x), normed, "the final norm of this sum, against the recorded one"
    if stack == "decoder":
        logits = offered[Site("decoder", None, None, "logits")]
        return _linear(model.projection, x), logits, "the logits of this sum, against the recorded ones"
    cross = model.get_submodule("decoder.layers.0.cross_attention")
    assert isinstance(cross, MultiHeadAttention)
    values = offered[Site("decoder", 0, "cross", "v")]
    computed = _split(_linear(cross.value, x), cross.n_heads)
    return computed, values, "the decoder's values of this sum, against the recorded ones"


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


def _linear(layer: nn.Linear, x: Tensor) -> Tensor:
    bias = None if layer.bias is None else layer.bias.detach().double()
    return F.linear(x.double(), layer.weight.detach().double(), bias)


def _normed(norm: nn.Module | None, x: Tensor) -> Tensor:
    assert isinstance(norm, nn.LayerNorm)
    gain, bias = norm.weight.detach().double(), norm.bias.detach().double()
    return F.layer_norm(x.double(), norm.normalized_shape, gain, bias, norm.eps)


def _split(x: Tensor, n_heads: int) -> Tensor:
    return x.unflatten(-1, (n_heads, -1)).transpose(0, 1)  # [row d_model] -> [head row d_head]


def _joined(heads: Tensor) -> Tensor:
    return heads.transpose(0, 1).flatten(1)  # [head row d_head] -> [row d_model]
