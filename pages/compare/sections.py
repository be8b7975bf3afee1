"""Two at once: both outputs aligned, a head of each side with their difference, and how heads were matched."""

from dataclasses import replace
from functools import partial
from textwrap import shorten

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.compare.choices import PAGE, Choices
from pages.compare.loading import Side, matched_texts
from pages.shared import wording
from pages.shared.components.tokens import aligned_tokens
from pages.shared.context import PageContext, is_dark, say, sentence
from pages.shared.controls import choose_kind, choose_layer
from pages.shared.exhibit import exhibit, get_data
from pages.shared.explain import explain
from pages.shared.fields import box, segments
from pages.shared.guard import guard
from pages.shared.scrolling_figure import scrolling_figure
from pages.shared.url.session import choose, problems
from transformer.analysis.comparison.head_matching import Matching, Place
from transformer.figures.attention.matrix import WIDTH
from transformer.interventions.names import plural
from transformer.model.kinds import AttentionKind
from transformer.model.seq2seq import attention_layers
from transformer.views.comparison import CommonData, HeadMatching, HeadPair, HeadPairData, OutputPair, OutputsData
from transformer.views.subjects import SideBySide

_PAIRINGS = {"matched": "Its match", "same": "The same place"}
_MAX_TITLE = 70
"""The largest number of characters of a sentence above its matrix."""
_EXPLAINED = """
Queries are rows and keys are columns on both sides. Which head does what depends on the random seed, so head 3 of one
model need not be head 3 of another: heads are compared by what they attend to in the same tokens. The distance between
two heads is the Jensen-Shannon distance between their rows *p* and *q* (0: the same weights, 1: no key in common), and
the Hungarian method pairs heads so that the sum of all distances is as small as possible.
"""
_DISTANCE = (
    r"d = \sqrt{\tfrac{1}{2} \textstyle\sum_j \left( p_j \log_2 \frac{p_j}{m_j} + q_j \log_2 \frac{q_j}{m_j} \right)}, "
    r"\qquad m = \tfrac{1}{2}(p + q)"
)


@guard("The outputs")
def render_outputs(first: Side, second: Side, chosen: Choices) -> None:
    """Shows both outputs, with what differs marked."""
    labels = (first.name, second.name) if chosen.compared == "models" else ("first", "second")

    def draw(data: OutputsData) -> None:
        aligned_tokens(*data.written, data.aligned, labels=labels, key="two-outputs")
        n = len(data.differing)
        st.markdown(
            f"{n} of {len(data.aligned)} places differ: {_differences_text(data)}"
            if n
            else "Both write the same tokens."
        )

    exhibit(_subject(first, second), OutputPair(labels=labels), draw=draw)


@guard("The comparison of heads")
def render_heads(context: PageContext, first: Side, second: Side, chosen: Choices) -> None:
    """Shows a head of each side next to each other, their difference, and the distances between all heads."""
    subject, kind = _subject(first, second), context.view.kind
    if lacking := [side.name for side in (first, second) if kind not in side.seen.attentions]:
        if attention_layers(first.lab.model):
            choose_kind(context)
        st.caption(f"{wording.plain(lacking[0])} has no {kind.phrase}, so there are no heads to compare.")
        return
    matching, problem = _matching(context, first, second, chosen)
    wanted = "same" if matching is None else chosen.pairing or _suggested_pairing(first, second)
    _choose_heads(context, wanted if matching is not None else None)
    here = (context.layer, context.head)
    there = _partner(second, kind, here, matching if wanted == "matched" else None)
    pair = HeadPair(kind=kind, left=here, right=there)
    heads = st.container(horizontal=True, gap="medium", key="two-heads")
    with st.container(horizontal=True, gap="medium", key="two-distances"):
        with st.container(width=WIDTH):
            _render_pair(subject, pair, first, second, chosen, heads)
        with st.container(width=WIDTH):
            if matching is None:
                st.caption(problem)
            else:
                _render_matching(subject, HeadMatching(kind=kind, texts=matched_texts(first), chosen=here), there)


def _subject(first: Side, second: Side) -> SideBySide:
    return SideBySide(first.lab, first.seen, second.lab, second.seen)


def _matching(context: PageContext, first: Side, second: Side, chosen: Choices) -> tuple[Matching | None, str]:
    """Returns the heads of both models matched, or None with the reason why matching says nothing here."""
    if chosen.compared == "sentences":
        return None, "Both sentences went through the same heads, so each is compared with itself."
    view = HeadMatching(kind=context.view.kind, texts=matched_texts(first))
    try:
        with st.spinner("Matching the heads of both models"):
            return get_data(_subject(first, second), view), ""
    except ValueError as error:
        return None, wording.plain(sentence(str(error)))


def _suggested_pairing(first: Side, second: Side) -> str:
    return "same" if first.lab.name == second.lab.name else "matched"


def _choose_heads(context: PageContext, pairing: str | None) -> None:
    """Renders the controls for the heads that are compared; `pairing` is None if heads are not matched."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        choose_kind(context)
        choose_layer(context, width=80)
        heads = list(range(context.lab.model.config.n_heads))
        box("Head", heads, context.head, lambda head: choose(head=head), key="choose-head", width=80)
        if pairing is not None:
            segments("Head on the right", _PAIRINGS, pairing, PAGE.take("pairing"), key="two-pairing", hide_label=False)
    say(*problems("kind", "layer", "head"))


def _partner(second: Side, kind: AttentionKind, here: Place, matching: Matching | None) -> Place:
    """Returns the head on the right: the match, else the head in the same place, else the nearest one, which the page
    says."""
    n_layers, n_heads = second.seen.attention(kind).weights.shape[:2]
    missing = ""
    if matching is None:
        there = min(here[0], n_layers - 1), min(here[1], n_heads - 1)
        missing = "does not exist there" if there != here else ""
    elif (there := matching.partner(here)) is None:
        there, missing = matching.nearest(here), "has no match"
    if missing:
        n = n_layers * n_heads
        st.markdown(
            f"{wording.plain(second.name)} has {n} such {plural(n, 'head')}: layer {here[0]}, head {here[1]} "
            f"{missing}. The nearest one is shown on the right: layer {there[0]}, head {there[1]}."
        )
    return there


def _render_pair(
    subject: SideBySide, pair: HeadPair, first: Side, second: Side, chosen: Choices, heads: DeltaGenerator
) -> None:
    """Shows the heads of both sides side by side in `heads`, and here their difference, with one menu for the three."""
    views = {"left": replace(pair, shows="left"), "right": replace(pair, shows="right"), "difference": pair}

    def draw(data: HeadPairData) -> None:
        for name, side, (layer, head) in (("left", first, pair.left), ("right", second, pair.right)):
            with heads, st.container(width=WIDTH):
                text = shorten(side.seen.text, _MAX_TITLE, placeholder=" …")
                title = side.name if chosen.compared == "models" else text
                st.caption(f"**{wording.plain(title)}** · layer {layer} · head {head}")
                scrolling_figure(views[name].figure(data, dark=is_dark()), key=f"two-{name}")
        if data.common is None:
            st.caption(f"No difference is shown. {wording.plain(sentence(data.problem))}")
        else:
            _render_difference(pair, data, data.common, first)

    data = get_data(subject, pair)
    main, *others = ("difference", "left", "right") if data.common is not None else ("left", "right")
    also = {name.capitalize(): views[name] for name in others}
    explained = partial(explain, _EXPLAINED, first.lab.model.config, equation=_DISTANCE)
    exhibit(subject, views[main], draw=draw, also=also, explain=explained)


def _render_difference(pair: HeadPair, data: HeadPairData, common: CommonData, first: Side) -> None:
    n_left_out = len(data.left.queries) + len(data.right.queries) + len(data.left.keys) + len(data.right.keys)
    n_left_out -= 2 * (len(common.rows) + len(common.columns))
    left_out = f", {n_left_out} left out" if n_left_out else ""
    note = {
        "own": "both have the same tokens",
        "forced": f"both read the output of {wording.plain(first.name)} (teacher-forced)",
        "aligned": f"tokens of both in line with the fewest edits{left_out}",
    }[common.how]
    st.caption(f"{AttentionKind(pair.kind).label} · right minus left · {note}")
    if np.array_equal(common.left, common.right):
        st.markdown("Both are equal: the largest difference is exactly 0.")
    else:
        scrolling_figure(pair.figure(data, dark=is_dark()), key="two-difference")


def _render_matching(subject: SideBySide, view: HeadMatching, there: Place) -> None:
    """Shows the distances between all heads of both models."""
    here = view.chosen
    assert here is not None, "a head is chosen"

    def draw(matching: Matching) -> None:
        st.caption("The distance between every two heads · framed: the pairing with the smallest sum of distances")
        scrolling_figure(view.figure(matching, dark=is_dark()), key="two-matching")
        said = f"These two heads: distance **{wording.number(matching.distance(here, there))}**."
        best = matching.partner(here)
        if best is not None and best != there:
            nearest = wording.number(matching.distance(here, best))
            said += f" The match is layer {best[0]}, head {best[1]}: {nearest}."
        st.markdown(said)
        st.caption(
            f"Mean Jensen-Shannon distance over {matching.n_rows} rows of the page's sentence and its model's "
            "examples, each with the left model's output."
        )

    exhibit(subject, view, draw=draw)


def _differences_text(data: OutputsData) -> str:
    """Returns the first places that differ, in words."""
    a, b = data.tokens
    found = []
    for i, j in data.differing:
        left = "nothing" if i is None else wording.token(a[i])
        right = "nothing" if j is None else wording.token(b[j])
        found.append(f"{left} / {right}")
    more = " …" if len(found) > wording.MOST_NAMED else ""
    return f"{', '.join(found[: wording.MOST_NAMED])}{more}"
