"""A page saved as a capsule: its state, its models, its decodings, its figures' numbers, a note."""

import io

import streamlit as st

from pages.shared import loading
from pages.shared.context import say
from pages.shared.registry import REOPENABLE
from pages.shared.saved.made import Made, offer, show_made
from pages.shared.saved.opened import MODEL_PARAMETERS
from pages.shared.saved.shown import ShownFigure, figures_shown
from pages.shared.texts.catalogue import Texts
from pages.shared.url.address import parameters_shown
from pages.shared.url.session import session
from transformer.capsules.capsule import ENDING, Shown, decodings_of, write_capsule
from transformer.capsules.contents import MAX_DECODINGS, CapsuleError
from transformer.checkpoints.settings import WEIGHTS_FILE, CheckpointError
from transformer.lab import Lab
from transformer.runs.labels import LONGEST_NOTE

TEXTS = Texts("page_end.saving")


def render_saving(page: str, title: str) -> None:
    """Renders a form for a note, and the file once it is made."""
    st.caption(TEXTS("what"))
    with st.form("save-analysis", border=False):
        notes = st.text_area(TEXTS("notes"), max_chars=LONGEST_NOTE, height=90, key="save-notes")
        if st.form_submit_button(TEXTS("make"), icon=":material/inventory_2:"):
            with st.spinner(TEXTS("packing")):
                try:
                    show_made(_packed(page, title, notes))
                except (CapsuleError, CheckpointError, ValueError) as error:
                    say(TEXTS("refused", why=str(error).rstrip(".")))
    offer("save", TEXTS("download"))


def _packed(page: str, title: str, notes: str) -> Made:
    figures, parameters = figures_shown(), parameters_shown(page)
    decodings = _decodings(figures, page)
    file = io.BytesIO()
    write_capsule(
        file,
        decodings,
        page=page,
        title=title,
        parameters=parameters,
        figures=[figure.saved() for figure in figures],
        others=_named(parameters),
        notes=notes.strip(),
        lesson=session().lesson,
    )
    stem = "-".join(dict.fromkeys(shown.lab.name for shown in decodings)) or "analysis"
    return Made("save", f"{page}-{stem}{ENDING}", "application/zip", file.getvalue())


def _decodings(figures: tuple[ShownFigure, ...], page: str) -> list[Shown]:
    """Returns the decodings behind the page's figures, each once; else that of its sentence. Snapshots stay out."""
    found: dict[object, Shown] = {}
    for figure in figures:
        for shown in decodings_of(figure.subject):
            seen = shown.seen
            if shown.lab.checkpoint.weights_file.name == WEIGHTS_FILE:
                found.setdefault((shown.lab.name, seen.text, seen.interventions, seen.forced, seen.digest), shown)
    view = session().view
    if not found and page in REOPENABLE and view.model:
        lab = loading.get_lab(view.model)
        return [Shown(lab, loading.get_inspection(lab, view.text, view.switches))]
    return list(found.values())[:MAX_DECODINGS]


def _named(parameters: dict[str, str | list[str]]) -> list[Lab]:
    """Returns the models that the page's address names."""
    given = (parameters.get(name) for name in MODEL_PARAMETERS)
    names = [one for value in given if value for one in (value if isinstance(value, list) else [value])]
    return [loading.get_lab(name) for name in names if name in {found.name for found in loading.models()}]
