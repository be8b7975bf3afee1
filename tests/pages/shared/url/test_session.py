"""A control keeps the view of its page whatever URL comes with it; links, reloads and the back button bring theirs."""

import pytest
from streamlit.runtime.state.query_params import QueryParams
from streamlit.testing.v1 import AppTest

LINK = {"model": "reverse", "text": "a b c", "picture": "lines"}


def page() -> None:
    import streamlit as st

    from pages.shared.url.session import choose, enter_page, follow_url, note_url, session, write_url

    enter_page(st.session_state.get("title", "Attention"))
    follow_url()
    st.text(session().view.picture)
    st.button("Change", on_click=choose, kwargs={"picture": "bertviz"})
    if st.toggle("Menu"):
        st.button("Within")
    if "cut short" not in st.session_state:
        write_url()
        note_url()


@pytest.fixture
def at() -> AppTest:
    """The page after a link to it, and then a change of its view."""
    found = AppTest.from_function(page)
    found.query_params = dict(LINK)
    found.run()
    assert shown(found) == "lines"
    found.button[0].click().run()
    assert shown(found) == "bertviz" and found.query_params["picture"] == "bertviz"
    return found


@pytest.fixture
def sent(monkeypatch) -> list[dict]:
    """The URLs that the browser is told from now on."""
    told: list[dict] = []
    monkeypatch.setattr(QueryParams, "_send_query_param_msg", lambda self: told.append(self.to_dict()))
    return told


def shown(at: AppTest) -> str:
    return at.text[0].value


def test_a_control_used_before_the_browser_heard_of_a_change_keeps_the_change(at):
    at.query_params = dict(LINK)
    at.toggle[0].set_value(True).run()
    assert shown(at) == "bertviz" == at.query_params["picture"]
    at.query_params = dict(LINK)
    at.button[1].click().run()
    assert shown(at) == "bertviz" == at.query_params["picture"]


def test_a_url_that_comes_with_no_control_counts(at):
    at.toggle[0].set_value(True).run()
    at.query_params = dict(LINK)
    assert shown(at.run()) == "lines"


def test_a_link_to_another_page_has_the_last_word(at):
    at.session_state["title"] = "Heads"  # in the request that also says that the menu closed
    at.query_params = dict(LINK)
    assert shown(at.toggle[0].set_value(True).run()) == "lines"


def test_a_change_whose_run_was_cut_short_stays_and_still_lets_a_link_count(at):
    at.query_params = dict(LINK)
    at.run()
    at.session_state["cut short"] = True
    at.button[0].click().run()
    assert shown(at) == "bertviz" and at.query_params["picture"] == "lines"
    del at.session_state["cut short"]
    assert shown(at.run()) == "bertviz" == at.query_params["picture"]
    at.query_params = {**LINK, "model": "sort"}
    assert shown(at.run()) == "lines"


def test_a_link_that_says_what_is_shown_changes_nothing(at):
    at.session_state["attention-lab"].switched_on = "Attention"
    at.session_state["title"] = "Heads"
    assert shown(at.run()) == "bertviz"
    assert at.session_state["attention-lab"].switched_on == "Attention", "so that Heads says where a switch came from"


def test_a_link_to_the_open_page_is_written_for_the_browser_which_has_it_not_yet(at, sent):
    at.query_params = dict(LINK)
    at.run()
    assert at.session_state["attention-lab"].arrived and sent == [LINK]
    at.run()
    assert not at.session_state["attention-lab"].arrived and sent == [LINK]


def page_of_parts() -> None:
    import streamlit as st
    from streamlit.runtime.scriptrunner import get_script_run_ctx

    from pages.gallery.choices import PAGE as GALLERY
    from pages.shared.url.session import enter_fragment, enter_page, note_url
    from pages.tokenizers.choices import PAGE as TOKENIZERS

    if "alone" in st.session_state:  # as Streamlit runs a part of a page
        get_script_run_ctx().fragment_ids_this_run = ["part"]
        enter_fragment()
    else:
        enter_page("Parts")
    st.text(TOKENIZERS.follow_url().token)
    st.button("Change", on_click=TOKENIZERS.change, kwargs={"token": "changed"})
    TOKENIZERS.write_url()
    if "cut short" in st.session_state:
        st.stop()
    st.text(GALLERY.follow_url().without)
    GALLERY.write_url()
    note_url()


@pytest.fixture
def parts() -> AppTest:
    found = AppTest.from_function(page_of_parts)
    found.query_params = {"token": "linked", "without": "reverse-without-positions"}
    return found


def texts(at: AppTest) -> list[str]:
    return [text.value for text in at.text]


def test_each_part_takes_its_own_from_a_link_also_where_the_first_run_was_cut_short(parts):
    parts.session_state["cut short"] = True
    assert texts(parts.run()) == ["linked"]
    del parts.session_state["cut short"]
    assert texts(parts.button[0].click().run()) == ["changed", "reverse-without-positions"]
    assert parts.query_params == {"token": "changed", "without": "reverse-without-positions"}


def test_a_part_that_runs_alone_begins_with_the_last_url(parts):
    parts.run().button[0].click().run()
    was = dict(parts.query_params)
    parts.session_state["alone"] = parts.session_state["cut short"] = True
    parts.query_params = {"token": "linked"}
    assert texts(parts.run()) == ["changed"] and parts.query_params == was


def test_a_link_to_the_open_page_is_written_for_each_of_its_parts(parts, sent):
    parts.run()
    sent.clear()
    parts.query_params = {"token": "another", "without": "reverse-without-positions"}
    parts.run()
    assert parts.session_state["attention-lab"].arrived and sent[-1] == parts.query_params == {
        "token": "another",
        "without": "reverse-without-positions",
    }


def test_a_part_that_runs_alone_after_a_link_to_the_open_page_is_no_target_of_it(parts, sent):
    parts.run()
    parts.query_params["token"] = "another"
    parts.run()
    sent.clear()
    parts.session_state["alone"] = True
    parts.run()
    assert not parts.session_state["attention-lab"].arrived and sent == []
