"""Faults that could have been written: each a small replacement in a file, and the test that notices it.

They stand in tests/mutants/faults, by the folder of the file that they change:

    [["transformer/model/attention.py"]]
    name = 'what is wrong with it'
    old = 'a text that stands exactly once in the file'
    new = 'what stands there instead'
    test = 'tests/model/test_attention.py::test_that_fails_with_it'
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parents[1] / "mutants" / "faults"


@dataclass(frozen=True)
class Fault:
    """A replacement in the library that makes a number wrong."""

    file: str
    name: str
    old: str
    """Stands exactly once in the file."""
    new: str
    test: str
    """Fails with the fault and passes without it."""


FAULTS = tuple(
    Fault(file, **each)
    for path in sorted(_FOLDER.rglob("*.toml"))
    for file, faults in tomllib.loads(path.read_text(encoding="utf-8")).items()
    for each in faults
)
