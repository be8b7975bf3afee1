"""Errors that a server has logged since it started: how many, and the newest ones for the operator's page."""

import logging
from collections import deque
from dataclasses import dataclass

_KEPT = 50
_LONGEST = 500
_LOGGERS = ("", "streamlit.error_util")
"""The root of all loggers, and Streamlit's for errors of pages, which keeps its records to itself."""


@dataclass(frozen=True)
class LoggedError:
    """An error in the log."""

    time: float
    """Unix time."""
    source: str
    """The name of the logger."""
    text: str


class ErrorLog(logging.Handler):
    """Counts logged errors and keeps the newest."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.count = 0
        self.newest: deque[LoggedError] = deque(maxlen=_KEPT)

    def emit(self, record: logging.LogRecord) -> None:
        """Takes a record over."""
        error = record.exc_info[1] if record.exc_info else None
        text = record.getMessage() + (f": {type(error).__name__}: {error}" if error else "")
        self.count += 1
        self.newest.appendleft(LoggedError(record.created, record.name, text[:_LONGEST]))


ERRORS = ErrorLog()


def listen() -> None:
    """Begins to count the errors of this process, and to print its warnings and errors; harmless to repeat.

    With a handler of its own at the root, Python no longer prints what nothing else handles.
    """
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    for name in _LOGGERS:
        logging.getLogger(name).addHandler(ERRORS)
