"""Parts of a page that fail alone: a sentence in their place, the error in the log, and the rest of the page."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import pytest
from page_models import PRONOUNS, open_page, texts, visit
from page_runs import made_run, put_status
from streamlit.runtime.scriptrunner_utils.script_run_context import ThreadState
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import SessionState, WStates, _CallbackRerunVotes
from streamlit.testing.v1 import AppTest

from pages.server.errors import ERRORS, listen
from pages.shared.guard import FAILED, NOT_DONE, guard_callbacks
from pages.shared.registry import PAGES

pytestmark = pytest.mark.usefixtures("own_models")
ERROR = "nobody foresaw this"
WITH_FIGURES = ("home", "attention", "positions", "compare", "steps", "heads", "masks")


def fails(*_: object, **__: object) -> None:
    raise LookupError(ERROR)


def failed_parts(at: AppTest) -> list[str]:
    """The parts that say of themselves that they failed; the page did not end with an exception."""
    assert not at.exception
    end = f" {FAILED} (LookupError). The server's log has the details."
    assert all(element.value.endswith(end) for element in at.error)
    return [element.value.removesuffix(end) for element in at.error]


@pytest.fixture(autouse=True)
def errors():
    """The server's log of errors, empty."""
    listen()
    ERRORS.newest.clear()
    return ERRORS.newest


@pytest.mark.parametrize("broken", ["get_data", "_draw", "_menu"])
@pytest.mark.parametrize("page", WITH_FIGURES)
def test_a_figure_that_fails_leaves_the_rest_of_its_page(page, broken, monkeypatch, errors):
    open_page(page, model=PRONOUNS, pairs="50")  # imports what has these names from there
    monkeypatch.setattr(f"pages.shared.exhibit.{broken}", fails)
    at = visit(page, model=PRONOUNS, pairs="50")
    failed = failed_parts(at)
    assert "This figure" in failed and "The rest of this page" not in failed
    assert all(error.text.endswith(f"LookupError: {ERROR}") for error in errors) and errors


@pytest.mark.parametrize("entry", [page.folder for page in PAGES])
def test_a_page_that_fails_keeps_its_frame_and_leaves_other_pages_alone(entry, monkeypatch, errors):
    """The file of a page runs anew at each visit, so what it calls first is broken."""
    with monkeypatch.context() as patch:
        patch.setattr("streamlit.markdown", fails)
        at = visit(entry, model=PRONOUNS)
    assert "The rest of this page" in failed_parts(at) and errors
    assert not failed_parts(at.run()), "it comes back as soon as the fault is gone"


@pytest.mark.parametrize("broken", ["_stand_text", "list_runs"])
def test_what_draws_itself_again_beside_every_page_fails_alone(broken, monkeypatch, own_models):
    run_id = made_run()
    put_status(run_id, state="queued", phase="waiting")
    monkeypatch.setattr(f"pages.training.run_status.{broken}", fails)
    at = visit("steps", model=PRONOUNS)
    assert failed_parts(at) == ["The progress of runs"]
    assert "What did it consider at each token" in texts(at)


TOLD = f"{NOT_DONE} (LookupError). The server's log has the details."


def with_callbacks(at: AppTest) -> list[Callable[[], AppTest]]:
    """Uses of controls that Streamlit would call somebody back for, each a run of the page."""
    known = at._session_state._state._new_widget_state.widget_metadata
    called = [control for control in (*at.button, *at.toggle, *at.selectbox) if known[control.id].callback is not None]
    return [partial(use, control) for control in called if not control.disabled]


def use(control: Any) -> AppTest:
    """The page after a control was used."""
    match control.type:
        case "button":
            return control.click().run()
        case "toggle":
            return control.set_value(not control.value).run()
        case _:
            return control.select_index((control.index or 0) - 1).run()


@pytest.mark.parametrize("entry", [page.folder for page in PAGES])
def test_a_control_whose_callback_fails_leaves_the_page_as_it_was(entry, monkeypatch, errors):
    at = visit(entry, model=PRONOUNS, pairs="50")
    monkeypatch.setattr(WStates, "call_callback", fails)
    said, uses = texts(at), with_callbacks(at)
    for use_it in uses[:3]:
        use_it()
        assert not at.exception and texts(at) == said
    assert {toast.value for toast in at.toast} == ({TOLD} if uses else set())
    assert all(error.text.endswith(f"LookupError: {ERROR}") for error in errors)


def test_callbacks_of_components_fail_alone_too(monkeypatch, errors):
    guard_callbacks()
    guard_callbacks()
    metadata = WidgetMetadata("picked", lambda value: value, lambda value: value, "json_value")
    votes = _CallbackRerunVotes()
    monkeypatch.setattr(ThreadState, "scoped", lambda **_: nullcontext())
    SessionState()._execute_widget_callback(votes, fails, metadata, (), {})
    assert votes.wants_interaction_default, "the page is drawn again"
    assert [error.text for error in errors] == [f"the callback of a control failed: LookupError: {ERROR}"]
