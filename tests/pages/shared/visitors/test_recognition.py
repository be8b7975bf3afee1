"""Who a visitor is: by a cookie that cannot be forged, by a header that only the proxy is believed, or nobody."""

import pytest
from asgi_calls import called

from pages.shared.serving.secure_headers import SecureHeaders
from pages.shared.visitors import current
from pages.shared.visitors.recognition import COOKIE, HEADER, Recognise, request_person, sealed, signed_id, visitor_of
from transformer.access import server_settings
from transformer.access.known_people import become_teacher, person_called
from transformer.access.people import ME, NOBODY
from transformer.access.server_settings import (
    IDENTITY,
    PROXIES,
    SERVER_SETTINGS,
    TEACHER_TOKEN,
    TEACHERS,
    ServerSettingError,
    check_server_settings,
    identity,
)

ADA = "a" * 32
PAGE = {"Accept": "text/html"}


@pytest.fixture(autouse=True)
def server(tmp_path, monkeypatch):
    """A folder of runs of its own, and nothing set."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    for name in (IDENTITY, TEACHERS, TEACHER_TOKEN, PROXIES):
        monkeypatch.delenv(name, raising=False)


def asked(**request):
    """Returns the person whom an application behind `Recognise` finds, and the cookies that the browser gets."""
    found = []

    async def app(scope, receive, send):
        found.append(request_person(scope))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"set-cookie", b"_streamlit_xsrf=1")]})
        await send({"type": "http.response.body", "body": b""})

    first, *_ = called(SecureHeaders(Recognise(app)), "/", **request)
    return found[0], [value.decode() for name, value in first["headers"] if name == b"set-cookie"]


def test_a_server_for_one_takes_everybody_for_the_same_person():
    assert asked(headers=PAGE) == (ME, ["_streamlit_xsrf=1"])


@pytest.mark.parametrize(
    ("address", "alone"),
    [
        *(("127.0.0.1", True), ("127.0.0.53", True), ("::1", True), ("localhost", True)),
        *(("0.0.0.0", False), ("::", False), ("192.168.0.7", False), ("lab.school.example", False)),
        *((None, False), ("", False), ("unix:///run/lab.sock", False)),
    ],
)
def test_a_server_for_its_own_machine_is_one_persons_and_any_other_tells_visitors_apart(monkeypatch, address, alone):
    monkeypatch.setattr(current.st, "get_option", {"server.address": address}.get)
    monkeypatch.setattr(server_settings, "_unset", server_settings._unset)
    current.recognise_visitors()
    assert identity().is_one_person == alone == (asked(headers=PAGE)[0] == ME)
    assert identity().kind == ("none" if alone else "cookie")
    for said in ("none", "oidc"):
        monkeypatch.setenv(IDENTITY, said)
        assert identity().kind == said, "the setting decides where it is there"


def test_a_browser_keeps_the_id_that_it_got_in_a_cookie_that_scripts_cannot_read(monkeypatch):
    monkeypatch.setenv(IDENTITY, "cookie")
    first, (_, cookie) = asked(headers=PAGE)
    value, *attributes = cookie.split("; ")
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(attributes) and "Secure" not in attributes
    again, cookies = asked(headers=PAGE | {"Cookie": f"other=1; {value}"})
    assert again == first and len(first.id) == 32 and cookies == ["_streamlit_xsrf=1"]
    assert not first.is_teacher and asked(headers=PAGE)[0].id != first.id


def test_over_https_cookies_stay_there(monkeypatch):
    monkeypatch.setenv(IDENTITY, "cookie")
    assert all(cookie.endswith("; Secure") for cookie in asked(headers=PAGE, scheme="https")[1])


@pytest.mark.parametrize(
    "forged",
    [
        ADA,
        f"{ADA}.",
        f"{ADA}.{'0' * 64}",
        lambda: signed_id("b" * 32).replace("b" * 32, ADA),
        lambda: signed_id(ADA)[:-1],
        lambda: f"{signed_id(ADA)}0",
        "2|a|b|c",
        '"\\',
    ],
)
def test_a_forged_cookie_makes_somebody_new(monkeypatch, forged):
    monkeypatch.setenv(IDENTITY, "cookie")
    text = forged() if callable(forged) else forged
    person, cookies = asked(headers=PAGE | {"Cookie": f"{COOKIE}={text}"})
    assert person.id not in ("", ADA) and len(cookies) == 2
    assert asked(headers={"Cookie": f"{COOKIE}={signed_id(ADA)}"})[0].id == ADA


@pytest.mark.parametrize("setting", ["cookie", "header:X-User", "oidc"])
def test_the_header_between_server_and_pages_cannot_be_sent_from_outside(monkeypatch, setting):
    monkeypatch.setenv(IDENTITY, setting)
    for value in ("ada", sealed("ada"), sealed("ada").upper()):
        assert asked(headers={HEADER.upper(): value}, client=("203.0.113.9", 4000))[0].id != "ada"
    assert visitor_of({"headers": [(HEADER.encode(), b"YWRh.0000")]}) == ""


@pytest.mark.parametrize(
    ("client", "known"),
    [
        (("127.0.0.1", 41_000), True),
        (("::1", 41_000), True),
        (("203.0.113.9", 0), True),  # uvicorn's way to name the proxy's client, for trusted proxies alone
        (("203.0.113.9", 41_000), False),
        (("10.0.0.5", 41_000), False),
        (("", 41_000), False),
    ],
)
def test_the_proxys_header_is_believed_from_the_proxy_alone(monkeypatch, client, known):
    monkeypatch.setenv(IDENTITY, "header:X-User")
    assert asked(headers={"X-User": " Ada@School.example "}, client=client)[0].id == "ada@school.example" * known
    monkeypatch.setenv(PROXIES, "10.0.0.0/24")
    assert bool(asked(headers={"X-User": "ada"}, client=("10.0.0.5", 9))[0].id)
    assert asked(headers={"X-User": "ada"}, client=("127.0.0.1", 9))[0] == NOBODY


@pytest.mark.parametrize("value", ["", "   ", "a" * 201, "a\tb\x7f", "\udcff"])
def test_a_header_that_names_nobody_makes_nobody(monkeypatch, value):
    monkeypatch.setenv(IDENTITY, "header:X-User")
    sent = {"X-User": value} if value.isascii() else {}
    assert asked(headers=sent)[0] == NOBODY


def test_teachers_are_named_by_the_server_or_know_its_secret(monkeypatch):
    monkeypatch.setenv(TEACHERS, "Tess@school.example, tom")
    assert person_called("tess@school.example").is_teacher and person_called("tom").is_teacher
    assert not person_called("ada").is_teacher
    monkeypatch.setenv(TEACHER_TOKEN, "correct horse battery")
    assert not become_teacher(ADA, "correct horse") and not person_called(ADA).is_teacher
    assert become_teacher(ADA, "correct horse battery") and person_called(ADA).is_teacher
    monkeypatch.setenv(TEACHER_TOKEN, "another horse battery")
    assert not person_called(ADA).is_teacher, "another secret ends what the old one gave"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({IDENTITY: "basic"}, r"ATTENTION_LAB_IDENTITY \('basic'\) must be none, cookie, oidc or header:NAME"),
        ({IDENTITY: "header:"}, "must be none, cookie, oidc or header:NAME"),
        ({IDENTITY: "header:X-User", PROXIES: "*"}, r"is \*, so that anybody could send the header x-user"),
        ({IDENTITY: "oidc", TEACHER_TOKEN: "a long enough one"}, "name the teachers in ATTENTION_LAB_TEACHERS instead"),
        ({IDENTITY: "cookie", TEACHER_TOKEN: "short"}, "has 5 characters and needs at least 12"),
    ],
)
def test_settings_that_leave_a_door_open_are_refused_at_the_start(monkeypatch, settings, message):
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ServerSettingError, match=message):
        check_server_settings()


@pytest.mark.parametrize(
    ("user", "person_id"),
    [
        ({"email": "Ada@School.example ", "email_verified": True}, "ada@school.example"),
        ({"email": "ada@school.example"}, "ada@school.example"),
        (
            {"email": "ada@school.example", "email_verified": False, "iss": "https://login", "sub": "7"},
            "https://login#7",
        ),
        ({"iss": "https://login", "sub": "7"}, "https://login#7"),
        (None, ""),
    ],
)
def test_a_login_is_known_by_an_address_that_its_provider_checked(monkeypatch, user, person_id):
    class User(dict):
        is_logged_in = user is not None

    monkeypatch.setattr(current.st, "user", User(user or {}))
    assert current._of_login() == person_id


def test_a_login_needs_its_package(monkeypatch):
    monkeypatch.setenv(IDENTITY, "oidc")
    monkeypatch.setattr("transformer.access.server_settings.find_spec", lambda name: None)
    with pytest.raises(ServerSettingError, match="needs the package Authlib"):
        check_server_settings()


def test_every_setting_stands_in_the_list():
    assert identity().is_one_person
    names = [setting.name for setting in SERVER_SETTINGS]
    assert len(set(names)) == len(names) and all(setting.says.endswith(".") for setting in SERVER_SETTINGS)
