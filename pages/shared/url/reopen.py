"""The reopening of a saved view: its problems are said before it is opened."""

import streamlit as st

from pages.shared import loading
from pages.shared.context import say, sentence, with_usable_switches
from pages.shared.registry import REOPENABLE
from pages.shared.url.packed_link import CannotOpen, Parameters, from_file
from pages.shared.url.view_state import View
from transformer.checkpoints.store import CheckpointError
from transformer.lab import Lab


def reopen(key: str) -> None:
    """Renders a field for the file, and the link that opens it on its page."""
    with st.expander("Open a saved view"):
        file = st.file_uploader("A view saved here before", type=["json"], key=f"{key}-reopen")
        if file is None:
            return
        try:
            page, parameters = from_file(file.getvalue(), REOPENABLE)
        except CannotOpen as error:
            say(str(error))
            return
        say(*misfits(parameters))
        opened = REOPENABLE[page]
        label = f"Open it on {opened.title}"
        st.page_link(opened.path, label=label, icon=":material/arrow_forward:", query_params=parameters)


def _of_model(view: View, lab: Lab) -> list[str]:
    view, problems = view.fit(lab)
    said = [problem.sentence for problem in problems]
    try:
        loading.get_sentence(lab, view.text)
    except ValueError as error:
        return [*said, f"{sentence(str(error))} An example will be shown."]
    return [*said, *(problem.sentence for problem in with_usable_switches(view, lab)[1])]


def misfits(parameters: Parameters) -> tuple[str, ...]:
    """Returns a sentence for each thing that the view's model lacks; its page says the rest once it is open."""
    view, problems = View.read(parameters)
    said = [problem.sentence for problem in problems]
    try:
        if view.model:
            said += _of_model(view, loading.get_lab(view.model))
    except CheckpointError as error:
        said.append(f"{sentence(str(error))} Another model will be shown.")
    return tuple(one.replace("The link", "The view", 1) for one in said)
