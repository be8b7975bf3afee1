"""An example of every view for tests/test_views.py: the options, the subject, and what is deliberately not proved."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from transformer.checkpoints.settings import find_checkpoint
from transformer.config import PRESETS, CorpusConfig, TrainConfig
from transformer.experiments.study import SHIPPED_STUDY, load_study
from transformer.interventions import Intervention, parse_intervention
from transformer.lab import Lab, load
from transformer.runs.position_moments import learned_table
from transformer.views import (
    BatchTokens,
    ComparedRuns,
    EmptyAttentionRow,
    LearningRate,
    MaskLeak,
    ModelLengths,
    PositionDimensions,
    PositionSimilarity,
    PositionTables,
    RunCurves,
    ScoreParts,
    SentenceLengths,
    SentenceMasks,
    ShiftErrors,
    ShiftMaps,
    SimilarityByOffset,
    SnapshotAttention,
    StepNumbers,
    StudyLearning,
    StudyLengths,
    SweepChart,
    TeacherForcing,
    TraceMap,
    TrainingMemory,
)
from transformer.views.subjects import Batch, Decoding, LearnedPositions, Model, PairedStudy, Plan, Runs, Text, Traced
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


def traced(*names: str, step: int | None = None) -> Callable[[], Traced]:
    """A recorded pass over a sentence under the switches of these names."""

    def make() -> Traced:
        seen = lab().inspect(SHORT, switches(names))
        return Traced(lab(), seen, lab().trace(seen, step))

    return cache(make)


_LAYOUT = {"drawing": "where boxes and lines lie; no number of the pass"}


def batch(*off: str) -> Callable[[], Batch]:
    """Two sentences of different lengths, without the masks of these names."""
    return cache(lambda: Batch(lab(), lab().leak((TEXT, SHORT), switches(off))))  # type: ignore[arg-type]


def runs(*names: str) -> Callable[[], Runs]:
    """Shipped models of these names, whose training is on record."""
    return lambda: Runs(tuple(find_checkpoint(name) for name in names))


def at_step(forced: tuple[int, ...] = ()) -> Callable[[], AtStep]:
    """A sentence decoded with the weights that a model ended with, as a timeline shows it."""
    return cache(lambda: AtStep(decode_snapshot(find_checkpoint("reverse"), "weights.safetensors", TEXT, forced)))


def learned_positions(moment: str = "trained", stack: str = "encoder") -> Callable[[], LearnedPositions]:
    """The learned table of the shipped model of symbols."""

    def make() -> LearnedPositions:
        found = load("reverse-learned")
        return LearnedPositions(found, learned_table(found.checkpoint, stack, moment))  # type: ignore[arg-type]

    return cache(make)


def no_learned_positions() -> LearnedPositions:
    """A model without a learned table."""
    return LearnedPositions(lab(), None)


def model(name: str = "reverse") -> Callable[[], Model]:
    """A shipped model, without a sentence."""
    return cache(lambda: Model(load(name)))


def shipped_study() -> PairedStudy:
    """The study that comes with the lab."""
    return PairedStudy(load_study(SHIPPED_STUDY))


SMALL: dict[str, Any] = {"d_model": 10, "length": 14, "base": 100}
"""The size of a sinusoidal table."""

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
    Example(PositionTables(**SMALL), learned_positions()),
    Example(PositionTables(**SMALL, layout="concatenated"), learned_positions("100", "decoder")),
    Example(PositionTables(**SMALL), no_learned_positions),
    Example(PositionDimensions(**SMALL, frequency=2), learned_positions("start")),
    Example(PositionDimensions(**SMALL, frequency=99), no_learned_positions),
    Example(PositionSimilarity(**SMALL, measure="cosine"), learned_positions()),
    Example(PositionSimilarity(**SMALL, measure="dot"), learned_positions()),
    Example(SimilarityByOffset(**SMALL, measure="cosine"), learned_positions()),
    Example(SimilarityByOffset(**SMALL, measure="dot"), learned_positions()),
    Example(ShiftMaps(**SMALL, k=2), learned_positions()),
    Example(ShiftErrors(**SMALL, k=2), learned_positions()),
    Example(ShiftErrors(**SMALL, k=3), no_learned_positions),
    Example(ScoreParts(stack="encoder", head=1), decoding(TEXT, "positions:encoder:shift:1")),
    Example(ScoreParts(stack="decoder", head=2), decoding()),
    Example(StudyLearning(corpus="copy"), shipped_study),
    Example(StudyLengths(corpus="copy", past="noise"), shipped_study),
    Example(StudyLengths(corpus="reverse", past="refuse"), shipped_study),
    Example(ModelLengths(past="noise", longest=3, pairs=3), model()),
    Example(ModelLengths(past="clamp", longest=11, pairs=1), model("reverse-learned")),
    Example(TraceMap(step="decoder.cross.weights"), traced("off:decoder.0.cross:1"), unproved=_LAYOUT),
    Example(TraceMap(step="encoder.ids"), traced("mask:causal", step=1), unproved=_LAYOUT),
    Example(StepNumbers(step="encoder.ids"), traced()),
    Example(StepNumbers(step="decoder.embedding", row=1, side="in"), traced()),
    Example(StepNumbers(step="encoder.self.qkv", layer=0, head=1, row=2, side="all"), traced()),
    Example(StepNumbers(step="decoder.self.masked", row=1, side="all"), traced("forbid:decoder.0.self:2,1")),
    Example(StepNumbers(step="decoder.cross.context", head=1, row=1), traced("off:decoder.0.cross:1")),
    Example(StepNumbers(step="decoder.ffn.add", row=1), traced("mask:causal", step=1)),
    Example(StepNumbers(step="decoder.probabilities", row=2, side="in"), traced()),
]
