"""The address of a stream: a websocket that sends a page's components their data as a run goes on.

Its messages are JSON: {"PART": {what changed of its data, "step": the step}}, and {"over": STATE} when the run has
ended or paused. What the browser sends is not read.
"""

import asyncio
from contextlib import suppress

from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from pages.shared.live.feeds import FEEDS, Follower
from pages.shared.live.watches import FOLDER, WATCHES
from pages.shared.url.base_path import base_path

GONE, FULL = 4404, 4429
"""Codes with which a stream ends: there is no such watch any more; there are too many."""
MAX_STREAMS = 2_000


def stream_route() -> WebSocketRoute:
    """Returns the route of all streams."""
    return WebSocketRoute(f"{base_path()}/{FOLDER}/{{ticket}}", _stream)


async def _stream(socket: WebSocket) -> None:
    watch = WATCHES.get(socket.path_params["ticket"])
    await socket.accept()
    if watch is None or FEEDS.count() >= MAX_STREAMS:
        await socket.close(GONE if watch is None else FULL)
        return
    async with FEEDS.following(watch) as follower:
        sending = asyncio.create_task(_send(socket, follower))
        leaving = asyncio.create_task(_leaving(socket))
        done, left = await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        for task in left:
            task.cancel()
        with suppress(WebSocketDisconnect, asyncio.CancelledError, RuntimeError):
            await asyncio.gather(*done, *left)


async def _send(socket: WebSocket, follower: Follower) -> None:
    while message := await follower.message():
        await socket.send_text(message)
    await socket.close(GONE)


async def _leaving(socket: WebSocket) -> None:
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass
