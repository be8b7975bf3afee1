"""The costs of a plan before it is started: parameters, memory and steps an epoch, counted; time, measured."""

from dataclasses import dataclass, replace

import psutil
import torch

from pages.shared.cache import cached
from pages.train import measuring
from pages.train.previews import longer_sides, steps_an_epoch, text_of
from pages.training import durations
from pages.training.plans import Plan
from pages.training.run_status import runs_here
from transformer.access.people import for_the_operator
from transformer.analysis.training.memory import Memory, memory_of
from transformer.config import AnyModelConfig, TrainConfig
from transformer.model.families import count_parameters
from transformer.runs.benchmark import Benchmark
from transformer.training.devices import resolve_device


@dataclass(frozen=True, kw_only=True)
class Costs:
    """The costs of a plan."""

    model: AnyModelConfig
    """The model's settings, with its vocabulary."""
    parameters: int
    memory: Memory
    width: int
    """The number of tokens of a usual pair's longer side."""
    free: int
    """The bytes of memory that are free on the device now."""
    steps_an_epoch: float
    work: measuring.Work
    alone: measuring.Work
    """The same work once no run is beside it."""
    beside: tuple[str, ...]
    """The runs that are at work here now."""

    @property
    def fits(self) -> bool:
        """True if the memory suffices."""
        return self.memory.total < self.free

    @property
    def is_light(self) -> bool:
        """True if a few steps may be measured unasked: little memory, and no run at work."""
        alone = measuring.is_unasked() and not self.beside
        return alone and self.memory.total < min(self.free // 4, 2**30) and self.parameters < 20_000_000


def costs_of(plan: Plan, pinned: tuple[str, ...], beside: tuple[str, ...]) -> Costs:
    """Returns the costs of a plan without fault, where the runs `beside` are at work."""
    model, train, corpus = plan.configs()
    text = text_of(plan)
    model = replace(model, vocab_size=text.tokenizer.vocab_size)
    sides = longer_sides(plan)
    width = int(sides[sides <= model.max_length].mean())
    return Costs(
        model=model,
        parameters=count_parameters(model),
        memory=_memory(model, train.batch_tokens, width, train.optimizer),
        width=width,
        free=_free(train.device),
        steps_an_epoch=steps_an_epoch(plan),
        work=measuring.work_of(model, train, corpus, pinned, alone=not beside),
        alone=measuring.work_of(model, train, corpus, pinned, alone=True),
        beside=beside,
    )


def at_work() -> tuple[str, ...]:
    """Returns the runs that a trainer is at work on; of other visitors' runs it is only told that they are there."""
    own = {run.id for run in runs_here()}
    everybodys = for_the_operator(runs_here)()
    return tuple(run.id if run.id in own else "another visitor's run" for run in everybodys if run.status.active)


def measured(costs: Costs) -> Benchmark | str | None:
    """Returns the measurement for these costs, or why it failed; None where there is none yet."""
    return measuring.find(costs.work)


def measured_alone(costs: Costs) -> Benchmark | None:
    """Returns the measurement that holds once the runs beside have ended; None where there is none."""
    found = measuring.find(costs.alone)
    return found if isinstance(found, Benchmark) else None


def estimate(costs: Costs, train: TrainConfig) -> durations.Estimate | None:
    """Returns the time that training will take; None where it was not measured."""
    found = measured(costs)
    return durations.estimate_of(found, train) if isinstance(found, Benchmark) else None


def size(n_bytes: float) -> str:
    """Returns bytes in words: "12 MB", "1.3 GB"."""
    for unit, power in (("GB", 1e9), ("MB", 1e6)):
        if n_bytes >= power:
            return f"{n_bytes / power:.2g} {unit}" if n_bytes < 100 * power else f"{n_bytes / power:,.0f} {unit}"
    return f"{n_bytes / 1e3:,.0f} kB"


_memory = cached(max_entries=256)(memory_of)


def _free(device: str) -> int:
    found = resolve_device(device)
    return torch.cuda.mem_get_info(found)[0] if found.type == "cuda" else psutil.virtual_memory().available
