"""Decoding ahead: the page that is asked for finds its sentence decoded; nothing that is asked for can disturb it."""

import pytest
from asgi_calls import called
from page_models import PRONOUNS, REVERSE, open_page, texts

from pages.shared.serving.middleware import DecodeAhead
from pages.shared.url.packed_link import pack
from transformer.lab import Lab


def asked_for(path, query=""):
    """Requests this address; returns None if no decoding was started, otherwise a tuple of the error it ended with."""
    passed_on = []

    async def app(scope, receive, send):
        passed_on.append(scope)

    ahead = DecodeAhead(app)
    called(ahead, path, query=query)
    assert len(passed_on) == 1
    if ahead.latest is not None:
        assert ahead.latest.over.wait(60)
    return ahead.latest and (ahead.latest.error,)


@pytest.mark.parametrize(
    "query",
    ["model={}&text=a+b+c+d&head=1", "view=" + pack({"model": REVERSE, "text": "a b c d"})],
    ids=["link", "packed"],
)
def test_the_page_finds_its_sentence_decoded(own_models, monkeypatch, query):
    assert asked_for("/attention", query.format(REVERSE)) == (None,)
    monkeypatch.setattr(Lab, "inspect", None)  # whoever decodes now fails
    assert "Under each token" in texts(open_page("attention", model=REVERSE, text="a b c d"))


def test_without_a_sentence_it_is_the_first_one_that_is_shown(own_models, monkeypatch):
    (own_models / PRONOUNS).rename(own_models / "pronouns-en-fr")
    monkeypatch.setattr("transformer.checkpoints.settings.SHIPPED_FOLDER", own_models / "none")
    assert asked_for("/") == (None,)
    monkeypatch.setattr(Lab, "inspect", None)
    open_page("home")


def test_what_no_page_joins_stops_soon(own_models, monkeypatch):
    def inspect(lab, *_, watch, **options):
        while True:
            watch(1, lambda: None)

    monkeypatch.setattr(Lab, "inspect", inspect)
    monkeypatch.setattr("pages.shared.background.GRACE_S", 0.1)
    assert asked_for("/attention", f"model={REVERSE}&text=a+b+c+e") == (None,)


@pytest.mark.parametrize("path", ["/train", "/static/js/index.js", "/_stcore/health"])
def test_what_shows_no_sentence_decodes_none(path):
    assert asked_for(path, f"model={REVERSE}&text=a") is None


@pytest.mark.parametrize(
    "query",
    ["model=../..&text=a", "model=none", "text=" + "a+" * 400, "view=rubbish", "text=%00%ff&model=" + REVERSE, "=&&="],
)
def test_what_makes_no_sense_is_left_to_the_page(untrained_models, query):
    assert asked_for("/attention", query) == (None,)


def test_under_a_base_path_the_same_pages_are_decoded_ahead(monkeypatch):
    monkeypatch.setattr("pages.shared.serving.middleware.base_path", lambda: "/course/lab")
    monkeypatch.setattr("pages.shared.serving.middleware._decode_ahead", lambda query: None)
    assert asked_for("/course/lab/attention", "text=a") == asked_for("/course/lab/") == (None,)
    assert asked_for("/attention", "text=a") is None


def test_without_a_session_only_so_many_sentences_are_decoded_a_minute(monkeypatch):
    decoded, hour = [], [0.0]
    monkeypatch.setattr("pages.shared.serving.middleware._decode_ahead", decoded.append)
    monkeypatch.setattr("pages.shared.serving.middleware.time.monotonic", lambda: hour[0])

    async def app(scope, receive, send):
        pass

    ahead = DecodeAhead(app)
    for i in range(100):
        called(ahead, "/attention", query=f"text={i}")
        assert ahead.latest.over.wait(60)
    assert decoded == [f"text={i}" for i in range(30)]
    hour[0] = 61.0
    called(ahead, "/attention", query="text=later")
    assert ahead.latest.over.wait(60) and decoded[-1] == "text=later"
