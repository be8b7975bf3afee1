"""A link with everything in it, made short, and the file that stands for it where it would be too long."""

import base64
import binascii
import json
import zlib
from collections.abc import Mapping

import streamlit as st

from pages.shared.texts.catalogue import Texts
from pages.shared.wording import plain
from transformer.text.token_ids import valid_text

LONGEST = 2_000
"""Characters of a link that every browser and mail program passes on."""
PARAMETER = "view"
TEXTS = Texts("link.packed")
_FORMAT = "attention-lab-view"
_MOST_BYTES = 100_000
_OLD_TABS = ("Runs", "Sweeps")
"""Values that links to the Runs page carried under PARAMETER before its choice was called `tab`."""

Parameters = Mapping[str, str | list[str]]


class CannotOpen(ValueError):
    """A link or file does not hold a view; the message says why."""


def pack(parameters: Parameters) -> str:
    """Returns the query parameters in a few characters that any link can carry."""
    text = json.dumps(parameters, ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode("ascii").rstrip("=")


def unpack(text: str) -> dict[str, str | list[str]]:
    """Returns what `pack` packed; raises CannotOpen for anything else."""
    try:
        packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        unzipped = zlib.decompressobj()
        content = unzipped.decompress(packed, _MOST_BYTES)
        if unzipped.unconsumed_tail:
            raise CannotOpen(TEXTS("too_long", most=_MOST_BYTES))
        return _checked(json.loads(content))
    except (binascii.Error, zlib.error, ValueError, RecursionError) as error:
        if isinstance(error, CannotOpen):
            raise
        raise CannotOpen(TEXTS("incomplete")) from error


def as_file(page: str, parameters: Parameters) -> str:
    """Returns the parameters as a file that reopens the view."""
    content = {"format": _FORMAT, "page": page, "parameters": parameters}
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def from_file(content: bytes, pages: Mapping[str, object]) -> tuple[str, dict[str, str | list[str]]]:
    """Returns the page and the query parameters in such a file; CannotOpen for any other file."""
    if len(content) > _MOST_BYTES:
        raise CannotOpen(TEXTS("too_large", n=len(content), most=_MOST_BYTES))
    try:
        found = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        raise CannotOpen(TEXTS("not_json")) from None
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise CannotOpen(TEXTS("not_format", format=_FORMAT))
    if not isinstance(found.get("page"), str) or found["page"] not in pages:
        raise CannotOpen(TEXTS("no_page", pages=", ".join(pages)))
    parameters = _checked(found.get("parameters"))
    if "model" not in parameters:
        raise CannotOpen(TEXTS("no_model"))
    return found["page"], parameters


def follow_packed_link() -> None:
    """Puts what a packed link holds into the URL, before any page reads it; a link that cannot be read says so."""
    if PARAMETER not in st.query_params:
        return
    if st.query_params[PARAMETER] in _OLD_TABS:
        st.query_params["tab"] = st.query_params[PARAMETER]
        del st.query_params[PARAMETER]
        return
    try:
        parameters = unpack(st.query_params[PARAMETER])
    except CannotOpen as error:
        del st.query_params[PARAMETER]
        st.toast(plain(str(error)), icon=":material/error:")
    else:
        st.query_params.from_dict(parameters)


def _checked(found: object) -> dict[str, str | list[str]]:
    """Returns the query parameters; CannotOpen for anything else."""
    if not isinstance(found, dict):
        raise CannotOpen(TEXTS("no_parameters"))
    for name, value in found.items():
        texts = value if isinstance(value, list) else [value]
        if name == PARAMETER or not all(_is_text(text) for text in (name, *texts)):
            raise CannotOpen(TEXTS("not_text", name=valid_text(str(name)[:30])))
    return found


def _is_text(value: object) -> bool:
    """Tells whether a URL can hold this string: JSON may escape half a character, which UTF-8 cannot write."""
    return isinstance(value, str) and valid_text(value) == value
