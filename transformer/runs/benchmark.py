"""Predicts how long a run will take from a few seconds of it: same model, batch, corpus, device and thread count.

`python -m transformer.runs.benchmark FOLDER` trains what FOLDER's config.json and tokenizer describe for a moment, as
the trainer would, and leaves rehearsal.json there. It is a process of its own because the thread count belongs to one.
Nothing else of it is kept. With a second argument, `attached`, it ends when its standard input closes, as it does when
the process behind it dies however suddenly, and then removes FOLDER.
"""

import contextlib
import math
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from transformer.checkpoints.settings import Settings, read_settings
from transformer.config import Precision, TrainConfig
from transformer.data.batches import Position
from transformer.data.corpora import load_corpus
from transformer.files import read_json, write_json
from transformer.runs.trainer import LiveRun, is_snapshot_step, snapshots_an_octave
from transformer.text.pairs import Pair
from transformer.text.tokenizer import Tokenizer, load_tokenizer
from transformer.training.devices import resolve_device, synchronize
from transformer.training.evaluation import evaluate, fitting
from transformer.training.events import StepDone
from transformer.training.loop import measured_precision, train_steps
from transformer.training.state import TrainState, new_state
from transformer.training.step import READ_EVERY

RESULT_FILE = "rehearsal.json"
PREFIX = "attention-lab-benchmark-"
"""The beginning of the names of folders in which a server measures."""
ENOUGH_S = 1.2
"""Seconds of steps that are measured, after the first ones."""
AT_MOST_S = 3.0
"""Seconds up to which more steps are measured, so that the encoding of the next pool of pairs is among them."""
FIRST_STEPS, FEWEST_STEPS = 3, 10
"""Steps that warm up; steps that are measured at least, unless they take SLOW_S."""
SLOW_S = 15.0
SCORED_TOKENS = 4_096
"""The tokens of the held-out pairs that are scored: a batch of `evaluate`."""


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """The measured times, in seconds."""

    step_s: float
    """A step of the optimiser, with its batch."""
    evaluation_s: float
    """An evaluation, with the pinned sentences translated, and weights and state saved."""
    snapshot_s: float
    """Weights kept for the timeline."""
    scoring_s: float
    """The held-out pairs, scored at the end."""
    steps: int
    """Steps that were measured."""
    n_parameters: int
    device: str
    precision: Precision
    threads: int


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The predicted times of a run."""

    steps: int
    steps_s: float
    evaluations: int
    evaluations_s: float
    """Snapshots included."""
    scoring_s: float

    @property
    def training_s(self) -> float:
        """Up to the last step: what a run's own clock counts."""
        return self.steps_s + self.evaluations_s

    @property
    def total_s(self) -> float:
        """All seconds, the scoring of held-out pairs included."""
        return self.training_s + self.scoring_s


def forecast(found: Benchmark, train: TrainConfig) -> Forecast:
    """Predicts training to its limit; an early end (exact match, patience) is not foreseen."""
    steps = train.max_steps
    if train.max_seconds is not None:
        each = found.step_s + found.evaluation_s / train.evaluate_every
        steps = min(steps, max(1, math.ceil(train.max_seconds / each)))
    octave = snapshots_an_octave(found.n_parameters, train.max_steps)
    snapshots = _snapshots(min(steps, 10_000), octave)  # past that they are too few to count
    evaluations = math.ceil(steps / train.evaluate_every) + (train.average_last > 1)
    return Forecast(
        steps=steps,
        steps_s=steps * found.step_s,
        evaluations=evaluations,
        evaluations_s=evaluations * found.evaluation_s + snapshots * found.snapshot_s,
        scoring_s=found.scoring_s,
    )


def benchmark(folder: Path, *, clock: Callable[[], float] = time.monotonic) -> Benchmark:
    """Measures the run that a folder describes; writes only into the folder. Threads are those that torch has."""
    settings = read_settings(folder)
    corpus, tokenizer = load_corpus(settings.corpus), load_tokenizer(folder)
    device = resolve_device(settings.train.device)
    state = new_state(settings.model, settings.train, device)
    precision = measured_precision(state, settings.train, corpus, tokenizer)
    run = LiveRun(folder, settings, corpus, tokenizer, state)
    overlap, longest = corpus.primary_metric != "exact_match", settings.model.max_length

    def score(pairs: Sequence[Pair]) -> float:
        return _timed(lambda: evaluate(state.model, pairs, tokenizer, overlap_scores=overlap), clock)

    # Before any step: random weights do not end a sentence early, and so cost what long translations cost.
    evaluation_s = score(fitting(corpus.validation, tokenizer, longest, settings.train.evaluate_pairs))
    samples_s = _timed(lambda: run.write_samples(0.0), clock)
    scoring_s = 0.0
    for held_out in corpus.held_out.values():
        pairs = fitting(held_out, tokenizer, longest, settings.train.test_pairs)
        some = _typical(pairs, tokenizer)
        scoring_s += score(some) * len(pairs) / len(some)
    step_s, steps = _steps(state, settings, run, precision, clock)
    weights_s, state_s = _timed(run.save_weights, clock), _timed(run.save_state, clock)
    return Benchmark(
        step_s=step_s,
        evaluation_s=evaluation_s + samples_s + weights_s + state_s,
        snapshot_s=_timed(run.save_snapshot, clock),
        scoring_s=scoring_s,
        steps=steps,
        n_parameters=state.model.n_parameters(),
        device=str(device),
        precision=precision,
        threads=torch.get_num_threads(),
    )


def read_benchmark(folder: Path) -> Benchmark | str:
    """Reads what was measured in a folder, or the sentence that says why it could not be."""
    found = read_json(folder / RESULT_FILE)
    try:
        return Benchmark(**found)
    except TypeError:
        return str(found.get("error") or "the measurement ended without a message, as when memory runs out")


def new_benchmark_folder() -> tempfile.TemporaryDirectory[str]:
    """Returns an empty folder to measure in, which `remove_abandoned_folders` knows."""
    return tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)


def remove_abandoned_folders(*, older_than_s: float = 3600.0) -> None:
    """Removes the folders that killed servers and benchmarks left; young ones may be in use."""
    latest = time.time() - older_than_s
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.is_dir() and not folder.is_symlink() and folder.stat().st_mtime <= latest:
                shutil.rmtree(folder)


def main(arguments: list[str]) -> int:
    """The process; the exit status is 0 unless nothing could be measured."""
    folder = Path(arguments[0])
    if arguments[1:] == ["attached"]:
        threading.Thread(target=_end_with_parent, args=(folder,), daemon=True).start()
    os.nice(10)  # as the trainer
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    try:
        found: dict[str, Any] = asdict(benchmark(folder))
    except Exception as error:  # whatever it is, the visitor reads it in a sentence
        found = {"error": f"{error}"[:300] or type(error).__name__}
    write_json(folder / RESULT_FILE, found)
    return int("error" in found)


def _end_with_parent(folder: Path) -> None:
    """Waits for standard input to close; then nobody waits for the result."""
    while sys.stdin.buffer.read(1):
        pass
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def _steps(
    state: TrainState, settings: Settings, run: LiveRun, precision: Precision, clock: Callable[[], float]
) -> tuple[float, int]:
    """Seconds of a step, over as many steps as were measured."""
    endless = replace(
        settings.train,
        **{"max_steps": 1_000_000, "evaluate_every": 1_000_000, "max_seconds": None, "patience": None},
        **{"target_exact_match": None, "average_last": 1},
    )
    begun = since = clock()
    first = FIRST_STEPS if state.device.type == "cpu" else READ_EVERY
    at, pools = 0, 0
    pool = _pool(state.position)
    for event in train_steps(state, endless, run.corpus, run.tokenizer, precision=precision):
        if not isinstance(event, StepDone) or event.step != state.step:
            continue
        now, here = clock(), _pool(state.position)
        if at == 0 and (event.step >= first or now - begun > SLOW_S / 2):
            at, since, pool = event.step, now, here
            continue
        pools += here != pool
        pool, steps, took = here, event.step - at, now - since
        enough = took >= ENOUGH_S and steps >= FEWEST_STEPS and pools
        if at and steps and (enough or now - begun > SLOW_S or (took > AT_MOST_S and steps >= FEWEST_STEPS)):
            synchronize(state.device)
            return (clock() - since) / steps, steps
    raise AssertionError("endless training does not end")


def _typical(pairs: Sequence[Pair], tokenizer: Tokenizer) -> Sequence[Pair]:
    """Pairs of middling length, a batch of them: what is scored is cut into batches of like length."""
    lengths = [1 + max(len(tokenizer.encode(pair.source)), len(tokenizer.encode(pair.target))) for pair in pairs]
    order = sorted(range(len(pairs)), key=lengths.__getitem__)
    middle = len(pairs) // 2
    half = max(1, SCORED_TOKENS // lengths[order[middle]] // 2)
    return [pairs[i] for i in order[max(0, middle - half) : middle + half]]


def _timed(work: Callable[[], object], clock: Callable[[], float]) -> float:
    """Seconds of the work, a first time not counted where it is short."""
    start = clock()
    work()
    took = clock() - start
    if took > 0.5:
        return took
    start = clock()
    work()
    return clock() - start


@cache
def _snapshots(steps: int, octave: int) -> int:
    return sum(is_snapshot_step(step, octave) for step in range(1, steps + 1))


def _pool(position: Position) -> tuple[int, int]:
    return position.epoch, position.pool


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
