"""Processes that train one model together: one under plain Python, several under torchrun (DistributedDataParallel).

Each process holds the whole model and reads the same batches in the same order; of each step's micro-batches it works
on every `size`-th, and gradients are summed before the optimiser moves. Process 0 leads: it alone evaluates, writes
files and decides when to end, and the others hear of it before every step.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel


@dataclass(frozen=True)
class Team:
    """This process among those that train together."""

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """True for the process that decides and writes."""
        return self.rank == 0

    def shared(self, module: nn.Module) -> nn.Module:
        """The module with gradients averaged over all processes; itself where there is one."""
        return module if self.size == 1 else DistributedDataParallel(module, forward_sync_buffers=False)

    def total(self, tensor: Tensor) -> Tensor:
        """The sum of this tensor over all processes."""
        if self.size > 1:
            dist.all_reduce(tensor)
        return tensor

    def told(self, number: int) -> int:
        """The leader's number, in every process; the others' own numbers are not heard."""
        if self.size == 1:
            return number
        word = torch.tensor(number)
        dist.broadcast(word, 0)
        return int(word)

    def told_text(self, text: str) -> str:
        """The leader's text, in every process."""
        if self.size == 1:
            return text
        words = [text]
        dist.broadcast_object_list(words, 0, device=torch.device("cpu"))
        return words[0]

    def device(self, name: str) -> str:
        """Returns the device of this process if rank 0 uses `name`: with several GPUs, its own."""
        if self.size == 1 or not name.startswith("cuda"):
            return name
        return f"cuda:{os.environ['LOCAL_RANK']}"


ALONE = Team()


def is_one_of_several() -> bool:
    """Tells whether torchrun started this process as one of a group."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


@contextmanager
def assembled() -> Iterator[Team]:
    """A block in which this process belongs to the group that torchrun made, or stands alone outside one.

    Gradients travel by NCCL between GPUs and by gloo between CPUs.
    """
    if not is_one_of_several():
        yield ALONE
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield Team(dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()
