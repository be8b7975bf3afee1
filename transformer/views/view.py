"""The protocol of a view and of what it is a view of, and the Python program that makes a figure again.

A view holds options only. Everything that its figure, its tables and the page's sentences show is in its data, which
its checks compute again by other means.
"""

import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

import plotly.graph_objects as go
from pandas import DataFrame

from transformer.analysis.checks import Check

D = TypeVar("D")

OF_FIGURE = {"of": "figure"}
"""Metadata of a field with an option of the figure alone: views that differ only in such fields have the same data."""
_HEADER = "# Save this file in the folder of Attention Lab, or put that folder on PYTHONPATH."


@dataclass(frozen=True)
class Origin:
    """The names of a subject's files, and the Python lines that make it."""

    stem: str
    """The first part of the names of files."""
    caption: str
    """The model, the sentence and the switches, for the saved file."""
    imports: tuple[str, ...]
    lines: tuple[str, ...]
    """They leave what `data` takes in variables with the names of the subject's fields."""

    def then(
        self, *lines: str, imports: Iterable[str] = (), stem: str | None = None, caption: str | None = None
    ) -> "Origin":
        """Returns a copy that runs more lines, with other names where they are given."""
        return Origin(
            self.stem if stem is None else stem,
            self.caption if caption is None else caption,
            (*self.imports, *imports),
            (*self.lines, *lines),
        )


@runtime_checkable
class Subject(Protocol):
    """A dataclass that views show, such as a decoded sentence: `data` and `checks` take its `vars`, in their order."""

    @property
    def origin(self) -> Origin:
        """The way to make it again."""
        ...


@runtime_checkable
class View(Protocol[D]):
    """A figure's options, as a frozen keyword-only dataclass of plain values whose `repr` is valid Python.

    `data` and `checks` take what their subject gives (`lab, seen` for a decoded sentence). A view may also have
    a `note`, a sentence that stands beside its exported files, and `explained`, which tells a student what it shows and
    how to read it, with its `equation` in LaTeX.
    """

    @property
    def name(self) -> str:
        """The last part of the names of its files, in which "{head}" stands for the option of that name."""
        ...

    def data(self, *subject: Any, **_: Any) -> D:
        """Returns all that is shown, as arrays, numbers and strings; ValueError with a sentence where there is none."""
        ...

    def figure(self, data: D, *, dark: bool = False) -> go.Figure:
        """Draws the picture."""
        ...

    def tables(self, data: D) -> tuple[DataFrame, ...]:
        """Returns the numbers, labelled, for notebooks and files."""
        ...

    def checks(self, *subject_and_data: Any, **_: Any) -> Iterable[Check]:
        """Computes every quantity in the data again, by another way than `data`."""
        ...


@runtime_checkable
class Document(Protocol):
    """A view that is drawn as an HTML page of its own: its program writes that file instead of showing a figure."""

    def document(self, data: Any, *, dark: bool = False) -> str:
        """Returns the page."""
        ...

    def height(self, data: Any) -> int:
        """Returns the height of its frame in pixels."""
        ...


def data_options(view: View[Any]) -> str:
    """Returns the options on which the view's data depend, as text."""
    drawn = {own.name: own.default for own in fields(view) if own.metadata == OF_FIGURE}  # type: ignore[arg-type]
    return repr(replace(view, **drawn))  # type: ignore[type-var]


def file_name(view: View[Any], subject: Subject) -> str:
    """Returns the name of the view's files, without an ending."""
    return f"{subject.origin.stem}-{name_of(view)}"


def name_of(view: View[Any]) -> str:
    """Returns the last part of the names of a view's files."""
    return view.name.format_map(vars(view))


def title_of(view: View[Any]) -> str:
    """Returns the title of a view's figure: the name of its class in words."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", type(view).__name__).split()
    return " ".join((words[0], *(word if word.isupper() else word.lower() for word in words[1:])))


def about(view: View[Any]) -> str:
    """Returns the sentence that says what a view shows."""
    return " ".join((inspect.getdoc(type(view)) or "").partition("\n\n")[0].split())


def program(view: View[Any], subject: Subject) -> str:
    """Returns a Python program that makes the view's data and tables and shows its figure, with `transformer` alone."""
    origin = subject.origin
    imports = {*origin.imports, *(f"from {kind.__module__} import {kind.__name__}" for kind in _classes(view))}
    lines = [
        _HEADER,
        *sorted(imports, key=lambda line: (line.startswith("from transformer"), line)),
        "",
        *origin.lines,
        f"view = {view!r}",
        f"data = view.data({', '.join(vars(subject))})",
        "tables = view.tables(data)  # pandas DataFrames",
    ]
    if isinstance(view, Document):
        path = f"{file_name(view, subject)}.html"
        lines[1:1] = ["from pathlib import Path"]
        return "\n".join([*lines, f"Path({path!r}).write_text(view.document(data), encoding='utf-8')"])
    return "\n".join([*lines, "figure = view.figure(data)", "figure.show()"])


def source(view: View[Any]) -> str:
    """Returns the source of the view's `data`, which shows how its numbers come about."""
    return textwrap.dedent(inspect.getsource(type(view).data)).rstrip()


def _classes(value: Any) -> Iterator[type]:
    """Yields the classes that a `repr` names: those of the value and of the dataclasses inside it."""
    if is_dataclass(value) and not isinstance(value, type):
        yield type(value)
        for field in fields(value):
            if field.repr:
                yield from _classes(getattr(value, field.name))
    elif isinstance(value, tuple):
        for part in value:
            yield from _classes(part)
