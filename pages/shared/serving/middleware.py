"""Middleware between the browser and Streamlit: serves pages and Streamlit's scripts from memory, and decodes ahead.

Both work under a base path too (Streamlit's server.baseUrlPath), which every address then begins with.
"""

import mimetypes
import time
from collections import deque
from functools import cache
from pathlib import Path

import streamlit
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from pages.shared.background import Background, Work
from pages.shared.registry import PAGES
from pages.shared.url.base_path import base_path
from pages.shared.visitors.recognition import request_person, visitor_of
from transformer.access.people import acting_as

_STATIC = Path(streamlit.__file__).parent / "static"
_FRAME = Path(__file__).parents[3] / "static" / "frame.css"
_PAGES = frozenset({"/", *(f"/{page.url}" for page in PAGES)})
"""Addresses of the pages."""
_DECODING = frozenset({"/", *(f"/{page.url}" for page in PAGES if page.decodes)})
"""Addresses of the pages that show a decoding as soon as they open."""
_MOST_AHEAD, _PERIOD_S = 30, 60.0
"""Sentences decoded ahead in a period: whoever asks need not have a session, and could ask without end."""


class FilesFromMemory:
    """Pages, and Streamlit's scripts, styles and fonts, out of memory, from the second request on.

    A page is Streamlit's with the app's own style in it: what is drawn first stands where it stays. app.py sends the
    style too, which comes after the first buttons.

    A page needs a hundred of the other files, one after the other; out of files each costs four times as much. Their
    names hold a hash of what is in them, so browsers keep them.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app, base = app, base_path()
        self._paths = {f"{base}/{path.relative_to(_STATIC).as_posix()}": path for path in _STATIC.glob("static/*/*")}
        self._paths |= dict.fromkeys((f"{base}{page}" for page in _PAGES), _STATIC / "index.html")
        self._answer = cache(_whole_file)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = self._paths.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "GET" else None
        await (self._answer(path) if path else self._app)(scope, receive, send)


class DecodeAhead:
    """The sentence of a page that is asked for is decoded while the browser loads Streamlit's scripts.

    One at a time, and a bounded number a minute; what is asked for beyond these the page decodes itself. Only what the
    visitor may look at is decoded.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._works = app, Background("ahead", kept=0)
        self.latest: Work[None] | None = None
        self._begun: deque[float] = deque(maxlen=_MOST_AHEAD)
        """The times of the newest decodings."""
        base = base_path()
        self._decoding = {f"{base}{path}" for path in _DECODING}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "GET" and scope["path"] in self._decoding and self._may():
            query = scope["query_string"].decode("latin-1")
            self._begun.append(time.monotonic())
            with acting_as(request_person(scope)):
                self.latest = self._works.submit((visitor_of(scope), query), lambda _: _decode_ahead(query))
        await self._app(scope, receive, send)

    def _may(self) -> bool:
        if self.latest is not None and not self.latest.over.is_set():
            return False
        return len(self._begun) < _MOST_AHEAD or time.monotonic() - self._begun[0] > _PERIOD_S


def _whole_file(path: Path) -> Response:
    if path.name == "index.html":
        style = b"<style>" + _FRAME.read_bytes() + b"</style>"  # in the body: after Streamlit's, which are in the head
        page = path.read_bytes().replace(b"<body>", b"<body>" + style)
        return Response(page, media_type="text/html", headers={"cache-control": "no-cache"})
    kind, _ = mimetypes.guess_type(path.name)
    headers = {"cache-control": "public, immutable, max-age=31536000"}
    return Response(path.read_bytes(), media_type=kind or "application/octet-stream", headers=headers)


def _decode_ahead(query: str) -> None:
    from pages.shared.decoding import decode_ahead  # which loads torch: not before the server listens

    decode_ahead(query)
