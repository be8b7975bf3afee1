"""A page as a report: every figure that `exhibit` drew on it, with settings, numbers, code and proofs."""

from collections.abc import Callable

import streamlit as st

from pages.shared.context import is_dark, say, sentence
from pages.shared.registry import REOPENABLE
from pages.shared.saved.made import Made, offer, show_made
from pages.shared.saved.shown import figures_shown
from pages.shared.url.address import link_shown, parameters_shown
from pages.shared.url.session import session
from transformer.capsules.capsule import versions_here
from transformer.reports.bundle import bundle
from transformer.reports.html_report import html_report
from transformer.reports.markdown_report import markdown_report
from transformer.reports.report import Report, Section

_KINDS: dict[str, tuple[str, str, str, Callable[[Report], str | bytes]]] = {
    "HTML": (
        "html",
        "text/html",
        "One file, about 5 MB, that opens without a network.",
        html_report,
    ),
    "Bundle": (
        "zip",
        "application/zip",
        "A zip file, about 2 MB: the report as HTML and Markdown, a page for each figure beside one plotly that they "
        "share, every number as CSV, every program.",
        bundle,
    ),
    "Markdown": ("md", "text/markdown", "Text: settings, numbers, code and proofs, without pictures.", markdown_report),
}


def render_reporting(page: str, title: str) -> None:
    """Renders the choice of a format, and the report once it is made."""
    figures = figures_shown()
    n = len(figures)
    st.caption(f"The {'figure' if n == 1 else f'{n} figures'} of this page with settings, numbers, code and proofs.")
    kind = st.segmented_control("Format", list(_KINDS), default="HTML", required=True, key="report-kind") or "HTML"
    end, mime, said, write = _KINDS[kind]
    st.caption(said)
    checked = st.toggle("Run all checks now", value=True, key="report-checked")
    if st.button("Make the report", icon=":material/description:", key="report-make"):
        try:
            made = write(_report(page, title, checked=checked))
        except (ValueError, OSError) as error:
            say(sentence(f"the report cannot be made: {error}"))
        else:
            content = made.encode() if isinstance(made, str) else made
            show_made(Made("report", f"{page}-report.{end}", mime, content))
    offer("report", "Download")


def _report(page: str, title: str, *, checked: bool) -> Report:
    figures, dark, sections = figures_shown(), is_dark(), list[Section]()
    with st.empty():
        for number, figure in enumerate(figures, 1):
            st.progress((number - 1) / len(figures), f"{number} of {len(figures)}: {figure.title}")
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
