"""A report as plain values: what a page shows, made ready to be written as HTML, Markdown or a bundle."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
from pandas import DataFrame

from transformer.analysis.checks import Check
from transformer.figures.theme import on_paper
from transformer.views.view import Document, Subject, View, about, file_name, program, source, title_of


@dataclass(frozen=True, kw_only=True)
class Section:
    """One figure of a report, with everything that belongs to it."""

    name: str
    """The name of its files, without an ending; no two sections of a report have the same."""
    title: str
    about: str
    caption: str
    """The model, the sentence and the switches."""
    figure: go.Figure | str
    """The figure on paper, or an HTML page of its own."""
    tables: tuple[DataFrame, ...]
    program: str
    """The Python program that makes the figure again."""
    source: str
    """The source that makes its numbers."""
    checks: tuple[Check, ...]
    """The checks that were run, with the deviations that they measured."""
    fault: str = ""
    """Why the checks could not be run; empty if they could."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """A page with its settings and figures."""

    title: str
    settings: Mapping[str, str]
    """The model, the sentence, the page's controls and the versions, by their names."""
    sections: tuple[Section, ...]
    link: str = ""
    """The link that opens the page as it was; empty if that is too long."""
    dark: bool = False

    @property
    def failing(self) -> int:
        """The number of checks that failed."""
        return sum(not check.holds for section in self.sections for check in section.checks)

    @property
    def verdict(self) -> str:
        """Says how many checks were run and what came of them."""
        n = sum(len(section.checks) for section in self.sections)
        if not n:
            return "No checks were run."
        return f"{n} checks were run: " + ("all hold." if not self.failing else f"{self.failing} fail.")


def section_of(
    subject: Subject, view: View[Any], data: Any, *, caption: str, width: int, checked: bool, dark: bool = False
) -> Section:
    """Returns the section of a view; with `checked` its checks are run, which may take seconds."""
    checks: tuple[Check, ...] = ()
    fault = ""
    if checked:
        try:
            checks = tuple(view.checks(*vars(subject).values(), data))
        except (ValueError, OSError) as error:
            fault = str(error)
    return Section(
        name=file_name(view, subject),
        title=title_of(view),
        about=about(view),
        caption=caption,
        figure=drawn(view, data, width=width, dark=dark),
        tables=view.tables(data),
        program=program(view, subject),
        source=source(view),
        checks=checks,
        fault=fault,
    )


def drawn(view: View[Any], data: Any, *, width: int, dark: bool = False) -> go.Figure | str:
    """Returns the figure with a background and a width of its own, which on a page are the page's; or the HTML page of
    a view that is one."""
    if isinstance(view, Document):
        return view.document(data, dark=dark)
    figure: Any = view.figure(data, dark=dark)
    smallest = (figure.layout.meta or {}).get("smallest_width", 0)
    return on_paper(figure.update_layout(width=figure.layout.width or max(width, smallest)), dark)
