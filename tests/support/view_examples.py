"""An example of every view for tests/test_views.py: the options, the subject, and what is deliberately not proved."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from transformer.checkpoints.settings import find_checkpoint
from transformer.config import PRESETS, CorpusConfig, TrainConfig
from transformer.interventions import Intervention, parse_intervention
from transformer.lab import Lab, load
from transformer.views import (
    BatchTokens,
    ComparedRuns,
    EmptyAttentionRow,
    LearningRate,
    MaskLeak,
    RunCurves,
    SentenceLengths,
    SentenceMasks,
    SnapshotAttention,
    SweepChart,
    TeacherForcing,
    TrainingMemory,
)
from transformer.views.subjects import Batch, Decoding, Plan, Runs, Text
from transformer.views.timeline import AtStep, decode_snapshot
from transformer.views.view import Subject, View

TEXT, SHORT = "a b c", "d e"


@dataclass(frozen=True)
class Example:
    """A view of a subject."""

    view: View[Any]
    subject: Callable[[], Subject]
    unproved: Mapping[str, str] = field(default_factory=dict)
    """Paths into the data, as in `parts.0.mask`, of numbers that no check covers, each with its reason. A path covers
    all below it."""
    derived: Mapping[str, str] = field(default_factory=dict)
    """Names of tables with numbers that are not in the data as they stand, each with its reason."""


@cache
def lab() -> Lab:
    """The shipped model of symbols."""
    return load("reverse")


def switches(names: Sequence[str]) -> list[Intervention]:
    """The interventions of these names."""
    return [parse_intervention(name) for name in names]


def decoding(text: str = TEXT, *names: str) -> Callable[[], Decoding]:
    """A sentence decoded under the switches of these names."""
    return cache(lambda: Decoding(lab(), lab().inspect(text, switches(names))))


def batch(*off: str) -> Callable[[], Batch]:
    """Two sentences of different lengths, without the masks of these names."""
    return cache(lambda: Batch(lab(), lab().leak((TEXT, SHORT), switches(off))))  # type: ignore[arg-type]


def runs(*names: str) -> Callable[[], Runs]:
    """Shipped models of these names, whose training is on record."""
    return lambda: Runs(tuple(find_checkpoint(name) for name in names))


def at_step(forced: tuple[int, ...] = ()) -> Callable[[], AtStep]:
    """A sentence decoded with the weights that a model ended with, as a timeline shows it."""
    return cache(lambda: AtStep(decode_snapshot(find_checkpoint("reverse"), "weights.safetensors", TEXT, forced)))


EXAMPLES = [
    Example(BatchTokens(), batch()),
    Example(SentenceMasks(kind="encoder_self", row=1), batch()),
    Example(SentenceMasks(kind="cross", row=1), batch("mask:cross")),
    Example(SentenceMasks(kind="decoder_self", row=1), batch("mask:padding")),
    Example(SentenceMasks(kind="decoder_self", row=0), batch("mask:causal")),
    Example(MaskLeak(), batch()),
    Example(MaskLeak(), batch("mask:padding", "mask:causal", "mask:cross")),
    Example(TeacherForcing(), decoding()),
    Example(RunCurves(), runs("reverse")),
    Example(RunCurves(panels=("perplexity", "learning rate", "gradient norm", "tokens/s")), runs("reverse-learned")),
    Example(ComparedRuns(), runs("reverse", "reverse-learned")),
    Example(ComparedRuns(quantity="exact match", against="elapsed_s"), runs("reverse", "reverse-learned")),
    Example(SweepChart(setting="model.n_heads"), runs("reverse", "reverse-learned")),
    Example(SweepChart(setting="model.positions", quantity="exact match"), runs("reverse", "reverse-learned")),
    Example(SnapshotAttention(kind="cross", layer=1, head=2), at_step()),
    Example(SnapshotAttention(kind="decoder_self", layer=0, head=1), at_step((4, 5, 2))),
    Example(SentenceLengths(limit=8), lambda: Text(CorpusConfig(name="reverse"))),
    Example(LearningRate(last=300, points=40), lambda: Plan(PRESETS["tiny"], TrainConfig(max_steps=300))),
    Example(
        TrainingMemory(width=12),
        lambda: Plan(PRESETS["tiny"], TrainConfig()),
        unproved={"memory.activations": "an estimate; the note says so"},
    ),
    Example(EmptyAttentionRow(), decoding()),
]
