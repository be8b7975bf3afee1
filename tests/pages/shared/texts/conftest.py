"""A server that speaks another language."""

import pytest

from pages.shared.texts import catalogue
from transformer.access.server_settings import LANGUAGE


@pytest.fixture
def server_in(monkeypatch):
    """Lets the server speak the language of a file, or that of its name."""

    def speak(named):
        monkeypatch.setenv(LANGUAGE, str(named))
        _forget()

    yield speak
    _forget()


def _forget() -> None:
    catalogue.spoken.cache_clear()
    catalogue.spoken_texts.cache_clear()
