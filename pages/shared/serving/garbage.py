"""Collects garbage beside the visitors' work, so that memory stays level.

Streamlit collects after every rerun unless told otherwise (`postScriptGC` in .streamlit/config.toml); here one
collection every few seconds does. What imports made is frozen before the first visitor comes (serve.py), and nothing
after that: the parts of a session name each other, and a session that is frozen is never freed.
"""

import gc
from time import monotonic, thread_time

_REST = 50
"""A collection rests for this many times as long as the last one took."""


class Collector:
    """Collects when asked to, if it has rested."""

    def __init__(self) -> None:
        self._not_before = 0.0

    def collect(self) -> None:
        """Frees what nothing names any more, unless the last collection is too short a time ago."""
        if monotonic() < self._not_before:
            return
        begun = thread_time()  # of this thread alone: waiting for a core is no work
        gc.collect()
        self._not_before = monotonic() + _REST * (thread_time() - begun)
