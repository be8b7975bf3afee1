"""The choices of Two at once: what is compared with the page's model and sentence. They are kept in the URL too."""

from dataclasses import dataclass
from typing import Literal, get_args

from pages.shared.url.page_state import PageState
from pages.shared.url.url_state import TEXTS, Form, Refused, UrlState, param, text, words

Two = Literal["models", "sentences"]
Pairing = Literal["", "matched", "same"]
_MAX_TEXT = 1_000


def _step(text: str) -> str:
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return text
    raise Refused(TEXTS("expected.step"))


@dataclass(frozen=True, kw_only=True)
class Choices(UrlState):
    """The visitor's choices; an empty one takes what the page suggests."""

    two: Two | None = param(None, words(*get_args(Two)))
    """Two sentences through one model, or one sentence through two."""
    other: str = param("", text(_MAX_TEXT))
    """The model on the right."""
    at: str = param("", Form(_step), nonsense="step")
    """The step of its run from which the left model's weights are; empty for the weights at the end."""
    other_at: str = param("", Form(_step), resets=("other",), nonsense="step")
    """The same for the right model."""
    other_text: str = param("", text(_MAX_TEXT))
    """The sentence on the right."""
    pairing: Pairing = param("", words(*get_args(Pairing)[1:]))
    """The head on the right: the match, or the one in the same place."""

    @property
    def compared(self) -> Two:
        """Returns what is compared; at first two sentences, of which one word makes the difference."""
        return self.two or ("models" if self.other or self.at or self.other_at else "sentences")


PAGE = PageState(Choices, key="two-page")
