"""The Heads page on an untrained model, for the tests."""

from page_models import REVERSE, open_page
from streamlit.testing.v1 import AppTest


def heads(model: str = REVERSE, **parameters: str | list[str]) -> AppTest:
    """The page on a model, with few pairs."""
    return open_page("heads", model=model, pairs="50", **parameters)
