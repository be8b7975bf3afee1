"""What is chosen on the Heads page alone, kept over page changes and in the URL, and the controls for it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import fields as fields_of
from typing import Any, Literal, get_args

import streamlit as st

from pages.shared import fields, wording
from pages.shared.components.head_table import picks_of
from pages.shared.context import say
from pages.shared.url.session import choose, session
from transformer.analysis.heads.leave_one_out import Erasing
from transformer.analysis.heads.survey import Pattern
from transformer.model.kinds import AttentionKind

Section = Literal["roles", "alike", "worth", "smallest", "evidence"]
Data = Literal["validation", "own", "file"]
Measure = Literal["weight", "peak"]
Importance = Literal["sentence", "loss", "exact_match"]
Removal = Literal["zero", "mean"]
Heads = Literal["all", "encoder_self", "decoder_self", "cross"]
SECTIONS: dict[Section, str] = {
    "roles": "What they do",
    "alike": "Which are alike",
    "worth": "What each is worth",
    "smallest": "The smallest set",
    "evidence": "Attention against effect",
}
HEADS: dict[Heads, str] = {
    "all": "All heads",
    **{kind.value: wording.kind_label(kind) for kind in AttentionKind},
}
TABLE = "heads-table"
"""Key of the table of heads."""
FIRST = 500
"""Pairs that are measured at once."""
COUNTS = (50, 100, 200, FIRST, 1_000, 5_000)
CLOSEST = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7)
LARGEST_EXACT, LARGEST = 6, 12
"""Heads of a set up to which every one can be tried, and at all."""
LONGEST_LINES = 1_500
"""Characters of the visitor's own sentences, which travel in the URL."""

_KEY, _MISREAD = "heads-page", "heads-misread"


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Empty values mean "what suits best"."""

    section: Section = "roles"
    data: Data = "validation"
    """On what heads are measured; the visitor's own sentences where the model has no others."""
    lines: str = ""
    """The visitor's own sentences, one a line."""
    pairs: int | Literal["", "all"] = ""
    """Validation pairs at most."""
    colour: str = ""
    """What the map of heads shows: a pattern, or a column of the table."""
    measure: Measure = "weight"
    heads: Heads = "all"
    """Which heads are in the table, compared, or searched."""
    sort: str = ""
    """The column by which the table is sorted, with a minus where the largest comes first."""
    closest: float = 0.45
    """The mean distance up to which heads are grouped."""
    worth: Importance = "sentence"
    removal: Removal = "zero"
    """What a removed head says: nothing, or what it says on average."""
    step: int | None = None
    """The output token that is to change; None: what suits best."""
    into: int | None = None
    """The token id that it is to become; None: anything else."""
    goal: Literal["", "any", "token"] = ""
    exact: int = 3
    """Every set of up to so many heads is tried."""
    most: int = 8
    """Heads of a set at most."""
    erase: Erasing = "hidden"

    @property
    def most_pairs(self) -> int | None:
        """Pairs at most, None for all, which suits best but where every head is removed in turn."""
        if self.pairs == "":
            return FIRST if self.section == "worth" or self.data == "file" else None
        return None if self.pairs == "all" else self.pairs

    def parameters(self) -> dict[str, str]:
        """The query parameters that `read` turns into this again; defaults are left out."""
        return {
            f.name: f"{v:g}" if isinstance(v, float) else str(v)
            for f in fields_of(self)
            if (v := getattr(self, f.name)) != f.default
        }


def read(parameters: Mapping[str, str]) -> tuple[Choices, tuple[str, ...]]:
    """The choices in these query parameters, and a sentence for each that makes no sense and is left at its default."""
    found: dict[str, Any] = {}
    said: list[str] = []
    offered: dict[str, Sequence[object]] = {
        "section": get_args(Section),
        "data": get_args(Data),
        "measure": get_args(Measure),
        "heads": get_args(Heads),
        "worth": get_args(Importance),
        "removal": get_args(Removal),
        "goal": ("any", "token"),
        "erase": get_args(Erasing),
        "pairs": (*COUNTS, "all"),
        "closest": CLOSEST,
        "exact": range(1, LARGEST_EXACT + 1),
        "most": range(1, LARGEST + 1),
        "colour": (*get_args(Pattern), *COLUMNS),
        "sort": [sign + name for name in (*get_args(Pattern), *COLUMNS, *WORTHS, "head", "role") for sign in ("", "-")],
        "step": range(100_000),
        "into": range(10_000_000),
    }
    for name, text in parameters.items():
        if name == "lines":
            found[name] = text[:LONGEST_LINES]
            if len(text) > LONGEST_LINES:
                said.append(
                    f"The link's sentences have {len(text):,} characters: the first {LONGEST_LINES:,} are taken."
                )
        elif name in offered and (value := _parsed(text, offered[name])) is not None:
            found[name] = value
        elif name in offered:
            said.append(f"The link says {name} “{text[:30]}”, which {_expected(offered[name])}; it is left out.")
    return Choices(**found), tuple(said)


def _expected(offered: Sequence[object]) -> str:
    if isinstance(offered, range):
        return f"must be a whole number from {offered[0]:,} to {offered[-1]:,}"
    shown = ", ".join(map(str, offered[:12]))
    return f"must be one of: {shown}{' …' * (len(offered) > 12)}"


WORTHS = ("log_prob", "instead", "loss", "exact_match", "per_token", "tokens", "pooled", "received")
"""Columns of the table of what heads are worth."""
COLUMNS = ("entropy", "largest", "error_rate", "accuracy", "error_rate_read")
"""Columns of the table beside the patterns."""


def choices() -> Choices:
    """What is chosen now: the URL's word where someone else than this session wrote it, else what was chosen before."""
    names = {f.name for f in fields_of(Choices)}
    in_url = {name: st.query_params[name] for name in names if name in st.query_params}
    kept: Choices = st.session_state.setdefault(_KEY, Choices())
    if session().touched:
        st.session_state.pop(_MISREAD, None)
    elif in_url and in_url != kept.parameters():
        st.session_state[_KEY], st.session_state[_MISREAD] = read(in_url)
    _take_picks()
    return st.session_state[_KEY]


def misread() -> tuple[str, ...]:
    """What is to be said about the link that was followed, until the next change."""
    return st.session_state.get(_MISREAD, ())


def _take_picks() -> None:
    """What was just clicked in the table, which reports in the run itself and not through a callback."""
    picks = picks_of(TABLE)
    if picks.sort is not None:
        change(sort="" if picks.sort == "head" else picks.sort)
    match (picks.row or "").split("."):
        case [("encoder" | "decoder") as stack, layer, ("self" | "cross") as sublayer, head]:
            kind = "cross" if sublayer == "cross" else f"{stack}_self"
            choose(kind=kind, layer=int(layer), head=int(head))


def change(**changes: Any) -> None:
    """Changes something on behalf of the visitor; for callbacks."""
    st.session_state[_KEY] = replace(st.session_state[_KEY], **changes)
    choose()


def segments(name: str, label: str, options: Mapping[Any, str], value: object, *, bare: bool = False) -> None:
    """One of a few words; `bare` hides the label."""
    names = options.__getitem__
    fields.segments(label, list(options), value, _taker(name), key=f"heads-{name}", names=names, hide_label=bare)


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
    """One of many."""
    key = f"heads-{name}"
    fields.box(label, options, value, _taker(name), key=key, names=format_func, width=width, help=help)


def stepped(name: str, label: str, options: Sequence[Any], value: object, *, help: str | None = None) -> None:
    """One of some ordered numbers."""
    key = f"heads-{name}"
    if key not in st.session_state or st.session_state[key] != value:
        st.session_state[key] = value
    st.select_slider(
        label,
        options,
        value,
        key=key,
        format_func=lambda n: f"{n:,}",
        help=help,
        on_change=lambda: _taker(name)(st.session_state[key]),
    )


def area(name: str, label: str, value: str, *, limit: int) -> None:
    """Several lines, cut at a limit, which is then said."""
    cut = f"heads-{name}-cut"

    def take(typed: str) -> None:
        st.session_state[cut] = len(typed) if len(typed) > limit else 0
        change(**{name: typed[:limit]})

    fields.lines(label, value, take, key=f"heads-{name}", height=120)
    if typed := st.session_state.get(cut):
        say(f"These were {typed:,} characters: a link carries {limit:,}, so only the first {limit:,} are taken.")


def _parsed(text: str, offered: Sequence[object]) -> object | None:
    if text in offered:
        return text
    try:
        value = float(text)
    except ValueError:
        return None
    return next(
        (o for o in (int(value) if value == value // 1 and abs(value) < 1e9 else None, value) if o in offered), None
    )


def _taker(name: str) -> Callable[[Any], None]:
    return lambda value: change(**{name: value})
