"""The head of a page says what kind of model answers."""

import pytest
from page_models import PRONOUNS, open_page, texts

PAGES = ("home", "attention", "heads", "masks", "steps", "walkthrough", "positions", "compare")


@pytest.mark.parametrize("page", PAGES)
def test_a_model_of_emoji_names_says_so_on_every_page(page):
    assert "This model names emoji and translates nothing else" in texts(open_page(page, model="emoji-en-fr"))


def test_other_models_do_not_say_so():
    assert "names emoji" not in texts(open_page(model=PRONOUNS))
