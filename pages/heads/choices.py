"""The Heads page's own choices, kept over page changes and in the URL, and the controls for them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import streamlit as st

from pages.shared import fields, wording
from pages.shared.components.head_table import picks_of
from pages.shared.context import say
from pages.shared.url.page_state import PageState
from pages.shared.url.session import choose
from pages.shared.url.url_state import UrlState, param, text, whole, words
from transformer.analysis.heads.addresses import HeadAt
from transformer.analysis.heads.leave_one_out import Hiding
from transformer.analysis.heads.survey import Pattern
from transformer.model.kinds import AttentionKind
from transformer.views.heads.subjects import Removal
from transformer.views.heads.survey import OTHER_COLUMNS, Measure

Section = Literal["roles", "alike", "worth", "smallest", "evidence"]
Data = Literal["validation", "own", "file"]
MeasuredBy = Literal["sentence", "loss", "exact_match"]
Heads = Literal["all", "encoder_self", "decoder_self", "cross"]
SECTIONS: dict[Section, str] = {
    "roles": "Patterns",
    "alike": "Similarity",
    "worth": "Importance",
    "smallest": "Minimal set",
    "evidence": "Attention and effect",
}
HEADS: dict[Heads, str] = {
    "all": "All heads",
    **{kind.value: wording.kind_label(kind) for kind in AttentionKind},
}
TABLE = "heads-table"
"""The key of the table of heads."""
FIRST = 500
"""The number of pairs that are measured at once."""
COUNTS = (50, 100, 200, FIRST, 1_000, 5_000)
CLOSEST = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7)
MAX_EXACT, MAX_HEADS = 6, 12
"""The sizes of a set up to which every one can be tried, and up to which one is searched for at all."""
MAX_LINES = 1_500
"""The largest number of characters of the visitor's own sentences, which travel in the URL."""
COLUMNS = (*get_args(Pattern), *OTHER_COLUMNS)
IMPORTANCE_COLUMNS = ("log_prob", "instead", "loss", "exact_match", "per_token", "tokens", "pooled", "received")
"""The columns of the tables of importance and of faithfulness."""
_SORTED = (*COLUMNS, *IMPORTANCE_COLUMNS, "head", "role")


@dataclass(frozen=True, kw_only=True)
class Choices(UrlState):
    """The visitor's choices; empty values take what suits the model best."""

    section: Section = param("roles", words(*get_args(Section)))
    data: Data = param("validation", words(*get_args(Data)))
    """The pairs that heads are measured on; the visitor's own sentences where the model has no others."""
    lines: str = param("", text(MAX_LINES))
    """The visitor's own sentences, one a line."""
    pairs: int | Literal["", "all"] = param("", words(*COUNTS, "all"))
    """The largest number of validation pairs."""
    colour: str = param("", words(*COLUMNS))
    """The column of the map of heads: a pattern, or another column of the table."""
    measure: Measure = param("weight", words(*get_args(Measure)))
    heads: Heads = param("all", words(*get_args(Heads)))
    """The heads that are in the table, compared, or searched."""
    sort: str = param("", words(*_SORTED, *(f"-{name}" for name in _SORTED)))
    """The column by which the table is sorted, with a minus where the largest comes first."""
    closest: float = param(0.45, words(*CLOSEST))
    """The mean distance up to which heads are grouped."""
    measured_by: MeasuredBy = param("sentence", words(*get_args(MeasuredBy)), name="worth")
    """The measure of importance: this translation, or a score over many pairs."""
    removal: Removal = param("zero", words(*get_args(Removal)))
    step: int | None = param(None, whole(0, 99_999))
    """The output token that is to change; None takes what suits best."""
    into: int | None = param(None, whole(0, 9_999_999))
    """The token id that it is to become; None for any other one."""
    goal: Literal["", "any", "token"] = param("", words("any", "token"))
    exact: int = param(3, whole(1, MAX_EXACT))
    """The size of a set up to which every one is tried."""
    most: int = param(8, whole(1, MAX_HEADS))
    """The largest size of a set."""
    hiding: Hiding = param("hidden", words(*get_args(Hiding)), name="erase")

    @property
    def max_pairs(self) -> int | None:
        """Pairs at most, None for all, which suits best unless every head is removed in turn."""
        if self.pairs == "":
            return FIRST if self.section == "worth" or self.data == "file" else None
        return None if self.pairs == "all" else self.pairs


PAGE = PageState(Choices, key="heads-page")


def follow_picks() -> None:
    """Takes over the last click in the table, which reports in the run itself, not through a callback."""
    picks = picks_of(TABLE)
    if picks.sort is not None:
        PAGE.change(sort="" if picks.sort == "head" else picks.sort)
    if picks.row:
        at = HeadAt.parse(picks.row)
        choose(kind=at.kind, layer=at.layer, head=at.head)


def segments(name: str, label: str, options: Mapping[Any, str], value: object, *, bare: bool = False) -> None:
    """Renders one choice of a few words; `bare` hides the label."""
    names = options.__getitem__
    fields.segments(label, list(options), value, PAGE.take(name), key=f"heads-{name}", names=names, hide_label=bare)


def box(
    name: str,
    label: str,
    options: Sequence[Any],
    value: object,
    format_func: Callable[[Any], str] = str,
    *,
    width: int | Literal["stretch"] = "stretch",
    help: str | None = None,
) -> None:
    """Renders one choice of many."""
    key = f"heads-{name}"
    fields.box(label, options, value, PAGE.take(name), key=key, names=format_func, width=width, help=help)


def stepped(name: str, label: str, options: Sequence[Any], value: object) -> None:
    """Renders one choice of some ordered numbers."""
    fields.stepped(label, options, value, PAGE.take(name), key=f"heads-{name}", names="{:,}".format)


def area(name: str, label: str, value: str, *, limit: int) -> None:
    """Renders several lines, cut at a limit, which is then said."""
    cut = f"heads-{name}-cut"

    def take(typed: str) -> None:
        st.session_state[cut] = len(typed) if len(typed) > limit else 0
        PAGE.change(**{name: typed[:limit]})

    fields.lines(label, value, take, key=f"heads-{name}", height=120)
    if typed := st.session_state.get(cut):
        say(f"You typed {typed:,} characters. A link carries {limit:,}, so only the first {limit:,} are used.")
