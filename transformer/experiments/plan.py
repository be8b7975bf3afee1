"""A study as data: its plan, the result of each run, and both together. study.py reads and writes its file."""

from dataclasses import dataclass, field, replace
from typing import get_args

from transformer.config import FEWEST_SYMBOLS, MOST_SYMBOLS, CorpusConfig, ModelConfig, PositionKind, TrainConfig
from transformer.data.corpora import CORPORA
from transformer.data.file_recipes import recipe_for

LENGTH_TASKS = ("copy", "reverse", "sort")
"""Corpora whose sentences can be generated at any length."""
KINDS: tuple[PositionKind, ...] = get_args(PositionKind)
TARGET = 0.99
EVALUATE_EVERY = 50
"""The steps between evaluations, so that steps to the target compare among studies."""
"""The validation exact match that counts as learned."""


@dataclass(frozen=True, kw_only=True)
class StudyPlan:
    """The kinds to compare, the data and the length of training. Everything else follows the corpus's recipe."""

    corpora: tuple[str, ...] = ("reverse", "copy")
    """Generated corpora; lengths are tested where there are any to test (copy, reverse, sort)."""
    positions: tuple[PositionKind, ...] = KINDS
    """Kinds of positions that are compared."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Each kind is trained once with each seed, which decides the initial weights and the order of the data."""
    steps: int = 1_000
    """Optimiser steps of every run; no run stops early."""
    batch_tokens: int = 768
    """Tokens in a batch, padding included, on the longer side."""
    trained_to: int = 16
    """Symbols in the longest training sentence."""
    tested_to: int = 40
    """Symbols in the longest test sentence."""
    pairs: int = 100
    """Held-out sentences of each length, or all where there are fewer."""

    def __post_init__(self) -> None:
        for name in ("corpora", "positions", "seeds"):
            values = getattr(self, name)
            if not values or len(set(values)) != len(values):
                raise ValueError(f"{name} ({', '.join(map(str, values))}) must name at least one, and each only once")
        if unknown := [name for name in self.corpora if name not in CORPORA]:
            raise ValueError(f"corpora ({unknown[0]}) must be among: {', '.join(CORPORA)}")
        if unknown := [kind for kind in self.positions if kind not in KINDS]:
            raise ValueError(f"positions ({unknown[0]}) must be among: {', '.join(KINDS)}")
        low, high = FEWEST_SYMBOLS, MOST_SYMBOLS
        if not low <= self.trained_to <= self.tested_to <= high:
            raise ValueError(
                f"{low} <= trained_to ({self.trained_to}) <= tested_to ({self.tested_to}) <= {high} must hold"
            )
        for name in ("steps", "batch_tokens", "pairs"):
            if not 1 <= getattr(self, name) <= 1_000_000:
                raise ValueError(f"{name} ({getattr(self, name)}) must lie between 1 and 1,000,000")

    @property
    def n_runs(self) -> int:
        """The number of runs."""
        return len(self.corpora) * len(self.positions) * len(self.seeds)

    def configs(self, corpus: str, positions: PositionKind, seed: int) -> tuple[ModelConfig, TrainConfig, CorpusConfig]:
        """Returns the settings of one run: the corpus's recipe with what the plan sets, on one thread in float32."""
        recipe, by_length = recipe_for(CorpusConfig(name=corpus)), corpus in LENGTH_TASKS
        model = replace(recipe.model, positions=positions)
        if by_length:
            model = replace(model, max_length=self.tested_to + 1)
        train = replace(
            recipe.train,
            max_steps=self.steps,
            batch_tokens=self.batch_tokens,
            evaluate_every=EVALUATE_EVERY,
            seed=seed,
            threads=1,
            precision="float32",
            device="cpu",
        )
        return model, train, CorpusConfig(name=corpus, longest=self.trained_to if by_length else None)


@dataclass(frozen=True, kw_only=True)
class StudyRun:
    """One run of a study and its result; fields are empty until it has one."""

    corpus: str
    positions: PositionKind
    seed: int
    id: str = ""
    """The run's name in the folder of runs."""
    state: str = "waiting"
    """waiting, running, done, or why there is no result: stopped, failed, deleted."""
    parameters: int | None = None
    steps: int | None = None
    steps_to_target: int | None = None
    """The step of the first evaluation with exact match at TARGET or above; None for never."""
    exact_match: float | None = None
    """On held-out sentences of the lengths of training, 0..1."""
    bleu: float | None = None
    count: int | None = None
    """Held-out sentences scored."""
    tokens_per_s: float | None = None
    """Target tokens per second of training, padding excluded: the median of the steps."""
    elapsed_s: float | None = None
    trained_positions: int | None = None
    """The number of positions that training reached, from 0 on."""
    curve: tuple[tuple[int, float, float], ...] = ()
    """(step, validation loss, validation exact match) of each evaluation."""
    lengths: dict[str, tuple[tuple[int, int, int], ...]] = field(default_factory=dict)
    """(length, right, count) for each length, by how a learned table was extended; "" for all other kinds."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """A plan and its runs."""

    name: str
    plan: StudyPlan
    runs: tuple[StudyRun, ...]
    command: str = ""
    """The command that runs it again."""
    created: str = ""
    machine: str = ""
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def done(self) -> tuple[StudyRun, ...]:
        """The runs with a result."""
        return tuple(run for run in self.runs if run.state == "done")

    def with_run(self, changed: StudyRun) -> "Study":
        """Returns the study with one run replaced."""
        same = (changed.corpus, changed.positions, changed.seed)
        rows = (changed if (run.corpus, run.positions, run.seed) == same else run for run in self.runs)
        return replace(self, runs=tuple(rows))
