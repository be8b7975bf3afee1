"""The figures that stand on the page, remembered for its report and its capsule: `exhibit` puts each in here."""

from dataclasses import dataclass
from typing import Any

import streamlit as st
from pandas import DataFrame

from transformer.capsules.contents import SavedFigure
from transformer.reports.report import Section, section_of
from transformer.views.view import Subject, View, title_of

_KEY = "figures-shown"


@dataclass(frozen=True)
class ShownFigure:
    """A figure as it was drawn last."""

    key: str
    subject: Subject
    view: View[Any]
    data: Any
    caption: str
    width: int

    @property
    def title(self) -> str:
        """Returns its title in reports and capsules."""
        return title_of(self.view)

    @property
    def tables(self) -> tuple[DataFrame, ...]:
        """Returns its numbers."""
        return self.view.tables(self.data)

    def section(self, *, checked: bool, dark: bool) -> Section:
        """Returns it as a part of a report; with `checked` its checks are run now."""
        options = {"caption": self.caption, "width": self.width, "checked": checked, "dark": dark}
        return section_of(self.subject, self.view, self.data, **options)

    def saved(self) -> SavedFigure:
        """Returns it as a capsule carries it."""
        return SavedFigure(key=self.key, title=self.title, view=repr(self.view), tables=self.tables)


def begin_page() -> None:
    """Forgets the figures of the run before; called once, before a page draws anything."""
    st.session_state[_KEY] = {}


def remember(figure: ShownFigure) -> None:
    """Keeps a figure that was drawn a moment ago; a fragment that runs again replaces its own."""
    st.session_state.setdefault(_KEY, {})[figure.key] = figure


def figures_shown() -> tuple[ShownFigure, ...]:
    """Returns the page's figures in the order in which they were drawn."""
    return tuple(st.session_state.get(_KEY, {}).values())
