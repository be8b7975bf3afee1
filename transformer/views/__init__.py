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

__all__ = [
    "BatchTokens",
    "EmptyAttentionRow",
    "FaithfulnessTable",
    "HeadProfile",
    "HeadSimilarity",
    "LeaveOneOut",
    "MaskLeak",
    "MinimalSetOutputs",
    "OutputImportance",
    "OutputRanking",
    "PatternMap",
    "PatternTable",
    "SentenceMasks",
    "TeacherForcing",
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
}
"""The views of each module here."""


def __getattr__(name: str) -> Any:
    """Imports the module of a view."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
