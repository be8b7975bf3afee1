"""Browser test of capsules: a page saved on one server opens on another without that run, with the same numbers."""

from pathlib import Path

import pytest
from app_server import Server, running_app
from page_models import PRONOUNS
from playwright.sync_api import Page, expect

from pages.shared.saved.page_end import OPEN, SAVE

pytestmark = [pytest.mark.browser, pytest.mark.slow]
VIEW = {"model": PRONOUNS, "text": "The cat was tired.", "layer": 0, "head": 1, "switch": "off:decoder.0.cross:2"}


def test_a_saved_page_opens_elsewhere_with_its_model_and_numbers(page: Page, server: Server, tmp_path: Path):
    page.goto(server.link("attention", **VIEW))
    page.get_by_role("button", name=SAVE).click()
    page.get_by_label("Notes").fill("Head 2 is off.")
    page.get_by_role("button", name="Make the file").click()
    with page.expect_download() as download:
        page.locator(".st-key-save-download").get_by_role("button").click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    assert file.name == f"attention-{PRONOUNS}.attnlab"

    with running_app(tmp_path / "elsewhere", tmp_path / "log.txt") as other:
        page.goto(other.link("masks"))
        page.get_by_role("button", name=OPEN).click()
        page.locator("[data-testid=stFileUploader] input[type=file]").first.set_input_files(file)
        page.get_by_role("button", name="Add its model to my runs").click()
        page.get_by_role("link", name="Open it on Attention").click()
        said = page.locator(".st-key-capsule-verdict")
        expect(said.get_by_text("The figures on this page: all")).to_be_visible()
        expect(said.get_by_text("A fresh pass here: all")).to_be_visible()
        expect(said.get_by_text("Head 2 is off.")).to_be_visible()
        expect(page.get_by_role("textbox", name="Sentence")).to_have_value("The cat was tired.")
        expect(page.get_by_text("Cross-attention · layer 0 · head 1").first).to_be_visible()
        assert "switch=off" in page.url and PRONOUNS in page.url
        assert (tmp_path / "elsewhere" / PRONOUNS).is_dir()
