"""What each figure is, one class a figure: its options, the numbers behind it, the picture, its tables and its checks.

    from transformer import load
    from transformer.views import TeacherForcing
    lab = load("reverse")
    view, seen = TeacherForcing(), lab.inspect("a b c")
    view.figure(view.data(lab, seen)).show()

Views are imported when they are first asked for: naming one loads neither torch nor plotly.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformer.views.attention.entry import EntryProducts, EntryShares
    from transformer.views.attention.heads import AllHeads, Bertviz
    from transformer.views.attention.matrices import AttentionEntropy, AttentionRollout, HeadMatrix, TokenLines
    from transformer.views.before_after import AttentionDifference, BothOutputs, TokenProbabilities
    from transformer.views.comparison import HeadMatching, HeadPair, OutputPair
    from transformer.views.heads.importance import (
        OutputImportance,
        OutputRanking,
        ValidationImportanceMap,
        ValidationRanking,
    )
    from transformer.views.heads.leave_one_out import FaithfulnessTable, LeaveOneOut, WeightAgainstEffect
    from transformer.views.heads.minimal_set import MinimalSetOutputs
    from transformer.views.heads.survey import HeadProfile, HeadSimilarity, PatternMap, PatternTable
    from transformer.views.masks import BatchTokens, EmptyAttentionRow, MaskLeak, SentenceMasks, TeacherForcing
    from transformer.views.plan import LearningRate, SentenceLengths, TrainingMemory
    from transformer.views.positions import PositionDimensions, PositionSimilarity, PositionTables, SimilarityByOffset
    from transformer.views.positions_scores import ScoreParts
    from transformer.views.positions_shifts import ShiftErrors, ShiftMaps
    from transformer.views.runs import ComparedRuns, RunCurves, SweepChart
    from transformer.views.steps import BranchLines, BranchPair, BranchTree, StepAttention, StepCandidates
    from transformer.views.steps_logit_lens import LogitContributions, LogitLensDepths
    from transformer.views.steps_outputs import BeamTree, HypothesisAttention, SampleTree, SamplingDistribution
    from transformer.views.steps_teacher_forcing import ExposureBias, TeacherForcedReference
    from transformer.views.study import ModelLengths, StudyLearning, StudyLengths
    from transformer.views.study_verdict import StudyVerdict
    from transformer.views.timeline import SnapshotAttention
    from transformer.views.trace import StepNumbers, TraceMap

__all__ = [
    "AllHeads",
    "AttentionDifference",
    "AttentionEntropy",
    "AttentionRollout",
    "BatchTokens",
    "BeamTree",
    "Bertviz",
    "BothOutputs",
    "BranchLines",
    "BranchPair",
    "BranchTree",
    "ComparedRuns",
    "EmptyAttentionRow",
    "EntryProducts",
    "EntryShares",
    "ExposureBias",
    "FaithfulnessTable",
    "HeadMatching",
    "HeadMatrix",
    "HeadPair",
    "HeadProfile",
    "HeadSimilarity",
    "HypothesisAttention",
    "LearningRate",
    "LeaveOneOut",
    "LogitContributions",
    "LogitLensDepths",
    "MaskLeak",
    "MinimalSetOutputs",
    "ModelLengths",
    "OutputImportance",
    "OutputPair",
    "OutputRanking",
    "PatternMap",
    "PatternTable",
    "PositionDimensions",
    "PositionSimilarity",
    "PositionTables",
    "RunCurves",
    "SampleTree",
    "SamplingDistribution",
    "ScoreParts",
    "SentenceLengths",
    "SentenceMasks",
    "ShiftErrors",
    "ShiftMaps",
    "SimilarityByOffset",
    "SnapshotAttention",
    "StepAttention",
    "StepCandidates",
    "StepNumbers",
    "StudyLearning",
    "StudyLengths",
    "StudyVerdict",
    "SweepChart",
    "TeacherForcedReference",
    "TeacherForcing",
    "TokenLines",
    "TokenProbabilities",
    "TraceMap",
    "TrainingMemory",
    "ValidationImportanceMap",
    "ValidationRanking",
    "WeightAgainstEffect",
]

_MODULES = {
    "attention.entry": ("EntryProducts", "EntryShares"),
    "attention.heads": ("AllHeads", "Bertviz"),
    "comparison": ("HeadMatching", "HeadPair", "OutputPair"),
    "attention.matrices": ("AttentionEntropy", "AttentionRollout", "HeadMatrix", "TokenLines"),
    "before_after": ("AttentionDifference", "BothOutputs", "TokenProbabilities"),
    "heads.importance": ("OutputImportance", "OutputRanking", "ValidationImportanceMap", "ValidationRanking"),
    "heads.leave_one_out": ("FaithfulnessTable", "LeaveOneOut", "WeightAgainstEffect"),
    "heads.minimal_set": ("MinimalSetOutputs",),
    "heads.survey": ("HeadProfile", "HeadSimilarity", "PatternMap", "PatternTable"),
    "masks": ("BatchTokens", "EmptyAttentionRow", "MaskLeak", "SentenceMasks", "TeacherForcing"),
    "plan": ("LearningRate", "SentenceLengths", "TrainingMemory"),
    "positions": ("PositionDimensions", "PositionSimilarity", "PositionTables", "SimilarityByOffset"),
    "positions_scores": ("ScoreParts",),
    "positions_shifts": ("ShiftErrors", "ShiftMaps"),
    "runs": ("ComparedRuns", "RunCurves", "SweepChart"),
    "steps": ("BranchLines", "BranchPair", "BranchTree", "StepAttention", "StepCandidates"),
    "steps_logit_lens": ("LogitContributions", "LogitLensDepths"),
    "steps_outputs": ("BeamTree", "HypothesisAttention", "SampleTree", "SamplingDistribution"),
    "steps_teacher_forcing": ("ExposureBias", "TeacherForcedReference"),
    "study": ("ModelLengths", "StudyLearning", "StudyLengths"),
    "study_verdict": ("StudyVerdict",),
    "timeline": ("SnapshotAttention",),
    "trace": ("StepNumbers", "TraceMap"),
}
"""The views of each module here."""


def __getattr__(name: str) -> Any:
    """Imports the module of a view."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
