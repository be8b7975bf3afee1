"""Visitors who log in at a provider of OpenID Connect: their runs are theirs, and nobody logs in as another."""

import base64
import json
from collections.abc import Iterator

import pytest
from app_server import Server, free_port, running_app
from fakes.login_provider import CLIENT, FORGER, SECRET, login_provider
from page_models import save_untrained
from playwright.sync_api import Browser, Page, expect

from transformer.access.people import Person, acting_as
from transformer.access.server_settings import IDENTITY, TEACHERS
from transformer.files import write_json
from transformer.runs.labels import set_note
from transformer.runs.status import Status, write_status

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ADA, TESS = "ada@school.example", "tess@school.example"
ACCOUNTS = {
    "ada": {"email": "Ada@School.example", "email_verified": True},
    "bob": {"email": "bob@school.example"},
    "tess": {"email": TESS, "email_verified": True},
    "eve": {"email": ADA, "email_verified": False},
    FORGER: {"email": ADA, "email_verified": True},
}
NOTE = "nobody else reads this note"


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Server]:
    """A server whose visitors log in, with a run of Ada's."""
    runs, home = tmp_path_factory.mktemp("runs"), tmp_path_factory.mktemp("home")
    save_untrained(runs)
    folder = next(path for path in sorted(runs.iterdir()) if (path / "config.json").is_file())
    write_json(folder / "ticket.json", {"owner": ADA, "asked": 0.0, "elapsed_s": 0.0})
    write_status(folder, Status(state="finished"))
    port = free_port()
    with pytest.MonkeyPatch.context() as patch, login_provider(ACCOUNTS) as provider:
        patch.setenv("ATTENTION_LAB_RUNS", str(runs))
        with acting_as(Person(id=ADA)):
            set_note(folder.name, NOTE)
        (home / ".streamlit").mkdir()
        (home / ".streamlit" / "secrets.toml").write_text(
            f'[auth]\nredirect_uri = "http://127.0.0.1:{port}/oauth2callback"\ncookie_secret = "{"c" * 40}"\n'
            f'client_id = "{CLIENT}"\nclient_secret = "{SECRET}"\n'
            f'server_metadata_url = "{provider.url}/.well-known/openid-configuration"\n'
        )
        settings = {IDENTITY: "oidc", TEACHERS: TESS, "HOME": str(home), "AUTHLIB_INSECURE_TRANSPORT": "1"}
        log = tmp_path_factory.mktemp("server") / "log.txt"
        with running_app(runs, log, environment=settings, port=port) as server:
            yield server


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    """A tab of a browser that nobody has used."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(90_000)
    yield page
    context.close()


def log_in(tab: Page, server: Server, account: str) -> None:
    """Chooses an account at the provider and comes back."""
    tab.goto(server.link("runs"))
    tab.get_by_role("button", name="Log in").click()
    tab.get_by_role("link", name=account, exact=True).click()
    tab.wait_for_url(f"{server.url}/**")


def hers(server: Server) -> str:
    return next(path.parent.name for path in server.runs.glob("*/ticket.json"))


def asks_for_login(tab: Page) -> None:
    expect(tab.get_by_text("Attention Lab does not know who you are")).to_be_visible()
    expect(tab.get_by_text(NOTE)).to_have_count(0)


def test_who_logs_in_has_their_runs_until_they_log_out(tab: Page, server: Server):
    link = server.link("runs", run=hers(server), show=hers(server))
    tab.goto(link)
    asks_for_login(tab)
    log_in(tab, server, "ada")
    tab.goto(link)
    expect(tab.get_by_text(NOTE).first).to_be_visible()
    expect(tab.get_by_role("button", name="Delete", exact=True)).to_be_visible()
    cookies = {cookie["name"]: cookie for cookie in tab.context.cookies()}
    assert cookies["_streamlit_user"]["httpOnly"], "no script reads a login"
    tab.goto(server.link("class"))
    expect(tab.get_by_text(ADA).first).to_be_visible()
    tab.get_by_role("button", name="Log out").click()
    asks_for_login(tab)
    tab.goto(link)
    asks_for_login(tab)


@pytest.mark.parametrize("account", ["bob", "eve"])
def test_another_account_or_an_address_that_was_never_checked_sees_nothing_of_them(tab: Page, server: Server, account):
    log_in(tab, server, account)
    tab.goto(server.link("runs", run=hers(server), show=hers(server)))
    expect(tab.get_by_text(f"The link asks for “{hers(server)}”, which is not here.")).to_be_visible()
    expect(tab.get_by_text(NOTE)).to_have_count(0)


def test_a_teacher_by_login_sees_all(tab: Page, server: Server):
    log_in(tab, server, "tess")
    tab.goto(server.link("runs", run=hers(server), show=hers(server)))
    expect(tab.get_by_text(NOTE).first).to_be_visible()


def test_a_token_of_another_signer_and_a_cookie_made_by_hand_log_nobody_in(tab: Page, server: Server):
    log_in(tab, server, FORGER)
    asks_for_login(tab)
    login = json.dumps({"origin": server.url, "is_logged_in": True, "email": ADA})
    for value in (base64.b64encode(login.encode()).decode(), f"2|{ADA}|0"):
        tab.context.add_cookies([{"name": "_streamlit_user", "value": value, "url": server.url}])
        tab.goto(server.link("runs", run=hers(server)))
        asks_for_login(tab)
