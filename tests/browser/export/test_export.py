"""Browser test of exports: a figure is saved in every format, and a packed link opens its view."""

import io
import re

import numpy as np
import pytest
from app_server import Server
from controls import open_menu
from page_models import CLASSIC, PRONOUNS
from playwright.sync_api import Page, expect

from pages.shared.exhibit import EXPORT
from pages.shared.url.packed_link import pack
from transformer.lab import load

pytestmark = pytest.mark.browser


def test_a_figure_is_taken_away_in_every_format(page: Page, server: Server, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(server.runs))
    page.goto(server.link("attention", model=PRONOUNS, text=CLASSIC, layer=0, head=1))
    open_menu(page, "head-matrix", EXPORT)
    expect(page.locator(".st-key-head-matrix-export-chart .js-plotly-plot")).to_be_visible()
    saved = {}
    for name in ("PNG", "SVG", "HTML", "CSV", "NPZ"):
        with page.expect_download() as download:
            page.get_by_role("button", name=name, exact=True).click()
        saved[name] = download.value.path().read_bytes()
        assert download.value.suggested_filename == f"{PRONOUNS}-cross-weights-layer0-head1.{name.lower()}"
    assert saved["PNG"].startswith(b"\x89PNG") and saved["SVG"].startswith(b"<svg")
    weights = load(PRONOUNS).inspect(CLASSIC).cross.weights[0, 1]
    with np.load(io.BytesIO(saved["NPZ"])) as found:
        assert np.array_equal(found["weight"], weights)

    page.route("**/*", lambda route: route.abort())  # the file must need nothing
    page.set_content(saved["HTML"].decode())
    expect(page.locator(".js-plotly-plot .heatmaplayer image").first).to_be_attached()


@pytest.mark.slow
def test_a_packed_link_opens_its_view(page: Page, server: Server):
    view = pack({"model": PRONOUNS, "text": CLASSIC, "kind": "encoder_self", "layer": "0", "head": "3"})
    page.goto(server.link("attention", view=view))
    expect(page.get_by_text("Encoder self-attention · layer 0 · head 3").first).to_be_visible()
    expect(page).to_have_url(re.compile(r"[?&]head=3(&|$)"))
