"""A page saved as a capsule and opened where its model is unknown: the same page, the same numbers, or what differs."""

import io
import json
from urllib.parse import parse_qs

import pytest
from archives import members, packed_again
from page_models import CLASSIC, PRONOUNS, REVERSE, checked, open_page, texts
from safetensors.numpy import load as arrays_in
from safetensors.numpy import save as packed_arrays

from pages.shared.wording import plain
from transformer.capsules.capsule import read_capsule
from transformer.lab import load

pytestmark = pytest.mark.usefixtures("untrained_models")
SWITCH = "off:decoder.0.cross:1"


def saved(page: str = "attention", notes: str = "", **parameters) -> bytes:
    """The file that the end of a page makes."""
    at = open_page(page, popovers=("page-end-save",), **parameters)
    at.text_area(key="save-notes").set_value(notes)
    (make,) = (button for button in at.button if button.label == "Make the file")
    checked(make.click().run())
    return at.session_state["file-made"].content


def brought(content: bytes, name: str = "a.attnlab"):
    """A page with this file in its field."""
    at = open_page("home", model=REVERSE, text="a b", popovers=("page-end-open",))
    return checked(at.file_uploader[0].set_value((name, content, "application/octet-stream")).run())


def followed(at):
    """The page that the file opens on, in the same session."""
    (link,) = (link.proto for link in at.get("page_link") if link.proto.label.startswith("Open it on"))
    at.query_params.clear()
    for key, value in parse_qs(link.query_string).items():
        at.query_params[key] = value
    at.session_state["page-end-open"] = False
    return checked(at.switch_page(f"pages/{link.page}/page.py").run())


def query_of_link(at) -> str:
    """The query of the link that opens the file."""
    (link,) = (link.proto for link in at.get("page_link") if link.proto.label.startswith("Open it on"))
    return link.query_string


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Another machine: no run of the first one is there."""

    def move() -> None:
        monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "elsewhere"))

    return move


def test_a_page_is_saved_with_its_decodings_its_figures_and_the_note():
    content = saved(notes="look *here*", model=PRONOUNS, text=CLASSIC, layer="0", head="1", switch=SWITCH)
    capsule = read_capsule(io.BytesIO(content))
    assert capsule.manifest.page == "attention" and capsule.manifest.notes == "look *here*"
    assert capsule.manifest.parameters["head"] == "1" and capsule.manifest.parameters["switch"] == [SWITCH]
    plain_one, switched = sorted(capsule.manifest.decodings, key=lambda decoding: len(decoding.switches))
    assert switched.switches == (SWITCH,) and plain_one.text == CLASSIC
    assert plain_one.translation == load(PRONOUNS).inspect(CLASSIC).translation
    assert {"head-matrix", "all-heads"} <= {figure.key for figure in capsule.figures}
    assert all(figure.tables for figure in capsule.figures)


def test_an_unknown_model_comes_along_and_its_page_shows_the_saved_numbers(elsewhere):
    content = saved(notes="look *here*", model=PRONOUNS, text=CLASSIC, layer="0", head="1", switch=SWITCH)
    elsewhere()
    at = brought(content)
    assert "which is not among the models here" in texts(at)
    assert not [link for link in at.get("page_link") if link.proto.label.startswith("Open it on")]
    checked(at.button(key="page-end-bring").click().run())
    assert "A fresh pass here: all" in texts(at) and plain("look *here*") in texts(at)
    at = followed(at)
    said = texts(at)
    assert "**Opened from a file** saved" in said and "The figures on this page: all" in said
    assert "layer 0 · head 1" in said and "saved figures are not on the page" not in said
    checked(at.button(key="capsule-close").click().run())
    assert "Opened from a file" not in texts(at)


def test_a_number_that_is_not_that_of_a_fresh_pass_is_named_on_the_page():
    content = members(saved(model=REVERSE, text="a b c", layer="0", head="1"))
    arrays = {key: array.copy() for key, array in arrays_in(content["results-0.safetensors"]).items()}
    arrays["weights.cross"][0, 1, 2, 0] += 0.25
    content["results-0.safetensors"] = packed_arrays(arrays)
    said = texts(brought(packed_again(content, honest=True)))
    assert "A fresh pass here: 1 of" in said and plain("Cross-attention: weights") in said
    assert "layer 0, head 1, query 2" in said and "deviation 0.25" in said


def test_a_figure_that_shows_other_numbers_than_the_saved_ones_is_named():
    content = members(saved(model=REVERSE, text="a b c", layer="0", head="1"))
    figures = json.loads(content["figures.json"])
    (matrix,) = (each for each in figures if each["key"] == "head-matrix")
    matrix["tables"][0]["values"][0][0] = 7.0
    content["figures.json"] = json.dumps(figures).encode()
    said = texts(followed(brought(packed_again(content, honest=True))))
    assert "A fresh pass here: all" in said and "The figures on this page: 1 of" in said and "saved 7, here" in said


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x05\x06" + bytes(18)], ids=["empty", "text", "empty zip"])
def test_a_file_that_is_no_capsule_is_refused_in_a_sentence(content):
    said = texts(brought(content))
    assert plain("This file was not opened: ") in said and "Traceback" not in said


def test_the_lesson_that_was_open_goes_along():
    content = saved("learn", lesson="why-attention", step="2")
    manifest = read_capsule(io.BytesIO(content)).manifest
    assert manifest.lesson == {"lesson": "why-attention", "step": "2"} and manifest.page == "lessons"
    assert "lesson=why-attention&step=2" in query_of_link(brought(content))


def test_both_models_of_two_at_once_go_along():
    content = saved("compare", model=PRONOUNS, other=REVERSE, text="a b")
    manifest = read_capsule(io.BytesIO(content)).manifest
    assert {model.name for model in manifest.models} == {PRONOUNS, REVERSE}
    assert {decoding.model for decoding in manifest.decodings} == {PRONOUNS, REVERSE}
