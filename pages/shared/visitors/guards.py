"""Keeps what Streamlit would hand to everybody who knows an address: visitors' files, and the server's own figures.

A file's address ends in a hash of its content, so whoever has the same file, or guesses what is in one, knows where
another visitor's would be.
"""

import threading
from collections import OrderedDict
from functools import wraps
from typing import Any

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import runtime
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

from pages.shared.url.base_path import base_path
from pages.shared.visitors.recognition import browser_of
from transformer.access.server_settings import identity

_LOOPBACK = ("127.0.0.1", "::1")
_PASSED_ON = (b"x-forwarded-for", b"forwarded", b"via", b"x-real-ip")
"""Headers that a proxy adds: its visitor is elsewhere, whatever the address of the connection is."""


class OwnFiles:
    """Answers that there is no such file unless a page in the same visitor's browser made it.

    On a server for one person every file is theirs.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._media = app, f"{base_path()}/media/"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http" and scope["path"].startswith(self._media) and not identity().is_one_person:
            if not OWNERS.owns(browser_of(scope["headers"]), scope["path"]):
                app = _missing("This file is not here, or belongs to another visitor.")
        await app(scope, receive, send)


class OwnMetrics:
    """Answers Streamlit's figures about the server to programs of this machine alone."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._metrics = app, f"{base_path()}/_stcore/metrics"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http" and scope["path"].rstrip("/") == self._metrics and not _is_from_here(scope):
            app = _missing("The server's figures are for programs of its own machine.")
        await app(scope, receive, send)


class FileOwners:
    """Remembers in whose browsers the pages run that made each file: of the newest files, as many as `most`."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, threading.Lock()
        self._browsers: OrderedDict[str, frozenset[str]] = OrderedDict()

    def note(self, address: str, browser: str) -> None:
        """Remembers that a file's address was given to a browser; nothing for nobody's."""
        if not browser:
            return
        file_id = file_id_of(address)
        with self._lock:
            self._browsers[file_id] = self._browsers.pop(file_id, frozenset()) | {browser}
            while len(self._browsers) > self._most:
                self._browsers.popitem(last=False)

    def owns(self, browser: str, address: str) -> bool:
        """Tells whether a file's address was given to a browser."""
        return browser in self._browsers.get(file_id_of(address), ())


OWNERS = FileOwners(most=20_000)


def file_id_of(address: str) -> str:
    """Returns what Streamlit tells files apart by: the last part of an address without its ending."""
    return address.rpartition("/")[2].partition(".")[0]


def note_owners() -> None:
    """Makes Streamlit say whose page each file is made for; harmless to repeat.

    Streamlit knows the session only as long as its page shows the file, and never that of a file made on request.
    """
    if hasattr(MediaFileManager.add, "__wrapped__"):
        return
    add, execute = MediaFileManager.add, MediaFileManager.execute_deferred

    @wraps(add)
    def add_noted(self: MediaFileManager, *args: Any, **kwargs: Any) -> str:
        address, context = add(self, *args, **kwargs), get_script_run_ctx(suppress_warning=True)
        _note(address, context.session_id if context else "")
        return address

    @wraps(execute)
    def execute_noted(self: MediaFileManager, file_id: str) -> str:
        asked = self._deferred_callables.get(file_id)
        address = execute(self, file_id)
        _note(address, asked["session_id"] if asked else "")
        return address

    MediaFileManager.add, MediaFileManager.execute_deferred = add_noted, execute_noted  # type: ignore[method-assign]


def _note(address: str, session: str) -> None:
    if identity().is_one_person or not runtime.exists():
        return
    client = runtime.get_instance().get_client(session)
    if client is not None and client.client_context is not None:
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in client.client_context.headers]
        OWNERS.note(address, browser_of(headers))


def _is_from_here(scope: Scope) -> bool:
    host, _ = scope.get("client") or ("", 0)
    return host in _LOOPBACK and not any(name.lower() in _PASSED_ON for name, _ in scope["headers"])


def _missing(said: str) -> ASGIApp:
    return PlainTextResponse(said, status_code=404, headers={"cache-control": "no-store"})
