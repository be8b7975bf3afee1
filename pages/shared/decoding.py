"""The decoding of a page's sentence: as the page asks for it, and ahead of a page that is about to open."""

import contextlib
from collections.abc import Callable
from urllib.parse import parse_qs

import streamlit as st

from pages.shared import loading
from pages.shared.background import Stopped, Watcher
from pages.shared.context import Decoded, PageContext
from pages.shared.texts.catalogue import Texts
from pages.shared.url.packed_link import PARAMETER, unpack
from pages.shared.url.view_state import View
from pages.shared.waiting import give_way, session_watcher
from transformer.checkpoints.settings import CheckpointError
from transformer.lab import Inspection

TEXTS = Texts("frame")
_FIRST_S, _EVERY_S, _WORTH_S = 0.1, 2.0, 0.6
"""The seconds before a decoding is first drawn and between two drawings, and those that the rest must take at least."""


def decode(context: PageContext, on_progress: Callable[[Inspection], object] | None = None) -> Decoded:
    """Returns the context with its sentence decoded under the view's switches; the browser paints what the page has
    drawn before that meanwhile.

    `on_progress` draws as much as is written of a decoding that takes longer.
    """
    view, lab = context.view, context.lab
    with st.spinner(TEXTS("decoding")):  # seen after half a second
        work = loading.decoding(lab, view.text, view.switches, session_watcher())
        patience, next_s = 0.0, _FIRST_S
        while not work.over.wait(patience):
            give_way()
            so_far, left_s, patience = work.so_far, work.left_s, _FIRST_S
            if on_progress and so_far and left_s and work.since_s > next_s and left_s > _WORTH_S:
                on_progress(so_far())
                next_s = work.since_s + _EVERY_S
        if work.stopped:  # by this visitor's page of a moment ago
            work = loading.decoding(lab, view.text, view.switches, session_watcher())
        return Decoded(view, lab, context.sentence, work.result())


def decode_ahead(query: str) -> None:
    """Decodes the sentence that a link's query names, or the first that is shown, for the page to find it done.

    Without the link's switches: under these the page decodes itself. It stops where no page joins it within a moment.
    """
    nobody = Watcher(lambda: False)
    with contextlib.suppress(ValueError, CheckpointError, Stopped):  # the page will find the same, and say it
        asked = parse_qs(query)
        view, _ = View.read(unpack(asked[PARAMETER][0]) if PARAMETER in asked else asked)
        if found := loading.models():
            lab = loading.get_lab(view.model or loading.first_choice(found))
            loading.decoding(lab, view.text or next(iter(loading.examples(lab)), "a"), (), nobody).result()
