"""The Positions page's own choices, kept in the URL and across page changes, and the controls for them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pages.shared import fields
from pages.shared.url.page_state import PageState
from pages.shared.url.url_state import TEXTS, Form, Refused, UrlState, param, text, whole, words
from transformer.analysis.positions.tables import Similarity
from transformer.model.position_extension import EXTENSIONS, Extension
from transformer.model.taps import Stack
from transformer.views.positions import Layout

Section = Literal["table", "distances", "shifts", "scores", "break", "beyond", "study"]
SECTIONS: dict[Section, str] = {
    "table": "The table",
    "distances": "Distances",
    "shifts": "Relative shifts",
    "scores": "What attention does with them",
    "break": "Break it",
    "beyond": "Beyond the trained length",
    "study": "The paired study",
}
MAX_SIZE = 512
"""The number of positions and of dimensions of the largest table."""
MAX_NAME = 200
"""The largest number of characters of a name in the URL."""
BASES = (2, 10, 100, 1_000, 10_000, 100_000, 1_000_000)


def _moment(text: str) -> str:
    if text in ("trained", "start") or (text.isascii() and text.isdecimal() and len(text) < 8):
        return text
    raise Refused(TEXTS("expected.moment"))


@dataclass(frozen=True, kw_only=True)
class Choices(UrlState):
    """The visitor's choices; empty values take what suits the model best."""

    section: Section = param("table", words(*get_args(Section)))
    table: str = param("", text(MAX_NAME))
    """The model whose learned table is shown."""
    stack: Stack = param("encoder", words(*get_args(Stack)))
    moment: str = param("trained", Form(_moment))
    """"trained", "start", or the step of a snapshot."""
    d_model: int | None = param(None, whole(2, MAX_SIZE, multiple_of=2))
    length: int | None = param(None, whole(2, MAX_SIZE))
    base: int = param(10_000, words(*BASES))
    layout: Layout = param("interleaved", words(*get_args(Layout)))
    frequency: int = param(2, whole(0, MAX_SIZE // 2 - 1))
    likeness: Similarity = param("cosine", words(*get_args(Similarity)))
    k: int = param(1, whole(0, MAX_SIZE))
    study: str = param("", text(MAX_NAME))
    """The study whose results are shown."""
    task: str = param("", text(MAX_NAME))
    """The corpus of the study."""
    past: Extension = param("noise", words(*EXTENSIONS))
    """The extension of a learned table past its last trained row."""


PAGE = PageState(Choices, key="positions-page")


def segments(name: str, label: str, options: Mapping[Any, str], value: object) -> None:
    """Renders a choice of a few words."""
    fields.segments(label, options, value, PAGE.take(name), key=_key(name), hide_label=False)


def box(name: str, label: str, options: Sequence[Any], value: object, names: Callable[[Any], str] = str) -> None:
    """Renders a choice of many."""
    fields.box(label, options, value, PAGE.take(name), key=_key(name), names=names)


def slider(name: str, label: str, low: int, high: int, value: int, *, step: int = 1) -> None:
    """Renders a slider for a whole number."""
    fields.slider(label, low, high, min(max(value, low), high), PAGE.take(name), key=_key(name), step=step)


def stepped(name: str, label: str, options: Sequence[int], value: int) -> None:
    """Renders a slider over some ordered numbers."""
    fields.stepped(label, options, value, PAGE.take(name), key=_key(name), names="{:,}".format)


def _key(name: str) -> str:
    return f"positions-{name}"
