"""The head of a page says what kind of model answers."""

import re
from pathlib import Path

import pytest
from page_models import PRONOUNS, open_page, texts
from streamlit.testing.v1 import AppTest

import pages

PAGES = ("home", "attention", "heads", "masks", "steps", "walkthrough", "positions", "compare")


@pytest.mark.parametrize("page", PAGES)
def test_a_model_of_emoji_names_says_so_on_every_page(page):
    assert "This model names emoji and translates nothing else" in texts(open_page(page, model="emoji-en-fr"))


def test_other_models_do_not_say_so():
    assert "names emoji" not in texts(open_page(model=PRONOUNS))


def change_below_a_fragment() -> None:
    import streamlit as st

    from pages.shared.guard import guarded_fragment
    from pages.shared.url.session import choose, end_run, follow_url, session

    guarded_fragment("The bars", lambda: None)()  # as that of the sidebar, before the page
    follow_url()
    st.text(session().view.click)
    st.button("Change", on_click=choose, kwargs={"click": "forbid"})
    end_run()


def test_a_part_that_is_drawn_first_takes_no_change_back():
    at = AppTest.from_function(change_below_a_fragment)
    at.query_params = {"click": "open", "model": "reverse"}
    at.run().button[0].click().run()
    assert at.text[0].value == "forbid"


def menu_or_sentence() -> None:
    import streamlit as st

    from pages.shared.url.session import end_run, follow_url, session, stay

    if "text" in st.query_params:
        follow_url()
        st.text(session().view.text)
    else:
        st.button("Menu", on_click=stay)
    end_run()


def test_a_menu_opened_on_a_page_without_a_sentence_leaves_the_next_link_its_own():
    at = AppTest.from_function(menu_or_sentence)
    at.run().button[0].click().run()
    at.query_params = {"text": "a b c"}
    assert at.run().text[0].value == "a b c"


def change_and_open() -> None:
    import streamlit as st

    from pages.shared.url.session import choose, follow_url, session, stay, write_url

    follow_url()
    st.text(session().view.click)
    st.button("Change", on_click=choose, kwargs={"click": "forbid"})
    st.button("Menu", on_click=stay)
    write_url()


def test_a_menu_opened_before_the_browser_heard_of_a_change_keeps_the_change():
    at = AppTest.from_function(change_and_open)
    late = {"click": "open", "model": "reverse"}
    at.query_params = dict(late)
    at.run().button[0].click().run()
    assert at.text[0].value == "forbid"
    at.query_params = dict(late)
    at.button[1].click().run()
    assert at.text[0].value == "forbid" and "forbid" in at.query_params["click"]
    at.query_params = dict(late)
    assert at.run().text[0].value == "open", "a URL that comes with no control is the back button"


def test_no_menu_of_a_page_reruns_it_without_keeping_the_view():
    sources = {path: path.read_text() for folder in pages.__path__ for path in Path(folder).glob("**/*.py")}
    assert sources and not [
        name for name, source in sources.items() if re.search(r'popover\(.*on_change="rerun"', source)
    ]
