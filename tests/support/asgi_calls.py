"""One call of an ASGI application, for tests."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from starlette.types import ASGIApp


def called(
    app: ASGIApp,
    path: str,
    *,
    query: str = "",
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    client: tuple[str, int] = ("127.0.0.1", 50_000),
    scheme: str = "http",
) -> list[dict[str, Any]]:
    """Returns the messages the application sends in answer to a request.

    Runs in its own thread: a browser test in the same process leaves an event loop running in this one.
    """
    sent: list[Any] = []
    scope = {"type": "http", "method": method, "path": path, "query_string": query.encode()}
    scope |= {"client": client, "scheme": scheme}
    scope["headers"] = [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
    scope |= {"root_path": "", "asgi": {"version": "3.0", "spec_version": "2.4"}}

    async def send(message: Any) -> None:
        sent.append(message)

    def call() -> None:
        asyncio.run(app(scope, None, send))  # type: ignore[arg-type]

    with ThreadPoolExecutor(1) as thread:
        thread.submit(call).result()
    return sent
