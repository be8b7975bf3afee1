"""What is chosen on the Positions page alone, kept over page changes and in the URL, and the controls for it."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

import streamlit as st

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

_KEY = "positions-page"


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
        return {f.name: str(v) for f in fields(self) if (v := getattr(self, f.name)) != f.default}


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
    names = {f.name for f in fields(Choices)}
    in_url = {name: st.query_params[name] for name in names if name in st.query_params}
    kept: Choices = st.session_state.setdefault(_KEY, Choices())
    if in_url and in_url != kept.parameters() and not visit().touched:
        st.session_state[_KEY] = kept = read(in_url)
    return kept


def change(**changes: Any) -> None:
    """Changes something on behalf of the visitor; for callbacks."""
    st.session_state[_KEY] = replace(st.session_state[_KEY], **changes)
    choose()


def segments(name: str, label: str, options: Mapping[Any, str], value: object) -> None:
    """One of a few words."""
    key = _put(name, value)
    st.segmented_control(
        label, list(options), key=key, format_func=options.__getitem__, required=True, on_change=_taker(name, key)
    )


def box(name: str, label: str, options: Sequence[Any], value: object, format_func: Callable[[Any], str] = str) -> None:
    """One of many."""
    key = _put(name, value)
    st.selectbox(label, options, key=key, format_func=format_func, on_change=_taker(name, key))


def slider(name: str, label: str, low: int, high: int, value: int, *, step: int = 1, help: str | None = None) -> None:
    """A whole number between two others."""
    key = _put(name, min(max(value, low), high))
    st.slider(label, low, high, step=step, key=key, help=help, on_change=_taker(name, key))


def stepped(name: str, label: str, options: Sequence[int], value: int) -> None:
    """One of some ordered numbers."""
    key = _put(name, value)
    st.select_slider(label, options, key=key, format_func=lambda n: f"{n:,}", on_change=_taker(name, key))


def _put(name: str, value: object) -> str:
    key = f"positions-{name}"
    st.session_state[key] = value
    return key


def _taker(name: str, key: str) -> Callable[[], None]:
    return lambda: change(**{name: st.session_state[key]})
