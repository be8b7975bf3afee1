"""The pass of a recurrent model computed again in NumPy, from the token ids alone.

Gate by gate and token by token, in double precision; nothing here is shared with `model/recurrent.py`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from transformer.analysis.attention.score_reference import softmax_over
from transformer.model.recurrent import RecurrentModel

State = tuple[ndarray, ...]
Weights = Mapping[str, ndarray]


def pass_from_ids(
    model: RecurrentModel, source: Sequence[int], read: Sequence[int]
) -> tuple[Float[ndarray, "1 1 query key"], Float[ndarray, "query vocab"]]:
    """Returns the weights and logits of the whole model, from the ids of the source and of what the decoder reads.

    Without switches. The weights of a model without attention are empty.
    """
    c, w = model.config, parameters_of(model)
    scale = np.sqrt(c.d_model)
    target_vectors = w["source_tokens.weight" if c.tie_embeddings else "target_tokens.weight"]
    output = target_vectors if c.tie_output else w["projection.weight"]
    states = [w["source_tokens.weight"][token] * scale for token in source]
    for layer in range(c.n_encoder_layers):
        forwards = _run(w, f"encoder.{layer}.forwards", states)
        backwards = _run(w, f"encoder.{layer}.backwards", states[::-1])[::-1] if c.bidirectional else None
        states = forwards
        if backwards is not None:
            states = [np.concatenate(both) for both in zip(forwards, backwards, strict=True)]
    half = c.d_model // 2
    vector = np.concatenate((states[-1][:half], states[0][half:])) if c.bidirectional else states[-1]
    parts = 2 if c.cell == "lstm" else 1
    first = (w["start.weight"] @ vector + w["start.bias"]).reshape(c.n_decoder_layers, parts, c.d_model)
    layers: list[State] = [(np.tanh(one[0]), *one[1:]) for one in first]
    fed, rows, logits = np.zeros(c.d_model), [], []
    for token in read:
        x = target_vectors[token] * scale
        gathered = None
        if c.attention == "additive":
            row, gathered = _gathered(w, c.attention, layers[-1][0], states)
            rows.append(row)
        entering = x if gathered is None else np.concatenate((x, gathered))
        if c.input_feeding:
            entering = np.concatenate((x, fed))
        for layer in range(c.n_decoder_layers):
            layers[layer] = advance_unit(w, f"decoder.{layer}.forwards", entering, layers[layer]).state
            entering = layers[layer][0]
        if gathered is not None:
            entering = np.tanh(w["combine.weight"] @ np.concatenate((entering, gathered, x)) + w["combine.bias"])
        elif c.attention != "none":
            row, context = _gathered(w, c.attention, entering, states)
            rows.append(row)
            entering = np.tanh(w["combine.weight"] @ np.concatenate((entering, context)) + w["combine.bias"])
        fed = entering
        logits.append(output @ entering)
    return np.array(rows)[None, None], np.array(logits)


def _run(w: Weights, name: str, inputs: Sequence[ndarray]) -> list[ndarray]:
    """The hidden states of one direction of one encoder layer."""
    width = w[f"{name}.weight_hh_l0"].shape[1]
    n_parts = 2 if len(w[f"{name}.weight_hh_l0"]) == 4 * width else 1
    state: State = (np.zeros(width),) * n_parts
    found = []
    for x in inputs:
        state = advance_unit(w, name, x, state).state
        found.append(state[0])
    return found


class Unit(NamedTuple):
    """One step of an LSTM or GRU: its gates by name, and the state that it hands on."""

    gates: Mapping[str, ndarray]
    state: State


def advance_unit(w: Weights, name: str, x: ndarray, state: State) -> Unit:
    """Computes one step of the LSTM or GRU of this name, which the number of parts of its state tells apart."""
    entering = w[f"{name}.weight_ih_l0"] @ x + w[f"{name}.bias_ih_l0"]
    carried = w[f"{name}.weight_hh_l0"] @ state[0] + w[f"{name}.bias_hh_l0"]
    if len(state) == 2:
        i, f, g, o = np.split(entering + carried, 4)
        gates = {"input gate": _sigmoid(i), "forget gate": _sigmoid(f), "candidate": np.tanh(g)}
        gates["output gate"] = _sigmoid(o)
        kept = gates["forget gate"] * state[1] + gates["input gate"] * gates["candidate"]
        return Unit(gates, (gates["output gate"] * np.tanh(kept), kept))
    (r, z, n), (hr, hz, hn) = np.split(entering, 3), np.split(carried, 3)
    gates = {"reset gate": _sigmoid(r + hr), "update gate": _sigmoid(z + hz)}
    gates["candidate"] = np.tanh(n + gates["reset gate"] * hn)
    update = gates["update gate"]
    return Unit(gates, ((1 - update) * gates["candidate"] + update * state[0],))


def _gathered(w: Weights, kind: str, state: ndarray, states: Sequence[ndarray]) -> tuple[ndarray, ndarray]:
    """The weights over the encoder's states, and their mean under these."""
    keys = np.array(states)
    q = state if kind == "dot" else w["attention.query.weight"] @ state
    v = None
    if kind == "additive":
        q, v = q + w["attention.query.bias"], w["attention.score.v"][0]
    asked = keys if v is None else keys @ w["attention.key.weight"].T
    scores = np.array([q @ k if v is None else v @ np.tanh(q + k) for k in asked])
    weights = softmax_over(scores, np.ones(len(keys)) > 0)
    return weights, weights @ keys


def _sigmoid(x: ndarray) -> ndarray:
    return 1 / (1 + np.exp(-x))


def parameters_of(model: RecurrentModel) -> Weights:
    """Returns all parameters in double precision, by name."""
    return {name: parameter.detach().double().numpy() for name, parameter in model.named_parameters()}
