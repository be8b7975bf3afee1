"""What is chosen on the Positions page alone, kept over page changes and in the URL, and the controls for it."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import fields as fields_of
from typing import Any, Literal, get_args

import streamlit as st

from pages.common import fields
from pages.common.state import choose, visit
from transformer.analysis.positions import Likeness
from transformer.position_extension import EXTENSIONS, Extension
from transformer.taps import Stack

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
BASES = (2, 10, 100, 1_000, 10_000, 100_000, 1_000_000)

_PAGE = "positions-page"


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Empty values mean "what suits best"."""

    section: Section = "table"
    table: str = ""
    """The model whose learned table is shown."""
    stack: Stack = "encoder"
    moment: str = "trained"
    """trained, start, or the step of a snapshot."""
    d_model: int | None = None
    length: int | None = None
    base: int = 10_000
    layout: Layout = "interleaved"
    frequency: int = 2
    likeness: Likeness = "cosine"
    k: int = 1
    study: str = ""
    """The study whose results are shown."""
    task: str = ""
    """The corpus of the study."""
    past: Extension = "noise"
    """What a learned table does past its last trained row."""

    def parameters(self) -> dict[str, str]:
        """The query parameters that `read` turns into this again; defaults are left out."""
        return {f.name: str(v) for f in fields_of(self) if (v := getattr(self, f.name)) != f.default}


def read(parameters: Mapping[str, str]) -> Choices:
    """The choices in these query parameters; what makes no sense is left at its default."""
    found: dict[str, Any] = {}
    words: dict[str, Sequence[object]] = {
        "section": get_args(Section),
        "stack": get_args(Stack),
        "layout": get_args(Layout),
        "likeness": get_args(Likeness),
        "base": BASES,
        "past": EXTENSIONS,
    }
    limits = {"d_model": (2, LONGEST), "length": (2, LONGEST), "frequency": (0, LONGEST // 2 - 1), "k": (0, LONGEST)}
    for name, text in parameters.items():
        value: object = int(text) if re.fullmatch(r"[0-9]{1,7}", text) else text
        if name in words and value in words[name]:
            found[name] = value
        elif name in limits and isinstance(value, int) and limits[name][0] <= value <= limits[name][1]:
            found[name] = value - value % 2 if name == "d_model" else value
        elif name in ("table", "study", "task") or (name == "moment" and (text == "start" or isinstance(value, int))):
            found[name] = text
    return Choices(**found)


def choices() -> Choices:
    """What is chosen now: the URL's word where someone else than this session wrote it, else what was chosen before."""
    names = {f.name for f in fields_of(Choices)}
    in_url = {name: st.query_params[name] for name in names if name in st.query_params}
    kept: Choices = st.session_state.setdefault(_PAGE, Choices())
    if in_url and in_url != kept.parameters() and not visit().touched:
        st.session_state[_PAGE] = kept = read(in_url)
    return kept


def change(**changes: Any) -> None:
    """Changes something on behalf of the visitor; for callbacks."""
    st.session_state[_PAGE] = replace(st.session_state[_PAGE], **changes)
    choose()


def segments(name: str, label: str, options: Mapping[Any, str], value: object) -> None:
    """One of a few words."""
    fields.segments(
        label, list(options), value, _taker(name), key=_key(name), names=options.__getitem__, hide_label=False
    )


def box(name: str, label: str, options: Sequence[Any], value: object, names: Callable[[Any], str] = str) -> None:
    """One of many."""
    fields.box(label, options, value, _taker(name), key=_key(name), names=names)


def slider(name: str, label: str, low: int, high: int, value: int, *, step: int = 1) -> None:
    """A whole number between two others."""
    fields.slider(label, low, high, min(max(value, low), high), _taker(name), key=_key(name), step=step)


def stepped(name: str, label: str, options: Sequence[int], value: int) -> None:
    """One of some ordered numbers."""
    fields.stepped(label, options, value, _taker(name), key=_key(name), names="{:,}".format)


def _key(name: str) -> str:
    return f"positions-{name}"


def _taker(name: str) -> Callable[[Any], None]:
    return lambda value: change(**{name: value})
