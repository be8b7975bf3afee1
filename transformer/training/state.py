"""Everything that a training run is at one moment, and its exact way into tensors and JSON and back.

A run that goes on from here gives the same losses, bit for bit, as one that never stopped (on the same device, at the
same thread count). Here: weights, optimiser, generators, data position, counters. Not here: files (run_folder.py).
"""

import math
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from transformer.config import AnyModelConfig, TrainConfig
from transformer.data.batches import Position
from transformer.model.families import AnyModel, build_model
from transformer.training.devices import generator_states, seeded, set_generator_states
from transformer.training.optimizer import build_optimizer, optimizer_tensors, restore_optimizer

Weights = dict[str, Tensor]
"""Parameters by name, shared ones once, on the CPU."""
MAX_WEIGHT = 1e9
"""The largest size of a weight: the output bias of imported models rules a token out by -1e9; most are near 1."""
_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@dataclass
class TrainState:
    """A model in training. Only `train_steps` changes it."""

    model: AnyModel
    optimizer: torch.optim.AdamW
    device: torch.device
    generators: dict[str, Tensor]
    """States of torch's random generators that belong to this run (dropout)."""
    position: Position
    """The place of the next batch in the data."""
    step: int = 0
    """Optimiser steps taken."""
    elapsed_s: float = 0.0
    """Seconds of training, evaluations included, pauses not."""
    evaluated_step: int = 0
    """The step of the last evaluation; 0 before the first."""
    last_exact_match: float = 0.0
    best_loss: float | None = None
    """Lowest validation loss up to now."""
    evaluations_without_gain: int = 0
    best: Weights = field(default_factory=dict)
    """The weights of `best_loss`, kept only where the run may end past its best (`patience`)."""
    recent: deque[Weights] = field(default_factory=deque)
    """The weights of the last evaluations, kept only for averaging."""

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor of the state by a name that says what it is, on the CPU."""
        named = {f"weights.{name}": value for name, value in weights_of(self.model).items()}
        named |= optimizer_tensors(self.optimizer, self.model)
        named |= {f"generator.{kind}": value for kind, value in self.generators.items()}
        named |= {f"best.{name}": value for name, value in self.best.items()}
        for age, weights in enumerate(self.recent):
            named |= {f"recent.{age}.{name}": value for name, value in weights.items()}
        return {name: value.detach().cpu().contiguous() for name, value in named.items()}

    def facts(self) -> dict[str, Any]:
        """Everything else of the state, fit for JSON."""
        return {name: getattr(self, name) for name in _COUNTERS} | {"position": asdict(self.position)}

    @contextmanager
    def own_generators(self) -> Iterator[None]:
        """A block that draws from this run's generators; whoever else draws in this process is not disturbed."""
        before = generator_states(self.device)
        set_generator_states(self.generators, self.device)
        try:
            yield
        finally:
            self.generators = generator_states(self.device)
            set_generator_states(before, self.device)


_COUNTERS = ("step", "elapsed_s", "evaluated_step", "last_exact_match", "best_loss", "evaluations_without_gain")


def new_state(
    model_config: AnyModelConfig, config: TrainConfig, device: torch.device, weights: Weights | None = None
) -> TrainState:
    """A run before its first step; weights (unless given), dropout and data order follow from `config.seed`.

    Weights are drawn on the CPU, so that a seed gives the same ones on every device. ValueError for given ones that do
    not fit or are none.
    """
    with seeded(config.seed, device):
        model = build_model(model_config).to(device)
        generators = generator_states(device)
    if weights is not None:
        check_values(weights)
        load_weights(model, weights)
    return TrainState(model, build_optimizer(model, config), device, generators, Position())


def restored_state(
    model_config: AnyModelConfig,
    config: TrainConfig,
    device: torch.device,
    tensors: Mapping[str, Tensor],
    facts: Mapping[str, Any],
) -> TrainState:
    """The state that gave these `tensors()` and `facts()`; KeyError or ValueError where they do not fit the configs."""
    state = new_state(model_config, config, device)
    load_weights(state.model, _under("weights.", tensors))
    restore_optimizer(state.optimizer, state.model, tensors)
    state.generators = {kind: value.clone() for kind, value in _under("generator.", tensors).items()}
    state.position = Position(**facts["position"])
    for name in _COUNTERS:
        setattr(state, name, facts[name])
    state.best = _under("best.", tensors)
    ages = sorted({int(name.split(".")[1]) for name in tensors if name.startswith("recent.")})
    state.recent = deque(_under(f"recent.{age}.", tensors) for age in ages)
    return state


def weights_of(model: nn.Module) -> Weights:
    """A copy of the model's parameters on the CPU, shared ones once, under the name they have first."""
    return {name: value.detach().to("cpu", copy=True) for name, value in model.named_parameters()}


def check_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """ValueError naming what the weights lack, what they hold beyond the model, or what has another shape."""
    parameters = dict(model.named_parameters())
    if missing := sorted(parameters.keys() - weights.keys()):
        raise ValueError(f"the weights lack {_listed(missing)}")
    if extra := sorted(weights.keys() - parameters.keys()):
        raise ValueError(f"the weights hold {_listed(extra)}, which this model does not have")
    for name, parameter in parameters.items():
        held, wanted = tuple(weights[name].shape), tuple(parameter.shape)
        if held != wanted:
            raise ValueError(f"{name} has shape {held} in the weights and {wanted} in the model")


def check_values(weights: Mapping[str, Tensor]) -> None:
    """ValueError naming weights of a type that no weights have, or a value that no training reaches."""
    for name, value in weights.items():
        if value.dtype not in _FLOATS:
            kinds = ", ".join(map(_type_name, _FLOATS))
            raise ValueError(f"{name} holds values of type {_type_name(value.dtype)}; weights have one of: {kinds}")
        if not value.numel():
            continue
        least, most = (float(end) for end in value.aminmax())
        if not math.isfinite(least) or not math.isfinite(most):
            raise ValueError(f"{name} holds values that are not finite numbers")
        if (largest := max(-least, most)) > MAX_WEIGHT:
            raise ValueError(f"{name} holds a value of size {largest:.3g}; weights are at most {MAX_WEIGHT:.3g} large")


def load_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Copies weights into the model; ValueError as `check_weights`."""
    check_weights(model, weights)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])


def mean_weights(several: deque[Weights]) -> Weights:
    """The mean of each weight (section 6.1: the last checkpoints averaged)."""
    return {name: torch.stack([weights[name] for weights in several]).mean(dim=0) for name in several[0]}


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> Weights:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _type_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
