"""The choices of the gallery, kept in the URL: the model that lacks a part, and one's own string."""

from dataclasses import dataclass

from pages.gallery.failures import FAILURES, Failure
from pages.shared.url.page_state import UrlPart
from pages.shared.url.url_state import UrlState, param, text, words

STRING = "a b c d e f"
_LONGEST = 60
"""Characters of one's own string."""


@dataclass(frozen=True, kw_only=True)
class Choices(UrlState):
    """The visitor's choices."""

    without: str = param(FAILURES[0].model, words(*(failure.model for failure in FAILURES)))
    """The model that is looked at closely."""
    text: str = param("", text(_LONGEST))
    """The visitor's own string; empty for the usual one."""

    @property
    def failure(self) -> Failure:
        """Returns the entry of the chosen model."""
        return next(failure for failure in FAILURES if failure.model == self.without)


PAGE = UrlPart(Choices, key="gallery-page")
