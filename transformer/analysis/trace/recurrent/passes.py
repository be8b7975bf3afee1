"""The recurrent parts of a pass computed again, layer by layer, in double precision, from what the pass let in."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from transformer.analysis.attention.recurrent_reference import State, Unit, Weights, advance_unit, parameters_of
from transformer.analysis.trace.reference import linear
from transformer.analysis.trace.step import layer_output
from transformer.analysis.trace.trace import Trace
from transformer.model.recurrent import CROSS, VECTOR, RecurrentModel
from transformer.model.taps import Site, Stack


class LayerPass(NamedTuple):
    """One layer at all tokens; where it reads both ways, the forward half of each row and then the backward half."""

    gates: Mapping[str, Float[Tensor, "row d_model"]]
    states_before: Float[Tensor, "row d_model"]
    states: Float[Tensor, "row d_model"]
    cells_before: Float[Tensor, "row d_model"] | None
    """An LSTM's cells; None for a GRU, which has none."""
    cells: Float[Tensor, "row d_model"] | None


def layer_pass(model: RecurrentModel, trace: Trace, stack: Stack, layer: int) -> LayerPass:
    """Runs one layer over its recorded input, one token after the other."""
    weights, name = parameters_of(model), f"{stack}.{layer}"
    x = torch.cat([part.double() for part in layer_input(model, trace, stack, layer).values()], dim=-1).numpy()
    if stack == "decoder":
        start = tuple(part.numpy()[0] for part in start_states(model, trace)[layer])
        return _joined([_directed(weights, f"{name}.forwards", x, start)])
    n_parts = 2 if model.config.cell == "lstm" else 1
    n_ways = 2 if model.config.bidirectional else 1
    zeros: State = (np.zeros(model.config.d_model // n_ways),) * n_parts
    ways = [_directed(weights, f"{name}.forwards", x, zeros)]
    if n_ways == 2:
        ways.append(_directed(weights, f"{name}.backwards", x[::-1], zeros)[::-1])
    return _joined(ways)


def layer_input(model: RecurrentModel, trace: Trace, stack: Stack, layer: int) -> dict[str, Tensor]:
    """Returns what a layer reads at each token, by name: beside the token what was gathered, or is fed."""
    if layer:
        return {"x": layer_output(model, trace, stack, layer - 1)}
    read = {"x": trace.taken[Site(stack, None, None, "embedding")]}
    if stack == "encoder":
        return read
    if model.config.attention == "additive":
        read["context"] = trace.taken[CROSS.site("output")]
    if model.config.input_feeding:
        combined = combined_states(model, trace)
        read["fed"] = torch.cat((torch.zeros_like(combined[:1]), combined[:-1]))
    return read


def start_states(model: RecurrentModel, trace: Trace) -> list[tuple[Float[Tensor, "1 d_model"], ...]]:
    """Returns for each layer of the decoder the state before its first token, and an LSTM's cell."""
    parts = linear(model.start, trace.taken[VECTOR]).chunk(model.config.n_decoder_layers, dim=-1)
    if model.config.cell == "gru":
        return [(part.tanh(),) for part in parts]
    return [(hidden.tanh(), cell) for hidden, cell in (part.chunk(2, dim=-1) for part in parts)]


def combined_parts(model: RecurrentModel, trace: Trace) -> dict[str, Tensor]:
    """Returns what is combined into the vector that is compared with the vocabulary, by name."""
    last = model.config.n_decoder_layers - 1
    parts = {"state": layer_output(model, trace, "decoder", last), "context": trace.taken[CROSS.site("output")]}
    if model.config.attention == "additive":
        parts["x"] = trace.taken[Site("decoder", None, None, "embedding")]
    return parts


def combined_states(model: RecurrentModel, trace: Trace) -> Float[Tensor, "row d_model"]:
    """Returns the vector that is compared with the vocabulary: without attention the last layer's state itself."""
    if model.combine is None:
        return layer_output(model, trace, "decoder", model.config.n_decoder_layers - 1)
    parts = [part.double() for part in combined_parts(model, trace).values()]
    return linear(model.combine, torch.cat(parts, dim=-1)).tanh()


class _At(NamedTuple):
    before: State
    unit: Unit


def _directed(weights: Weights, name: str, inputs: ndarray, start: State) -> list[_At]:
    state, found = start, []
    for x in inputs:
        found.append(_At(state, advance_unit(weights, name, x, state)))
        state = found[-1].unit.state
    return found


def _joined(ways: Sequence[Sequence[_At]]) -> LayerPass:
    """Returns the rows of all directions side by side."""

    def rows(states: Sequence[Sequence[ndarray]]) -> Tensor:
        return torch.from_numpy(np.concatenate([np.stack(way) for way in states], axis=-1))

    before = [rows([[at.before[i] for at in way] for way in ways]) for i in range(len(ways[0][0].before))]
    after = [rows([[at.unit.state[i] for at in way] for way in ways]) for i in range(len(before))]
    gates = {name: rows([[at.unit.gates[name] for at in way] for way in ways]) for name in ways[0][0].unit.gates}
    cells_before, cells = (before[1], after[1]) if len(before) > 1 else (None, None)
    return LayerPass(gates, before[0], after[0], cells_before, cells)
