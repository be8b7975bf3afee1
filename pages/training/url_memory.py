"""The query parameters of one part of a page, kept equal to what a session remembers of it.

Train, Runs and the timeline stand on one page or share a session, so each writes its own parameters and no others.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import streamlit as st

Parameters = dict[str, list[str]]
_LATE_S = 3.0
"""For so long after a change of the URL the one before may still arrive. Later it is the back button."""


@dataclass
class UrlMemory:
    """What one session last wrote into the URL."""

    names: Sequence[str]
    """The parameters of this part of the page."""
    written: Parameters | None = None
    replaced: list[tuple[float, Parameters]] = field(default_factory=list)
    """The parameters before that, and when they were replaced: a rerun sent just before still carries them."""
    touched: bool = False
    """Whether a control was changed since the last run: it then goes before a URL that is on its way."""

    def read(self) -> Parameters | None:
        """The parameters where someone else wrote them: a link, a reload, the back button; else None."""
        found = self._in_url()
        self.replaced = [(when, url) for when, url in self.replaced if time.monotonic() - when < _LATE_S]
        late = any(url == found for _, url in self.replaced)
        news = bool(found) and found != self.written and not self.touched and not late
        self.touched = False
        if not news:
            return None
        self.written = found
        return found

    def write(self, parameters: Mapping[str, str | Sequence[str]]) -> None:
        """Puts these parameters into the URL, and takes this part's others out of it."""
        before = self.written
        self.written = {n: [value] if isinstance(value, str) else list(value) for n, value in parameters.items()}
        if before is not None and before != self.written:
            self.replaced.append((time.monotonic(), before))
        found = self._in_url()
        if changed := {name: values for name, values in self.written.items() if found.get(name) != values}:
            st.query_params.update(changed)
        for name in found.keys() - self.written.keys():
            del st.query_params[name]

    def _in_url(self) -> Parameters:
        return {name: st.query_params.get_all(name) for name in self.names if name in st.query_params}
