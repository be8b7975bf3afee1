"""What a plan will take before it is started: parameters, memory and steps an epoch, counted; time, measured."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import psutil
import streamlit as st
import torch

from pages.train import measuring
from pages.train.previews import longer_sides, steps_an_epoch, text_of
from pages.training import durations
from pages.training.plans import Plan
from transformer.config import ModelConfig, TrainConfig
from transformer.model.transformer import Transformer, parameter_count
from transformer.runs.benchmark import Benchmark
from transformer.runs.run_folder import Run
from transformer.training.devices import resolve_device

BYTES = 4
"""Of a float32 number: what weights, gradients and Adam's two means are kept in, whatever the precision."""
SMALL = 4_000_000
"""Most parameters of a model that is built to count what a pass keeps. The meta device takes no room, and a second when
it is first used, as it imports hundreds of modules."""
LOGITS_HELD = 2**21
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


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What is known of a plan before it is started."""

    parameters: int
    memory: Memory
    free: int
    """Bytes of memory that are free on the device now."""
    steps_an_epoch: float
    work: measuring.Work
    beside: tuple[str, ...]
    """Runs that are at work here now."""

    @property
    def fits(self) -> bool:
        """Whether the memory is there."""
        return self.memory.total < self.free

    @property
    def is_light(self) -> bool:
        """Whether a few steps may be measured unasked: little memory, and nobody else at work."""
        alone = measuring.is_unasked() and not self.beside
        return alone and self.memory.total < min(self.free // 4, 2**30) and self.parameters < 20_000_000


def costs_of(plan: Plan, pinned: tuple[str, ...], beside: tuple[str, ...]) -> Costs:
    """The costs of a plan without fault, where the runs `beside` are at work."""
    model, train, corpus = plan.configs()
    text = text_of(plan)
    model = replace(model, vocab_size=text.tokenizer.vocab_size)
    sides = longer_sides(plan)
    width = int(sides[sides <= model.max_length].mean())
    return Costs(
        parameters=parameter_count(model),
        memory=_memory(model, train.batch_tokens, width),
        free=_free(train.device),
        steps_an_epoch=steps_an_epoch(plan),
        work=measuring.work_of(model, train, corpus, pinned, alone=not beside),
        beside=beside,
    )


def at_work(found: Sequence[Run]) -> tuple[str, ...]:
    """Those of some runs that a trainer is at work on."""
    return tuple(run.id for run in found if run.status.active)


def measured(costs: Costs) -> Benchmark | str | None:
    """What was measured for these costs, or why nothing could be; None where nothing was yet."""
    return measuring.measurements().find(costs.work)


def estimate(costs: Costs, train: TrainConfig) -> durations.Estimate | None:
    """The time that training will take; None where it was not measured."""
    found = measured(costs)
    return durations.estimate_of(found, train) if isinstance(found, Benchmark) else None


def size(n_bytes: float) -> str:
    """Bytes as said in a sentence: "12 MB", "1.3 GB"."""
    for unit, power in (("GB", 1e9), ("MB", 1e6)):
        if n_bytes >= power:
            return f"{n_bytes / power:.2g} {unit}" if n_bytes < 100 * power else f"{n_bytes / power:,.0f} {unit}"
    return f"{n_bytes / 1e3:,.0f} kB"


@st.cache_data(max_entries=256, show_spinner=False)
def _memory(model: ModelConfig, batch_tokens: int, width: int) -> Memory:
    """`width`: tokens of a usual pair's longer side."""
    n, rows = parameter_count(model), max(1, batch_tokens // width)
    few, more = _kept(model, 1, width), _kept(model, 2, width)  # each further row of this width adds as much
    logits = min(rows * width * model.vocab_size, LOGITS_HELD)
    return Memory(
        weights=BYTES * n,
        gradients=BYTES * n,
        optimizer=2 * BYTES * n,
        activations=few + (more - few) * (rows - 1) + 3 * BYTES * logits,  # they, their softmax, their gradient
    )


def _kept(config: ModelConfig, rows: int, width: int) -> int:
    """Bytes of all tensors that autograd keeps of a forward pass, each storage once, parameters not: counted on a pass,
    of a large model on one without numbers."""
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


def _free(device: str) -> int:
    found = resolve_device(device)
    return torch.cuda.mem_get_info(found)[0] if found.type == "cuda" else psutil.virtual_memory().available
