"""The head of a page says what kind of model answers."""

import pytest
from page_models import PRONOUNS, open_page, texts
from streamlit.testing.v1 import AppTest

PAGES = ("home", "attention", "heads", "masks", "steps", "walkthrough", "positions", "compare")


@pytest.mark.parametrize("page", PAGES)
def test_a_model_of_emoji_names_says_so_on_every_page(page):
    assert "This model names emoji and translates nothing else" in texts(open_page(page, model="emoji-en-fr"))


def test_other_models_do_not_say_so():
    assert "names emoji" not in texts(open_page(model=PRONOUNS))


def change_below_a_fragment() -> None:
    import streamlit as st

    from pages.shared.guard import guarded_fragment
    from pages.shared.url.session import choose, enter_page, follow_url, note_url, session

    enter_page("Attention")
    guarded_fragment("The bars", lambda: None)()  # as that of the sidebar, before the page
    follow_url()
    st.text(session().view.click)
    st.button("Change", on_click=choose, kwargs={"click": "forbid"})
    note_url()


def test_a_part_that_is_drawn_first_takes_no_change_back():
    at = AppTest.from_function(change_below_a_fragment)
    at.query_params = {"click": "open", "model": "reverse"}
    at.run().button[0].click().run()
    assert at.text[0].value == "forbid"
