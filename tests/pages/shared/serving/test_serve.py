"""The server's own settings, on a socket like Streamlit's, and its answers beside Streamlit's own."""

import asyncio
import contextlib
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from asgi_calls import called
from streamlit.file_util import get_static_dir
from streamlit.web.server.starlette.starlette_static_routes import create_streamlit_static_handler

import serve
from pages.shared.serving.middleware import FilesFromMemory
from transformer.runs import upkeep

ROOT = Path(__file__).parents[4]


def test_what_is_accepted_sends_at_once():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serve.send_at_once()
        with socket.create_connection(listening.getsockname()), listening.accept()[0] as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_runs_are_tended_and_garbage_is_collected_again_and_again(monkeypatch):
    done = []
    monkeypatch.setattr(serve, "_EVERY_S", 0.01)
    monkeypatch.setattr(serve, "Collector", lambda: SimpleNamespace(collect=lambda: done.append("collect")))
    monkeypatch.setattr(upkeep, "do_upkeep", lambda: done.append("tend"))
    monkeypatch.setattr(upkeep, "clear", lambda: done.append("clear"))

    async def tend_until_done() -> None:
        tending = asyncio.create_task(serve._tend())
        while len(done) < 5:
            await asyncio.sleep(0.01)
        tending.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await tending

    with ThreadPoolExecutor(1) as thread:  # a test in the browser before this one leaves an event loop in its thread
        thread.submit(asyncio.run, tend_until_done()).result()
    assert done[:5] == ["tend", "clear", "collect", "tend", "collect"]


def answer(app, path, method="GET"):
    """Status, the headers that matter to a browser, and the body."""
    first, *parts = called(app, path, method=method)
    headers = {name: value for name, value in first["headers"] if name in (b"content-length", b"cache-control")}
    return first["status"], headers, b"".join(part["body"] for part in parts)


async def nothing(scope, receive, send):
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def test_files_from_memory_are_those_that_streamlit_serves():
    streamlits = create_streamlit_static_handler(get_static_dir(), None)
    held = FilesFromMemory(nothing)
    paths = sorted(path for path in held._paths if path.startswith("/static/"))
    assert len(paths) > 100
    for path in paths[::7]:
        first = answer(held, path)
        assert first == answer(streamlits, path) == answer(held, path)
        assert first[0] == 200 and first[2]


@pytest.mark.parametrize("page", ["/", "/attention"])
def test_a_page_is_streamlits_with_the_apps_style(page):
    status, headers, body = answer(FilesFromMemory(nothing), page)
    of_streamlit = answer(create_streamlit_static_handler(get_static_dir(), None), page)
    before, after = of_streamlit[2].split(b"<body>")
    style = (ROOT / "static" / "frame.css").read_bytes()
    assert body == before + b"<body><style>" + style + b"</style>" + after
    assert status == of_streamlit[0] == 200 and headers[b"cache-control"] == of_streamlit[1][b"cache-control"]


@pytest.mark.parametrize(
    ("path", "kind"), [("index.*.js", b"text/javascript"), ("index.*.css", b"text/css"), ("*.woff2", b"font/woff2")]
)
def test_files_from_memory_say_what_they_are(path, kind):
    found = next(known for known in FilesFromMemory(nothing)._paths.values() if known.match(path))
    assert FilesFromMemory(nothing)._answer(found).headers["content-type"].startswith(kind.decode())


@pytest.mark.parametrize(
    "path", ["/none", "/static/js/../../index.html", "/static/js/none.js", "/favicon.png", "/static"]
)
def test_anything_else_is_left_to_streamlit(path):
    assert answer(FilesFromMemory(nothing), path)[0] == 404
    known = next(iter(FilesFromMemory(nothing)._paths))
    assert answer(FilesFromMemory(nothing), known, method="POST")[0] == 404


def test_under_a_base_path_files_come_from_memory_too(monkeypatch):
    monkeypatch.setattr("pages.shared.serving.middleware.base_path", lambda: "/lab")
    held = FilesFromMemory(nothing)
    path = next(iter(held._paths))
    assert path.startswith("/lab/static/") and answer(held, path)[0] == 200
    assert answer(held, path.removeprefix("/lab"))[0] == 404
