"""What is chosen on the Positions page alone, kept over page changes and in the URL, and the controls for it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pages.shared import fields
from pages.shared.url.page_state import PageState
from pages.shared.url.url_state import Form, Refused, UrlState, param, text, whole, words
from transformer.analysis.positions.tables import Likeness
from transformer.model.position_extension import EXTENSIONS, Extension
from transformer.model.taps import Stack

Section = Literal["table", "distances", "shifts", "scores", "break", "beyond", "study"]
Layout = Literal["interleaved", "concatenated"]
SECTIONS: dict[Section, str] = {
    "table": "The table",
    "distances": "Distances",
    "shifts": "Relative shifts",
    "scores": "What attention does with them",
    "break": "Break it",
    "beyond": "Beyond the trained length",
    "study": "The paired study",
}
LONGEST = 512
"""Positions and dimensions up to which tables are drawn."""
LONGEST_NAME = 200
"""Characters of a name in the URL."""
BASES = (2, 10, 100, 1_000, 10_000, 100_000, 1_000_000)


def _moment(text: str) -> str:
    if text in ("trained", "start") or (text.isascii() and text.isdecimal() and len(text) < 8):
        return text
    raise Refused("must be trained, start or the step of a snapshot")


@dataclass(frozen=True, kw_only=True)
class Choices(UrlState):
    """Empty values mean "what suits best"."""

    section: Section = param("table", words(*get_args(Section)))
    table: str = param("", text(LONGEST_NAME))
    """The model whose learned table is shown."""
    stack: Stack = param("encoder", words(*get_args(Stack)))
    moment: str = param("trained", Form(_moment))
    """trained, start, or the step of a snapshot."""
    d_model: int | None = param(None, whole(2, LONGEST, multiple_of=2))
    length: int | None = param(None, whole(2, LONGEST))
    base: int = param(10_000, words(*BASES))
    layout: Layout = param("interleaved", words(*get_args(Layout)))
    frequency: int = param(2, whole(0, LONGEST // 2 - 1))
    likeness: Likeness = param("cosine", words(*get_args(Likeness)))
    k: int = param(1, whole(0, LONGEST))
    study: str = param("", text(LONGEST_NAME))
    """The study whose results are shown."""
    task: str = param("", text(LONGEST_NAME))
    """The corpus of the study."""
    past: Extension = param("noise", words(*EXTENSIONS))
    """What a learned table does past its last trained row."""


PAGE = PageState(Choices, key="positions-page")


def segments(name: str, label: str, options: Mapping[Any, str], value: object) -> None:
    """One of a few words."""
    fields.segments(
        label, list(options), value, PAGE.take(name), key=_key(name), names=options.__getitem__, hide_label=False
    )


def box(name: str, label: str, options: Sequence[Any], value: object, names: Callable[[Any], str] = str) -> None:
    """One of many."""
    fields.box(label, options, value, PAGE.take(name), key=_key(name), names=names)


def slider(name: str, label: str, low: int, high: int, value: int, *, step: int = 1) -> None:
    """A whole number between two others."""
    fields.slider(label, low, high, min(max(value, low), high), PAGE.take(name), key=_key(name), step=step)


def stepped(name: str, label: str, options: Sequence[int], value: int) -> None:
    """One of some ordered numbers."""
    fields.stepped(label, options, value, PAGE.take(name), key=_key(name), names="{:,}".format)


def _key(name: str) -> str:
    return f"positions-{name}"
