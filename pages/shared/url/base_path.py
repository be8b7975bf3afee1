"""Addresses of pages on a server whose addresses may all begin with a base path (Streamlit's server.baseUrlPath)."""

from urllib.parse import urlsplit

import streamlit as st


def base_path() -> str:
    """Returns what every address of this server begins with, such as "/lab"; usually empty."""
    path = (st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{path}" if path else ""


def home_of(address: str) -> str:
    """Returns the address of the folder of all pages, without a slash at its end, from that of any page."""
    parts = urlsplit(address)
    folder = parts.path if parts.path == base_path() else parts.path.rpartition("/")[0]
    return f"{parts.scheme}://{parts.netloc}{folder}"


def page_of(address: str) -> str:
    """Returns the end of a page's address, "home" for that of the app itself."""
    return urlsplit(address).path.removeprefix(base_path()).rpartition("/")[2] or "home"
