"""Lines of this project, read from its source at run time so that they never go stale."""

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[3]
MAX_LINES = 9
"""The most lines of a snippet."""


@dataclass(frozen=True)
class Snippet:
    """Some lines of a function."""

    file: str
    """Its path from the project's root."""
    function: str
    first: int
    """The number of its first line in the file."""
    text: str

    @property
    def last(self) -> int:
        """The number of its last line in the file."""
        return self.first + self.text.count("\n")


@cache
def lines_of(function: Callable[..., Any], begins: str, ends: str = "") -> Snippet:
    """Returns a function's lines from the first that holds `begins` to the next that holds `ends` (none: one line).

    ValueError where there is no such line, so that a test notices when the source moved on.
    """
    function = inspect.unwrap(function)
    lines, number = inspect.getsourcelines(function)
    name = function.__qualname__
    start = next((i for i, line in enumerate(lines) if begins in line), None)
    if start is None:
        raise ValueError(f"{name} has no line with {begins!r} any more")
    stop = start if not ends else next((i for i in range(start, len(lines)) if ends in lines[i]), None)
    if stop is None:
        raise ValueError(f"{name} has no line with {ends!r} after {begins!r} any more")
    file = Path(inspect.getsourcefile(function) or "").resolve().relative_to(_ROOT)
    text = textwrap.dedent("".join(lines[start : stop + 1])).rstrip("\n")
    return Snippet(file.as_posix(), name, number + start, text)
