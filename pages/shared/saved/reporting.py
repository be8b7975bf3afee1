"""A page as a report: every figure that `exhibit` drew on it, with settings, numbers, code and proofs."""

from collections.abc import Callable

import streamlit as st

from pages.shared.context import is_dark, say, sentence
from pages.shared.registry import REOPENABLE
from pages.shared.saved.made import Made, offer, show_made
from pages.shared.saved.shown import figures_shown
from pages.shared.texts.catalogue import Texts
from pages.shared.url.address import link_shown, parameters_shown
from pages.shared.url.session import session
from transformer.capsules.capsule import versions_here
from transformer.reports.bundle import bundle
from transformer.reports.html_report import html_report
from transformer.reports.markdown_report import markdown_report
from transformer.reports.report import Report, Section

TEXTS = Texts("page_end.reporting")
_KINDS: dict[str, tuple[str, str, Callable[[Report], str | bytes]]] = {
    "html": ("html", "text/html", html_report),
    "bundle": ("zip", "application/zip", bundle),
    "markdown": ("md", "text/markdown", markdown_report),
}


def render_reporting(page: str, title: str) -> None:
    """Renders the choice of a format, and the report once it is made."""
    figures = figures_shown()
    st.caption(TEXTS("what", n=len(figures)))
    kinds = {TEXTS(f"kinds.{kind}"): kind for kind in _KINDS}
    first = next(iter(kinds))
    kind = kinds[st.segmented_control(TEXTS("format"), kinds, default=first, required=True, key="report-kind") or first]
    end, mime, write = _KINDS[kind]
    st.caption(TEXTS(f"holds.{kind}"))
    checked = st.toggle(TEXTS("check"), value=True, key="report-checked")
    if st.button(TEXTS("make"), icon=":material/description:", key="report-make"):
        try:
            made = write(_report(page, title, checked=checked))
        except (ValueError, OSError) as error:
            say(sentence(TEXTS("refused", why=error)))
        else:
            content = made.encode() if isinstance(made, str) else made
            show_made(Made("report", f"{page}-report.{end}", mime, content))
    offer("report", TEXTS("download"))


def _report(page: str, title: str, *, checked: bool) -> Report:
    figures, dark, sections = figures_shown(), is_dark(), list[Section]()
    with st.empty():
        for number, figure in enumerate(figures, 1):
            st.progress(
                (number - 1) / len(figures), TEXTS("progress", number=number, total=len(figures), figure=figure.title)
            )
            sections.append(figure.section(checked=checked, dark=dark))
        st.empty()
    memory = session()
    settings = {"Page": title}
    if page in REOPENABLE:
        switches = " ".join(map(str, memory.view.switches)) or "none"
        settings |= {"Model": memory.view.model, "Sentence": memory.view.text, "Switches": switches}
    known = ("model", "text", "switch")
    settings |= {
        name: ", ".join(value) if isinstance(value, list) else value
        for name, value in parameters_shown(page).items()
        if page not in REOPENABLE or name not in known
    }
    settings["Versions"] = ", ".join(f"{name} {version}" for name, version in versions_here().items())
    return Report(title=title, settings=settings, sections=tuple(sections), link=link_shown(page) or "", dark=dark)
