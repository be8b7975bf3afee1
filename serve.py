"""The app as a server runs it: imports done before the first visitor, and their objects kept out of garbage collection.

    python -m streamlit run serve.py

With torch loaded a collection would take longer than most reruns; frozen objects are not looked at. One thread a pass:
the models are small, and trainers beside the server need the cores.

Between a page and its browser stand serving/secure_headers.py, visitors/recognition.py, visitors/guards.py and
serving/middleware.py of pages/shared. No connection waits for acknowledgements. Runs at work are streamed by
pages/shared/live.

While it runs, it keeps a warm worker, from which trainers start at once, and starts runs whose turn it is. Trainers
outlive it.
"""

import asyncio
import contextlib
import gc
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware
from streamlit.runtime.pages_manager import PagesManager

from pages.server.errors import listen
from pages.server.metrics import serve_metrics
from pages.shared.live.socket import stream_route
from pages.shared.serving.garbage import Collector
from pages.shared.serving.machine import check_settings
from pages.shared.serving.middleware import DecodeAhead, FilesFromMemory
from pages.shared.serving.secure_headers import SecureHeaders
from pages.shared.visitors.current import recognise_visitors
from pages.shared.visitors.guards import OwnFiles, OwnMetrics, note_owners
from pages.shared.visitors.recognition import Recognise
from transformer import check_memory

check_memory()  # before anything imports PyTorch
check_settings()

_PRELOADED = (
    "pandas",
    "torch._dynamo",  # the first optimiser imports it; once that fails beside other threads, it does so for everybody
    "plotly.graph_objects",
    "transformer.lab",
    "transformer.figures.attention.matrix",
    "transformer.runs.run_folder",
    "pages.shared.decoding",
    "pages.attention.pictures",
)
_EVERY_S = 2.0
_CLEARING_EVERY_S = 3600.0
_TURN_S = 0.0005
"""The longest turn of one thread at the interpreter: files are served while a sentence is decoded."""


@asynccontextmanager
async def preloaded(app: st.App) -> AsyncIterator[None]:
    """Loads what the pages need, then tells the collector to leave it alone; tends runs until the server ends."""
    for module in _PRELOADED:
        import_module(module)
    import_module("torch").set_num_threads(1)
    # A folder named pages/ makes Streamlit guess the pages of the first visit, before app.py has named them: a link to
    # /attention would then open without the app around it. There is no public switch for this.
    PagesManager.uses_pages_directory = False
    send_at_once()
    recognise_visitors()
    note_owners()
    sys.setswitchinterval(_TURN_S)
    gc.collect()
    gc.freeze()
    listen()
    serve_metrics()
    import_module("transformer.runs.upkeep").begin()
    tending = asyncio.create_task(_tend())
    yield
    tending.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await tending
    import_module("transformer.runs.upkeep").end()


def send_at_once() -> None:
    """Switches Nagle's algorithm off for every connection that this process accepts.

    asyncio does so only where the listening socket names TCP as its protocol, and Streamlit's names none: each of a
    page's hundred small files then waits 40 ms for an acknowledgement (uvicorn's issue 3149). Nobody hands out that
    socket, but connections inherit the setting from it.
    """
    for found in gc.get_objects():
        if type(found) is socket.socket and found.family in (socket.AF_INET, socket.AF_INET6):
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


async def _tend() -> None:
    upkeep, collector, next_clearing = import_module("transformer.runs.upkeep"), Collector(), 0.0
    while True:
        await asyncio.to_thread(upkeep.do_upkeep)
        if time.monotonic() > next_clearing:
            await asyncio.to_thread(upkeep.clear)
            next_clearing = time.monotonic() + _CLEARING_EVERY_S
        collector.collect()
        await asyncio.sleep(_EVERY_S)


app = st.App(
    Path(__file__).with_name("app.py"),
    lifespan=preloaded,
    routes=[stream_route()],
    middleware=list(map(Middleware, (SecureHeaders, Recognise, OwnFiles, OwnMetrics, DecodeAhead, FilesFromMemory))),
)
