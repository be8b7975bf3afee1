"""An example of every view for tests/test_views.py: the options, the subject, and what is deliberately not proved."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from transformer.interventions import Intervention, parse_intervention
from transformer.lab import Lab, load
from transformer.views import (
    BatchTokens,
    EmptyAttentionRow,
    HeadMatching,
    HeadPair,
    MaskLeak,
    OutputPair,
    SentenceMasks,
    StepNumbers,
    TeacherForcing,
    TraceMap,
)
from transformer.views.subjects import Batch, Decoding, SideBySide, Traced
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


def side_by_side(other: str = "reverse", text: str = TEXT, *names: str) -> Callable[[], SideBySide]:
    """A sentence through the shipped model, and a text through another (or the same), under switches."""

    def make() -> SideBySide:
        second = lab() if other == "reverse" else load(other)
        specs = switches(names)
        return SideBySide(lab(), lab().inspect(TEXT, specs), second, second.inspect(text, specs))

    return cache(make)


_LAYOUT = {"drawing": "where boxes and lines lie; no number of the pass"}


def batch(*off: str) -> Callable[[], Batch]:
    """Two sentences of different lengths, without the masks of these names."""
    return cache(lambda: Batch(lab(), lab().leak((TEXT, SHORT), switches(off))))  # type: ignore[arg-type]


EXAMPLES = [
    Example(BatchTokens(), batch()),
    Example(SentenceMasks(kind="encoder_self", row=1), batch()),
    Example(SentenceMasks(kind="cross", row=1), batch("mask:cross")),
    Example(SentenceMasks(kind="decoder_self", row=1), batch("mask:padding")),
    Example(SentenceMasks(kind="decoder_self", row=0), batch("mask:causal")),
    Example(MaskLeak(), batch()),
    Example(MaskLeak(), batch("mask:padding", "mask:causal", "mask:cross")),
    Example(TeacherForcing(), decoding()),
    Example(EmptyAttentionRow(), decoding()),
    Example(TraceMap(step="decoder.cross.weights"), traced("off:decoder.0.cross:1"), unproved=_LAYOUT),
    Example(TraceMap(step="encoder.ids"), traced("mask:causal", step=1), unproved=_LAYOUT),
    Example(StepNumbers(step="encoder.ids"), traced()),
    Example(StepNumbers(step="decoder.embedding", row=1, side="in"), traced()),
    Example(StepNumbers(step="encoder.self.qkv", layer=0, head=1, row=2, side="all"), traced()),
    Example(StepNumbers(step="decoder.self.masked", row=1, side="all"), traced("forbid:decoder.0.self:2,1")),
    Example(StepNumbers(step="decoder.cross.context", head=1, row=1), traced("off:decoder.0.cross:1")),
    Example(StepNumbers(step="decoder.ffn.add", row=1), traced("mask:causal", step=1)),
    Example(StepNumbers(step="decoder.probabilities", row=2, side="in"), traced()),
    Example(OutputPair(labels=("one", "<two>")), side_by_side("reverse-learned")),
    Example(OutputPair(), side_by_side("reverse", SHORT)),
    Example(HeadPair(kind="cross", left=(0, 1), right=(0, 0)), side_by_side("reverse-learned")),
    Example(
        HeadPair(kind="decoder_self", left=(0, 1), right=(0, 1), shows="left"),
        side_by_side("reverse-learned", TEXT, "off:decoder.0.self:1", "mask:causal"),
    ),
    Example(HeadPair(kind="encoder_self", left=(0, 0), right=(0, 1)), side_by_side("reverse", "a b d")),
    Example(
        HeadMatching(kind="encoder_self", texts=(TEXT, SHORT), chosen=(0, 1)),
        side_by_side("reverse-learned", TEXT, "off:encoder.0.self:1"),
    ),
]
