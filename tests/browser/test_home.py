"""Browser test of Home: what a stranger without French sees before scrolling, on a laptop and on a phone."""

from itertools import pairwise

import pytest
from app_server import Server
from controls import wait_for_rest, wait_for_translation
from page_models import CLASSIC, WIDE
from playwright.sync_api import Locator, Page, expect

from transformer.checkpoints.settings import SHIPPED_FOLDER

MODEL = "pronouns-en-fr"
pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(not (SHIPPED_FOLDER / MODEL).exists(), reason="the shipped model is not there"),
]
SIZES = {"laptop": (1280, 800), "phone": (390, 844)}


@pytest.fixture(params=SIZES)
def home(request: pytest.FixtureRequest, page: Page, server: Server) -> Page:
    """Returns Home on the animal sentence, drawn, in a window of this size."""
    width, height = SIZES[request.param]
    page.set_viewport_size({"width": width, "height": height})
    page.goto(server.link(model=MODEL, text=CLASSIC))
    wait_for_translation(page, "L'animal n'a pas traversé la rue parce qu'il était trop fatigué.")
    expect(page.locator(".st-key-home-lines path").first).to_be_attached()
    wait_for_rest(page)
    return page


def box(element: Locator) -> dict[str, float]:
    found = element.bounding_box()
    assert found
    return found | {"right": found["x"] + found["width"], "bottom": found["y"] + found["height"]}


def test_the_first_screen_holds_the_story_in_its_order(home: Page):
    main = home.get_by_test_id("stMain")
    story = [
        main.get_by_role("heading", name="Look inside a Transformer"),
        main.get_by_role("textbox", name="Sentence"),
        home.locator(".home-translation"),
        main.get_by_text("is feminine (elle)"),
        main.get_by_role("button", name="Change tired to wide"),
        home.locator(".st-key-home-lines .row.source"),
    ]
    boxes = [box(element) for element in story]
    assert all(above["bottom"] <= below["y"] for above, below in pairwise(boxes))
    size = home.viewport_size
    assert size and boxes[-1]["bottom"] <= size["height"]
    assert all(each["right"] <= size["width"] for each in boxes[:-1])


def test_the_whole_english_sentence_is_legible_in_the_first_screen(home: Page):
    field = home.get_by_role("textbox", name="Sentence")
    cut_off = field.evaluate("field => field.scrollWidth > field.clientWidth")
    assert home.locator(".home-sentence").is_visible() == cut_off
    assert home.locator(".home-sentence").text_content() == CLASSIC


def test_each_gloss_stands_beneath_its_word_and_beside_no_other(home: Page):
    glosses = home.locator(".home-translation rt")
    assert glosses.count() == 13
    boxes = [box(gloss) for gloss in glosses.all()]
    for gloss, placed in zip(glosses.all(), boxes, strict=True):
        word = box(gloss.locator("xpath=.."))
        assert abs(word["x"] - placed["x"]) < 1
        assert placed["y"] > word["y"] + word["height"] / 2  # under the word, not over it as ruby usually is
    for left, right in pairwise(boxes):
        assert right["y"] > left["y"] or right["x"] >= left["right"]


def test_copied_text_is_the_translation_without_its_glosses(home: Page):
    copied = home.locator(".home-translation").evaluate(
        "shown => { getSelection().selectAllChildren(shown); return getSelection().toString(); }"
    )
    assert copied == "L'animal n'a pas traversé la rue parce qu'il était trop fatigué."


def test_the_one_button_turns_il_into_elle(home: Page):
    home.get_by_role("button", name="Change tired to wide").click()
    wait_for_translation(home, "L'animal n'a pas traversé la rue parce qu'elle était trop large.")
    expect(home.get_by_text("so it means the street")).to_be_visible()
    expect(home.get_by_role("textbox", name="Sentence")).to_have_value(WIDE)
