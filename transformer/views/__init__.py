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
    from transformer.views.heads_importance import (
        OutputImportance,
        OutputRanking,
        ValidationImportanceMap,
        ValidationRanking,
    )
    from transformer.views.heads_leave_one_out import FaithfulnessTable, LeaveOneOut, WeightAgainstEffect
    from transformer.views.heads_minimal_set import MinimalSetOutputs
    from transformer.views.heads_survey import HeadProfile, HeadSimilarity, PatternMap, PatternTable
    from transformer.views.masks import BatchTokens, EmptyAttentionRow, MaskLeak, SentenceMasks, TeacherForcing
    from transformer.views.plan import LearningRate, SentenceLengths, TrainingMemory
    from transformer.views.positions import PositionDimensions, PositionSimilarity, PositionTables, SimilarityByOffset
    from transformer.views.positions_scores import ScoreParts
    from transformer.views.positions_shifts import ShiftErrors, ShiftMaps
    from transformer.views.runs import ComparedRuns, RunCurves, SweepChart
    from transformer.views.study import ModelLengths, StudyLearning, StudyLengths
    from transformer.views.timeline import SnapshotAttention
    from transformer.views.trace import StepNumbers, TraceMap

__all__ = [
    "BatchTokens",
    "ComparedRuns",
    "EmptyAttentionRow",
    "FaithfulnessTable",
    "HeadProfile",
    "HeadSimilarity",
    "LearningRate",
    "LeaveOneOut",
    "MaskLeak",
    "MinimalSetOutputs",
    "ModelLengths",
    "OutputImportance",
    "OutputRanking",
    "PatternMap",
    "PatternTable",
    "PositionDimensions",
    "PositionSimilarity",
    "PositionTables",
    "RunCurves",
    "ScoreParts",
    "SentenceLengths",
    "SentenceMasks",
    "ShiftErrors",
    "ShiftMaps",
    "SimilarityByOffset",
    "SnapshotAttention",
    "StepNumbers",
    "StudyLearning",
    "StudyLengths",
    "SweepChart",
    "TeacherForcing",
    "TraceMap",
    "TrainingMemory",
    "ValidationImportanceMap",
    "ValidationRanking",
    "WeightAgainstEffect",
]

_MODULES = {
    "heads_importance": (
        "OutputImportance",
        "OutputRanking",
        "ValidationImportanceMap",
        "ValidationRanking",
    ),
    "heads_leave_one_out": (
        "FaithfulnessTable",
        "LeaveOneOut",
        "WeightAgainstEffect",
    ),
    "heads_minimal_set": ("MinimalSetOutputs",),
    "heads_survey": (
        "HeadProfile",
        "HeadSimilarity",
        "PatternMap",
        "PatternTable",
    ),
    "masks": ("BatchTokens", "EmptyAttentionRow", "MaskLeak", "SentenceMasks", "TeacherForcing"),
    "plan": ("LearningRate", "SentenceLengths", "TrainingMemory"),
    "positions": ("PositionDimensions", "PositionSimilarity", "PositionTables", "SimilarityByOffset"),
    "positions_scores": ("ScoreParts",),
    "positions_shifts": ("ShiftErrors", "ShiftMaps"),
    "runs": ("ComparedRuns", "RunCurves", "SweepChart"),
    "study": ("ModelLengths", "StudyLearning", "StudyLengths"),
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
