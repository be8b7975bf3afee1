"""What is chosen on Two at once alone: what stands beside the page's model and sentence; in the URL too."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

import streamlit as st

from pages.common.state import choose, visit

Two = Literal["models", "sentences"]
Pairing = Literal["", "matched", "same"]
_KEY, _MISREAD = "two-page", "two-misread"
_LONGEST = 1_000


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Empty values mean "what suits best"."""

    two: Two = "models"
    """Two models on one sentence, or two sentences through one model."""
    other: str = ""
    """The model on the right."""
    at: str = ""
    """The step at which the left model is taken out of its run; empty: the weights that it ended with."""
    other_at: str = ""
    """The same for the right one."""
    other_text: str = ""
    """The sentence on the right."""
    pairing: Pairing = ""
    """Which head stands on the right: the one that was matched, or the one in the same place."""

    def parameters(self) -> dict[str, str]:
        """The query parameters that `read` turns into this again; defaults are left out."""
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name)) != f.default}


def read(parameters: Mapping[str, str]) -> tuple[Choices, tuple[str, ...]]:
    """The choices in these query parameters, and a sentence for each that cannot be taken as it stands."""
    found: dict[str, Any] = {}
    said: list[str] = []
    for name, text in parameters.items():
        words = {"two": get_args(Two), "pairing": get_args(Pairing)[1:]}.get(name)
        if words is not None and text not in words:
            said.append(f"The link says {name} “{text[:30]}”, which must be one of: {', '.join(words)}.")
        elif name in ("at", "other_at") and not (text.isascii() and text.isdecimal() and len(text) < 10):
            said.append(f"The link says {name} “{text[:30]}”, which is no step; these are the weights at the end.")
        else:
            found[name] = text[:_LONGEST]
            if len(text) > _LONGEST:
                said.append(f"The link's {name} has {len(text):,} characters: the first {_LONGEST:,} are taken.")
    return Choices(**found), tuple(said)


def choices() -> Choices:
    """What is chosen now: the URL's word where someone else than this session wrote it, else what was chosen before."""
    names = {f.name for f in fields(Choices)}
    in_url = {name: st.query_params[name] for name in names if name in st.query_params}
    kept: Choices = st.session_state.setdefault(_KEY, Choices())
    if in_url and in_url != kept.parameters() and not visit().touched:
        kept, st.session_state[_MISREAD] = read(in_url)
        st.session_state[_KEY] = kept
    return kept


def misread() -> tuple[str, ...]:
    """What is to be said about the link that was followed, until the next change."""
    return st.session_state.get(_MISREAD, ())


def change(**changes: Any) -> None:
    """Changes something on behalf of the visitor; for callbacks."""
    st.session_state[_KEY] = replace(st.session_state[_KEY], **changes)
    st.session_state.pop(_MISREAD, None)
    choose()
