"""A menu keeps the view of its page, unless a link to another page was followed in the same request."""

from types import SimpleNamespace

import pytest

from pages.shared.url import session as module
from pages.shared.url.session import Session, enter_page, stay


@pytest.fixture
def context(monkeypatch) -> SimpleNamespace:
    """Puts a run of a page in the place of Streamlit's, with a memory of its own."""
    memory, run = Session(), SimpleNamespace(page_script_hash="playground")
    monkeypatch.setattr(module, "session", lambda: memory)
    monkeypatch.setattr(module, "get_script_run_ctx", lambda **_: run)
    enter_page("Playground")
    return SimpleNamespace(memory=memory, run=run)


def test_a_menu_keeps_the_view_of_its_page_and_lets_a_link_to_another_have_the_last_word(context):
    stay()
    assert context.memory.touched
    context.memory.touched = False
    context.run.page_script_hash = "attention"  # followed in the request that also says that the menu closed
    stay()
    assert not context.memory.touched
