"""A whole pass in a few rows: every token's vector after each sublayer, and the attention on its way."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Shaped
from numpy import ndarray

from transformer.analysis.trace.opened import open_step
from transformer.analysis.trace.step import SUBLAYERS, TracedModel, n_layers, sublayers_of
from transformer.analysis.trace.steps import find_step, steps
from transformer.analysis.trace.trace import Trace
from transformer.model.kinds import AttentionKind
from transformer.model.recurrent import CROSS, RecurrentModel
from transformer.model.taps import Stack

_SUBLAYER_NAMES = {"self": "self-attention", "cross": "cross-attention", "ffn": "feed-forward"}


@dataclass(frozen=True)
class Stage:
    """The vectors of all tokens of a stack after one sublayer, or before the first."""

    name: str
    states: Float[ndarray, "token d_model"]
    kind: AttentionKind | None = None
    weights: Shaped[ndarray, "token key"] | None = None
    """The attention by which the vectors got there, the mean of all heads."""


def stages(model: TracedModel, trace: Trace, stack: Stack) -> tuple[Stage, ...]:
    """Returns the stages of a stack from its embedding to what it hands on."""
    if isinstance(model, RecurrentModel):
        return tuple(_recurrent_stages(model, trace, stack))
    return tuple(_stages(model, trace, stack))


def written_probabilities(model: TracedModel, trace: Trace) -> Float[ndarray, " step"]:
    """Returns the probability that this pass gives each written token."""
    (shown,) = open_step(trace, find_step(model, "decoder.probabilities")).comes_out
    return shown.values[np.arange(len(trace.target)), np.array(trace.target)]


def most_attended(
    weights: Shaped[ndarray, "layer head query key"], row: int, n: int, kept: int | None = None
) -> tuple[int, ...]:
    """Returns the keys that a row attended to most, over all layers and heads: `n` in all, in their order.

    `kept` is among them in any case; None: the row itself, as in self-attention.
    """
    others = np.array(weights, dtype=float).mean(axis=(0, 1))[row]
    others[row if kept is None else kept] = np.inf
    return tuple(sorted(np.argsort(-others, kind="stable")[:n].tolist()))


def _stages(model: TracedModel, trace: Trace, stack: Stack) -> Iterator[Stage]:
    own = {str(step) for step in steps(model)}

    def states(name: str, layer: int = 0) -> ndarray:
        return open_step(trace, find_step(model, f"{stack}.{name}"), layer).comes_out[-1].values

    yield Stage("embedding", states("embedding"))
    if f"{stack}.positions" in own:
        yield Stage("+ position", states("positions"))
    for layer in range(n_layers(model, stack)):
        for sublayer in SUBLAYERS[stack]:
            last = "add" if f"{stack}.{sublayer}.add" in own else "output"
            kind = None if sublayer == "ffn" else AttentionKind.at(stack, sublayer)
            weights = None if kind is None else states(f"{sublayer}.weights", layer).mean(axis=0)
            yield Stage(f"{layer} · {_SUBLAYER_NAMES[sublayer]}", states(f"{sublayer}.{last}", layer), kind, weights)
    if f"{stack}.final" in own:
        yield Stage("last norm", states("final"))


def _recurrent_stages(model: RecurrentModel, trace: Trace, stack: Stack) -> Iterator[Stage]:
    def states(name: str, layer: int = 0) -> ndarray:
        return open_step(trace, find_step(model, f"{stack}.{name}"), layer).comes_out[-1].values

    yield Stage("embedding", states("embedding"))
    for block in sublayers_of(model, stack):
        if block == "cross":
            context = trace.taken[CROSS.site("output")].numpy()
            yield Stage("context", context, AttentionKind.CROSS, states("cross.weights").mean(axis=0))
            continue
        for layer in range(n_layers(model, stack)):
            yield Stage(f"{layer} · {model.config.cell.upper()}", states("recurrent.state", layer))
    if stack == "decoder" and model.combine is not None:
        yield Stage("combined", states("combine"))
