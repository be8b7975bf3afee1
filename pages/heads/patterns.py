"""What every head does, on the Heads page: a map of layers and heads, the chosen one in words, and a table of all."""

from collections.abc import Sequence

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.heads.checks import check_columns, check_profile
from pages.heads.choices import FIRST, HEADS, TABLE, Choices, box, segments
from pages.heads.data import Measured, choose_data
from pages.heads.export_survey import head_profile, role_map
from pages.heads.head_text import (
    EXPLAINED,
    LONG_TITLES,
    MEASURES,
    TITLES,
    alignment_said,
    head_name,
    looked_at,
    profile_said,
    role_said,
    sublayer_of,
    value_of,
)
from pages.heads.work import result_of
from pages.shared.cache import lab_key
from pages.shared.components.head_table import Cell, Column, Row, head_table
from pages.shared.context import is_dark
from pages.shared.controls import PageContext
from pages.shared.exports import take_away
from pages.shared.scrolling_figure import scrolling_figure
from pages.shared.url.session import choose
from pages.shared.wording import number
from transformer.analysis.heads.addresses import HeadAt, Tell, heads_of, sublayers_of
from transformer.analysis.heads.survey import Pattern, Profile, Survey, survey
from transformer.figures.heads.bars import profile_bars
from transformer.figures.heads.tables import head_map

_PATTERNS: tuple[Pattern, ...] = (
    *("previous", "next", "diagonal", "anti_diagonal", "same_token"),
    *("first", "end", "punctuation", "alignment", "referent"),
)
_BY_NAME: dict[str, Pattern] = {name: name for name in _PATTERNS}
_MAP = "heads-map"
OPENS = ":material/arrow_forward:"
"""Icon of a link to the Attention page."""


def draw_roles(context: PageContext, chosen: Choices) -> None:
    """The whole section."""
    surveyed = first_and_all(context, choose_data(context, chosen))
    if surveyed is None:
        return
    measured, found = surveyed
    columns = _columns(found, context)
    say_measured(found, measured, context)
    left, right = two_columns(2, 3)
    with left:
        _draw_map(context, chosen, measured, found, columns)
    with right:
        _draw_chosen(context, measured, found)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        segments("heads", "Heads", HEADS, chosen.heads)
        segments("measure", "Numbers are", MEASURES, chosen.measure)
    _draw_table(context, chosen, found, columns)
    check_columns(context, measured, found, columns, chosen.measure, key="proof-heads-table")
    _explain(found, columns)


def first_and_all(context: PageContext, measured: Measured | None) -> tuple[Measured, Survey] | None:
    """All heads over these pairs, with the pairs: over the first of many while the others are gone through."""
    if measured is None:
        return None
    many = len(measured.pairs) > 2 * FIRST
    first = measured.first(FIRST)
    at_once = survey_of(context, first, purpose="first") if many else None
    if many and at_once is None:
        return None
    found = survey_of(context, measured, wait_s=0.0 if many else None)
    if found is not None:
        return measured, found
    return None if at_once is None else (first, at_once)


def survey_of(
    context: PageContext, measured: Measured, *, purpose: str = "survey", wait_s: float | None = None
) -> Survey | None:
    """All heads of the model over these pairs; None while that is computed, which is then said."""
    lab = context.lab

    def compute(tell: Tell) -> Survey:
        return survey(lab.model, measured.pairs, lab.tokenizer, unit=measured.unit, tell=tell)

    key = ("survey", lab_key(lab), measured.key)
    return result_of(purpose, key, compute, f"Looking at every head on {measured.said}", wait_s=wait_s)


def say_measured(found: Survey, measured: Measured, context: PageContext) -> None:
    """On how much it was measured, and that the visitor's switches are out of it."""
    forced = "" if measured.own_output else ", the reference translations forced"
    said = f"Measured on {measured.said}: {found.n_source:,} source and {found.n_target:,} target tokens{forced}."
    said += " The sentence above plays no part in it." * (not measured.own_output)
    if not context.lab.model.config.causal_mask:
        said += (
            " There is no causal mask: in these passes the decoder sees later words, which it has not when it writes."
        )
    if context.view.switches:
        said += " Without your switches: this is the model as it was trained."
    st.caption(said)


def said_of(context: PageContext, measured: Measured) -> str:
    """What stands under a figure that is taken away."""
    return f"{context.lab.name} · measured on {measured.said}"


def two_columns(left: int, right: int) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Two columns side by side, one below the other in a narrow window."""
    with st.container(key="pictures"):
        first, second = st.columns([left, right], gap="large")
    return first, second


def chosen_head(context: PageContext) -> HeadAt:
    """The head in hand."""
    places = heads_of(context.lab.model)
    of_kind = [at for at in places if at.kind == context.view.kind]
    return next(at for at in of_kind if (at.layer, at.head) == (context.layer, context.head))


def opens(context: PageContext, at: HeadAt) -> dict[str, str | list[str]]:
    """The query parameters that open a head on the Attention page, with this sentence."""
    return context.view.at_head(at.kind, at.layer, at.head).parameters()


def clickable_map(context: PageContext, values: dict[HeadAt, float | None], said: dict[HeadAt, str], **look) -> None:
    """A map of all heads, a click on which takes one in hand."""
    rows = sublayers_of(context.lab.model)
    sublayers = [sublayer_of(row[0]) for row in rows]
    at = chosen_head(context)
    figure = head_map(
        np.array([[np.nan if (v := values.get(at)) is None else v for at in row] for row in rows], dtype=float),
        sublayers,
        [[said.get(at, "") for at in row] for row in rows],
        chosen=(sublayers.index(sublayer_of(at)), at.head),
        dark=is_dark(),
        **look,
    )

    def take() -> None:
        points = st.session_state[_MAP].selection.points
        if points:
            at = rows[int(points[-1]["y"])][int(points[-1]["x"])]
            choose(kind=at.kind, layer=at.layer, head=at.head)

    scrolling_figure(figure, key=_MAP, on_select=take, selection_mode="points")


def open_link(context: PageContext, at: HeadAt) -> None:
    """The link that opens a head on the Attention page."""
    st.page_link(
        "pages/attention/page.py",
        label=f"Open {head_name(at)} on the Attention page",
        icon=OPENS,
        query_params=opens(context, at),
    )


def draw_profile(found: Survey, at: HeadAt) -> None:
    """Where a head's weight goes, on average, beside an even head's."""
    profile = found.by_head[at]
    names: list[Pattern] = [name for name in _PATTERNS if name in profile.weight]
    figure = profile_bars(
        [profile.weight[name] for name in names],
        [found.even[at.kind][name] for name in names],
        [looked_at(name, at.kind) for name in names],
        kind=at.kind,
        dark=is_dark(),
    )
    scrolling_figure(figure, key="heads-profile")


def _columns(found: Survey, context: PageContext) -> tuple[str, ...]:
    """The columns that say something of this model and these pairs."""
    patterns = [name for name in _PATTERNS if any(name in profile.weight for profile in found.profiles)]
    return (*patterns, *(("error_rate", "accuracy", "error_rate_read") if found.n_links else ()), "entropy", "largest")


def _draw_map(context: PageContext, chosen: Choices, measured: Measured, found: Survey, columns: Sequence[str]) -> None:
    colour = chosen.colour if chosen.colour in columns else "diagonal"
    box("colour", "Colours show", list(columns), colour, LONG_TITLES.__getitem__, help=EXPLAINED[colour])
    values = {profile.at: value_of(profile, colour, chosen.measure) for profile in found.profiles}
    top = 1.0 if colour != "entropy" else max((v for v in values.values() if v is not None), default=1.0) or 1.0
    said = {
        profile.at: f"{LONG_TITLES[colour]}: {'none' if (v := values[profile.at]) is None else number(v)}"
        f"<br>{role_said(found, profile)}"
        for profile in found.profiles
    }
    pattern = colour in _PATTERNS
    quantity = MEASURES[chosen.measure].split(" with")[0] if pattern else LONG_TITLES[colour]
    clickable_map(context, values, said, quantity=quantity, limits=(0.0, top))
    missing = " Empty: such a head has no such place to look at." if None in values.values() else ""
    st.caption(f"Click a cell to take a head in hand.{missing}")
    figures = {
        "Map": lambda: role_map(context, measured, found, colour, chosen.measure, columns, quantity=quantity, top=top),
        "The head in hand": lambda: head_profile(context, measured, found, chosen_head(context)),
    }
    with st.container(horizontal=True, gap="small"):
        check_columns(context, measured, found, (colour,), chosen.measure, key="proof-heads-map")
        take_away(context, "heads", figures, key="take-heads", said=said_of(context, measured))


def _draw_chosen(context: PageContext, measured: Measured, found: Survey) -> None:
    at = chosen_head(context)
    profile = found.by_head[at]
    st.markdown(f"##### {head_name(at)}")
    st.markdown(profile_said(found, profile))
    draw_profile(found, at)
    st.caption(
        "Mean weight by where the key stands. Each bar is averaged over the rows that have such a place alone, so bars "
        "need not add up to 1. Ticks: a head that looks at all tokens alike."
    )
    check_profile(context, measured, found, at)
    if said := alignment_said(profile):
        st.markdown(said)
    st.markdown(
        f"A row's largest weight is {number(profile.largest)} on average; its entropy is {number(profile.entropy)} "
        f"nats, {number(100 * profile.evenness)} % of what looking at all tokens alike would have."
    )
    open_link(context, at)


def _draw_table(context: PageContext, chosen: Choices, found: Survey, columns: Sequence[str]) -> None:
    profiles = [p for p in found.profiles if chosen.heads in ("all", p.at.kind)]
    shown = [name for name in columns if any(value_of(p, name, chosen.measure) is not None for p in profiles)]
    shown = [name for name in shown if name != "error_rate_read" or chosen.heads == "cross"]
    rows = []
    for profile in profiles:
        even: dict[str, float] = {**found.even[profile.at.kind]}
        cells: list[Cell | None] = [_role_cell(found, profile)]
        for name in shown:
            value = value_of(profile, name, chosen.measure)
            cells.append(
                None
                if value is None
                else Cell(
                    f"{value:.2f}",
                    value,
                    None if name == "entropy" else value,
                    mark=even.get(name) if chosen.measure == "weight" else None,
                    note=_note(found, profile, name),
                )
            )
        rows.append(
            Row(str(profile.at), head_name(profile.at), profile.at.kind, opens(context, profile.at), tuple(cells))
        )
    head_table(
        rows,
        [Column("role", "Above all", "What the head looks at above all.", text=True)]
        + [Column(name, TITLES[name], EXPLAINED[name]) for name in shown],
        sort=chosen.sort if chosen.sort.removeprefix("-") in ("head", "role", *shown) else "head",
        chosen=str(chosen_head(context)),
        page="attention",
        key=TABLE,
    )


def _role_cell(found: Survey, profile: Profile) -> Cell:
    said = role_said(found, profile)
    return Cell(said, quiet=not found.main_patterns(profile).clear, note=said)


def _note(found: Survey, profile: Profile, name: str) -> str:
    """What a cell's number is, with the other reading of it."""
    pattern = _BY_NAME.get(name)
    if pattern is None:
        return EXPLAINED[name]
    kind = profile.at.kind
    return (
        f"Mean weight {number(profile.weight[pattern])}, an even head's {number(found.even[kind][pattern])}; largest "
        f"weight there in {number(100 * profile.peak[pattern])} % of {found.rows[kind][pattern]:,} rows that have such "
        "a place."
    )


def _explain(found: Survey, columns: Sequence[str]) -> None:
    with st.expander("What am I looking at?"):
        st.markdown(
            "Every head turns each query's scores into weights over the keys that sum to 1. Here these weights are "
            "added up over all rows of all sentences by *where* the key stands: **Mean weight** is the average share "
            "that goes there, over the rows that have such a place (Clark et al., 2019); the other reading counts the "
            "rows whose largest weight lies there (Voita et al., 2019). The tick on a bar is what a head would have "
            "that looks at all allowed tokens alike. Rows that may see a single key are left out: they have no choice."
        )
        st.markdown("\n".join(f"- **{TITLES[name].rstrip('.')}.** {EXPLAINED[name]}" for name in columns))
        if found.n_links:
            st.markdown(
                f"{found.n_links:,} gold links and {found.n_referents:,} referents. Between words, weights are summed "
                "over the tokens of a source word and averaged over those of a target word. A head that looks at the "
                "right word is not thereby one that is needed: see *What each is worth*."
            )
