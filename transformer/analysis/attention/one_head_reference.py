"""The attention of recurrent and convolutional models computed again in NumPy, in double precision: each block has one
head, and asks the source. From recorded queries and keys, and from the token ids alone.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray

from transformer.analysis.attention import convolutional_reference, recurrent_reference
from transformer.analysis.attention.score_reference import one_head_scores, softmax_over
from transformer.decoding.greedy import Constraints, Step, greedy
from transformer.interventions import Intervention, compile_interventions
from transformer.model.convolutional import ConvolutionalModel
from transformer.model.kinds import AttentionKind
from transformer.model.recurrent import RecurrentModel
from transformer.model.seq2seq import attention_layers
from transformer.model.taps import Address, Recording

OneHeadModel = RecurrentModel | ConvolutionalModel
"""A model whose blocks of attention have one head each."""


def pass_from_ids(
    model: OneHeadModel, source: Sequence[int], read: Sequence[int]
) -> tuple[Float[ndarray, "layer 1 query key"], Float[ndarray, "query vocab"]]:
    """Returns the weights and logits of the whole model, from the ids of the source and of what the decoder reads.

    Without switches. The weights of a model without attention are empty.
    """
    if isinstance(model, RecurrentModel):
        return recurrent_reference.pass_from_ids(model, source, read)
    return convolutional_reference.pass_from_ids(model, source, read)


def one_head_attention(
    model: OneHeadModel, source: Sequence[int], switches: Sequence[Intervention], forced: Mapping[int, int]
) -> tuple[Float[ndarray, "layer 1 query key"], Bool[ndarray, "layer query key"], float]:
    """Returns the weights of queries and keys recorded in a decoding of their own, the masks by their rule, and the
    size of the largest score."""
    steps = _recorded(model, source, switches, forced, ("q", "k"))
    found = [_layer(model, address, source, switches, steps) for address in _blocks(model)]
    weights, masks, sizes = zip(*found, strict=True) if found else ((), (), ())
    return np.array(weights)[:, None], np.array(masks), max(sizes, default=0.0)


def one_head_reached(
    model: OneHeadModel, source: Sequence[int], switches: Sequence[Intervention], forced: Mapping[int, int]
) -> Bool[ndarray, "layer 1 query"]:
    """Tells of each step whether the recorded weights, times the recorded values and the factor that switches ask for,
    are what attention passed on."""
    steps, found = _recorded(model, source, switches, forced, ("weights", "v", "output")), []
    for address in _blocks(model):
        factor = np.prod([spec.head_factors.get(0, 1.0) for spec in switches if spec.address == address])
        rows = []
        for step in steps:
            weights, v = (step[address.site(name)][0, 0].double().numpy() for name in ("weights", "v"))
            passed_on = step[address.site("output")][0, -1].double().numpy()
            context = factor * (weights[-1] @ v)
            rows.append(bool(np.abs(context - passed_on).max() <= 1e-5 * (1 + np.abs(context).max())))
        found.append(rows)
    return np.array(found)[:, None]


def _layer(
    model: OneHeadModel,
    address: Address,
    source: Sequence[int],
    switches: Sequence[Intervention],
    steps: Sequence[Recording],
) -> tuple[Float[ndarray, "query key"], Bool[ndarray, "query key"], float]:
    here = [spec for spec in switches if spec.address == address]
    padding = all("cross" not in spec.lifts for spec in switches)
    rows, masks, sizes = [], [], [0.0]
    for query, step in enumerate(steps):
        q, k = (step[address.site(name)][0, 0].double().numpy() for name in ("q", "k"))
        closed = {key for spec in here for row, key in spec.forbidden if row == query}
        allowed = np.array([not (padding and token == model.config.pad_id) for token in source])
        allowed[[key for key in closed if key < len(source)]] = False
        set_to = [row for spec in here for row in spec.overwritten if row.query == query]
        is_even = any(row.is_even for row in set_to)
        scores = np.zeros(len(source)) if is_even else one_head_scores(model, q[-1], k)
        weights = softmax_over(scores, allowed)
        sizes.append(float(np.abs(scores[allowed]).max(initial=0.0)))
        for row in set_to:
            if not row.is_even and len(row.weights) <= len(source):
                weights = np.pad(row.weights, (0, len(source) - len(row.weights)))
        rows.append(weights)
        masks.append(allowed)
    return np.array(rows), np.array(masks), max(sizes)


def _blocks(model: OneHeadModel) -> list[Address]:
    return [Address("decoder", layer, "cross") for layer in range(attention_layers(model).get(AttentionKind.CROSS, 0))]


def _recorded(
    model: OneHeadModel,
    source: Sequence[int],
    switches: Sequence[Intervention],
    forced: Mapping[int, int],
    tensors: Sequence[str],
) -> list[Recording]:
    """The steps of a decoding of their own, each with these tensors of every block."""
    wanted = {address.site(name) for address in _blocks(model) for name in tensors}
    steps = greedy(
        model,
        torch.tensor([list(source)]),
        max_length=model.config.max_length,
        constraints=Constraints(forced=forced),
        tap=compile_interventions(switches, model),
        record=wanted.__contains__,
    )
    return [_recording(step) for step in steps]


def _recording(step: Step) -> Recording:
    assert step.recording is not None, "its sites were asked for"
    return step.recording
