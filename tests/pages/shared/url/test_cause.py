"""Looks are told from what a visitor did, also where a server at work folds both into one request."""

import pytest
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequests

from pages.shared.url.cause import tell_looks_apart

PRESS, LOOK = RerunData(fragment_id="a"), RerunData(fragment_id="a", is_auto_rerun=True)
OTHER_LOOK = RerunData(fragment_id="b", is_auto_rerun=True)


@pytest.mark.parametrize(
    ("asked", "is_look"),
    [
        ([LOOK], True),
        ([PRESS], False),
        ([LOOK, OTHER_LOOK], True),
        ([LOOK, PRESS], False),
        ([PRESS, LOOK], False),
        ([PRESS, LOOK, OTHER_LOOK], False),
    ],
)
def test_a_press_that_looks_are_folded_into_is_none(asked, is_look):
    tell_looks_apart()
    tell_looks_apart()
    requests = ScriptRequests()
    for one in asked:
        assert requests.request_rerun(one)
    assert requests.on_scriptrunner_ready().rerun_data.is_auto_rerun is is_look


def test_a_look_keeps_the_back_button_that_it_is_folded_into():
    tell_looks_apart()
    requests = ScriptRequests()
    for one in (RerunData(is_history_navigation=True), LOOK):
        assert requests.request_rerun(one)
    found = requests.on_scriptrunner_ready().rerun_data
    assert found.is_history_navigation and not found.is_auto_rerun


def test_what_was_asked_before_does_not_count_for_the_next():
    tell_looks_apart()
    requests = ScriptRequests()
    requests.request_rerun(PRESS)
    requests.on_scriptrunner_ready()
    requests.request_rerun(LOOK)
    assert requests.on_scriptrunner_ready().rerun_data.is_auto_rerun
