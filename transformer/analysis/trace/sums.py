"""The equation of every station, computed in float64 from what the pass let into it (sections 3.1 to 3.5).

Those inside attention are in attention_sums.py. Not here: which stations there are (steps.py), and the verdict on
the comparison (walkthrough.py).
"""

import torch
from torch import Tensor

from transformer.analysis.trace.attention_sums import ATTENTION_SUMS
from transformer.analysis.trace.parts import (
    At,
    Sum,
    Value,
    entering_sublayer,
    linear,
    normed,
    split,
    stack_output,
    stack_sum,
    sublayer_output,
    sublayer_sum,
)
from transformer.analysis.trace.steps import Part, Station, by_station, n_layers
from transformer.model.attention import MultiHeadAttention
from transformer.model.positions import SinusoidalPositions, sinusoidal_table
from transformer.model.taps import Site


def sum_of(at: At) -> Sum:
    """The station's equation, worked out on the recorded pass."""
    if at.station.name == "output" and at.station.sublayer == "ffn":
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
        ((normed(norm, x), at.offered("normed")),),
        "the layer norm of what came in, against the recorded one",
    )


def _hidden(at: At) -> Sum:
    x, sublayer = entering_sublayer(at), at.feed_forward
    inner = sublayer.activation(linear(sublayer.inner, x))
    return Sum(
        (at.hidden("x", x),),
        (Value("hidden", inner, at.rows, "d_ff", recorded=False),),
        ((linear(sublayer.outer, inner), at.offered("output")),),
        "what W_2 makes of these numbers, against the recorded output",
    )


def _outer(at: At) -> Sum:
    sublayer = at.feed_forward
    inner = sublayer.activation(linear(sublayer.inner, entering_sublayer(at)))
    return Sum(
        (Value("hidden", inner, at.rows, "d_ff", recorded=False),),
        (at.hidden("output", at.taken("output")),),
        ((linear(sublayer.outer, inner), at.offered("output")),),
        "the hidden numbers times W_2 plus its bias, against the recorded output",
    )


def _add(at: At) -> Sum:
    config, output = at.model.config, at.taken("output")
    total = sublayer_sum(at)
    comes_in = (at.hidden("sublayer", output),)
    if config.residual:
        comes_in = (at.hidden("x", at.taken("residual")), *comes_in)
    if config.norm == "post":
        middle = (at.hidden("sum", total, recorded=False),) if config.residual else ()
        return Sum(
            comes_in,
            (*middle, at.hidden("normed", at.taken("normed"))),
            ((normed(at.add_norm.norm, total), at.offered("normed")),),
            "sum and layer norm of what came in, against the recorded one",
        )
    expected, recorded, where = _met_again(at, total)
    return Sum(comes_in, (at.hidden("sum", total, recorded=False),), ((expected, recorded),), where)


def _layers(at: At) -> Sum:
    stack = at.station.stack
    last_sublayer: Part = "ffn"
    after = [
        sublayer_output(At(at.model, at.walk, Station(stack, last_sublayer, "add"), layer))
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
    x = stack_sum(at)
    site = Site(at.station.stack, None, "final", "normed")
    return Sum(
        (at.hidden("x", x, recorded=False),),
        (at.hidden("normed", at.walk.taken[site]),),
        ((normed(getattr(at.model, at.station.stack).norm, x), at.walk.offered[site]),),
        "the layer norm of what the last layer gave, against the recorded one",
    )


def _logits(at: At) -> Sum:
    x, site = stack_output(at), Site("decoder", None, None, "logits")
    return Sum(
        (at.hidden("x", x, recorded=at.model.config.norm != "none"),),
        (Value("logits", at.walk.taken[site], at.rows, "vocab"),),
        ((linear(at.model.projection, x), at.walk.offered[site]),),
        "the last states times the output matrix, against all recorded logits",
    )


def _probabilities(at: At) -> Sum:
    logits = at.walk.taken[Site("decoder", None, None, "logits")]
    probabilities = logits.log_softmax(dim=-1).exp()  # rounded as in the decoding
    decoded = torch.tensor(at.walk.log_probs).double().exp()
    first = at.walk.last if at.walk.sees_later else 0
    rows = f"of step {first}" if at.walk.sees_later else f"of all {len(decoded)} steps"
    return Sum(
        (Value("logits", logits, at.rows, "vocab"),),
        (Value("probabilities", probabilities, at.rows, "vocab", recorded=False),),
        ((logits.double().softmax(dim=-1)[first:], decoded[first:]),),
        f"the softmax of these logits, against the probabilities {rows} of the decoding that wrote the output",
    )


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
        recorded = offered[Site(stack, None, "final", "normed")]
        return normed(getattr(model, stack).norm, x), recorded, "the final norm of this sum, against the recorded one"
    if stack == "decoder":
        logits = offered[Site("decoder", None, None, "logits")]
        return linear(model.projection, x), logits, "the logits of this sum, against the recorded ones"
    cross = model.get_submodule("decoder.layers.0.cross_attention")
    assert isinstance(cross, MultiHeadAttention)
    values = offered[Site("decoder", 0, "cross", "v")]
    computed = split(linear(cross.value, x), cross.n_heads)
    return computed, values, "the decoder's values of this sum, against the recorded ones"


_SUMS = ATTENTION_SUMS | by_station(
    _ids, _embedding, _positions, _norm, _hidden, _add, _layers, _final, _logits, _probabilities
)
