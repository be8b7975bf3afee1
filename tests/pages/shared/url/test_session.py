"""A menu keeps the view of its page, unless a link to another page was followed just after it was used."""

import pytest

from pages.shared.url import session as module
from pages.shared.url.session import Session, choose, enter_page, stay


@pytest.fixture
def memory(monkeypatch) -> Session:
    """The memory of a visitor who is on the Playground."""
    found = Session()
    monkeypatch.setattr(module, "session", lambda: found)
    enter_page("Playground")
    return found


@pytest.mark.parametrize("use", [stay, choose])
def test_a_control_keeps_the_view_of_its_page_and_lets_a_link_to_another_have_the_last_word(memory, use):
    use()
    enter_page("Playground")
    assert memory.touched
    enter_page("Attention")  # in the request that also says that the menu closed, or in one that cut its run short
    assert not memory.touched
