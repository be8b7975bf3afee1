import pytest


@pytest.fixture(autouse=True)
def all_work_awaited(work_awaited: None) -> None:
    """No page that a test opens shows the progress of work in place of what it finds."""
