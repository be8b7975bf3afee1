"""The memory that training takes beside the program itself: weights, gradients, Adam's means, activations."""

from dataclasses import dataclass

import torch

from transformer.config import ModelConfig
from transformer.model.transformer import Transformer, parameter_count

BYTES = 4
"""Of a float32 number: weights, gradients and Adam's two means are kept in float32, whatever the precision."""
SMALL = 4_000_000
"""Most parameters of a model that is built to count what a pass keeps. The meta device takes no room, and a second when
it is first used, as it imports hundreds of modules."""
MAX_LOGITS = 2**21
"""Logits held at a time at most (loss.py makes those of a large batch piece by piece)."""


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Bytes that training takes beside the program itself."""

    weights: int
    gradients: int
    optimizer: int
    """Adam's running means of the gradient and of its square."""
    activations: int
    """What the forward pass keeps for the backward pass, for a full batch in float32, and the logits."""

    @property
    def total(self) -> int:
        """All of it."""
        return self.weights + self.gradients + self.optimizer + self.activations


def memory_of(model: ModelConfig, batch_tokens: int, width: int) -> Memory:
    """The memory for a batch of so many tokens, whose pairs' longer sides usually have `width`."""
    n, rows = parameter_count(model), max(1, batch_tokens // width)
    few, more = kept_bytes(model, 1, width), kept_bytes(model, 2, width)  # each further row adds as much
    logits = min(rows * width * model.vocab_size, MAX_LOGITS)
    return Memory(
        weights=BYTES * n,
        gradients=BYTES * n,
        optimizer=2 * BYTES * n,
        activations=few + (more - few) * (rows - 1) + 3 * BYTES * logits,  # they, their softmax, their gradient
    )


def kept_bytes(config: ModelConfig, rows: int, width: int) -> int:
    """Bytes of all tensors that autograd keeps of a forward pass, each storage once, without parameters.

    Counted on a pass; for a large model on one without numbers.
    """
    with torch.device("cpu" if parameter_count(config) <= SMALL else "meta"):
        model = Transformer(config).train()
        ids = torch.zeros(rows, width, dtype=torch.long)
        mask = torch.ones(rows, width, dtype=torch.bool)
    parameters = {parameter.untyped_storage()._cdata for parameter in model.parameters()}
    kept: dict[int, torch.UntypedStorage] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage()._cdata] = tensor.untyped_storage()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        states = model.decode(ids, model.encode(ids, mask), mask, mask)
    del states
    return sum(storage.nbytes() for place, storage in kept.items() if place not in parameters)
