"""Heads that look alike, on the Heads page: their distances, and groups of those that are close."""

import numpy as np
import streamlit as st

from pages.heads.checks import check_groups
from pages.heads.choices import CLOSEST, HEADS, Choices, segments, stepped
from pages.heads.data import choose_data
from pages.heads.export_survey import likeness
from pages.heads.head_text import head_name, role_said
from pages.heads.patterns import OPENS, first_and_all, opens, said_of, say_measured, two_columns
from pages.shared.context import is_dark
from pages.shared.controls import PageContext
from pages.shared.exports import take_away
from pages.shared.scrolling_figure import scrolling_figure
from pages.shared.wording import number
from transformer.analysis.heads.similarity import alike
from transformer.analysis.heads.survey import Profile, Survey
from transformer.figures.heads.tables import likeness_map
from transformer.model.kinds import AttentionKind


def draw_alike(context: PageContext, chosen: Choices) -> None:
    """The whole section."""
    surveyed = first_and_all(context, choose_data(context, chosen))
    if surveyed is None:
        return
    measured, found = surveyed
    say_measured(found, measured, context)
    kind = AttentionKind(chosen.heads) if chosen.heads != "all" else context.view.kind
    with st.container(horizontal=True, vertical_alignment="bottom", gap="large"):
        segments("heads", "Heads of", {name: HEADS[name.value] for name in AttentionKind}, kind)
    profiles, distances = found.of_kind(kind), found.distances[kind]
    left, right = two_columns(3, 2)
    with right:
        stepped("closest", "Alike up to a mean distance of", CLOSEST, chosen.closest)
        groups = alike(distances, chosen.closest)
        _say_groups(context, found, profiles, distances, groups)
    with left:
        order = [head for group in groups for head in group]
        names = [f"{profiles[head].at.layer}·{profiles[head].at.head}" for head in order]
        figure = likeness_map(
            distances[np.ix_(order, order)], names, kind=kind, sizes=[len(group) for group in groups], dark=is_dark()
        )
        scrolling_figure(figure, key="heads-likeness")
        with st.container(horizontal=True, gap="small"):
            check_groups(context, measured, found, kind, groups, chosen.closest)
            away = {"distances": lambda: likeness(context, measured, found, kind, chosen.closest)}
            take_away(context, "heads", away, key="take-heads", said=said_of(context, measured))
    with st.expander("What am I looking at?"):
        st.markdown(
            "Two heads are alike when they give the same tokens the same weights, row by row. The distance of two rows "
            "*p* and *q* is the square root of their Jensen-Shannon divergence in bits (Endres and Schindelin, 2003): "
            "0 where they are equal, 1 where they have no key in common. Heads have the mean over all rows. Groups are "
            "made by average linkage (Sokal and Michener, 1958): the two nearest groups become one as long as the mean "
            "distance between their heads is at most what you chose. Heads of different kinds have different rows and "
            "columns and cannot be compared."
        )
        st.latex(r"d(p, q) = \sqrt{H\!\left(\tfrac{p+q}{2}\right) - \tfrac{1}{2}\left(H(p) + H(q)\right)}")


def _say_groups(
    context: PageContext,
    found: Survey,
    profiles: tuple[Profile, ...],
    distances: np.ndarray,
    groups: tuple[tuple[int, ...], ...],
) -> None:
    several = [group for group in groups if len(group) > 1]
    alone = [group[0] for group in groups if len(group) == 1]
    if not several:
        nearest = np.where(np.eye(len(distances)) > 0, np.inf, distances)
        a, b = np.unravel_index(nearest.argmin(), nearest.shape)
        st.markdown("**No two heads are that much alike.**")
        if len(profiles) > 1:
            st.markdown(
                f"The nearest are {head_name(profiles[a].at)} and {head_name(profiles[b].at)}, "
                f"{number(float(distances[a, b]))} apart."
            )
        return
    for group in several:
        inner = distances[np.ix_(group, group)]
        mean = inner[np.triu_indices(len(group), 1)].mean()
        roles = dict.fromkeys(role_said(found, profiles[head]) for head in group)
        st.markdown(f"**{len(group)} heads**, {number(float(mean))} apart on average · {'; '.join(roles)}")
        with st.container(horizontal=True, gap="small"):
            for head in group:
                at = profiles[head].at
                name, query = head_name(at), opens(context, at)
                st.page_link("pages/attention/page.py", label=name, icon=OPENS, query_params=query, width="content")
    if alone:
        listed = ", ".join(head_name(profiles[head].at) for head in alone)
        st.caption(f"On its own: {listed}." if len(alone) == 1 else f"Each on its own: {listed}.")
