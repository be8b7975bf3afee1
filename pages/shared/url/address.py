"""The address of the page that is open, and links that open it again."""

from collections.abc import Mapping
from urllib.parse import urlencode

import streamlit as st

from pages.shared.registry import REOPENABLE
from pages.shared.url.base_path import home_of, page_of
from pages.shared.url.packed_link import LONGEST, PARAMETER, pack
from pages.shared.url.session import session


def page_shown() -> str:
    """Returns the end of the address of the page that is open."""
    return page_of(st.context.url or "")


def parameters_shown(page: str) -> dict[str, str | list[str]]:
    """Returns all query parameters of the page that is open, the whole sentence included."""
    if page not in REOPENABLE:
        return {name: st.query_params.get_all(name) for name in st.query_params}
    memory = session()
    return {**memory.view.parameters(), "text": memory.view.text, **memory.own}


def link_shown(page: str) -> str | None:
    """Returns the link to the page that is open, as it is; None if it is too long."""
    return link_to(st.context.url or "http://localhost:8501/", page, parameters_shown(page))


def link_to(address: str, page: str, parameters: Mapping[str, str | list[str]]) -> str | None:
    """Returns the shortest link that reopens this view; None if even a packed one is too long for browsers."""
    begin = f"{home_of(address)}/{'' if page == 'home' else page}?"
    links = (begin + urlencode(parameters, doseq=True), begin + urlencode({PARAMETER: pack(parameters)}))
    shortest = min(links, key=len)
    return shortest if len(shortest) <= LONGEST else None
