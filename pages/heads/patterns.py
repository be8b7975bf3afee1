"""The patterns of every head, on the Heads page: a map of layers and heads, the selected one in words, a table of
all."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, get_args

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.heads.choices import FIRST, HEADS, TABLE, Choices, box, segments
from pages.heads.data import choose_data
from pages.heads.head_text import EXPLAINED, alignment_text, profile_text
from pages.heads.work import result_of
from pages.shared.cache import cached, lab_key
from pages.shared.components.head_table import Cell, Column, Row, head_table
from pages.shared.context import PageContext, is_dark
from pages.shared.exhibit import exhibit
from pages.shared.scrolling_figure import scrolling_figure
from pages.shared.url.session import choose
from pages.shared.wording import number
from transformer.analysis.heads.addresses import HeadAt, Tell, sublayers_of
from transformer.analysis.heads.pair_sample import PairSample
from transformer.analysis.heads.published import SURVEY_FILE, published_survey
from transformer.analysis.heads.survey import Pattern, Survey, survey
from transformer.analysis.heads.survey_checks import value_of
from transformer.figures.heads.labels import COLUMN_NAMES, SHORT_NAMES, head_name
from transformer.lab import Lab
from transformer.views.heads.distance import AttentionDistance
from transformer.views.heads.entropy import LayerEntropy
from transformer.views.heads.subjects import Surveyed
from transformer.views.heads.survey import (
    MEASURES,
    OTHER_COLUMNS,
    HeadProfile,
    PatternMap,
    PatternTable,
    PatternTableData,
)
from transformer.views.view import View

OPENS = ":material/arrow_forward:"
"""The icon of a link to the Attention page."""


def render_patterns(context: PageContext, chosen: Choices) -> None:
    """Renders the whole section."""
    surveyed = first_and_all(context, choose_data(context, chosen))
    if surveyed is None:
        return
    found, columns = surveyed.found, _columns(surveyed.found)
    render_sample(surveyed, context)
    left, right = two_columns(3, 4)
    with left:
        colour = chosen.colour if chosen.colour in columns else "diagonal"
        box("colour", "Colours show", list(columns), colour, COLUMN_NAMES.__getitem__, help=EXPLAINED[colour])
        view = PatternMap(column=colour, measure=chosen.measure, chosen=str(chosen_head(context)))
        draw, explain = partial(clickable_map, context, view), partial(_explain, found, columns)
        data = exhibit(surveyed, view, draw=draw, explain=explain, width=640)
        missing = data is not None and np.isnan(data.values).any()
        st.caption(
            f"Click a cell to examine a head.{' Empty: there is no such place for that head.' if missing else ''}"
        )
    with right:
        _render_selected(context, surveyed)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        segments("heads", "Heads", HEADS, chosen.heads)
        segments("measure", "Numbers are", MEASURES, chosen.measure)
    profiles = [p for p in found.profiles if chosen.heads in ("all", p.at.kind)]
    shown = [name for name in columns if any(not math.isnan(value_of(found, p.at, name)) for p in profiles)]
    shown = [name for name in shown if name != "error_rate_read" or chosen.heads == "cross"]
    table = PatternTable(columns=tuple(shown), measure=chosen.measure, heads=chosen.heads)
    exhibit(surveyed, table, draw=partial(_render_table, context, chosen))
    st.markdown("## How far each head looks")
    exhibit(surveyed, AttentionDistance(chosen=str(chosen_head(context))))
    st.caption(
        "Dots: the mean distance between query and key in tokens, weighted by attention. Bars: one standard "
        "deviation on either side, cut off at 0. Dotted: a uniform head. Ringed: the selected head. Cross-attention "
        "is left out: its queries and keys stand in two different sentences."
    )
    st.markdown("## How widely each layer spreads its attention")
    exhibit(surveyed, LayerEntropy(chosen=str(chosen_head(context))))
    st.caption(
        "Large dots: the mean entropy of a layer's rows of weights, with its 95 % interval over sentences, cut off "
        "at 0. Small dots: its heads. Dotted: uniform heads, the most that is possible. Ringed: the selected head. "
        "Over many sentences the interval is smaller than its dot; point at the dot to read it."
    )


def first_and_all(context: PageContext, sample: PairSample | None) -> Surveyed | None:
    """Returns all heads measured on these pairs; on the first of many until the others are read."""
    if sample is None:
        return None
    many = len(sample.pairs) > 2 * FIRST and _published(context.lab, sample) is None
    first = sample.first(FIRST)
    at_once = survey_of(context, first, purpose="first") if many else None
    if many and at_once is None:
        return None
    return survey_of(context, sample, wait=not many) or at_once


def _time_of_file(lab: Lab, sample: PairSample) -> int:
    path = lab.checkpoint.folder / SURVEY_FILE
    return path.stat().st_mtime_ns if path.is_file() else 0


@cached(max_entries=24, shared=True, also=_time_of_file)
def _published(lab: Lab, sample: PairSample) -> Survey | None:
    return published_survey(lab.checkpoint, sample)


def survey_of(
    context: PageContext, sample: PairSample, *, purpose: str = "survey", wait: bool = True
) -> Surveyed | None:
    """Returns all heads of the model measured on these pairs, by its publisher if that was done; None, with a progress
    bar, while it is computed."""
    lab = context.lab
    if (published := _published(lab, sample)) is not None:
        return Surveyed(lab, sample, published)

    def compute(tell: Tell) -> Survey:
        return survey(lab.transformer, sample.pairs, lab.tokenizer, unit=sample.unit, tell=tell)

    key = ("survey", lab_key(lab), sample.digest)
    doing = f"Looking at every head on {sample.description}"
    found = result_of(purpose, key, compute, doing, wait=wait, brief=purpose == "first")
    return None if found is None else Surveyed(lab, sample, found)


def render_sample(surveyed: Surveyed, context: PageContext) -> None:
    """Says how much was measured, and that the visitor's switches are not part of it."""
    found, sample = surveyed.found, surveyed.sample
    forced = "" if sample.own_output else ", with the reference translations forced"
    when = " when the model was published" if found.published else ""
    tokens = f"{found.n_source:,} source and {found.n_target:,} target tokens"
    said = f"Measured on {sample.description}{when}: {tokens}{forced}."
    if found.published:
        said += " *Prove it* measures some of them again."
    if not sample.own_output:
        said += " The sentence above is not used."
    if not context.lab.model.config.causal_mask:
        said += " There is no causal mask: in these passes the decoder sees later words, which do not exist yet when "
        "it writes."
    if context.view.switches:
        said += " Without your switches: this is the model as it was trained."
    st.caption(said)


def two_columns(left: int, right: int) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Returns two columns side by side, one below the other in a narrow window."""
    with st.container(key="pictures"):
        first, second = st.columns([left, right], gap="large")
    return first, second


def chosen_head(context: PageContext) -> HeadAt:
    """Returns the selected head."""
    row = next(row for row in sublayers_of(context.lab.model) if (row[0].kind, row[0].layer) == _selected(context))
    return row[context.head]


def opens(context: PageContext, at: HeadAt) -> dict[str, str | list[str]]:
    """Returns the query parameters that open a head on the Attention page, with this sentence."""
    return context.view.at_head(at.kind, at.layer, at.head).parameters()


def clickable_map(context: PageContext, view: View[Any], data: Any) -> None:
    """Renders a map of all heads, a click on which selects one."""
    rows = sublayers_of(context.lab.model)
    key = "heads-map"

    def take() -> None:
        points = st.session_state[key].selection.points
        if points:
            at = rows[int(points[-1]["y"])][int(points[-1]["x"])]
            choose(kind=at.kind, layer=at.layer, head=at.head)

    scrolling_figure(view.figure(data, dark=is_dark()), key=key, on_select=take, selection_mode="points")


def open_link(context: PageContext, at: HeadAt) -> None:
    """Renders the link that opens a head on the Attention page."""
    label = f"Open {head_name(str(at))} on the Attention page"
    st.page_link("pages/attention/page.py", label=label, icon=OPENS, query_params=opens(context, at))


def render_head_table(
    context: PageContext,
    columns: Sequence[Column],
    cells: Callable[[HeadAt], Sequence[Cell | None]],
    heads: Sequence[str],
    *,
    sort: str,
    usual: str,
    chosen: HeadAt | None = None,
) -> None:
    """Renders a table of heads whose names open them on the Attention page."""
    places = [HeadAt.parse(head) for head in heads]
    rows = [Row(str(at), head_name(str(at)), at.kind, opens(context, at), tuple(cells(at))) for at in places]
    names = {"head", *(column.name for column in columns)}
    kept = sort if sort.removeprefix("-") in names else usual
    head = str(chosen or chosen_head(context))
    head_table(rows, columns, sort=kept, chosen=head, page="attention", key=TABLE)


def _selected(context: PageContext) -> tuple[str, int]:
    return context.view.kind, context.layer


def _columns(found: Survey) -> tuple[str, ...]:
    """Returns the columns that have a value for this model and these pairs."""
    patterns = [name for name in get_args(Pattern) if any(name in profile.weight for profile in found.profiles)]
    return (*patterns, *(("error_rate", "accuracy", "error_rate_read") if found.n_links else ()), "entropy", "largest")


def _render_selected(context: PageContext, surveyed: Surveyed) -> None:
    at, found = chosen_head(context), surveyed.found
    profile = found.by_head[at]
    st.markdown(f"## {head_name(str(at))}")
    st.markdown(profile_text(found, profile))
    st.caption(
        "Mean weight by where the key stands. Each bar is an average over the rows that have such a place, so bars "
        "need not add up to 1. Ticks: a uniform head."
    )
    exhibit(surveyed, HeadProfile(head=str(at)), width=640)
    if said := alignment_text(profile):
        st.markdown(said)
    st.markdown(
        f"A row's largest weight is {number(profile.largest)} on average; its entropy is {number(profile.entropy)} "
        f"nats, {number(100 * profile.evenness)} % of a uniform head's."
    )
    open_link(context, at)


def _render_table(context: PageContext, chosen: Choices, data: PatternTableData) -> None:
    def cells(at: HeadAt) -> list[Cell | None]:
        row, quiet = data.heads.index(str(at)), str(at) not in data.clear
        found: list[Cell | None] = [Cell(data.patterns[row], quiet=quiet, note=data.patterns[row])]
        for column, name in enumerate(data.columns):
            value, even = (float(array[row, column]) for array in (data.values, data.even))
            mark = None if np.isnan(even) or chosen.measure == "peak" else even
            bar = None if name == "entropy" else value
            note = _note(chosen, data, row, column)
            found.append(None if np.isnan(value) else Cell(f"{value:.2f}", value, bar, mark=mark, note=note))
        return found

    columns = [Column("role", "Looks mostly at", "What the head looks at most.", text=True)]
    columns += [Column(name, SHORT_NAMES[name], EXPLAINED[name]) for name in data.columns]
    render_head_table(context, columns, cells, data.heads, sort=chosen.sort, usual="head")


def _note(chosen: Choices, data: PatternTableData, row: int, column: int) -> str:
    """Returns what the number in a cell means, with the other measure of it."""
    name = data.columns[column]
    if name in OTHER_COLUMNS:
        return EXPLAINED[name]
    arrays = (data.values, data.other, data.even, data.rows)
    value, other, even, rows = (float(array[row, column]) for array in arrays)
    weight, peak = (value, other) if chosen.measure == "weight" else (other, value)
    return (
        f"Mean weight {number(weight)}, a uniform head's {number(even)}; largest weight there in {number(100 * peak)} "
        f"% of {rows:,.0f} rows that have such a place."
    )


def _explain(found: Survey, columns: Sequence[str]) -> None:
    st.markdown(
        "Every head turns each query's scores into weights over the keys that sum to 1. Here these weights are "
        "added up over all rows of all sentences by *where* the key stands: **Mean weight** is the average share "
        "that goes there, over the rows that have such a place (Clark et al., 2019); the other measure counts the "
        "rows whose largest weight lies there (Voita et al., 2019), where several within 0.1 % of each other count in "
        "part. The tick on a bar is what a uniform head would have. Rows that may see only one key are left out: they "
        "have no choice."
    )
    st.markdown("\n".join(f"- **{SHORT_NAMES[name].rstrip('.')}.** {EXPLAINED[name]}" for name in columns))
    if found.n_links:
        st.markdown(
            f"{found.n_links:,} gold links and {found.n_referents:,} referents. Between words, weights are summed "
            "over the tokens of a source word and averaged over those of a target word. A head that looks at the "
            "right word is not necessarily one that is needed: see *Importance*."
        )
