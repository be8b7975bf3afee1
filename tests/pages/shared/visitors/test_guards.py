"""Files go to the visitor whose page made them, and the server's figures to its own machine."""

from types import SimpleNamespace

import pytest
from asgi_calls import called
from starlette.responses import PlainTextResponse

from pages.shared.visitors import guards
from pages.shared.visitors.guards import FileOwners, OwnFiles, OwnMetrics
from pages.shared.visitors.recognition import COOKIE, Recognise, signed_id
from transformer.access.server_settings import IDENTITY

ADA, BOB = "a" * 32, "b" * 32
FILE = "/media/c0ffee.csv"
THERE = PlainTextResponse("there")


def cookie(person_id):
    return {"Cookie": f"{COOKIE}={signed_id(person_id)}"}


def login(text):
    return {"Cookie": f"theme=dark; _streamlit_user={text}; _streamlit_user__1=more; _streamlit_user_tokens={text[:1]}"}


def status(app, path, **request):
    return called(app, path, **request)[0]["status"]


@pytest.fixture(autouse=True)
def room(tmp_path, monkeypatch):
    """A folder of runs of its own, with the server's key in it."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))


@pytest.fixture
def page_of(monkeypatch):
    """Lets a page, by the headers of its websocket, make a file."""
    monkeypatch.setattr(guards, "OWNERS", FileOwners(most=2))

    def made(headers, address=FILE):
        written = []

        async def keep(scope, receive, send):
            written.extend((name.decode(), value.decode()) for name, value in scope["headers"])
            await THERE(scope, receive, send)

        called(Recognise(keep), "/_stcore/stream", headers=headers)
        client = SimpleNamespace(client_context=SimpleNamespace(headers=written))
        server = SimpleNamespace(get_client={"open": client}.get)
        monkeypatch.setattr(guards, "runtime", SimpleNamespace(exists=lambda: True, get_instance=lambda: server))
        guards._note(address, "open")
        guards._note("/media/0ff.csv", "closed")

    return made


@pytest.mark.parametrize(
    ("setting", "hers", "others"),
    [
        ("cookie", lambda: cookie(ADA), lambda: [cookie(BOB), {}, {"Cookie": f"{COOKIE}={ADA}.{'0' * 64}"}]),
        ("header:X-User", lambda: {"X-User": "ada"}, lambda: [{"X-User": "bob"}, {}]),
        (
            "oidc",
            lambda: login("ada"),
            lambda: [login("bob"), {}, {"Cookie": '"\\'}, {"Cookie": "_streamlit_user=ada"}],
        ),
    ],
    ids=["cookie", "header", "oidc"],
)
def test_a_file_is_its_visitors_alone(monkeypatch, page_of, setting, hers, others):
    monkeypatch.setenv(IDENTITY, setting)
    page_of(own := hers())
    app = Recognise(OwnFiles(THERE))
    for path in (FILE, "/media/c0ffee"):
        assert status(app, path, headers=own) == status(app, path, headers=own, method="HEAD") == 200
        assert {status(app, path, headers=each) for each in others()} == {404}
    assert status(app, "/media/decade.csv", headers=own) == 404
    assert status(app, "/app/static/d3.min.js") == 200


def test_a_file_that_two_made_is_both_of_theirs_and_the_oldest_are_forgotten():
    owners = FileOwners(most=2)
    for address, browser in (("/media/a.csv", "ada"), ("/media/a.csv", "bob"), ("/media/b.png", "bob")):
        owners.note(address, browser)
    assert owners.owns("ada", "/lab/media/a") and owners.owns("bob", "/media/a.csv")
    assert owners.owns("bob", "/media/b.png") and not owners.owns("ada", "/media/b.png")
    owners.note("/media/c.png", "ada")
    assert not owners.owns("ada", "/media/a.csv") and owners.owns("ada", "/media/c.png")
    owners.note("/media/d.png", "")
    assert not owners.owns("", "/media/d.png")


def test_a_file_of_nobodys_page_is_nobodys(monkeypatch, page_of):
    monkeypatch.setenv(IDENTITY, "header:X-User")
    page_of({})
    assert status(Recognise(OwnFiles(THERE)), FILE) == 404


def test_on_a_server_for_one_every_file_is_theirs(monkeypatch):
    monkeypatch.delenv(IDENTITY, raising=False)
    assert status(Recognise(OwnFiles(THERE)), FILE) == 200


@pytest.mark.parametrize(
    ("client", "headers", "answer"),
    [
        (("127.0.0.1", 40_000), {}, 200),
        (("::1", 40_000), {}, 200),
        (("10.0.0.7", 40_000), {}, 404),
        (("10.0.0.7", 0), {"X-Forwarded-For": "10.0.0.7"}, 404),
        (("127.0.0.1", 0), {"X-Forwarded-For": "127.0.0.1"}, 404),
        (("127.0.0.1", 40_000), {"Via": "1.1 proxy"}, 404),
    ],
)
def test_the_servers_figures_are_for_its_own_machine(client, headers, answer):
    app = OwnMetrics(THERE)
    for path in ("/_stcore/metrics", "/_stcore/metrics/"):
        assert status(app, path, client=client, headers=headers) == answer
    assert status(app, "/_stcore/health", client=client, headers=headers) == 200
