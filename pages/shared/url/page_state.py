"""The states of a page between reruns, each kept equal to the URL.

    PAGE = PageState(Choices, key="steps-page")

    context = frame(question, PAGE)      # first thing on a page that shows a sentence: follows the URL
    chosen = PAGE.settle(context.view)   # another model or sentence resets what `resets` says
    PAGE.change(beam=3)                  # in callbacks
    say(*PAGE.said("beam"))              # beside the control

The URL counts where a link, a reload or the back button brought it (see session.py); else what was chosen before. A
page that shows no sentence has a `UrlPart` for each part of it that reads and writes its own parameters: `follow_url()`
first, `write_url()` last.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import streamlit as st

from pages.shared.url.session import choose, session, take_link, write_part, write_url
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
    changes: int = 0
    """The visitor's changes of the view when there last were problems: they are gone with the next one."""


class PageState(Generic[State]):
    """One page's state in the session of each visitor. Holds nothing itself but the class and the session key."""

    def __init__(self, cls: type[State], key: str) -> None:
        self._cls, self._key = cls, key

    @property
    def now(self) -> State:
        """Returns the current choice, whatever the URL says."""
        return self._kept.state

    @property
    def _kept(self) -> _Kept[State]:
        if self._key not in st.session_state:
            st.session_state[self._key] = _Kept(self._cls())
        return st.session_state[self._key]

    def follow_url(self) -> State:
        """Returns the current choice: the URL's, if a link brought it; else what was chosen before."""
        kept = self._kept
        if found := take_link(self._key, self._cls.names(), kept.state.parameters()):
            kept.state, problems = self._cls.read(found)
            kept.shown, kept.problems = None, ()
            self.tell(*problems)
        return kept.state

    def settle(self, view: Shown) -> State:
        """Returns the state as it fits what the page shows: another model or text resets what its fields say."""
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

    def tell(self, *problems: Problem) -> None:
        """Adds problems to those of the link, each in place of an earlier one beside the same control."""
        places = {problem.place for problem in problems}
        others = (problem for problem in self._problems if problem.place not in places)
        self._kept.problems, self._kept.changes = (*others, *problems), session().changes

    def said(self, *places: str) -> tuple[str, ...]:
        """Returns the sentences about the last link that belong beside these controls; all of them if none is named.

        They are gone with the visitor's next change.
        """
        return tuple(p.sentence for p in self._problems if not places or p.place in places)

    @property
    def problems(self) -> dict[str, str]:
        """Returns the same sentences by the control beside which they belong."""
        return {problem.place: problem.sentence for problem in self._problems}

    @property
    def _problems(self) -> tuple[Problem, ...]:
        return self._kept.problems if self._kept.changes == session().changes else ()


class UrlPart(PageState[State]):
    """The state of one part of a page that shows no sentence: it reads and writes its own parameters and no others."""

    def change(self, **changes: Any) -> None:
        """Changes something on behalf of the visitor."""
        kept = self._kept
        kept.state, kept.problems = kept.state.changed(**changes), ()

    def put(self, state: State) -> None:
        """Replaces the state while the page runs; the problems of a link stay."""
        self._kept.state = state

    def write_url(self) -> None:
        """Puts this part's parameters into the URL, and takes its others out of it."""
        write_part(self._cls.names(), self._kept.state.parameters())
