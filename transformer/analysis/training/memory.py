"""The memory that training takes beside the program itself: weights, gradients, the optimiser's means, activations."""

from dataclasses import dataclass

import torch

from transformer.config import AnyModelConfig, OptimizerKind
from transformer.model.families import build_model, count_hidden, count_parameters

BYTES = 4
"""The size of a float32 number: weights, gradients and the optimiser's means are kept in it, whatever the precision."""
SMALL = 4_000_000
"""The most parameters of a model that is built to count what a pass keeps.

The meta device takes no room, but a second when it is first used, as it imports hundreds of modules.
"""
MAX_LOGITS = 2**21
"""The most logits held at a time (loss.py makes those of a large batch piece by piece)."""


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Bytes that training takes beside the program itself."""

    weights: int
    gradients: int
    optimizer: int
    """Running means of the gradient and of its square; Muon keeps the first alone for the matrices that it steps."""
    activations: int
    """The tensors that the forward pass keeps for the backward pass of a full batch in float32, and the logits."""

    @property
    def total(self) -> int:
        """The sum of all parts."""
        return self.weights + self.gradients + self.optimizer + self.activations


def memory_of(model: AnyModelConfig, batch_tokens: int, width: int, optimizer: OptimizerKind = "adamw") -> Memory:
    """Returns the memory for batches of `batch_tokens` tokens, of pairs whose longer side usually has `width`."""
    n, rows = count_parameters(model), max(1, batch_tokens // width)
    few, more = kept_bytes(model, 1, width), kept_bytes(model, 2, width)  # each further row adds as much
    logits = min(rows * width * model.vocab_size, MAX_LOGITS)
    return Memory(
        weights=BYTES * n,
        gradients=BYTES * n,
        optimizer=BYTES * (2 * n - count_hidden(model) * (optimizer == "muon")),
        activations=few + (more - few) * (rows - 1) + 3 * BYTES * logits,  # they, their softmax, their gradient
    )


def kept_bytes(config: AnyModelConfig, rows: int, width: int) -> int:
    """Counts the bytes of all tensors that autograd keeps of a forward pass, each storage once, without parameters.

    A pass is made for it; for a large model one without numbers.
    """
    with torch.device("cpu" if count_parameters(config) <= SMALL else "meta"):
        model = build_model(config).train()
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
