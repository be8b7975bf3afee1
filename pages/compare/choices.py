"""What is chosen on Two at once alone: what stands beside the page's model and sentence; in the URL too."""

from dataclasses import dataclass
from typing import Literal, get_args

from pages.shared.url.page_state import PageState
from pages.shared.url.url_state import Form, Refused, UrlState, param, text, words

Two = Literal["models", "sentences"]
Pairing = Literal["", "matched", "same"]
_LONGEST = 1_000


def _step(text: str) -> str:
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return text
    raise Refused("is no step")


_STEP = "The link says {name} “{text}”, which {expected}; these are the weights at the end."


@dataclass(frozen=True, kw_only=True)
class Choices(UrlState):
    """Empty values mean "what suits best"."""

    two: Two = param("models", words(*get_args(Two)))
    """Two models on one sentence, or two sentences through one model."""
    other: str = param("", text(_LONGEST))
    """The model on the right."""
    at: str = param("", Form(_step), nonsense=_STEP)
    """The step at which the left model is taken out of its run; empty: the weights that it ended with."""
    other_at: str = param("", Form(_step), resets=("other",), nonsense=_STEP)
    """The same for the right one."""
    other_text: str = param("", text(_LONGEST))
    """The sentence on the right."""
    pairing: Pairing = param("", words(*get_args(Pairing)[1:]))
    """Which head stands on the right: the one that was matched, or the one in the same place."""


PAGE = PageState(Choices, key="two-page")
