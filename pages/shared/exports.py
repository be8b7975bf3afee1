"""Export: a figure as PNG, SVG or one HTML file, its numbers, the lines of Python that make it, and a link."""

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlencode, urlsplit

import plotly.graph_objects as go
import streamlit as st

from pages.shared import wording
from pages.shared.components.save_chart import save_chart
from pages.shared.components.save_drawing import save_drawing
from pages.shared.context import PageContext
from pages.shared.registry import REOPENABLE
from pages.shared.url.packed_link import LONGEST, PARAMETER, as_file, pack
from pages.shared.url.reopen import reopen
from pages.shared.url.session import session
from transformer.figures.export import html_document, on_paper
from transformer.figures.tables import Table, as_csv, as_npz
from transformer.interventions import Intervention

WIDTH = 640
"""Pixels of the panel; a figure of no width of its own is saved as wide."""
_NAMED = 4


@dataclass(frozen=True)
class InFrame:
    """A drawing that stands on the page in a frame of its own."""

    key: str
    """Of the container with the frame."""
    html: str

    def document(self, said: str) -> str:
        """The file of it, with `said` below."""
        drawing, _, end = self.html.rpartition("</body>")
        return f"{drawing}<p>{html.escape(said)}</p></body>{end}"


@dataclass(frozen=True)
class Export:
    """What can be taken away of one figure."""

    name: str
    """Of its files."""
    figure: go.Figure | InFrame
    tables: tuple[Table, ...]
    python: str
    """Lines that make the same numbers in `numbers` and the same figure in `figure`, with `transformer` alone."""
    note: str = ""
    """What has to be said of them."""
    said: str = ""
    """What the page says of the figure, for the HTML file."""
    source: str = ""
    """The source of what makes the numbers, to be read."""


def take_away(
    context: PageContext, page: str, figures: Mapping[str, Callable[[], Export]], *, key: str, said: str = ""
) -> None:
    """`export` of a page that shows one sentence; `said` where it is more than the model, the sentence and the
    switches."""
    export(page, figures, key=key, said=said or _said(context))


def export(page: str, figures: Mapping[str, Callable[[], Export]], *, key: str, said: str) -> None:
    """A quiet button under a figure; opened, it offers its files, its lines of Python and a link.

    Nothing is made before it is opened. `figures` are named; with several, one is chosen. `said` stands under the
    figure in the HTML file; `page` is the end of this page's address.
    """
    if session().arrived:  # by a saved view of this very page: it lies under the popover
        st.session_state[key] = False
    with st.popover("Export", icon=":material/download:", type="tertiary", key=key, on_change="rerun") as box:
        if not box.open:
            return
        with st.container(width=WIDTH, key=f"{key}-away"):
            away = choose_figure(figures, key)
            offer_files(away, " · ".join(filter(None, (said, away.said))), key)
            st.caption(f"The same in Python · {away.note}" if away.note else "The same in Python")
            st.code(away.python, language="python", wrap_lines=True)
            if away.source:
                with st.expander("How the numbers are made"):
                    st.code(away.source, language="python", wrap_lines=True)
            _link(page, key)
            if page in REOPENABLE:
                reopen(key)


def choose_figure(figures: Mapping[str, Callable[[], Export]], key: str) -> Export:
    """The figure to be taken away: the only one, or the one chosen by its name."""
    names = list(figures)
    chosen = names[0]
    if len(names) > 1:
        chosen = st.segmented_control(
            "Figure", names, default=names[0], required=True, key=f"{key}-which", label_visibility="collapsed"
        )
    return figures[chosen or names[0]]()


def offer_files(away: Export, said: str, key: str) -> None:
    """The buttons that save a figure and its numbers."""
    name, figure = away.name, away.figure
    if isinstance(figure, InFrame):
        save, document = partial(save_drawing, figure.key), partial(figure.document, said)
    else:
        save = partial(save_chart, _sheet(figure, key))
        dark = st.context.theme.type == "dark"
        document = partial(html_document, figure, title=name, said=said, dark=dark)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        save(name=name, key=f"{key}-save")
        _download("HTML", document, name, "html", key)
        _download("CSV", lambda: as_csv(away.tables), name, "csv", key)
        _download("NPZ", lambda: as_npz(away.tables), name, "npz", key)
    shapes = [f"{table.name} {' × '.join(map(str, table.values.shape))}" for table in away.tables]
    held = ", ".join(shapes) if len(shapes) <= _NAMED else f"{len(shapes)} tables, {shapes[0]} and so on"
    moment = "PNG and SVG are the drawing as it stands now. " * isinstance(figure, InFrame)
    st.caption(f"{moment}HTML opens without a network. CSV and NPZ hold {wording.plain(held)}.")


def _sheet(figure: go.Figure, key: str) -> str:
    """Draws the figure to be saved; returns its key."""
    chart, width = f"{key}-chart", figure.layout.width or 0  # type: ignore[attr-defined]
    with st.container(key=f"{key}-sheet"):
        st.html(
            f"<style>.st-key-{key}-sheet {{max-height: 20rem; overflow: auto}} "
            f".st-key-{key}-sheet > * {{min-width: {width}px}} "
            f".st-key-{key}-sheet .modebar {{opacity: 0; pointer-events: none}}</style>"
        )
        bar = {"displayModeBar": True, "displaylogo": False, "modeBarButtons": [["toImage"]]}
        st.plotly_chart(figure, key=chart, theme=None, width="content", config=bar)
    return chart


def _said(context: PageContext) -> str:
    return f"{context.lab.name} · {context.view.text} · {' '.join(map(str, context.view.switches))}".rstrip(" ·")


_MIMES = {"html": "text/html", "csv": "text/csv", "npz": "application/octet-stream"}


def _download(label: str, make: Callable[[], str | bytes], name: str, end: str, key: str) -> None:
    st.download_button(label, make, file_name=f"{name}.{end}", mime=_MIMES[end], key=f"{key}-{end}", on_click="ignore")


def view_parameters() -> dict[str, str | list[str]]:
    """Everything that this page's view is made of, the whole sentence with it."""
    memory = session()
    return {**memory.view.parameters(), "text": memory.view.text, **memory.own}


def link_to(address: str, page: str, parameters: Mapping[str, str | list[str]]) -> str | None:
    """The shortest link that reopens this view; None where even a packed one is too long to be passed on."""
    parts = urlsplit(address)
    home = parts.path.rsplit("/", 1)[0]
    begin = f"{parts.scheme}://{parts.netloc}{home}/{'' if page == 'home' else page}?"
    links = (begin + urlencode(parameters, doseq=True), begin + urlencode({PARAMETER: pack(parameters)}))
    shortest = min(links, key=len)
    return shortest if len(shortest) <= LONGEST else None


def _link(page: str, key: str) -> None:
    in_url = {name: st.query_params.get_all(name) for name in st.query_params}
    parameters = view_parameters() if page in REOPENABLE else in_url
    link = link_to(st.context.url or "http://localhost:8501/", page, parameters)
    if link is not None:
        st.caption("A link with everything in it")
        st.code(link, language=None, wrap_lines=True)
        return
    st.caption(f"A link with everything in it would have more than {LONGEST:,} characters: here is a file instead.")
    st.download_button(
        "Save this view",
        lambda: as_file(page, parameters),
        file_name=f"{page}-view.json",
        mime="application/json",
        key=f"{key}-view",
        on_click="ignore",
    )


def page_shown() -> str:
    """The end of the address of the page that is open, for figures that stand on several."""
    end = urlsplit(st.context.url or "").path.rsplit("/", 1)[-1]
    return end if end in REOPENABLE else "attention"


def opening_lines(context: PageContext, imports: Sequence[str] = ()) -> list[str]:
    """The first lines of every program: the model, and the sentence decoded under the switches."""
    wanted = ["from transformer import load", *imports]
    decoded = decoding_line("seen", "lab", context.view.text, context.view.switches, wanted)
    return [*sorted(dict.fromkeys(wanted)), "", f"lab = load({context.lab.name!r})", decoded]


def decoding_line(name: str, lab: str, text: str, switches: Sequence[Intervention], wanted: list[str]) -> str:
    """The line that decodes a text under switches with the model called `lab`; what it imports is put to `wanted`."""
    if not switches:
        return f"{name} = {lab}.inspect({text!r})"
    wanted.append("from transformer.interventions import parse_intervention")
    parsed = ", ".join(f"parse_intervention({str(spec)!r})" for spec in switches)
    return f"{name} = {lab}.inspect({text!r}, [{parsed}])"


def papered(figure: go.Figure, *, dark: bool, width: int = 900) -> go.Figure:
    """A page's figure with a background and a width of its own, which on the page are the page's."""
    return on_paper(figure.update_layout(width=width), dark)
