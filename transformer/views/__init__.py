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
    from transformer.views.comparison import HeadMatching, HeadPair, OutputPair
    from transformer.views.masks import BatchTokens, EmptyAttentionRow, MaskLeak, SentenceMasks, TeacherForcing
    from transformer.views.trace import StepNumbers, TraceMap

__all__ = [
    "BatchTokens",
    "EmptyAttentionRow",
    "HeadMatching",
    "HeadPair",
    "MaskLeak",
    "OutputPair",
    "SentenceMasks",
    "StepNumbers",
    "TeacherForcing",
    "TraceMap",
]

_MODULES = {
    "comparison": ("HeadMatching", "HeadPair", "OutputPair"),
    "masks": ("BatchTokens", "EmptyAttentionRow", "MaskLeak", "SentenceMasks", "TeacherForcing"),
    "trace": ("StepNumbers", "TraceMap"),
}
"""The views of each module here."""


def __getattr__(name: str) -> Any:
    """Imports the module of a view."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
