"""A page's own UrlState between reruns, kept equal to the URL.

    PAGE = PageState(Choices, key="steps-page")

    chosen = PAGE.follow_url()          # first thing on the page; then frame(..., own=chosen.parameters())
    chosen = PAGE.settle(scene.view)    # another model or sentence resets what `resets` says
    PAGE.change(beam=3)                 # in callbacks
    say(*PAGE.said("beam"))             # beside the control

The link's word counts where someone else than this session wrote the URL; else what was chosen before.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import streamlit as st

from pages.shared.url.session import choose, session, write_url
from pages.shared.url.url_state import Problem, UrlState

State = TypeVar("State", bound=UrlState)


class Shown(Protocol):
    """The shared view that the page shows."""

    @property
    def model(self) -> str: ...
    @property
    def text(self) -> str: ...


@dataclass
class _Kept(Generic[State]):
    state: State
    problems: tuple[Problem, ...] = ()
    shown: tuple[str, str] | None = None
    """The model and the text that the state belongs to; None where a link has just named it."""


class PageState(Generic[State]):
    """One page's state in the session of each visitor. Holds nothing itself but the class and the session key."""

    def __init__(self, cls: type[State], key: str) -> None:
        self._cls, self._key = cls, key

    @property
    def now(self) -> State:
        """The current choice, whatever the URL says."""
        return self._kept.state

    @property
    def _kept(self) -> _Kept[State]:
        if self._key not in st.session_state:
            st.session_state[self._key] = _Kept(self._cls())
        return st.session_state[self._key]

    def follow_url(self) -> State:
        """Returns the current choice: the URL's, if someone else wrote it; else what was chosen before."""
        kept = self._kept
        if session().touched:
            kept.problems = ()
            return kept.state
        in_url = {name: st.query_params.get_all(name) for name in self._cls.names() if name in st.query_params}
        if in_url and in_url != _as_lists(kept.state.parameters()):
            kept.state, kept.problems = self._cls.read(in_url)
            kept.shown = None
        return kept.state

    def settle(self, view: Shown) -> State:
        """The state as it fits what the page shows: another model or text resets what its fields say."""
        kept, shown = self._kept, (view.model, view.text)
        if kept.shown is not None and kept.shown != shown:
            pairs = zip(("model", "text"), kept.shown, shown, strict=True)
            kept.shown = shown
            self.put(kept.state.reset_by(*(name for name, before, now in pairs if before != now)))
        kept.shown = shown
        return kept.state

    def change(self, **changes: Any) -> None:
        """Changes something on behalf of the visitor; for callbacks."""
        kept = self._kept
        kept.state, kept.problems = kept.state.changed(**changes), ()
        choose()

    def put(self, state: State) -> None:
        """Replaces the state while the page runs, and the URL with it; the problems of a link stay."""
        self._kept.state = state
        session().own = state.parameters()
        write_url()

    def take(self, name: str) -> Callable[[Any], None]:
        """Returns a callback that takes over one field's value from a control."""
        return lambda value: self.change(**{name: value})

    def said(self, *places: str) -> tuple[str, ...]:
        """The sentences about the link that was followed that belong beside these controls; all, where none is named.

        They are gone with the visitor's next change.
        """
        return tuple(p.sentence for p in self._kept.problems if not places or p.place in places)


def _as_lists(parameters: dict[str, str | list[str]]) -> dict[str, list[str]]:
    return {name: [value] if isinstance(value, str) else value for name, value in parameters.items()}
