"""Identifies visitors for the queue and quotas: a browser, by the random token in Streamlit's cookie.

A courtesy among visitors, and no protection: whoever clears the cookie, or opens a private window, is somebody new.
"""

import binascii
import hashlib
import secrets
from collections.abc import Mapping

import streamlit as st

_COOKIE = "_streamlit_xsrf"
_KEY = "attention-lab-visitor"


def visitor() -> str:
    """Returns this visitor's id: the same after a reload, in every tab, and after a restart of the server.

    A browser that refuses cookies gets one for this tab only.
    """
    found = of_cookie(st.context.cookies)
    if found:
        return found
    return st.session_state.setdefault(_KEY, secrets.token_hex(8))


def of_cookie(cookies: Mapping[str, str]) -> str:
    """Returns the id in a browser's cookies; empty if there is none.

    The cookie reads "2|mask|token|time" in hexadecimal. The mask is another one each time, and the token under it is
    not. Only its hash is kept: the token itself guards the browser against forged requests.
    """
    try:
        version, mask, masked, _ = cookies.get(_COOKIE, "").strip("\"'").split("|")
        pad, token = binascii.a2b_hex(mask), binascii.a2b_hex(masked)
    except ValueError:
        return ""
    if version != "2" or len(pad) != 4 or not token:
        return ""
    bare = bytes(byte ^ pad[i % 4] for i, byte in enumerate(token))
    return hashlib.sha256(bare).hexdigest()[:16]
