"""Every page that teaches ends with one question, whose link opens the page that answers it."""

from urllib.parse import parse_qs

import pytest
from page_models import REVERSE, open_page, save_model
from random_models import random_convolutional

from pages.gallery.failures import FAILURES
from pages.shared.further import next_question
from pages.shared.registry import BY_FOLDER, PAGES, NextQuestion

pytestmark = pytest.mark.usefixtures("untrained_models")
LEADING = [page for page in PAGES if page.then is not None]


def link_of(at, question: NextQuestion):
    label = f"**{question.asks}** {question.answer}"
    (link,) = (link.proto for link in at.get("page_link") if link.proto.label == label)
    return link


def test_the_questions_lead_through_all_pages_in_a_circle():
    """Only the pages that are looked things up in, and those of a class, lie beside it."""
    folder, met = "home", []
    while folder not in met:
        met.append(folder)
        folder = BY_FOLDER[folder].then.folder
    assert folder == "home"
    assert {page.folder for page in PAGES} - set(met) == {"glossary", "tokenizers", "classroom", "server"}
    assert {page.folder for page in PAGES if page.then is None} == {"classroom", "server"}


@pytest.mark.parametrize("page", LEADING, ids=lambda page: page.folder)
def test_a_page_ends_with_a_question_and_its_link_opens_the_answer(page):
    question = page.then
    link = link_of(open_page(page.folder), question)
    assert link.page == BY_FOLDER[question.folder].url or question.folder == "home"
    given = {name: values[0] for name, values in parse_qs(link.query_string).items()}
    assert dict(question.state).items() <= given.items()
    answer = open_page(question.folder, **given)
    for name, value in question.state.items():
        assert answer.query_params[name] in (value, [value])


def test_of_all_failures_the_page_opens_on_the_one_that_masks_asks_for():
    assert BY_FOLDER["masks"].then.folder == "gallery" and FAILURES[0].model == "reverse-without-mask"


def test_the_question_keeps_the_sentence_and_the_model():
    link = link_of(open_page("attention", model=REVERSE, text="a b c d"), BY_FOLDER["attention"].then)
    assert parse_qs(link.query_string).items() >= {"model": [REVERSE], "text": ["a b c d"]}.items()


@pytest.mark.parametrize(
    ("page", "family", "folder"),
    [
        ("steps", "transformer", "walkthrough"),
        ("steps", "rnn", "walkthrough"),
        ("steps", "conv", "gallery"),
        ("home", "rnn", "steps"),
        ("before", "rnn", "positions"),
    ],
)
def test_a_page_that_shows_nothing_of_such_a_model_is_passed_over(page, family, folder):
    assert next_question(BY_FOLDER[page], family).folder == folder


def test_a_model_of_another_family_is_led_past_them(room):
    save_model(room / "conv", random_convolutional)
    at = open_page("home", model="conv", text="a b c")
    assert link_of(at, BY_FOLDER["attention"].then).page == "decoder-steps"


def test_a_lesson_asks_its_own_questions():
    labels = [link.proto.label for link in open_page("learn", lesson="why-attention").get("page_link")]
    assert not [label for label in labels if BY_FOLDER["learn"].then.asks in label]
