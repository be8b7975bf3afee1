"""The app as `deploy/` installs it, behind nginx under a base path, in a real browser over TLS.

Every page, deep links, an upload, a download, bertviz, a training; nothing is refused by the proxy or by its policy,
and nothing leaves this machine.
"""

import re
import shutil
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from app_server import Server
from controls import FAULTS, SMALL, bring, open_menu, state
from deployed_app import BASE, behind_nginx, deployed
from page_models import CLASSIC, PRONOUNS, save_untrained
from playwright.sync_api import Browser, Page, Response, expect

from pages.shared.exhibit import EXPORT
from pages.shared.registry import PAGES

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(
        not (shutil.which("nginx") or Path("/usr/sbin/nginx").exists()), reason="no nginx: apt-get install nginx-light"
    ),
    pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl to make a certificate"),
]
PATIENCE_MS = 90_000


@dataclass
class Site:
    """The app behind nginx."""

    address: str
    server: Server

    def link(self, page: str = "", **parameters: object) -> str:
        query = f"?{urlencode(parameters, doseq=True)}" if parameters else ""
        return f"{self.address}{BASE}/{page}{query}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with (
        deployed(save_untrained) as server,
        behind_nginx(server, tmp_path_factory.mktemp("nginx")) as address,
    ):
        yield Site(address, server)


@pytest.fixture
def tab(browser: Browser, site: Site) -> Iterator[Page]:
    """A visitor's tab; whatever is refused, missing or thrown fails the test."""
    context = browser.new_context(ignore_https_errors=True, viewport={"width": 1280, "height": 900})
    faults: list[str] = []
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.on("pageerror", lambda error: faults.append(f"thrown: {error}"))
    page.on("console", lambda said: faults.append(said.text) if "Content Security Policy" in said.text else None)
    page.on("response", lambda got: faults.append(f"{got.status} {got.url}") if _is_refused(got) else None)
    page.on("request", lambda asked: faults.append(asked.url) if _leaves(asked.url, site) else None)
    yield page
    shown = page.locator(FAULTS).all_inner_texts()
    context.close()
    assert not faults and not shown, (faults, shown)


def _is_refused(got: Response) -> bool:
    """Tells whether an answer is an error; Streamlit's script looks for the server below a page's address first."""
    return got.status >= 400 and not re.search(rf"{BASE}/[\w-]+/_stcore/(health|host-config)$", got.url)


def _leaves(url: str, site: Site) -> bool:
    parts = urlsplit(url)
    inside = parts.netloc == urlsplit(site.address).netloc and parts.path.startswith(f"{BASE}/")
    return parts.scheme not in ("data", "blob", "about") and not inside


def test_a_run_is_streamed_through_the_proxy(tab: Page, site: Site):
    tab.goto(site.link("playground"))
    with tab.expect_websocket(lambda socket: f"{BASE}/live/" in socket.url) as stream:
        tab.get_by_role("button", name="Play", exact=True).click()
    stream.value.wait_for_event("framereceived", lambda frame: "Output at step" in str(frame))
    expect(tab.get_by_text("Output at step")).to_be_visible()
    tab.get_by_role("button", name="Pause").click()
    expect(tab.get_by_text("Paused at step")).to_be_visible()


def test_every_page_opens_by_its_own_address(tab: Page, site: Site):
    for page in PAGES:
        tab.goto(site.link(page.url))
        begun = tab.locator("[data-testid=stMain] h1").first
        expect(begun, page.title).to_be_visible(timeout=PATIENCE_MS)
        link = tab.get_by_test_id("stSidebarNav").get_by_role("link", name=page.title, exact=True)
        if page.only_for_teachers:
            expect(link).to_have_count(0)
        else:
            expect(link).to_have_attribute("aria-current", "page")
        tab.wait_for_load_state("networkidle")


def test_a_deep_link_opens_its_view_and_survives_a_reload(tab: Page, site: Site):
    tab.goto(site.link("attention", model=PRONOUNS, text=CLASSIC, kind="encoder_self", layer=0, head=3))
    shown = tab.get_by_text("Encoder self-attention · layer 0 · head 3").first
    expect(shown).to_be_visible(timeout=PATIENCE_MS)
    expect(tab).to_have_url(re.compile(rf"{BASE}/attention\?.*head=3"))
    tab.reload()
    expect(shown).to_be_visible(timeout=PATIENCE_MS)
    tab.get_by_test_id("stSidebarNav").get_by_role("link", name="Masks", exact=True).click()
    expect(tab).to_have_url(re.compile(rf"{BASE}/masks\?"), timeout=PATIENCE_MS)


@pytest.mark.parametrize("picture", ["bertviz", "bertviz-neuron"])
def test_bertviz_draws(tab: Page, site: Site, picture: str):
    tab.goto(site.link("attention", model=PRONOUNS, text=CLASSIC, kind="encoder_self", picture=picture))
    drawn = tab.frame_locator("iframe").locator("svg line, svg path, svg rect").first
    expect(drawn).to_be_attached(timeout=PATIENCE_MS)


def test_a_saved_link_holds_the_base_path_and_a_figure_is_downloaded(tab: Page, site: Site, tmp_path: Path):
    tab.goto(site.link("attention", model=PRONOUNS, text=CLASSIC, layer=0, head=1))
    open_menu(tab, "head-matrix", EXPORT)
    expect(tab.locator("[data-testid=stPopoverBody] code").get_by_text(site.link("attention")).first).to_be_visible(
        timeout=PATIENCE_MS
    )
    with tab.expect_download() as download:
        tab.get_by_role("button", name="CSV", exact=True).first.click()
    download.value.save_as(tmp_path / "figure.csv")
    assert (tmp_path / "figure.csv").read_text().count("\n") > 5


def test_an_uploaded_file_is_trained_on_behind_the_proxy(tab: Page, site: Site, tmp_path: Path):
    pairs = [f"{a} {b} {c}\t{c} {b} {a}" for a in "abcdef" for b in "ghijkl" for c in "mnopqr"]
    (tmp_path / "pairs.tsv").write_text("\n".join(pairs))
    tab.goto(site.link("train"))
    bring(tab, tmp_path / "pairs.tsv")
    expect(tab).to_have_url(re.compile(r"[?&]corpus=[0-9a-f]{24}"), timeout=PATIENCE_MS)
    corpus = re.search(r"corpus=([0-9a-f]{24})", tab.url)
    assert corpus is not None
    small = SMALL | {"steps": 20, "evaluate_every": 10, "warmup_steps": 5, "batch_tokens": 256, "precision": "float32"}
    tab.goto(site.link("train", corpus=corpus[1], **small))
    tab.get_by_role("button", name="Train", exact=True).click()
    state(tab, "Finished")


def answer(url: str, body: bytes | None = None) -> tuple[int, str]:
    """Returns the status of an answer and where it leads."""

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            return None

    trusting = urllib.request.HTTPSHandler(context=ssl._create_unverified_context())
    try:
        with urllib.request.build_opener(Stay, trusting).open(url, body, timeout=30) as found:
            return found.status, found.headers.get("Content-Security-Policy") or ""
    except urllib.error.HTTPError as error:
        return error.code, error.headers.get("Location") or ""


def test_the_proxy_leads_to_the_base_path_and_refuses_what_it_should(site: Site):
    host = site.address
    assert answer(f"{host}{BASE}") == (301, f"{host}{BASE}/") and answer(f"{host}/") == (302, f"{host}{BASE}/")
    assert answer(f"{host}{BASE}/_stcore/health")[0] == 200
    assert "default-src 'self'" in answer(site.link())[1]
    assert answer(f"{host}{BASE}/_stcore/metrics")[0] == 404
    assert answer(f"{host}{BASE}/_stcore/upload_file/a/b", b"x" * 23_000_000)[0] == 413
