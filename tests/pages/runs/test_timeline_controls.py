"""The controls of the timeline: any sentence, any head, any step, each in the URL."""

import pytest
from films import STEPS, TEXT, draw, field, film, in_url, opened, whole
from page_models import texts
from page_runs import PINNED
from streamlit.testing.v1 import AppTest

from pages.shared.wording import plain
from pages.training.timeline import panel
from pages.training.timeline.state import Choices
from transformer.runs import run_folder

pytestmark = pytest.mark.usefixtures("whole_films")


def test_any_sentence_can_be_typed_and_stands_in_the_url(film_run):
    at = opened(film_run)
    assert field(at, "timeline-text").value == TEXT
    at = whole(field(at, "timeline-text").set_value("s t").run())
    data = film(at)
    assert in_url(at, "film") == "s t"
    columns = [data["tokens"][token]["text"] for token in data["frames"][0]["columns"]]
    assert columns == ["s", "t", "</s>"]


def test_an_example_can_be_taken(film_run):
    at = whole(field(opened(film_run), f"timeline-example-{PINNED[1]}").click().run())
    assert field(at, "timeline-text").value == PINNED[1]


@pytest.mark.parametrize(("typed", "said"), [("a " * 60, "61 tokens with its end mark"), ("   ", "Type a sentence")])
def test_a_sentence_that_cannot_be_read_is_refused_and_not_lost(film_run, typed, said):
    at = whole(field(opened(film_run), "timeline-text").set_value(typed).run())
    assert said in texts(at) and "The timeline below is for the previous sentence" in texts(at)
    assert field(at, "timeline-text").value == typed.strip() and len(film(at)["frames"]) == len(STEPS)
    at = whole(field(at, "timeline-text").set_value("a b").run())
    assert "The timeline below is for" not in texts(at) and at.query_params["film"] in ("a b", ["a b"])


def test_a_sentence_in_a_link_that_cannot_be_read_leaves_one_of_the_run(film_run):
    at = opened(film_run, film="a " * 60)
    assert "Below is a sentence of the run" in texts(at) and len(film(at)["frames"]) == len(STEPS)


def test_unseen_words_are_named(film_run):
    assert "zebra" in texts(opened(film_run, film="a zebra"))


@pytest.mark.parametrize("kind", ["encoder_self", "decoder_self", "cross"])
def test_kind_layer_and_head_can_be_chosen(film_run, kind):
    at = opened(film_run)
    at = whole(field(at, "timeline-kind").set_value(kind).run())
    at = whole(field(at, "timeline-head").set_value(1).run())
    at = whole(field(at, "timeline-layer").set_value(0).run())
    data = film(at)
    assert (data["kind"], data["selected"]) == (kind, [0, 1])
    assert in_url(at, "film_head") == "1"


def test_rows_can_be_the_newest_output_at_every_step(film_run):
    at = whole(field(opened(film_run), "timeline-rows").set_value("forced").run())
    rows = {tuple(frame["rows"]) for frame in film(at)["frames"]}
    assert len(rows) == 1 and "teacher-forced" in texts(at) and in_url(at, "film_rows") == "forced"


def test_the_head_that_formed_can_be_shown(film_run, any_fall_is_sudden):
    at = opened(film_run)
    layer, head, _, last = film(at)["scores"]["jump"]
    at = whole(field(at, "timeline-jump").click().run())
    data = film(at)
    assert data["selected"] == [layer, head] and data["at"] == STEPS[last]
    assert in_url(at, "film_step") == str(STEPS[last])


def test_computing_can_be_stopped_and_taken_up_again(film_run, monkeypatch):
    monkeypatch.setattr(panel, "BUDGET_S", 0.0)
    at = AppTest.from_function(draw, args=(film_run,), default_timeout=120).run()
    assert "Translating with 8 snapshots" in at.get("progress")[0].proto.text
    at = field(at, "timeline-cancel").click().run()
    assert "snapshots translate this sentence" in texts(at) and len(film(at)["frames"]) < len(STEPS)
    monkeypatch.setattr(panel, "BUDGET_S", 1e9)
    at = whole(field(at, "timeline-go-on").click().run())
    assert len(film(at)["frames"]) == len(STEPS)


def test_a_link_opens_the_timeline_at_its_step(film_run):
    view = Choices(text="a b", kind="decoder_self", layer=0, head=1, step=8, rows="forced")
    at = opened(film_run, **view.parameters())
    data = film(at)
    assert (data["at"], data["kind"], data["selected"]) == (8, "decoder_self", [0, 1])
    assert field(at, "timeline-text").value == "a b"


def test_a_hand_edited_link_says_what_is_wrong_with_it(film_run):
    at = opened(film_run, film_kind="sideways", film_step="soon", film_layer="7", film_head="9")
    for said in ("sideways", "soon", "Layer 7 does not exist", "Head 9 does not exist"):
        assert plain(said) in texts(at)
    assert film(at)["selected"] == [0, 0]


def test_a_view_survives_the_url():
    view = Choices(text="a b", kind="encoder_self", layer=1, head=3, step=128, rows="forced")
    parameters = view.parameters()
    assert set(parameters) == set(Choices.names())
    assert Choices.read(parameters) == (view, ())
    assert Choices().parameters() == {} and "film" not in Choices(text="x" * 2_000).parameters()


def test_a_view_that_fits_stays(film_run):
    view = Choices(layer=0, head=1)
    assert view.fit(run_folder.get_run(film_run)) == (view, ())
