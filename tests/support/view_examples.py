"""An example of every view for tests/test_views.py: the options, the subject, and what is deliberately not proved."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from transformer.analysis.heads.addresses import heads_of
from transformer.analysis.heads.importance import output_effects
from transformer.analysis.heads.leave_one_out import Hiding, leave_one_out
from transformer.analysis.heads.minimal_set import Goal, SearchPlan, minimal_set
from transformer.analysis.heads.pair_sample import validation_sample
from transformer.analysis.heads.survey import survey
from transformer.analysis.heads.validation_importance import validation_importance
from transformer.interventions import Intervention, parse_intervention
from transformer.lab import Lab, load
from transformer.views import (
    BatchTokens,
    EmptyAttentionRow,
    FaithfulnessTable,
    HeadProfile,
    HeadSimilarity,
    LeaveOneOut,
    MaskLeak,
    MinimalSetOutputs,
    OutputImportance,
    OutputRanking,
    PatternMap,
    PatternTable,
    SentenceMasks,
    TeacherForcing,
    ValidationImportanceMap,
    ValidationRanking,
    WeightAgainstEffect,
)
from transformer.views.head_subjects import Hidden, Removal, Removed, RemovedOverPairs, Searched, Surveyed, means_of
from transformer.views.subjects import Batch, Decoding
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


@cache
def surveyed() -> Surveyed:
    """Where heads look over a few pairs of the model's own corpus, which has gold links."""
    sample = validation_sample(lab().checkpoint, 6)
    return Surveyed(lab(), sample, survey(lab().model, sample.pairs, lab().tokenizer, unit=sample.unit))


def removed(removal: Removal, *names: str) -> Callable[[], Removed]:
    """Every head removed in turn from a decoding."""

    def make() -> Removed:
        seen = lab().inspect(TEXT, switches(names))
        ids = seen.source_ids, seen.target_ids, seen.interventions
        effects = output_effects(lab().model, *ids, means=means_of(lab(), removal))
        return Removed(lab(), seen, removal, effects)

    return cache(make)


def removed_over_pairs(removal: Removal) -> Callable[[], RemovedOverPairs]:
    """Every head removed in turn over a few pairs."""

    def make() -> RemovedOverPairs:
        sample = validation_sample(lab().checkpoint, 12)
        given = lab().model, sample.pairs, lab().tokenizer
        found = validation_importance(*given, means=means_of(lab(), removal))
        return RemovedOverPairs(lab(), sample, removal, found)

    return cache(make)


def hidden(hiding: Hiding, *names: str) -> Callable[[], Hidden]:
    """Every source token hidden in turn."""

    def make() -> Hidden:
        seen = lab().inspect(TEXT, switches(names))
        ids = seen.source_ids, seen.target_ids
        return Hidden(lab(), seen, hiding, leave_one_out(lab().model, *ids, hiding, seen.interventions))

    return cache(make)


def searched(goal: Goal, *, exact: int, most: int, off: int = 0) -> Callable[[], Searched]:
    """A search among the heads of cross-attention."""

    def make() -> Searched:
        seen = lab().inspect(TEXT)
        heads = tuple(at for at in heads_of(lab().model) if at.kind == "cross")[off:]
        plan = SearchPlan(goal, heads, exact=exact, most=most)
        found = minimal_set(lab().model, seen.source_ids, seen.target_ids, goal, heads, exact=exact, most=most)
        return Searched(lab(), seen, plan, found)

    return cache(make)


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
    Example(PatternMap(column="diagonal", chosen="decoder.0.cross.1"), surveyed),
    Example(PatternMap(column="alignment", measure="peak"), surveyed),
    Example(PatternMap(column="entropy"), surveyed),
    Example(PatternTable(columns=("previous", "alignment", "error_rate", "largest")), surveyed),
    Example(PatternTable(columns=("diagonal", "entropy"), measure="peak", heads="cross"), surveyed),
    Example(HeadProfile(head="decoder.0.cross.1"), surveyed),
    Example(HeadProfile(head="encoder.1.self.0"), surveyed),
    Example(HeadSimilarity(kind="cross", closest=0.45), surveyed),
    Example(HeadSimilarity(kind="decoder_self", closest=0.2), surveyed),
    Example(OutputImportance(chosen="decoder.0.cross.1"), removed("zero", "off:decoder.0.cross:1")),
    Example(OutputImportance(), removed("mean")),
    Example(OutputRanking(most=5), removed("zero")),
    Example(ValidationImportanceMap(measure="loss", chosen="decoder.0.cross.1"), removed_over_pairs("zero")),
    Example(ValidationImportanceMap(measure="exact_match"), removed_over_pairs("mean")),
    Example(ValidationRanking(measure="loss", most=4), removed_over_pairs("zero")),
    Example(ValidationRanking(measure="exact_match", most=4), removed_over_pairs("zero")),
    Example(MinimalSetOutputs(), searched(Goal(), exact=3, most=4)),
    Example(MinimalSetOutputs(), searched(Goal(0), exact=1, most=1, off=1)),
    Example(LeaveOneOut(), hidden("hidden")),
    Example(LeaveOneOut(), hidden("cross", "off:decoder.0.cross:1")),
    Example(WeightAgainstEffect(head="decoder.0.cross.1"), hidden("hidden")),
    Example(FaithfulnessTable(), hidden("hidden")),
]
