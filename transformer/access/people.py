"""For whom the code runs: a person, set for a block by `acting_as`, or found by whoever knows the visitors.

Commands, trainers and the server's own upkeep act for the operator, who may do everything. A server with several
visitors calls `identify_by` once, with a function that finds the visitor whose page is being drawn, and nobody where
that cannot be told: what is forgotten is then refused, not given away. Threads do not inherit the person: hand it on
with `acting_as`, or with `for_this_person` for a function that is called later.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TypeVar

PERSON = "ATTENTION_LAB_PERSON"
"""Set by a server for the processes that it starts for a visitor: the id of whom their results belong to."""
Given = ParamSpec("Given")
Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Person:
    """Somebody who looks at runs and changes them."""

    id: str
    """Empty for nobody in particular: the operator, or a visitor who cannot be recognised."""
    is_teacher: bool = False
    """True if they see all runs and may change all of them."""
    shares: frozenset[str] = frozenset()
    """The tokens of the links that were given to them."""


ME = Person(id="me", is_teacher=True)
"""The one person of a server without identities."""
NOBODY = Person(id="")
"""A visitor who was not recognised: sees what everybody may see, and changes nothing."""

_ACTING: ContextVar[Person | None] = ContextVar("acting", default=None)


def operator() -> Person:
    """Returns who runs commands on this machine: whoever can do that can read its files anyhow."""
    return Person(id=os.environ.get(PERSON, ""), is_teacher=True)


_find: Callable[[], Person] = operator


def identify_by(find: Callable[[], Person]) -> None:
    """Makes `find` tell for whom this process acts where no block says it."""
    global _find
    _find = find


def acting() -> Person:
    """Returns the person for whom the code runs."""
    return _ACTING.get() or _find()


@contextmanager
def acting_as(person: Person) -> Iterator[None]:
    """A block in which the code runs for this person."""
    before = _ACTING.set(person)
    try:
        yield
    finally:
        _ACTING.reset(before)


def for_this_person(act: Callable[Given, Result]) -> Callable[Given, Result]:
    """Returns the function as it runs for the person of this moment, whenever and in whichever thread it is called."""
    person = acting()

    @wraps(act)
    def bound(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        with acting_as(person):
            return act(*args, **kwargs)

    return bound


def for_the_operator(act: Callable[Given, Result]) -> Callable[Given, Result]:
    """Returns the function as it runs for the operator, whoever's visit calls it: for the queue and the like."""

    @wraps(act)
    def bound(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        with acting_as(operator()):
            return act(*args, **kwargs)

    return bound
