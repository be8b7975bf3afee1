"""The opening of a saved analysis, capsule or view: its problems and deviations are said before it is opened."""

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from pages.shared import loading, wording
from pages.shared.context import say, sentence, with_usable_switches
from pages.shared.registry import PAGES, REOPENABLE
from pages.shared.saved.opened import OpenedCapsule, bring_models, open_capsule
from pages.shared.saved.verdict import render_verdict
from pages.shared.texts.catalogue import Texts
from pages.shared.url.packed_link import CannotOpen, Parameters, from_file
from pages.shared.url.view_state import View
from transformer.capsules.capsule import ENDING
from transformer.capsules.contents import CapsuleError
from transformer.checkpoints.store import CheckpointError
from transformer.lab import Lab
from transformer.runs.status import RunError

MAX_MB = 300
"""The size limit of an upload, which is held in memory while it is checked."""
TEXTS = Texts("page_end.opening")
_PAGES = {page.url: page for page in PAGES}
_LESSONS = next(page for page in PAGES if page.folder == "learn")


def open_saved(key: str) -> None:
    """Renders a field for the file, and the link that opens it on its page."""
    kinds = [ENDING.removeprefix("."), "json"]
    file = st.file_uploader(TEXTS("file"), type=kinds, key=f"{key}-reopen", max_upload_size=MAX_MB)
    if file is None:
        return
    try:
        if file.name.endswith(".json"):
            _offer(*from_file(file.getvalue(), REOPENABLE))
        else:
            _open_capsule(file, key)
    except CannotOpen as error:
        say(str(error))
    except (CapsuleError, RunError) as error:
        say(TEXTS("refused", why=str(error).rstrip(".")))


def _open_capsule(file: UploadedFile, key: str) -> None:
    with st.spinner(TEXTS("checking")):
        found = open_capsule(file.file_id, file.getvalue())
    manifest = found.capsule.manifest
    if manifest.page not in _PAGES:
        raise CapsuleError(TEXTS("no_page", page=manifest.page))
    carried = [model for model in found.missing if not model.shipped]
    if absent := [model.name for model in found.missing if model.shipped]:
        raise CapsuleError(TEXTS("no_model", model=absent[0]))
    if carried:
        names = ", ".join(wording.plain(model.name) for model in carried)
        st.markdown(TEXTS("carries", models=names))
        if not st.button(TEXTS("add", n=len(carried)), icon=":material/download:", key=f"{key}-bring"):
            return
        with st.spinner(TEXTS("checking_model")):
            bring_models(found, file.getvalue())
        st.rerun()
    render_verdict(found)
    _offer(manifest.page, found.parameters)
    _offer_lesson(found)


def _offer(page: str, parameters: Parameters) -> None:
    if page in REOPENABLE:
        say(*misfits(parameters))
    opened = _PAGES[page]
    label = TEXTS("open", page=opened.title)
    st.page_link(opened.path, label=label, icon=":material/arrow_forward:", query_params=parameters)


def _offer_lesson(found: OpenedCapsule) -> None:
    lesson = found.capsule.manifest.lesson
    if lesson and found.capsule.manifest.page != _LESSONS.url:
        st.page_link(_LESSONS.path, label=TEXTS("lesson"), icon=":material/school:", query_params=lesson)


def _of_model(view: View, lab: Lab) -> list[str]:
    view, problems = view.fit(lab)
    said = [problem.sentence for problem in problems]
    try:
        loading.get_sentence(lab, view.text)
    except ValueError as error:
        return [*said, TEXTS("example", problem=sentence(str(error)))]
    return [*said, *(problem.sentence for problem in with_usable_switches(view, lab)[1])]


def misfits(parameters: Parameters) -> tuple[str, ...]:
    """Returns a sentence for each thing that the view's model lacks; its page says the rest once it is open."""
    view, problems = View.read(parameters)
    said = [problem.sentence for problem in problems]
    try:
        if view.model:
            said += _of_model(view, loading.get_lab(view.model))
    except CheckpointError as error:
        said.append(TEXTS("other_model", problem=sentence(str(error))))
    return tuple(one.replace(TEXTS("the_link"), TEXTS("the_view"), 1) for one in said)
