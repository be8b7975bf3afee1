"""The short measurement behind the estimate of a plan: one at a time on this server, in a process of its own, cached.

What is measured is transformer/runs/benchmark.py's. The page looks again while one is at work. No Streamlit here.
"""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from pages.shared.background import Background, Tell, Watcher
from transformer.checkpoints.settings import SHIPPED_FOLDER, Settings, write_settings
from transformer.config import AnyModelConfig, CorpusConfig, TrainConfig
from transformer.runs.benchmark import Benchmark, new_benchmark_folder, read_benchmark
from transformer.runs.run_lock import usable_cpus
from transformer.text.tokenizer import Tokenizer

LONGEST_S = 90.0
"""A measurement that takes longer is ended: so large a plan is for another machine."""
MEASURE = "ATTENTION_LAB_MEASURE"
"""An environment variable: "ask" lets nothing be measured before a visitor asks for it, on a server that many share."""
_LOOK_S = 0.05
"""Seconds between two looks at a measurement that is at work."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """All that the speed of a run depends on; two plans that differ elsewhere share a measurement."""

    model: AnyModelConfig
    train: TrainConfig
    corpus: CorpusConfig
    pinned: tuple[str, ...]
    threads: int


def work_of(
    model: AnyModelConfig, train: TrainConfig, corpus: CorpusConfig, pinned: tuple[str, ...], *, alone: bool
) -> Work:
    """The work that a run with these settings does; the model knows its vocabulary. `alone`: no run is at work here,
    so that the trainer would take all CPUs."""
    plain = TrainConfig(learning_rate=1e-6)  # a step takes as long, and none diverges
    same_speed = {
        name: getattr(plain, name)
        for name in (
            *("max_steps", "max_seconds", "target_exact_match", "patience", "schedule", "learning_rate"),
            *("warmup_steps", "evaluate_every", "seed", "threads"),
        )
    }
    threads = train.threads or (usable_cpus() if alone else 1)
    kept = {name: getattr(train, name) for name in TrainConfig.__dataclass_fields__ if name not in same_speed}
    return Work(model=model, train=TrainConfig(**same_speed | kept), corpus=corpus, pinned=pinned, threads=threads)


def is_unasked() -> bool:
    """Tells whether a plan may be measured as soon as it is seen."""
    return os.environ.get(MEASURE) != "ask"


_MEASUREMENTS = Background("measuring", kept=200)


def find(work: Work) -> Benchmark | str | None:
    """Returns what was measured, or in a sentence why it could not be; None if nothing was yet."""
    measurement = _MEASUREMENTS.find(work)
    return measurement.result() if measurement and measurement.over.is_set() and not measurement.stopped else None


def begin(work: Work, tokenizer: Tokenizer, watcher: Watcher) -> None:
    """Begins to measure, after other visitors' measurements; an earlier one of the same visitor ends."""
    _MEASUREMENTS.submit_instead("plan", work, lambda tell: _measure(work, tokenizer, tell), watcher)


def cancel() -> None:
    """Ends what is being measured: a run is about to start."""
    _MEASUREMENTS.cancel_all()


def _measure(work: Work, tokenizer: Tokenizer, tell: Tell) -> Benchmark | str:
    """Runs a few steps in a process of its own; the folder and the process are gone afterwards."""
    begun = time.monotonic()
    with new_benchmark_folder() as name:
        process = _launch(work, tokenizer, Path(name))
        try:
            while process.poll() is None:
                elapsed_s = time.monotonic() - begun
                if elapsed_s > LONGEST_S:
                    return f"a few steps took longer than {LONGEST_S:g} s"
                tell(elapsed_s / LONGEST_S)
                time.sleep(_LOOK_S)
            return read_benchmark(Path(name))
        finally:
            process.kill()
            process.communicate()


def _launch(work: Work, tokenizer: Tokenizer, folder: Path) -> subprocess.Popen:
    settings = Settings(name="rehearsal", model=work.model, train=work.train, corpus=work.corpus, pinned=work.pinned)
    write_settings(folder, settings)
    tokenizer.save(folder)
    source = str(SHIPPED_FOLDER.parent)
    return subprocess.Popen(
        [sys.executable, "-m", "transformer.runs.benchmark", str(folder), "attached"],
        stdin=subprocess.PIPE,  # closes when this server dies, and ends the benchmark
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ
        | {
            "OMP_NUM_THREADS": str(work.threads),
            "GOMP_SPINCOUNT": "1000",  # as the trainer
            "PYTHONPATH": os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH")))),
        },
    )
