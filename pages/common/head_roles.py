"""What every head does, on the Heads page: a map of layers and heads, the chosen one in words, and a table of all."""

from collections.abc import Sequence

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.common.components.head_table import Cell, Column, Row, head_table
from pages.common.components.scrolling_figure import scrolling_figure
from pages.common.controls import Scene
from pages.common.export_heads import head_profile, role_map
from pages.common.exports import take_away
from pages.common.head_choices import FIRST, HEADS, TABLE, Choices, box, segments
from pages.common.head_data import Measured, choose_data
from pages.common.head_proofs import prove_columns, prove_profile
from pages.common.head_words import (
    EXPLAINED,
    LONG_TITLES,
    MEASURES,
    TITLES,
    alignment_said,
    block_of,
    head_name,
    looked_at,
    profile_said,
    role_said,
    value_of,
)
from pages.common.head_work import result_of
from pages.common.pictures import is_dark
from pages.common.state import choose
from pages.common.wording import number
from pages.shared.cache import lab_key
from transformer.analysis.head_places import HeadAt, Tell, blocks_of, heads_of
from transformer.analysis.head_survey import Pattern, Profile, Survey, survey
from transformer.figures.head_bars import profile_bars
from transformer.figures.heads import head_map

_PATTERNS: tuple[Pattern, ...] = (
    *("previous", "next", "diagonal", "anti_diagonal", "same_token"),
    *("first", "end", "punctuation", "alignment", "referent"),
)
_BY_NAME: dict[str, Pattern] = {name: name for name in _PATTERNS}
_MAP = "heads-map"
OPENS = ":material/arrow_forward:"
"""Icon of a link to the Attention page."""


def draw_roles(scene: Scene, chosen: Choices) -> None:
    """The whole section."""
    surveyed = first_and_all(scene, choose_data(scene, chosen))
    if surveyed is None:
        return
    measured, found = surveyed
    columns = _columns(found, scene)
    say_measured(found, measured, scene)
    left, right = two_columns(2, 3)
    with left:
        _draw_map(scene, chosen, measured, found, columns)
    with right:
        _draw_chosen(scene, measured, found)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        segments("heads", "Heads", HEADS, chosen.heads)
        segments("measure", "Numbers are", MEASURES, chosen.measure)
    _draw_table(scene, chosen, found, columns)
    prove_columns(scene, measured, found, columns, chosen.measure, key="proof-heads-table")
    _explain(found, columns)


def first_and_all(scene: Scene, measured: Measured | None) -> tuple[Measured, Survey] | None:
    """All heads over these pairs, with the pairs: over the first of many while the others are gone through."""
    if measured is None:
        return None
    many = len(measured.pairs) > 2 * FIRST
    first = measured.first(FIRST)
    at_once = survey_of(scene, first, purpose="first") if many else None
    if many and at_once is None:
        return None
    found = survey_of(scene, measured, wait_s=0.0 if many else None)
    if found is not None:
        return measured, found
    return None if at_once is None else (first, at_once)


def survey_of(
    scene: Scene, measured: Measured, *, purpose: str = "survey", wait_s: float | None = None
) -> Survey | None:
    """All heads of the model over these pairs; None while that is computed, which is then said."""
    lab = scene.lab

    def compute(tell: Tell) -> Survey:
        return survey(lab.model, measured.pairs, lab.tokenizer, unit=measured.unit, tell=tell)

    key = ("survey", lab_key(lab), measured.key)
    return result_of(purpose, key, compute, f"Looking at every head on {measured.said}", wait_s=wait_s)


def say_measured(found: Survey, measured: Measured, scene: Scene) -> None:
    """On how much it was measured, and that the visitor's switches are out of it."""
    forced = "" if measured.own_output else ", the reference translations forced"
    said = f"Measured on {measured.said}: {found.n_source:,} source and {found.n_target:,} target tokens{forced}."
    said += " The sentence above plays no part in it." * (not measured.own_output)
    if not scene.lab.model.config.causal_mask:
        said += (
            " There is no causal mask: in these passes the decoder sees later words, which it has not when it writes."
        )
    if scene.view.switches:
        said += " Without your switches: this is the model as it was trained."
    st.caption(said)


def said_of(scene: Scene, measured: Measured) -> str:
    """What stands under a figure that is taken away."""
    return f"{scene.lab.name} · measured on {measured.said}"


def two_columns(left: int, right: int) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Two columns side by side, one below the other in a narrow window."""
    with st.container(key="pictures"):
        first, second = st.columns([left, right], gap="large")
    return first, second


def chosen_head(scene: Scene) -> HeadAt:
    """The head in hand."""
    places = heads_of(scene.lab.model)
    of_kind = [at for at in places if at.kind == scene.view.kind]
    return next(at for at in of_kind if (at.layer, at.head) == (scene.layer, scene.head))


def opens(scene: Scene, at: HeadAt) -> dict[str, str | list[str]]:
    """The query parameters that open a head on the Attention page, with this sentence."""
    return scene.view.at_head(at.kind, at.layer, at.head).parameters()


def clickable_map(scene: Scene, values: dict[HeadAt, float | None], said: dict[HeadAt, str], **look) -> None:
    """A map of all heads, a click on which takes one in hand."""
    rows = blocks_of(scene.lab.model)
    blocks = [block_of(row[0]) for row in rows]
    at = chosen_head(scene)
    figure = head_map(
        np.array([[np.nan if (v := values.get(at)) is None else v for at in row] for row in rows], dtype=float),
        blocks,
        [[said.get(at, "") for at in row] for row in rows],
        chosen=(blocks.index(block_of(at)), at.head),
        dark=is_dark(),
        **look,
    )

    def take() -> None:
        points = st.session_state[_MAP].selection.points
        if points:
            at = rows[int(points[-1]["y"])][int(points[-1]["x"])]
            choose(kind=at.kind, layer=at.layer, head=at.head)

    scrolling_figure(figure, key=_MAP, on_select=take, selection_mode="points")


def open_link(scene: Scene, at: HeadAt) -> None:
    """The link that opens a head on the Attention page."""
    st.page_link(
        "pages/attention.py",
        label=f"Open {head_name(at)} on the Attention page",
        icon=OPENS,
        query_params=opens(scene, at),
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


def _columns(found: Survey, scene: Scene) -> tuple[str, ...]:
    """The columns that say something of this model and these pairs."""
    patterns = [name for name in _PATTERNS if any(name in profile.weight for profile in found.profiles)]
    return (*patterns, *(("error_rate", "accuracy", "error_rate_read") if found.n_links else ()), "entropy", "largest")


def _draw_map(scene: Scene, chosen: Choices, measured: Measured, found: Survey, columns: Sequence[str]) -> None:
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
    clickable_map(scene, values, said, quantity=quantity, limits=(0.0, top))
    missing = " Empty: such a head has no such place to look at." if None in values.values() else ""
    st.caption(f"Click a cell to take a head in hand.{missing}")
    figures = {
        "Map": lambda: role_map(scene, measured, found, colour, chosen.measure, columns, quantity=quantity, top=top),
        "The head in hand": lambda: head_profile(scene, measured, found, chosen_head(scene)),
    }
    with st.container(horizontal=True, gap="small"):
        prove_columns(scene, measured, found, (colour,), chosen.measure, key="proof-heads-map")
        take_away(scene, "heads", figures, key="take-heads", said=said_of(scene, measured))


def _draw_chosen(scene: Scene, measured: Measured, found: Survey) -> None:
    at = chosen_head(scene)
    profile = found.by_head[at]
    st.markdown(f"##### {head_name(at)}")
    st.markdown(profile_said(found, profile))
    draw_profile(found, at)
    st.caption(
        "Mean weight by where the key stands. Each bar is averaged over the rows that have such a place alone, so bars "
        "need not add up to 1. Ticks: a head that looks at all tokens alike."
    )
    prove_profile(scene, measured, found, at)
    if said := alignment_said(profile):
        st.markdown(said)
    st.markdown(
        f"A row's largest weight is {number(profile.largest)} on average; its entropy is {number(profile.entropy)} "
        f"nats, {number(100 * profile.evenness)} % of what looking at all tokens alike would have."
    )
    open_link(scene, at)


def _draw_table(scene: Scene, chosen: Choices, found: Survey, columns: Sequence[str]) -> None:
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
            Row(str(profile.at), head_name(profile.at), profile.at.kind, opens(scene, profile.at), tuple(cells))
        )
    head_table(
        rows,
        [Column("role", "Above all", "What the head looks at above all.", text=True)]
        + [Column(name, TITLES[name], EXPLAINED[name]) for name in shown],
        sort=chosen.sort if chosen.sort.removeprefix("-") in ("head", "role", *shown) else "head",
        chosen=str(chosen_head(scene)),
        page="attention",
        key=TABLE,
    )


def _role_cell(found: Survey, profile: Profile) -> Cell:
    said = role_said(found, profile)
    return Cell(said, quiet=not found.role(profile).clear, note=said)


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
