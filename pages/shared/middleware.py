"""Middleware between the browser and Streamlit: serves Streamlit's scripts from memory, and decodes ahead."""

import mimetypes
from functools import cache
from pathlib import Path

import streamlit
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from pages.shared.background import Background, Work
from pages.shared.registry import PAGES

_STATIC = Path(streamlit.__file__).parent / "static"
_DECODING = frozenset({"/", *(f"/{page.url}" for page in PAGES if page.decodes)})
"""Addresses of the pages that show a decoding as soon as they open."""


class FilesFromMemory:
    """Streamlit's scripts, styles and fonts out of memory, from the second request on.

    A page needs a hundred of them, one after the other; out of files each costs four times as much. Their names hold a
    hash of what is in them, so browsers keep them.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._paths = {f"/{path.relative_to(_STATIC).as_posix()}": path for path in _STATIC.glob("static/*/*")}
        self._answer = cache(_whole_file)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = self._paths.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "GET" else None
        await (self._answer(path) if path else self._app)(scope, receive, send)


class DecodeAhead:
    """The sentence of a page that is asked for is decoded while the browser loads Streamlit's scripts.

    One at a time; what is asked for meanwhile the page decodes itself.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._works = app, Background("ahead", kept=0)
        self.latest: Work[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        idle = self.latest is None or self.latest.over.is_set()
        if idle and scope["type"] == "http" and scope["method"] == "GET" and scope["path"] in _DECODING:
            query = scope["query_string"].decode("latin-1")
            self.latest = self._works.submit(query, lambda _: _decode_ahead(query))
        await self._app(scope, receive, send)


def _whole_file(path: Path) -> Response:
    kind, _ = mimetypes.guess_type(path.name)
    headers = {"cache-control": "public, immutable, max-age=31536000"}
    return Response(path.read_bytes(), media_type=kind or "application/octet-stream", headers=headers)


def _decode_ahead(query: str) -> None:
    from pages.shared.context import decode_ahead  # which loads torch: not before the server listens

    decode_ahead(query)
