"""The states of a page between reruns, each kept equal to the URL.

    PAGE = PageState(Choices, key="steps-page")

    context = frame(question, PAGE)      # first thing on a page that shows a sentence: follows the URL
    chosen = PAGE.settle(context.view)   # another model or sentence resets what `resets` says
    PAGE.change(beam=3)                  # in callbacks
    say(*PAGE.said("beam"))              # beside the control

The URL counts where someone else than this session wrote it; else what was chosen before. A page that shows no sentence
has a `UrlPart` for each part of it that reads and writes its own parameters: `follow_url()` first, `write_url()` last.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import streamlit as st

from pages.shared.url.session import as_lists, catch_up, choose, in_url, note_url, session, went_back, write_url
from pages.shared.url.url_state import Problem, UrlState

State = TypeVar("State", bound=UrlState)
LATE_S = 3.0
"""The time after a change of the URL, or since it last came, in which the one before still arrives from a browser that
has not seen the change. Later it is a link."""


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
    written: dict[str, list[str]] | None = None
    """The parameters of a part as this session last wrote or read them."""
    replaced: list[tuple[float, dict[str, list[str]]]] = field(default_factory=list)
    """The parameters before that, and when they were replaced: a rerun sent just before still carries them."""
    touched: bool = False
    """True if a control of a part was changed since the last run: it goes before a URL that is on its way."""


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
        """Returns the current choice: the URL's, if someone else wrote it; else what was chosen before."""
        kept, found = self._kept, in_url(self._cls.names())
        if session().touched:
            kept.problems = ()
        elif found and found != as_lists(kept.state.parameters()):
            self._read(found)
        return kept.state

    def _read(self, found: dict[str, list[str]]) -> None:
        kept = self._kept
        kept.state, kept.problems = self._cls.read(found)
        kept.shown, kept.written = None, found

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
        kept, places = self._kept, {problem.place for problem in problems}
        kept.problems = (*(problem for problem in kept.problems if problem.place not in places), *problems)

    def said(self, *places: str) -> tuple[str, ...]:
        """Returns the sentences about the last link that belong beside these controls; all of them if none is named.

        They are gone with the visitor's next change.
        """
        return tuple(p.sentence for p in self._kept.problems if not places or p.place in places)

    @property
    def problems(self) -> dict[str, str]:
        """Returns the same sentences by the control beside which they belong."""
        return {problem.place: problem.sentence for problem in self._kept.problems}


class UrlPart(PageState[State]):
    """The state of one part of a page that shows no sentence: it reads and writes its own parameters and no others.

    Such pages run again by themselves while a run is at work, so a rerun may carry a URL from before the last change.
    """

    def follow_url(self) -> State:
        """Returns the current choice: the URL's, if someone else wrote it; else what was chosen before."""
        kept, found = self._kept, in_url(self._cls.names())
        now = time.monotonic()
        kept.replaced = [(when, url) for when, url in kept.replaced if now - when < LATE_S]
        is_late = any(url == found for _, url in kept.replaced) and not went_back()
        if is_late:  # the next from this browser may be as late
            kept.replaced = [(now if url == found else when, url) for when, url in kept.replaced]
        if found and found != kept.written and not kept.touched and not is_late:
            self._read(found)
        kept.touched = False
        return kept.state

    def change(self, **changes: Any) -> None:
        """Changes something on behalf of the visitor."""
        kept = self._kept
        kept.state, kept.problems, kept.touched = kept.state.changed(**changes), (), True

    def put(self, state: State) -> None:
        """Replaces the state while the page runs; the problems of a link stay."""
        self._kept.state = state

    def refuse(self, problem: Problem) -> None:
        """Leaves the state as it is after a change that cannot be taken over, and says why."""
        self.tell(problem)
        self._kept.touched = True

    def write_url(self) -> None:
        """Puts this part's parameters into the URL, and takes its others out of it."""
        catch_up()
        kept, found = self._kept, in_url(self._cls.names())
        before, kept.written = kept.written, as_lists(kept.state.parameters())
        if before is not None and before != kept.written:
            kept.replaced.append((time.monotonic(), before))
        if changed := {name: values for name, values in kept.written.items() if found.get(name) != values}:
            st.query_params.update(changed)
        for name in found.keys() - kept.written.keys():
            del st.query_params[name]
        kept.touched = False
        note_url(*self._cls.names())
