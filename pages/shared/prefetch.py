"""The decoding that a page will ask for, begun while the visitor's browser still loads Streamlit's own scripts."""

import contextlib
from urllib.parse import parse_qs

from pages.shared import loading
from pages.shared.url.packed_link import PARAMETER, unpack
from pages.shared.url.view_state import View
from transformer.checkpoints.settings import CheckpointError


def decode_ahead(query: str) -> None:
    """Decodes the sentence that a link's query names, or the first that is shown, for the page to find it done.

    Without the link's switches: under these the page decodes itself.
    """
    with contextlib.suppress(ValueError, CheckpointError):  # the page will find the same, and say it
        asked = parse_qs(query)
        packed = unpack(asked[PARAMETER][0]) if PARAMETER in asked else {}
        asked |= {name: value if isinstance(value, list) else [value] for name, value in packed.items()}
        view, _ = View.read(asked)
        if found := loading.models():
            lab = loading.get_lab(view.model or loading.first_choice(found))
            loading.get_inspection(lab, view.text or next(iter(loading.examples(lab)), "a"))
