"""The choices of the page Before attention, kept in the URL and across page changes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pages.shared import fields
from pages.shared.url.page_state import PageState
from pages.shared.url.url_state import UrlState, param, words
from transformer.views.reach.bottleneck import Shows
from transformer.views.reach.gradients import Weights

Section = Literal["bottleneck", "gradient"]
Over = Literal["sentence", "pairs"]
SECTIONS: dict[Section, str] = {"bottleneck": "The bottleneck", "gradient": "The gradient's reach"}
SHOWS: dict[Shows, str] = {"positions": "Token by token", "lengths": "Whole sentences"}

PAIRS = 100
OVER: dict[Over, str] = {"sentence": "This sentence", "pairs": f"{PAIRS} validation pairs"}
WEIGHTS: dict[Weights, str] = {"initial": "Before training", "trained": "Trained"}


@dataclass(frozen=True, kw_only=True)
class Choices(UrlState):
    """The visitor's choices."""

    section: Section = param("bottleneck", words(*get_args(Section)))
    shows: Shows = param("positions", words(*SHOWS))
    over: Over = param("sentence", words(*get_args(Over)))
    weights: Weights = param("initial", words(*get_args(Weights)))
    """The weights that gradients are taken with."""


PAGE = PageState(Choices, key="before-page")


def segments(name: str, label: str, options: Mapping[Any, str], value: object) -> None:
    """Renders one choice of a few words."""
    fields.segments(label, options, value, PAGE.take(name), key=f"before-{name}")
