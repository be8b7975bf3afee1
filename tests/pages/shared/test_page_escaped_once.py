"""Tests that typed text is escaped exactly once: a second time would put backslashes on the screen."""

import pytest
from films import opened
from page_models import CLASSIC, PRONOUNS, REVERSE, checked, heads, open_page, texts

from pages.shared.wording import plain, unseen
from transformer.lab import load

pytestmark = pytest.mark.usefixtures("untrained_models")

HOSTILE = "The *cat* <b>slept</b>."


def said(at) -> str:
    """All that the page says and all labels of its buttons."""
    return "\n".join([texts(at), *(button.label for button in at.button)])


@pytest.mark.parametrize(
    ("page", "parameters"),
    [
        ("attention", {"model": REVERSE, "text": "a b c", "switch": f"copy:encoder.1.ffn.output:all:{HOSTILE}"}),
        ("attention", {"model": PRONOUNS, "text": CLASSIC, "switch": f"copy:encoder.1.ffn.output:0>1:{HOSTILE}"}),
        ("walkthrough", {"model": PRONOUNS, "text": CLASSIC, "switch": f"copy:encoder.1.ffn.output:0>1:{HOSTILE}"}),
        (
            "compare",
            {
                "model": PRONOUNS,
                "text": CLASSIC,
                "other": REVERSE,
                "switch": f"copy:encoder.1.ffn.output:0>1:{HOSTILE}",
            },
        ),
    ],
)
def test_the_text_of_a_copy(page, parameters):
    shown = said(open_page(page, **parameters))
    assert plain(HOSTILE) in shown and r"\\" not in shown
    assert ("is left out for" in shown) == (page == "compare")


def test_words_never_seen_in_a_reference():
    typed = "<b>*x*</b> _y_"
    at = open_page("steps", model=REVERSE, text="a b c")
    shown = said(checked(at.text_input(key="reference").set_value(typed).run()))
    tokenizer = load(REVERSE).tokenizer
    sentence = tokenizer.sentence(typed)
    assert any("*" in word or "<" in word for word in sentence.unseen)
    assert plain(f"This reference cannot be followed: {unseen(tokenizer, sentence, markdown=False)}") in shown
    assert r"\\" not in shown


def test_the_token_that_cannot_be_replaced():
    shown = said(heads(section="smallest", text="a b c", goal="token", step="77", into="99999", exact="1", most="1"))
    assert "cannot stand there in place of “" in shown and r"\\" not in shown


IMAGE = "a ![p](http://host/x.png) b"


def test_a_pinned_sentence_offered_as_an_example_draws_no_image(room):
    from page_runs import train_run
    from tiny_runs import create

    run_id = create(pinned=[IMAGE], max_steps=2)
    assert train_run(run_id).state == "finished"
    on_attention = open_page("attention", model=run_id)
    on_timeline = opened(run_id)
    for at, prefix in ((on_attention, "example-"), (on_timeline, "timeline-example-")):
        labels = [button.label for button in at.button if (button.key or "").startswith(prefix)]
        assert plain(IMAGE) in labels and IMAGE not in labels
