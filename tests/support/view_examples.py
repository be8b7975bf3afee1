"""An example of every view for tests/views: the options, the subject, and what is deliberately not checked."""

import atexit
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from page_models import save_recurrent

from transformer.analysis.checks import Check
from transformer.analysis.heads.addresses import heads_of
from transformer.analysis.heads.importance import output_effects
from transformer.analysis.heads.leave_one_out import Hiding, leave_one_out
from transformer.analysis.heads.minimal_set import Goal, SearchPlan, minimal_set
from transformer.analysis.heads.pair_sample import validation_sample
from transformer.analysis.heads.survey import survey
from transformer.analysis.heads.validation_importance import validation_importance
from transformer.analysis.reach.vector_probe import probe_vector
from transformer.analysis.steps.exposure_bias import exposure_bias, readable_pairs
from transformer.analysis.steps.logit_lens import logit_lens
from transformer.analysis.steps.search_tree import search_tree
from transformer.checkpoints.settings import find_checkpoint
from transformer.checkpoints.store import load_checkpoint
from transformer.config import PRESETS, CorpusConfig, RecurrentAttentionKind, TrainConfig
from transformer.data.corpora import load_corpus
from transformer.data.corpus_cache import LearnedTokenizer
from transformer.experiments.paper import listed
from transformer.experiments.results import load_results
from transformer.experiments.study import SHIPPED_STUDY, load_study
from transformer.interventions import Intervention, parse_intervention
from transformer.lab import Lab, load
from transformer.runs.position_moments import learned_table
from transformer.views.attention.entropy import AttentionEntropy
from transformer.views.attention.entry import EntryProducts, EntryShares
from transformer.views.attention.heads import AllHeads, Bertviz
from transformer.views.attention.matrices import AttentionRollout, HeadMatrix, TokenLines
from transformer.views.attention.plane import AttentionInPlane, Points
from transformer.views.before_after import AttentionDifference, BothOutputs, TokenProbabilities
from transformer.views.comparison import HeadMatching, HeadPair, OutputPair
from transformer.views.experiments import AllMeasured, Claims, ExperimentCurves, ExperimentFindings, Measured
from transformer.views.heads.distance import AttentionDistance
from transformer.views.heads.entropy import LayerEntropy
from transformer.views.heads.importance import (
    OutputImportance,
    OutputRanking,
    ValidationImportanceMap,
    ValidationRanking,
)
from transformer.views.heads.leave_one_out import FaithfulnessTable, LeaveOneOut, TokenDependence, WeightAgainstEffect
from transformer.views.heads.minimal_set import MinimalSetOutputs
from transformer.views.heads.subjects import Hidden, Removal, Removed, RemovedOverPairs, Searched, Surveyed, means_of
from transformer.views.heads.survey import HeadProfile, HeadSimilarity, PatternMap, PatternTable
from transformer.views.masks import BatchTokens, EmptyAttentionRow, MaskLeak, SentenceMasks, TeacherForcing
from transformer.views.positions import PositionDimensions, PositionSimilarity, PositionTables, SimilarityByOffset
from transformer.views.positions_scores import ScoreParts
from transformer.views.positions_shifts import ShiftErrors, ShiftMaps
from transformer.views.reach.bottleneck import Bottleneck
from transformer.views.reach.gradients import GradientMap, MeanReach, SentenceReach
from transformer.views.reach.subjects import Probed, SamePairs, SameSentence
from transformer.views.steps.beam_search import BeamTree, HypothesisAttention
from transformer.views.steps.branches import BranchLines, BranchPair, BranchTree
from transformer.views.steps.candidates import StepAttention, StepCandidates
from transformer.views.steps.logit_lens import LogitContributions, LogitLensDepths
from transformer.views.steps.sampling import SampleTree, SamplingDistribution
from transformer.views.steps.subjects import Branches, LensAtStep, MeasuredExposure, Search
from transformer.views.steps.teacher_forcing import ExposureBias, TeacherForcedReference
from transformer.views.study.learning import StudyLearning
from transformer.views.study.lengths import ModelLengths, StudyLengths
from transformer.views.study.verdict import StudyVerdict
from transformer.views.subjects import (
    Batch,
    Compared,
    Decoding,
    LearnedPositions,
    Model,
    PairedStudy,
    Plan,
    Runs,
    SideBySide,
    Text,
    Traced,
)
from transformer.views.tokens.embeddings import EmbeddingMap, NearestTokens
from transformer.views.tokens.merges import BpeMerges
from transformer.views.tokens.subjects import CutText
from transformer.views.tokens.text_tokens import TextTokens
from transformer.views.tokens.vocabulary import VocabularySizes
from transformer.views.trace import StepNumbers, TraceMap
from transformer.views.trace_overview import TraceOverview
from transformer.views.training.plan import LearningRate, SentenceLengths, TrainingMemory
from transformer.views.training.runs import ComparedRuns, RunCurves, SweepChart
from transformer.views.training.timeline import AtStep, SnapshotAttention, decode_snapshot
from transformer.views.view import Subject, View

TEXT, SHORT = "a b c", "d e"


def data_of(view: View[Any], subject: Subject) -> Any:
    """Returns the view's data of a subject."""
    return view.data(*vars(subject).values())


def checks_of(view: View[Any], subject: Subject, data: Any) -> Iterable[Check]:
    """Returns the view's checks of its data."""
    return view.checks(*vars(subject).values(), data)


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


def traced(*names: str, step: int | None = None, through: str = "") -> Callable[[], Traced]:
    """A recorded pass over a sentence under the switches of these names, through the model of symbols or another."""

    def make() -> Traced:
        own = load(through) if through else lab()
        seen = own.inspect(SHORT, switches(names))
        return Traced(own, seen, own.trace(seen, step))

    return cache(make)


def side_by_side(other: str = "reverse", text: str = TEXT, *names: str) -> Callable[[], SideBySide]:
    """A sentence through the shipped model, and a text through another (or the same), under switches."""

    def make() -> SideBySide:
        second = lab() if other == "reverse" else load(other)
        specs = switches(names)
        return SideBySide(lab(), lab().inspect(TEXT, specs), second, second.inspect(text, specs))

    return cache(make)


_LAYOUT = {"drawing": "where boxes and lines lie; no number of the pass"}


def batch(*off: str, through: str = "reverse") -> Callable[[], Batch]:
    """Two sentences of different lengths, without the masks of these names, through a shipped model."""
    return cache(lambda: Batch(load(through), load(through).leak((TEXT, SHORT), switches(off))))  # type: ignore[arg-type]


SWITCHED = ("off:decoder.0.cross:1", "forbid:decoder.0.cross:2,1", "mean:decoder.1.cross:0")
AT = {"layer": 0, "head": 2, "query": 2, "key": 1}

CHANGE = {"after minus before": "the two subtracted"}
OF_SHARES = {"share": "shares of several entries together", "row": "the softmax before it is divided"}


def branch(*names: str, forced: Mapping[int, int]) -> Callable[[], Decoding]:
    """A sentence on which tokens were forced, under the switches of these names."""
    return cache(lambda: Decoding(lab(), lab().inspect(TEXT, switches(names), forced)))


def branches(*names: str) -> Callable[[], Branches]:
    """An output, two branches of it, and before them the output without the switches of these names."""
    specs = switches(names)
    without = [{}] if names else []

    def decode() -> Branches:
        decoded = [lab().inspect(SHORT, (), forced) for forced in without]
        decoded += [lab().inspect(SHORT, specs, forced) for forced in ({}, {1: 5}, {0: 6, 9: 4})]
        return Branches(lab(), tuple(decoded))

    return cache(decode)


def search(*names: str, text: str = SHORT, **settings: Any) -> Callable[[], Search]:
    """A beam search with these settings, under the switches of these names."""

    def found() -> Search:
        seen = lab().inspect(text, switches(names))
        chosen = {"size": 2, "alpha": 0.6, "norm": "paper"} | settings
        tree = search_tree(lab().model, seen.source_ids, seen.interventions, **chosen)
        baseline = search_tree(lab().model, seen.source_ids, (), **chosen) if names else None
        return Search(lab(), seen, tree, baseline)

    return cache(found)


def lens_at(step: int, *names: str) -> Callable[[], LensAtStep]:
    """The logit lens of a step of a branch, under the switches of these names."""

    def found() -> LensAtStep:
        seen = lab().inspect(TEXT, switches(names), {1: 5})
        given = lab().transformer, seen.source_ids, seen.target_ids, step
        baseline = logit_lens(*given) if names else None
        return LensAtStep(lab(), seen, step, logit_lens(*given, seen.interventions), baseline)

    return cache(found)


def exposure(*names: str) -> Callable[[], MeasuredExposure]:
    """Exposure bias over a few pairs, under the switches of these names."""

    def found() -> MeasuredExposure:
        validation = load_corpus(lab().checkpoint.corpus_config).validation
        pairs = readable_pairs(validation, lab().tokenizer, lab().model.config.max_length, 7)
        return MeasuredExposure(lab(), exposure_bias(lab().model, pairs, lab().tokenizer, switches(names)))

    return cache(found)


HEAD_OFF = "off:decoder.0.cross:1"


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


def compared(*names: str) -> Callable[[], Compared]:
    """A sentence decoded without and with the switches of these names."""
    return cache(lambda: Compared(lab(), lab().compare(TEXT, switches(names))))


@cache
def surveyed() -> Surveyed:
    """Surveys the heads over a few pairs of the model's own corpus, which has gold links."""
    sample = validation_sample(lab().checkpoint, 6)
    return Surveyed(lab(), sample, survey(lab().transformer, sample.pairs, lab().tokenizer, unit=sample.unit))


def removed(removal: Removal, *names: str) -> Callable[[], Removed]:
    """Every head removed in turn from a decoding."""

    def make() -> Removed:
        seen = lab().inspect(TEXT, switches(names))
        ids = seen.source_ids, seen.target_ids, seen.interventions
        effects = output_effects(lab().transformer, *ids, means=means_of(lab(), removal))
        return Removed(lab(), seen, removal, effects)

    return cache(make)


def removed_over_pairs(removal: Removal) -> Callable[[], RemovedOverPairs]:
    """Every head removed in turn over a few pairs."""

    def make() -> RemovedOverPairs:
        sample = validation_sample(lab().checkpoint, 8)
        given = lab().transformer, sample.pairs, lab().tokenizer
        found = validation_importance(*given, means=means_of(lab(), removal))
        return RemovedOverPairs(lab(), sample, removal, found)

    return cache(make)


def hidden(hiding: Hiding, *names: str) -> Callable[[], Hidden]:
    """Every source token hidden in turn."""

    def make() -> Hidden:
        seen = lab().inspect(TEXT, switches(names))
        ids = seen.source_ids, seen.target_ids
        return Hidden(lab(), seen, hiding, leave_one_out(lab().transformer, *ids, hiding, seen.interventions))

    return cache(make)


def searched(goal: Goal, *, exact: int, most: int, off: int = 0) -> Callable[[], Searched]:
    """A search among the heads of cross-attention."""

    def make() -> Searched:
        seen = lab().inspect(TEXT)
        heads = tuple(at for at in heads_of(lab().transformer) if at.kind == "cross")[off:]
        plan = SearchPlan(goal, heads, exact=exact, most=most)
        found = minimal_set(lab().transformer, seen.source_ids, seen.target_ids, goal, heads, exact=exact, most=most)
        return Searched(lab(), seen, plan, found)

    return cache(make)


def experiment(name: str) -> Callable[[], Measured]:
    """The shipped results of an experiment on a claim of the paper."""
    return cache(lambda: Measured(load_results(name)))


@cache
def all_experiments() -> AllMeasured:
    """The shipped results of all experiments."""
    return AllMeasured(tuple(load_results(each.name) for each in listed()))


@cache
def recurrent_lab(attention: RecurrentAttentionKind) -> Lab:
    """An untrained recurrent model, whose name is the path of its folder: `load` finds it by that."""
    room = tempfile.TemporaryDirectory()
    atexit.register(room.cleanup)
    folder = Path(room.name) / f"rnn-{attention}"
    save_recurrent(folder, attention)
    return Lab(replace(load_checkpoint(folder), name=str(folder)))


@cache
def probed() -> Probed:
    """The probes of such a model's vector."""
    found = recurrent_lab("none")
    return Probed(found, probe_vector(found.checkpoint))


@cache
def families() -> tuple[Lab, ...]:
    """A recurrent model without attention, one with, and a Transformer."""
    return recurrent_lab("none"), recurrent_lab("additive"), lab()


@cache
def same_sentence() -> SameSentence:
    """A sentence that each of them reads."""
    return SameSentence(families(), tuple(found.inspect(TEXT) for found in families()))


@cache
def same_pairs() -> SamePairs:
    """A few pairs that each of them reads."""
    return SamePairs(families(), validation_sample(families()[0].checkpoint, 4))


BPE = LearnedTokenizer(CorpusConfig(name="emoji-en-de"), "bpe", 400)


def points() -> Points:
    """A query, with the keys and values of three tokens."""
    return Points((1.5, -1.0), ((2.0, 0.5), (-0.5, 2.0), (-1.5, -1.5)), ((2.5, 0.0), (-1.0, 2.5), (-2.0, -2.0)))


EXAMPLES = [
    Example(TokenProbabilities(), compared("off:decoder.0.cross:0,1,2,3")),
    Example(BothOutputs(), compared("off:decoder.0.cross:0,1,2,3")),
    Example(
        AttentionDifference(kind="decoder_self", layer=1, head=0), compared("off:decoder.0.cross:1"), derived=CHANGE
    ),
    Example(HeadMatrix(kind="cross", layer=0, heads=(1,)), decoding(TEXT, *SWITCHED)),
    Example(HeadMatrix(kind="cross", layer=0, heads=(0, 2), how="max", framed=(2, 1)), decoding(TEXT, *SWITCHED)),
    Example(HeadMatrix(kind="encoder_self", layer=1, heads=(0, 3), marks="renormalised", words=True), decoding()),
    Example(HeadMatrix(kind="decoder_self", layer=0, heads=(2,), shows="norms", threshold=0.3), decoding()),
    Example(
        AttentionRollout(kind="encoder_self", layer=1),
        decoding(TEXT, "off:encoder.0.self:1", "scale:encoder.1.self:0:0.5"),
    ),
    Example(AttentionRollout(kind="decoder_self", layer=0, words=True, threshold=0.1), decoding()),
    Example(AttentionRollout(kind="cross", layer=1, marks="hidden"), decoding(TEXT, *SWITCHED)),
    Example(AttentionEntropy(kind="decoder_self", unit="bits", framed=(1, 0, 2)), decoding()),
    Example(AttentionEntropy(kind="cross", marks="hidden"), decoding(TEXT, *SWITCHED)),
    Example(TokenLines(of=HeadMatrix(kind="cross", layer=1, heads=(0, 1, 2, 3))), decoding()),
    Example(AllHeads(kind="cross"), decoding(TEXT, *SWITCHED)),
    Example(Bertviz(kind="cross", marks="renormalised", words=True), decoding(TEXT, *SWITCHED)),
    Example(Bertviz(kind="encoder_self", picture="model", threshold=0.1), decoding()),
    Example(Bertviz(kind="decoder_self", picture="neuron", layer=1, head=2, query=1), decoding()),
    Example(EntryProducts(kind="cross", **AT), decoding(TEXT, *SWITCHED), derived={"products": "term"}),
    Example(EntryShares(kind="decoder_self", **AT), decoding(), derived=OF_SHARES),
    Example(AttentionInPlane(), points),
    Example(AttentionInPlane(scaled=False, hull=True), points),
    Example(BatchTokens(), batch()),
    Example(SentenceMasks(kind="encoder_self", row=1), batch()),
    Example(SentenceMasks(kind="cross", row=1), batch("mask:cross")),
    Example(SentenceMasks(kind="decoder_self", row=1), batch("mask:padding")),
    Example(SentenceMasks(kind="decoder_self", row=0), batch("mask:causal")),
    Example(SentenceMasks(kind="decoder_self", row=1), batch(through="reverse-without-mask")),
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
    Example(StepCandidates(step=1), decoding()),
    Example(StepCandidates(step=2, reference=7, logarithmic=True, n=4), branch(HEAD_OFF, forced={1: 5})),
    Example(StepCandidates(step=1, n=3), decoding(TEXT, "mask:causal")),
    Example(StepAttention(kind="cross", layer=0, step=1), decoding()),
    Example(StepAttention(kind="decoder_self", layer=0, head=1, step=2), branch(HEAD_OFF, forced={1: 5})),
    Example(StepAttention(kind="decoder_self", layer=0, step=1), decoding(TEXT, "mask:causal")),
    Example(BranchLines(), branches()),
    Example(BranchLines(), branches(HEAD_OFF)),
    Example(BranchTree(walked=1), branches()),
    Example(BranchPair(first=1, second=2), branches(HEAD_OFF)),
    Example(BeamTree(), search()),
    Example(BeamTree(chosen=3), search(HEAD_OFF, size=3, alpha=1.0, norm="length", early_stopping=True)),
    Example(BeamTree(), search("mask:causal", text="a")),
    Example(HypothesisAttention(candidate=5, layer=0), search()),
    Example(HypothesisAttention(candidate=2, layer=0, head=1), search(HEAD_OFF)),
    Example(SamplingDistribution(step=1, temperature=0.7, top_k=5, top_p=0.9, min_p=0.01), decoding()),
    Example(SamplingDistribution(step=0, top_k=3), decoding(TEXT, HEAD_OFF)),
    Example(SampleTree(temperature=0.8, top_k=3, n=12, seed=2, most=3), decoding("a")),
    Example(SampleTree(top_k=2, n=8), decoding("a", HEAD_OFF)),
    Example(LogitLensDepths(), lens_at(2)),
    Example(LogitLensDepths(n=2), lens_at(0, HEAD_OFF)),
    Example(LogitContributions(against=7), lens_at(2)),
    Example(LogitContributions(against=4, n=3), lens_at(1, HEAD_OFF)),
    Example(TeacherForcedReference(reference=(5, 4, 2)), decoding("d e")),
    Example(TeacherForcedReference(reference=(8, 7, 6, 5, 4, 9, 2)), decoding("d e", HEAD_OFF)),
    Example(ExposureBias(), exposure()),
    Example(ExposureBias(), exposure(HEAD_OFF)),
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
    Example(StudyVerdict(corpus="copy", past="noise"), shipped_study),
    Example(StudyVerdict(corpus="reverse", past="refuse"), shipped_study),
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
    Example(
        TraceMap(step="decoder.cross.weights"),
        traced("off:decoder.0.cross:0", through="reverse-rnn-attention"),
        unproved=_LAYOUT,
    ),
    Example(StepNumbers(step="encoder.vector"), traced(through="reverse-rnn")),
    Example(StepNumbers(step="decoder.recurrent.gates", row=1), traced(through="reverse-rnn-attention")),
    Example(StepNumbers(step="decoder.cross.weights", row=1, side="all"), traced(through="reverse-rnn-attention")),
    Example(TraceOverview(tokens=(0, 2), steps=(1, 2)), traced("off:decoder.0.cross:1")),
    Example(TraceOverview(tokens=(0, 2), steps=(1, 2)), traced(through="reverse-rnn-attention")),
    Example(TraceOverview(steps=(0, 1)), traced("mask:causal", step=1)),
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
    Example(PatternMap(column="diagonal", chosen="decoder.0.cross.1"), surveyed),
    Example(PatternMap(column="alignment", measure="peak"), surveyed),
    Example(PatternMap(column="entropy"), surveyed),
    Example(PatternTable(columns=("previous", "alignment", "error_rate", "largest")), surveyed),
    Example(PatternTable(columns=("diagonal", "entropy"), measure="peak", heads="cross"), surveyed),
    Example(HeadProfile(head="decoder.0.cross.1"), surveyed),
    Example(HeadProfile(head="encoder.1.self.0"), surveyed),
    Example(AttentionDistance(chosen="encoder.1.self.0"), surveyed),
    Example(LayerEntropy(chosen="encoder.1.self.0"), surveyed),
    Example(HeadSimilarity(kind="cross", closest=0.45), surveyed),
    Example(HeadSimilarity(kind="decoder_self", closest=0.2), surveyed),
    Example(OutputImportance(chosen="decoder.0.cross.1"), removed("zero", "off:decoder.0.cross:1")),
    Example(OutputRanking(most=5), removed("mean")),
    Example(ValidationImportanceMap(measure="loss", chosen="decoder.0.cross.1"), removed_over_pairs("zero")),
    Example(ValidationRanking(measure="loss", most=4), removed_over_pairs("zero")),
    Example(ValidationRanking(measure="exact_match", most=4), removed_over_pairs("mean")),
    Example(MinimalSetOutputs(), searched(Goal(), exact=3, most=4)),
    Example(MinimalSetOutputs(), searched(Goal(0), exact=1, most=1, off=1)),
    Example(
        ExperimentCurves(metric="time_ms", x="n", by="layer", where=(("d", 64),), log_x=True), experiment("table-1")
    ),
    Example(ExperimentCurves(metric="kept_mb", x="d", by="n", where=(("layer", "separable"),)), experiment("table-1")),
    Example(Claims(), all_experiments),
    Example(ExperimentFindings(), experiment("table-1")),
    Example(ExperimentFindings(), experiment("beam-search")),
    Example(ExperimentFindings(), experiment("scaling")),
    Example(
        ExperimentCurves(metric="exact_match", x="rate", by="score", where=(("steps", 400), ("d_k", 64)), log_x=True),
        experiment("scaling"),
    ),
    Example(ExperimentCurves(metric="exact_match", x="averaged", by="task"), experiment("averaging")),
    Example(ExperimentCurves(metric="error", x="look", by="look", where=(("steps", 400),)), experiment("alignment")),
    Example(LeaveOneOut(), hidden("hidden")),
    Example(LeaveOneOut(), hidden("cross", "off:decoder.0.cross:1")),
    Example(WeightAgainstEffect(head="decoder.0.cross.1"), hidden("hidden")),
    Example(TokenDependence(step=1), hidden("hidden")),
    Example(TokenDependence(step=0), hidden("cross", "off:decoder.0.cross:1")),
    Example(FaithfulnessTable(), hidden("hidden")),
    Example(Bottleneck(), probed),
    Example(Bottleneck(shows="lengths"), probed),
    Example(Bottleneck(shows="written"), probed),
    Example(SentenceReach(), same_sentence),
    Example(MeanReach(weights="initial"), same_pairs),
    Example(GradientMap(model=1), same_sentence),
    Example(GradientMap(model=2, weights="initial"), same_sentence),
    Example(
        VocabularySizes(sizes=(60, 310, 400), learned_from=60, measured_on=20),
        lambda: Text(CorpusConfig(name="emoji-en-de")),
    ),
    Example(BpeMerges(step=9), lambda: CutText(BPE, "red heart, red 🦔 hedgehog")),
    Example(BpeMerges(), lambda: CutText(load("emoji-en-fr"), "red heart")),
    Example(TextTokens(), lambda: CutText(BPE, "red heart, red 🦔 hedgehog")),
    Example(TextTokens(), lambda: CutText(load("reverse"), "a zebra b")),
    Example(EmbeddingMap(token="d"), model()),
    Example(EmbeddingMap(token="b", side="target", n=3), lambda: Model(recurrent_lab("none"))),
    Example(NearestTokens(token="</s>", n=30), model()),
    Example(NearestTokens(token="b", side="target"), lambda: Model(recurrent_lab("none"))),
]
