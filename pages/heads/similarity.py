"""Heads with similar weights, on the Heads page: their distances, and groups of those that are close."""

import numpy as np
import streamlit as st

from pages.heads.choices import CLOSEST, HEADS, Choices, segments, stepped
from pages.heads.data import choose_data
from pages.heads.patterns import OPENS, first_and_all, opens, render_sample, two_columns
from pages.shared.context import PageContext
from pages.shared.exhibit import exhibit
from pages.shared.explain import render_equation
from pages.shared.wording import number
from transformer.analysis.heads.addresses import HeadAt
from transformer.analysis.heads.survey import Survey
from transformer.figures.heads.labels import head_name
from transformer.model.kinds import AttentionKind
from transformer.model.seq2seq import attention_layers
from transformer.views.heads.survey import HeadSimilarity, SimilarityData, main_patterns_text


def render_similarity(context: PageContext, chosen: Choices) -> None:
    """Renders the whole section."""
    surveyed = first_and_all(context, choose_data(context, chosen))
    if surveyed is None:
        return
    render_sample(surveyed, context)
    kind = AttentionKind(chosen.heads) if chosen.heads != "all" else context.view.kind
    with st.container(horizontal=True, vertical_alignment="bottom", gap="large"):
        segments("heads", "Heads of", {kind: HEADS[kind.value] for kind in attention_layers(context.lab.model)}, kind)
    left, right = two_columns(3, 2)
    with left:
        data = exhibit(surveyed, HeadSimilarity(kind=kind, closest=chosen.closest), explain=_explain, width=760)
    with right:
        stepped("closest", "Group heads up to a mean distance of", CLOSEST, chosen.closest)
        if data is not None:
            _render_groups(context, surveyed.found, data)


def _explain() -> None:
    st.markdown(
        "Two heads are similar when they give the same tokens the same weights, row by row. The distance between "
        "two rows *p* and *q* is the square root of their Jensen-Shannon divergence in bits (Endres and "
        "Schindelin, 2003): 0 where they are equal, 1 where they have no key in common. The distance between two "
        "heads is the mean over all rows. Groups are made by average linkage (Sokal and Michener, 1958): the two "
        "nearest groups merge as long as the mean distance between their heads is at most what you chose. Heads "
        "of different kinds have different rows and columns and cannot be compared."
    )
    render_equation(r"d(p, q) = \sqrt{H\!\left(\tfrac{p+q}{2}\right) - \tfrac{1}{2}\left(H(p) + H(q)\right)}")


def _render_groups(context: PageContext, found: Survey, data: SimilarityData) -> None:
    start, alone, several = 0, [], False
    for group in data.groups:
        heads = [HeadAt.parse(head) for head in data.heads[start : start + len(group)]]
        inner = data.distances[start : start + len(group), start : start + len(group)]
        start += len(group)
        if len(heads) == 1:
            alone.append(head_name(str(heads[0])))
            continue
        several = True
        mean = inner[np.triu_indices(len(group), 1)].mean()
        patterns = dict.fromkeys(main_patterns_text(found, found.by_head[at]) for at in heads)
        st.markdown(f"**{len(group)} heads**, {number(float(mean))} apart on average · {'; '.join(patterns)}")
        with st.container(horizontal=True, gap="small"):
            for at in heads:
                name, query = head_name(str(at)), opens(context, at)
                st.page_link("pages/attention/page.py", label=name, icon=OPENS, query_params=query, width="content")
    if several and alone:
        st.caption(f"{'Each on its own' if len(alone) > 1 else 'On its own'}: {', '.join(alone)}.")
    elif not several:
        _render_nearest(data)


def _render_nearest(data: SimilarityData) -> None:
    st.markdown("**No two heads are that similar.**")
    if len(data.heads) > 1:
        nearest = np.where(np.eye(len(data.heads)) > 0, np.inf, data.distances)
        a, b = np.unravel_index(nearest.argmin(), nearest.shape)
        st.markdown(
            f"The nearest are {head_name(data.heads[a])} and {head_name(data.heads[b])}, "
            f"{number(float(data.distances[a, b]))} apart."
        )
