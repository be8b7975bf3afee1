"""A recurrent model's attention computed again in NumPy: from recorded queries and keys, and from the token ids alone.

Gate by gate and token by token, in double precision; nothing here is shared with `model/recurrent.py`.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray

from transformer.decoding.greedy import Constraints, greedy
from transformer.interventions import Intervention, compile_interventions
from transformer.model.recurrent import CROSS, RecurrentModel

State = tuple[ndarray, ...]
Weights = Mapping[str, ndarray]


def recurrent_attention(
    model: RecurrentModel, source: Sequence[int], switches: Sequence[Intervention], forced: Mapping[int, int]
) -> tuple[Float[ndarray, "1 1 query key"], Bool[ndarray, "1 query key"]]:
    """Returns the weights of queries and keys recorded in a decoding of their own, and the mask by its rule."""
    tap, config = compile_interventions(switches, model), model.config
    wanted = {CROSS.site("q"), CROSS.site("k")}
    rules = Constraints(forced=forced)
    ids = torch.tensor([list(source)])
    steps = greedy(model, ids, max_length=config.max_length, constraints=rules, tap=tap, record=wanted.__contains__)
    v = None if config.attention != "additive" else _parameters(model)["attention.score.v"][0]
    here = [spec for spec in switches if spec.address == CROSS]
    padding = all("cross" not in spec.lifts for spec in switches)
    rows, masks = [], []
    for query, step in enumerate(steps):
        assert step.recording is not None, "both sites were asked for"
        q, k = (step.recording[site][0, 0].double().numpy() for site in (CROSS.site("q"), CROSS.site("k")))
        closed = {key for spec in here for row, key in spec.forbidden if row == query}
        allowed = np.array([not (padding and token == config.pad_id) for token in source])
        allowed[[key for key in closed if key < len(source)]] = False
        set_to = [row for spec in here for row in spec.overwritten if row.query == query]
        scores = np.zeros(len(source)) if any(row.is_even for row in set_to) else _scores(q[-1], k, v)
        weights = _softmax(scores, allowed)
        for row in set_to:
            if not row.is_even and len(row.weights) <= len(source):
                weights = np.pad(row.weights, (0, len(source) - len(row.weights)))
        rows.append(weights)
        masks.append(allowed)
    return np.array(rows)[None, None], np.array(masks)[None]


def recurrent_reached(
    model: RecurrentModel, source: Sequence[int], switches: Sequence[Intervention], forced: Mapping[int, int]
) -> Bool[ndarray, "1 1 query"]:
    """Tells of each step whether the recorded weights, times the encoder's states and the factor that switches ask for,
    are what attention passed on."""
    factor = np.prod([spec.head_factors.get(0, 1.0) for spec in switches if spec.address == CROSS])
    wanted = {CROSS.site(name) for name in ("weights", "v", "output")}
    steps = greedy(
        model,
        torch.tensor([list(source)]),
        max_length=model.config.max_length,
        constraints=Constraints(forced=forced),
        tap=compile_interventions(switches, model),
        record=wanted.__contains__,
    )
    found = []
    for step in steps:
        assert step.recording is not None, "its sites were asked for"
        weights, v = (step.recording[CROSS.site(name)][0, 0].double().numpy() for name in ("weights", "v"))
        passed_on = step.recording[CROSS.site("output")][0, -1].double().numpy()
        context = factor * (weights[-1] @ v)
        found.append(bool(np.abs(context - passed_on).max() <= 1e-5 * (1 + np.abs(context).max())))
    return np.array(found)[None, None]


def pass_from_ids(
    model: RecurrentModel, source: Sequence[int], read: Sequence[int]
) -> tuple[Float[ndarray, "1 1 query key"], Float[ndarray, "query vocab"]]:
    """Returns the weights and logits of the whole model, from the ids of the source and of what the decoder reads.

    Without switches. The weights of a model without attention are empty.
    """
    c, w = model.config, _parameters(model)
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
            layers[layer] = _cell(w, f"decoder.{layer}.forwards", entering, layers[layer])
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
        state = _cell(w, name, x, state)
        found.append(state[0])
    return found


def _cell(w: Weights, name: str, x: ndarray, state: State) -> State:
    """One step of an LSTM (input, forget, cell and output gate) or of a GRU (reset, update and new gate)."""
    entering = w[f"{name}.weight_ih_l0"] @ x + w[f"{name}.bias_ih_l0"]
    carried = w[f"{name}.weight_hh_l0"] @ state[0] + w[f"{name}.bias_hh_l0"]
    if len(state) == 2:
        i, f, g, o = np.split(entering + carried, 4)
        kept = _sigmoid(f) * state[1] + _sigmoid(i) * np.tanh(g)
        return _sigmoid(o) * np.tanh(kept), kept
    (r, z, n), (hr, hz, hn) = np.split(entering, 3), np.split(carried, 3)
    update = _sigmoid(z + hz)
    return ((1 - update) * np.tanh(n + _sigmoid(r + hr) * hn) + update * state[0],)


def _gathered(w: Weights, kind: str, state: ndarray, states: Sequence[ndarray]) -> tuple[ndarray, ndarray]:
    """The weights over the encoder's states, and their mean under these."""
    keys = np.array(states)
    q = state if kind == "dot" else w["attention.query.weight"] @ state
    v = None
    if kind == "additive":
        q, v = q + w["attention.query.bias"], w["attention.score.v"][0]
    asked = keys if v is None else keys @ w["attention.key.weight"].T
    weights = _softmax(_scores(q, asked, v), np.ones(len(keys)) > 0)
    return weights, weights @ keys


def _scores(q: ndarray, keys: ndarray, v: ndarray | None) -> ndarray:
    """q · k for each key, or with a vector v: v · tanh(q + k)."""
    return np.array([q @ k if v is None else v @ np.tanh(q + k) for k in keys])


def _softmax(scores: ndarray, allowed: ndarray) -> ndarray:
    found = np.zeros(len(scores))
    if allowed.any():
        powers = np.exp(scores[allowed] - scores[allowed].max())
        found[allowed] = powers / powers.sum()
    return found


def _sigmoid(x: ndarray) -> ndarray:
    return 1 / (1 + np.exp(-x))


def _parameters(model: RecurrentModel) -> Weights:
    return {name: parameter.detach().double().numpy() for name, parameter in model.named_parameters()}
