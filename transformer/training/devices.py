"""Device and precision of a run: `auto` made concrete, and random generators that belong to one run."""

import contextlib
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from threading import RLock

import torch
from torch import Tensor

from transformer.config import Precision

FASTER_BY = 1.15
"""bfloat16 is taken where it is at least this many times as fast: less is noise in so short a trial."""
_SEEDING = RLock()


def resolve_device(name: str) -> torch.device:
    """The device of this name; `auto` is the best one present (CUDA, then MPS, then CPU); ValueError if absent."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"device ({name!r}) must be auto, cpu, cuda, cuda:N or mps") from None
    present = {
        "cpu": True,
        "cuda": torch.cuda.is_available() and (device.index or 0) < torch.cuda.device_count(),
        "mps": torch.backends.mps.is_available(),
    }
    if not present.get(device.type, False):
        raise ValueError(f"device {name!r} is not present on this machine; auto takes the best one that is")
    return device


def devices_present() -> tuple[str, ...]:
    """The names that `resolve_device` takes on this machine: auto first, then each device there is."""
    cuda = [f"cuda:{index}" for index in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    return ("auto", "cpu", *cuda, *(["mps"] if torch.backends.mps.is_available() else []))


def autocast(device: torch.device, precision: Precision) -> AbstractContextManager[object]:
    """The context in which a forward pass computes in this precision; weights stay float32."""
    if precision == "bfloat16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return contextlib.nullcontext()


def avoid_faulty_kernels(device: torch.device) -> None:
    """Keeps cuDNN's attention out of this process where it trains on CUDA.

    Under a mask, its backward pass can give gradients that are NaN (torch 2.11 to 2.13 on an H100 or H200:
    github.com/pytorch/pytorch/issues/196678); the other kernels give finite ones for the same inputs.
    """
    if device.type == "cuda":
        torch.backends.cuda.enable_cudnn_sdp(False)


def supports_bfloat16(device: torch.device) -> bool:
    """Tells whether bfloat16 autocast is worth a trial here; on a CPU without bfloat16 arithmetic it is only slower."""
    match device.type:
        case "cuda":
            return torch.cuda.is_bf16_supported(including_emulation=False)
        case "cpu":
            present = torch.cpu.get_capabilities()
            return any(present.get(name, False) for name in ("avx512_bf16", "amx_bf16", "arm_bf16"))
    return False


def faster_precision(
    device: torch.device,
    work: Callable[[Precision], None],
    *,
    trials: int = 2,
) -> Precision:
    """bfloat16 where `work` measures at least FASTER_BY times as fast in it, else float32. A first call warms up.

    On a CPU processor time is measured: other work on the machine then does not decide.
    """
    if not supports_bfloat16(device):
        return "float32"
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    best = {}
    for precision in ("float32", "bfloat16"):
        times = []
        for _ in range(trials + 1):
            start = clock()
            work(precision)
            synchronize(device)
            times.append(clock() - start)
        best[precision] = min(times[1:])
    return "bfloat16" if best["bfloat16"] * FASTER_BY < best["float32"] else "float32"


def synchronize(device: torch.device) -> None:
    """Waits until the device has done what was asked of it."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def generator_states(device: torch.device) -> dict[str, Tensor]:
    """The states of torch's generators that a pass on this device draws from: bytes, by `cpu` and the device's type."""
    states = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    elif device.type == "mps":
        states["mps"] = torch.mps.get_rng_state()
    return states


def set_generator_states(states: dict[str, Tensor], device: torch.device) -> None:
    """Puts torch's generators into these states."""
    torch.set_rng_state(states["cpu"])
    if "cuda" in states and device.type == "cuda":
        torch.cuda.set_rng_state(states["cuda"], device)
    elif "mps" in states and device.type == "mps":
        torch.mps.set_rng_state(states["mps"])


@contextlib.contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """A block whose random numbers follow from the seed alone; the generators are afterwards as they were.

    One thread at a time: they share their generators.
    """
    with _SEEDING:
        before = generator_states(device)
        torch.manual_seed(seed)
        try:
            yield
        finally:
            set_generator_states(before, device)
