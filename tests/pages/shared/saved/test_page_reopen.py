"""A saved view that is opened again: what makes no sense in it is said at once, and every page has its own."""

import pytest
from page_exports import opened
from page_models import CLASSIC, PRONOUNS, checked, texts

from pages.shared.registry import REOPENABLE
from pages.shared.url.packed_link import as_file
from pages.shared.wording import plain

pytestmark = pytest.mark.usefixtures("untrained_models")


def brought(at, content: str):
    return checked(at.file_uploader[0].set_value(("view.json", content.encode(), "application/json")).run())


def test_a_saved_view_says_what_will_be_left_out_before_it_is_opened():
    at = opened("attention", "head-matrix-export")
    nonsense = {
        "model": PRONOUNS,
        "text": CLASSIC,
        "layer": "99",
        "kind": "sideways",
        "switch": ["off:decoder.7.cross:1", "boil:the.kettle", "off:decoder.0.cross:1"],
    }
    brought(at, as_file("attention", nonsense))
    said = texts(at)
    for wrong in ("Layer 99 does not exist", "kind “sideways”", "boil:the.kettle"):
        assert plain(wrong) in said, wrong
    assert said.count("left out") == 2  # the second of them a block that does not exist
    assert "The link says" not in said and "The view says" in said
    assert any(link.proto.label == "Open it on Attention" for link in at.get("page_link"))
    brought(at, as_file("heads", {"model": "gone", "text": "a", "pairs": "7"}))
    assert "Another model will be shown" in texts(at)


def test_a_file_that_is_no_view_is_refused_and_a_whole_one_opens_without_a_word():
    at = opened("attention", "head-matrix-export")
    before = texts(at).count(":material/error:")
    brought(at, '{"format": "attention-lab-view", "page": "attention", "parameters": {"layer": "99"}}')
    assert "it names no model" in texts(at)
    assert not any(link.proto.label.startswith("Open it on") for link in at.get("page_link"))
    brought(at, as_file("masks", {"model": PRONOUNS, "text": CLASSIC, "switch": ["mask:causal"]}))
    assert texts(at).count(":material/error:") == before
    assert any(link.proto.label == "Open it on Masks" for link in at.get("page_link"))


def test_home_is_taken_away_as_home():
    at = opened("home", "token-lines-export", layer="0")
    (link,) = (sublayer.value for sublayer in at.code if sublayer.value.startswith("http"))
    assert "/home" not in link and "/attention" not in link and "layer=0" in link
    assert REOPENABLE["home"].path == "pages/home/page.py" and REOPENABLE["home"].title == "Home"
