"""Two at once in a real browser with no network: a pair and its difference, another sentence, two steps of a run."""

import re
import shutil

import pytest
from app_server import Server
from controls import open_menu
from page_models import CLASSIC, OTHER_SEED, PRONOUNS, WIDE, save_other_seed
from playwright.sync_api import Page, expect

from pages.shared.exhibit import EXPORT, PROVE

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module", autouse=True)
def other_seed(server: Server, tmp_path_factory: pytest.TempPathFactory):
    """Another model of the same corpus, with two snapshots, for as long as these tests run."""
    save_other_seed(server.runs, tmp_path_factory.mktemp("second"))
    yield
    shutil.rmtree(server.runs / OTHER_SEED)


def drawn(page: Page, key: str):
    return page.locator(f".st-key-{key} .heatmaplayer image").first


def test_two_models_are_drawn_with_their_difference_and_reopened_by_link(page: Page, server: Server):
    page.goto(server.link("two-at-once", model=PRONOUNS, text=CLASSIC, other=OTHER_SEED, kind="encoder_self"))
    for key in ("two-left", "two-right", "two-difference", "two-matching"):
        expect(drawn(page, key)).to_be_attached()
    expect(page.get_by_text("Encoder self-attention · right minus left")).to_be_visible()
    left, right, difference, matching = (
        page.locator(f".st-key-two-{name}-scroll").bounding_box() or {}
        for name in ("left", "right", "difference", "matching")
    )
    assert left["y"] == right["y"] < difference["y"] and left["x"] + left["width"] < right["x"]
    assert difference["x"] == left["x"] and matching["x"] == right["x"], "two columns of two"
    page.get_by_text("The same place", exact=True).click()
    expect(page.get_by_text(f"{OTHER_SEED} · layer 1 · head 0")).to_be_visible()
    expect(page).to_have_url(re.compile("pairing=same"))
    page.goto(page.url)
    expect(page.get_by_text(f"{OTHER_SEED} · layer 1 · head 0")).to_be_visible()
    expect(page.get_by_role("radio", name="The same place")).to_be_checked()


@pytest.mark.slow
def test_another_sentence_goes_through_the_same_model(page: Page, server: Server):
    page.goto(server.link("two-at-once", model=PRONOUNS, text=CLASSIC, other=OTHER_SEED, kind="encoder_self"))
    expect(drawn(page, "two-matching")).to_be_attached()
    page.get_by_text("Two sentences", exact=True).click()
    field = page.get_by_role("textbox", name="The other sentence")
    expect(field).to_have_value(WIDE)
    field.fill("The animal crossed the street.")
    field.press("Enter")
    expect(page.get_by_text("The animal crossed the street. · layer 1 · head 0")).to_be_visible()
    expect(page.get_by_text("in line with the fewest edits")).to_be_visible()
    expect(drawn(page, "two-difference")).to_be_attached()
    expect(page).to_have_url(re.compile("other_text=The"))


@pytest.mark.slow
def test_two_steps_of_a_run_are_chosen_and_checked(page: Page, server: Server):
    page.goto(server.link("two-at-once", model=OTHER_SEED, text=CLASSIC, other=OTHER_SEED))
    expect(page.get_by_text("the largest difference is exactly 0")).to_be_visible()
    page.locator(".st-key-two-other-at").get_by_role("combobox").click()
    page.get_by_role("option", name="step 10", exact=True).click()
    expect(page.get_by_text(f"{OTHER_SEED}, step 10 · layer 1 · head 0")).to_be_visible()
    expect(drawn(page, "two-difference")).to_be_attached()
    expect(page).to_have_url(re.compile("other_at=10"))
    open_menu(page, "head-pair", PROVE)
    expect(page.get_by_text("8 checks, run just now: all hold.")).to_be_visible()


@pytest.mark.slow
def test_the_difference_is_exported(page: Page, server: Server):
    page.goto(server.link("two-at-once", model=PRONOUNS, text=CLASSIC, other=OTHER_SEED, kind="encoder_self"))
    open_menu(page, "head-pair", EXPORT)
    expect(page.locator(".st-key-head-pair-export-chart .js-plotly-plot")).to_be_visible()
    for name in ("PNG", "SVG", "CSV"):
        with page.expect_download() as download:
            page.get_by_role("button", name=name, exact=True).click()
        assert download.value.suggested_filename.endswith(f".{name.lower()}")
    assert "right minus left" in download.value.path().read_text()


@pytest.mark.slow
def test_matrices_shrink_to_a_phone(page: Page, server: Server):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(server.link("two-at-once", model=PRONOUNS, text=CLASSIC, other=OTHER_SEED, kind="encoder_self"))
    for key in ("two-left", "two-right", "two-difference"):
        expect(drawn(page, key)).to_be_attached()
        frame = page.locator(f".st-key-{key}-scroll")
        hidden, free = frame.evaluate(
            """frame => [frame.scrollWidth - frame.clientWidth, frame.getBoundingClientRect().bottom -
            frame.querySelector('.heatmaplayer').getBoundingClientRect().bottom]"""
        )
        assert hidden == 0 and free < 40, key
