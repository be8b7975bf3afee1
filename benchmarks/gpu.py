"""Measures training and decoding on a GPU, with the sizes of the paper's base model: `python benchmarks/gpu.py`.

Training: steps as `python -m transformer train` takes them, in bfloat16, eager and compiled, on batches of 25,000
source and 25,000 target tokens (sentences of like lengths, padding included, 37,000 tied vectors); rounds alternate
with torch.nn.Transformer of the same size, dropout, loss and optimiser. Tokens are real ones of source and target.
TFLOP/s are those of the matrix products of a step, attention's among them: 2 m n k for each product of m x k and k x n,
forward and backward, as torch's FlopCounterMode counts a step on the meta device. The peak is a 8192 x 8192 x 8192
product in bfloat16, measured in the same run. Then: where a step's time on the device goes.

Decoding: random weights in float32, no end before --length, against Marian's `generate` (transformers) of those sizes;
"plain" launches each kernel by itself, "ours" replays a captured step where the library does (captured_steps.py).
Without a CUDA device nothing is measured; --smoke tries everything on the CPU, in the smallest sizes.
"""

import argparse
import os
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")

import numpy as np
import torch
from arguments import read_options
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode
from torch_peer import TorchPeer

from transformer.config import PRESETS, ModelConfig, TrainConfig
from transformer.data.batches import Batch, Position, make_batch
from transformer.decoding.beam import beam_search
from transformer.decoding.greedy import Constraints, greedy
from transformer.model.transformer import Transformer
from transformer.training.devices import autocast, synchronize
from transformer.training.loss import Smoothing
from transformer.training.optimizer import build_adamw
from transformer.training.state import new_state
from transformer.training.step import Stepper

WIDTHS = (24, 32, 40, 64)
"""Tokens of the longest sentence of a batch."""
SETTINGS = tuple((batch, beam) for beam in (1, 4) for batch in (1, 32, 128))
SOURCE_TOKENS = 25
COLUMNS = ("plain ms", "ours ms", "ms a token", "tokens/s", "plain/ours", "Marian ms", "Marian/ours")
DATASHEET_TFLOPS = 989.0
"""The vendor's dense bfloat16 rate of an H100 or H200 (SXM)."""
KINDS = {
    "attention": r"fmha|flash|attention|attn",
    "matrix products": r"gemm|nvjet|cutlass|xmma|::mm$|::addmm|::bmm|::_?linear",
    "optimiser": r"adam|multi_tensor",
    "loss": r"softmax|nll|cross_entropy|scatter|gather",
    "norms": r"norm",
    "copies": r"memcpy|memset|copy|cat",
}
"""Kinds of work by the names of kernels (on a CPU: operators), the first that fits."""


def main(arguments: list[str]) -> None:
    """Prints tables of training and decoding, or a sentence where there is no CUDA device."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=["training", "decoding"], default=["training", "decoding"])
    parser.add_argument("--preset", choices=sorted(PRESETS), default="paper-base")
    parser.add_argument("--vocabulary", type=int, default=37_000)
    parser.add_argument("--batch-tokens", type=int, default=25_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=10, help="steps a round")
    parser.add_argument("--length", type=int, default=50, help="tokens that decoding writes")
    parser.add_argument("--product", type=int, default=8_192, help="side of the square matrices of the peak")
    parser.add_argument("--plain", action="store_true", help="capture no step of decoding")
    parser.add_argument("--eager-only", action="store_true", help="compile nothing")
    smoke = dict(
        preset="tiny", vocabulary=64, batch_tokens=64, rounds=1, steps=1, length=3, product=64, eager_only=True
    )
    options = read_options(parser, arguments, smoke=smoke)
    if not torch.cuda.is_available() and not options.smoke:
        print("There is no CUDA device on this machine, so nothing was measured; --smoke tries the steps on its CPU.")
        return
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    print(f"{name}, torch {torch.__version__}, model {options.preset}, vocabulary {options.vocabulary:,}", flush=True)
    config = replace(PRESETS[options.preset], vocab_size=options.vocabulary)
    if "training" in options.parts:
        train(config, device, options)
    if "decoding" in options.parts:
        decode(config, device, options)


def train(config: ModelConfig, device: torch.device, options: argparse.Namespace) -> None:
    """Prints a line for each way to train, and what a step consists of."""
    peak = peak_flops(device, options.product)
    print(
        f"peak: a product of side {options.product} in bfloat16 does {peak / 1e12:,.1f} TFLOP/s "
        f"(datasheet of an H100: {DATASHEET_TFLOPS:,.0f})",
        flush=True,
    )
    batches = made_batches(config, options.batch_tokens)
    tokens = [int(batch.source_mask.sum()) + batch.n_tokens for batch in batches]
    flops = counted_flops(config, batches)
    print(
        f"a step: {sum(tokens) / len(batches):,.0f} real tokens of {padded_size(batches):,.0f}, "
        f"{flops / len(batches) / 1e12:,.3f} TFLOP of matrix products, on average",
        flush=True,
    )
    print(f"{'bfloat16':28}{'tokens/s':>12}{'ms a step':>11}{'TFLOP/s':>9}{'of peak':>9}{'of 989':>8}{'ours/it':>9}")
    for is_compiled in (False,) if options.eager_only else (False, True):
        mode = "compiled" if is_compiled else "eager"
        contenders = {
            f"ours, {mode}": our_steps(config, device, batches, is_compiled),
            f"torch.nn.Transformer, {mode}": peer_steps(config, device, batches, is_compiled),
        }
        per_step = median_seconds(contenders, device, len(batches), options)
        ours = next(iter(per_step.values()))
        for name, seconds in per_step.items():
            rate = flops / len(batches) / seconds
            print(
                f"{name:28}{sum(tokens) / len(batches) / seconds:12,.0f}{1e3 * seconds:11.2f}{rate / 1e12:9.1f}"
                f"{rate / peak:9.1%}{rate / 1e12 / DATASHEET_TFLOPS:8.1%}{seconds / ours:9.2f}",
                flush=True,
            )
        explain(f"ours, {mode}", next(iter(contenders.values())), device, len(batches))


def peak_flops(device: torch.device, side: int) -> float:
    """Operations a second of a square product of random matrices, the median of several."""
    a, b = (torch.randn(side, side, device=device, dtype=torch.bfloat16) for _ in range(2))
    times = []
    for _ in range(12):
        start = time.perf_counter()
        for _ in range(10):
            a @ b
        synchronize(device)
        times.append((time.perf_counter() - start) / 10)
    return 2 * side**3 / statistics.median(times[2:])


def made_batches(config: ModelConfig, batch_tokens: int) -> list[Batch]:
    """A batch of each width, of random tokens; sentences fill at least three quarters of it, as sorted ones do."""
    draw = np.random.default_rng(0)

    def sentence(width: int) -> list[int]:
        return draw.integers(4, config.vocab_size, draw.integers(width * 3 // 4, width)).tolist()

    return [
        make_batch([(sentence(width), sentence(width)) for _ in range(max(1, batch_tokens // width))], width_multiple=8)
        for width in WIDTHS
    ]


def padded_size(batches: list[Batch]) -> float:
    """Places of a batch on both sides, padding included, on average."""
    return sum(batch.source.numel() + batch.target_in.numel() for batch in batches) / len(batches)


def counted_flops(config: ModelConfig, batches: list[Batch]) -> int:
    """Operations of the matrix products of a step on each batch, counted where nothing is computed."""
    run = our_steps(config, torch.device("meta"), batches, is_compiled=False)
    with FlopCounterMode(display=False) as counter:
        for _ in batches:
            run()
    return counter.get_total_flops()


def our_steps(
    config: ModelConfig, device: torch.device, batches: list[Batch], is_compiled: bool
) -> Callable[[], object]:
    """Takes a step of a training of our own, on the next batch, at each call."""
    settings = TrainConfig(compile=is_compiled, learning_rate=1e-4)
    state = new_state(config, settings, device)
    state.model.train()
    precision = "float32" if device.type == "meta" else "bfloat16"
    # The tokenizer is for evaluations, of which there are none.
    smoothing = Smoothing(settings.label_smoothing)
    stepper = Stepper(state, settings, None, precision, time.monotonic, smoothing=smoothing)  # type: ignore[arg-type]
    given: Iterator[tuple[Batch, Position]] = ((batch, Position()) for batch in cycle(batches))

    def step() -> None:
        stepper.step(given)
        if len(stepper.pending) >= 10 and device.type != "meta":  # as the loop of a training does on a GPU
            stepper.read()

    return step


def peer_steps(
    config: ModelConfig, device: torch.device, batches: list[Batch], is_compiled: bool
) -> Callable[[], object]:
    """The same for torch.nn.Transformer, whose batches are on the device already."""
    torch.manual_seed(0)
    settings = TrainConfig(learning_rate=1e-4)
    peer = TorchPeer(config)
    for part in peer.core.modules():  # as ours: within sublayers the paper drops nothing out
        if isinstance(part, nn.MultiheadAttention):
            part.dropout = config.attention_dropout
        elif isinstance(part, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
            part.dropout = nn.Dropout(config.activation_dropout)
    peer = peer.to(device).train()
    optimizer = build_adamw(peer, settings)
    loss = torch.compile(peer.loss, dynamic=True) if is_compiled else peer.loss
    given = cycle([batch.to(device) for batch in batches])

    def step() -> None:
        batch = next(given)
        with autocast(device, "bfloat16"):
            value = loss(batch) / batch.n_tokens
        value.backward()
        torch.nn.utils.clip_grad_norm_(peer.parameters(), settings.clip_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def median_seconds(
    contenders: dict[str, Callable[[], object]], device: torch.device, n_batches: int, options: argparse.Namespace
) -> dict[str, float]:
    """Seconds of a step, the median of the rounds; each round goes through all batches equally often."""
    steps = -(-options.steps // n_batches) * n_batches
    for name, step in contenders.items():
        start = time.perf_counter()
        for _ in range(1 if options.smoke else 3 * n_batches):
            step()
        synchronize(device)
        warm = time.perf_counter()
        for _ in range(n_batches):
            step()
        synchronize(device)
        each = (time.perf_counter() - warm) / n_batches
        print(f"  warm-up of {name}: {warm - start:.1f} s, then {1e3 * each:.2f} ms a step", flush=True)
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(options.rounds):
        for name, step in contenders.items():
            synchronize(device)
            start = time.perf_counter()
            for _ in range(steps):
                step()
            synchronize(device)
            times[name].append((time.perf_counter() - start) / steps)
    return {name: statistics.median(several) for name, several in times.items()}


def explain(name: str, step: Callable[[], object], device: torch.device, steps: int) -> None:
    """Prints the share of each kind of work in the device's time, how much of a step it works, and what costs most."""
    on_gpu = device.type == "cuda"
    kind = torch.profiler.ProfilerActivity.CUDA if on_gpu else torch.profiler.ProfilerActivity.CPU
    synchronize(device)
    with torch.profiler.profile(activities=[kind]) as profile:
        for _ in range(steps):
            step()
        synchronize(device)
    start = time.perf_counter()
    for _ in range(steps):
        step()
    synchronize(device)
    wall = (time.perf_counter() - start) / steps
    costs: dict[str, float] = {}
    for event in profile.key_averages():
        cost = event.self_device_time_total if on_gpu else event.self_cpu_time_total
        costs[event.key] = costs.get(event.key, 0.0) + cost / 1e6 / steps
    total = sum(costs.values())
    shares: dict[str, float] = {}
    for key, seconds in costs.items():
        found = next((kind for kind, names in KINDS.items() if re.search(names, key, re.IGNORECASE)), "elementwise")
        shares[found] = shares.get(found, 0.0) + seconds / max(total, 1e-12)
    parts = ", ".join(f"{kind} {share:.0%}" for kind, share in sorted(shares.items(), key=lambda item: -item[1]))
    where = f"the device works {min(total / wall, 1):.0%} of a step of {1e3 * wall:.2f} ms" if on_gpu else "operators"
    print(f"  {name}: {where}: {parts}", flush=True)
    for key, seconds in sorted(costs.items(), key=lambda item: -item[1])[: 12 if on_gpu else 3]:
        print(f"    {seconds / max(total, 1e-12):6.1%} {1e3 * seconds:8.3f} ms  {key[:110]}", flush=True)


def decode(config: ModelConfig, device: torch.device, options: argparse.Namespace) -> None:
    """Prints a line for each batch and beam: our search, and Marian's where transformers is installed."""
    torch.manual_seed(0)
    model = Transformer(config).to(device).eval().requires_grad_(False)
    peer = marian(config, device)
    print(f"decoding {options.length} tokens of {SOURCE_TOKENS}, float32, median of {min(options.rounds, 5)}")
    print(f"{'batch':>5} {'beam':>4}" + "".join(f"{name:>12}" for name in COLUMNS), flush=True)
    for batch, beam in SETTINGS[:1] if options.smoke else SETTINGS:
        source = torch.randint(4, config.vocab_size, (batch, SOURCE_TOKENS), device=device)
        runs = {"plain": plainly(our_search(model, source, beam, options.length))}
        if not options.plain:
            runs["ours"] = our_search(model, source, beam, options.length)
        if peer is not None:
            runs["Marian"] = marian_search(peer, source, beam, options.length)
        times = median_times(runs, device, min(options.rounds, 5))
        plain, ours, theirs = times["plain"], times.get("ours", times["plain"]), times.get("Marian")
        cells = [f"{1e3 * plain:.1f}", f"{1e3 * ours:.1f}", f"{1e3 * ours / options.length:.2f}"]
        cells += [f"{batch * options.length / ours:,.0f}", f"{plain / ours:.2f}"]
        cells += [f"{1e3 * theirs:.1f}", f"{theirs / ours:.2f}"] if theirs else ["-", "-"]
        print(f"{batch:5} {beam:4}" + "".join(cell.rjust(12) for cell in cells), flush=True)


def median_times(runs: dict[str, Callable[[], object]], device: torch.device, rounds: int) -> dict[str, float]:
    """Seconds of each run, the median of alternating rounds after one that warms up."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(1 + rounds):
        for name, run in runs.items():
            synchronize(device)
            start = time.perf_counter()
            run()
            synchronize(device)
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(several[1:]) for name, several in times.items()}


def plainly(search: Callable[[], object]) -> Callable[[], object]:
    """The search with no step captured."""

    def run() -> object:
        with patch("transformer.decoding.greedy.captures", lambda *_: False):
            return search()

    return run


def our_search(model: Transformer, source: Tensor, beam: int, length: int) -> Callable[[], object]:
    """Our greedy or beam search, no end before `length` tokens."""
    rules = Constraints(min_length=length)
    if beam == 1:
        return lambda: list(greedy(model, source, max_length=length, constraints=rules))
    return lambda: list(
        beam_search(model, source, size=beam, max_length=length, alpha=1.0, norm="length", constraints=rules)
    )


def marian(config: ModelConfig, device: torch.device) -> nn.Module | None:
    """Marian of the same sizes with random weights; None where transformers is not installed."""
    try:
        from marian_sizes import marian_config
        from transformers import MarianMTModel
        from transformers.utils import logging
    except ImportError as error:
        print(f"without Marian: {error}")
        return None
    logging.set_verbosity_error()
    sizes = marian_config(config, activation_function="relu", dropout=config.dropout, attn_implementation="sdpa")
    return MarianMTModel(sizes).to(device).eval()


def marian_search(theirs: nn.Module, source: Tensor, beam: int, length: int) -> Callable[[], object]:
    """`generate`, cached, to the same length."""
    options = dict(num_beams=beam, min_length=length + 1, max_length=length + 1, do_sample=False, early_stopping=True)
    return lambda: theirs.generate(source, attention_mask=torch.ones_like(source), **options)


if __name__ == "__main__":
    main(sys.argv[1:])
