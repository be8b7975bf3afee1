"""The short measurement behind the estimate of a plan: one at a time on this server, in a process of its own, cached.

What is measured is transformer/runs/benchmark.py's. Nothing here waits: the page looks again while one is at work.
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path

import streamlit as st

from transformer.checkpoints.settings import SHIPPED_FOLDER, Settings, write_settings
from transformer.config import CorpusConfig, ModelConfig, TrainConfig
from transformer.runs.benchmark import Benchmark, new_benchmark_folder, read_benchmark
from transformer.runs.run_folder import usable_cpus
from transformer.text.tokenizer import Tokenizer

LONGEST_S = 90.0
"""A measurement that takes longer is ended: so large a plan is for another machine."""
MEASURE = "ATTENTION_LAB_MEASURE"
"""In the environment, "ask" lets nothing be measured before a visitor asks for it: for a server that many share."""
_KEPT = 200


@dataclass(frozen=True, kw_only=True)
class Work:
    """All that the speed of a run depends on; two plans that differ elsewhere share a measurement."""

    model: ModelConfig
    train: TrainConfig
    corpus: CorpusConfig
    pinned: tuple[str, ...]
    threads: int


def work_of(
    model: ModelConfig, train: TrainConfig, corpus: CorpusConfig, pinned: tuple[str, ...], *, alone: bool
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
    """Whether a plan may be measured as soon as it is seen."""
    return os.environ.get(MEASURE) != "ask"


@dataclass
class Measurements:
    """What was measured on this server, and what is being measured. Shared by all visitors."""

    done: OrderedDict[Work, Benchmark | str] = field(default_factory=OrderedDict)
    at_work: "_AtWork | None" = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def find(self, work: Work) -> Benchmark | str | None:
        """What was measured, or in a sentence why it could not be; None where nothing was yet."""
        with self.lock:
            self._settle()
            return self.done.get(work)

    def is_measuring(self, work: Work) -> bool:
        """Whether this very work is being measured."""
        return self.at_work is not None and self.at_work.work == work

    def begin(self, work: Work, tokenizer: Tokenizer, *, owner: object) -> None:
        """Begins to measure, unless another visitor's measurement is at work; an older one of the same visitor ends."""
        with self.lock:
            self._settle()
            if work in self.done or self.is_measuring(work):
                return
            if self.at_work is not None:
                if self.at_work.owner is not owner:
                    return
                self._end()
            self.at_work = _launch(work, tokenizer, owner)

    def cancel(self) -> None:
        """Ends what is being measured: a run is about to start."""
        with self.lock:
            if self.at_work is not None:
                self._end()

    def _settle(self) -> None:
        now = self.at_work
        if now is None:
            return
        if now.process.poll() is not None:
            self._keep(now.work, read_benchmark(Path(now.folder.name)))
        elif time.monotonic() - now.since > LONGEST_S:
            self._keep(now.work, f"a few steps took longer than {LONGEST_S:g} s")
        else:
            return
        self._end()

    def _keep(self, work: Work, found: Benchmark | str) -> None:
        self.done[work] = found
        while len(self.done) > _KEPT:
            self.done.popitem(last=False)

    def _end(self) -> None:
        now, self.at_work = self.at_work, None
        if now is not None:
            now.process.kill()
            now.process.communicate()
            now.folder.cleanup()


@dataclass(frozen=True)
class _AtWork:
    work: Work
    owner: object
    process: subprocess.Popen
    folder: tempfile.TemporaryDirectory
    since: float


@st.cache_resource
def measurements() -> Measurements:
    """Those of this server."""
    return Measurements()


def _launch(work: Work, tokenizer: Tokenizer, owner: object) -> _AtWork:
    folder = new_benchmark_folder()
    path = Path(folder.name)
    settings = Settings(name="rehearsal", model=work.model, train=work.train, corpus=work.corpus, pinned=work.pinned)
    write_settings(path, settings)
    tokenizer.save(path)
    source = str(SHIPPED_FOLDER.parent)
    process = subprocess.Popen(
        [sys.executable, "-m", "transformer.runs.benchmark", folder.name, "attached"],
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
    return _AtWork(work, owner, process, folder, time.monotonic())
