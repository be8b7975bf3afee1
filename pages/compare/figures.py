"""Two at once: both outputs aligned, both heads, their difference where tokens align, and how heads were matched."""

from collections.abc import Callable
from textwrap import shorten

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from pages.compare.checks import check_head, check_outputs, check_two_difference, check_two_matching
from pages.compare.choices import PAGE, Choices
from pages.compare.export import (
    take_head_away,
    take_matching_away,
    take_outputs_away,
    take_two_difference_away,
)
from pages.compare.loading import get_matching, same_words
from pages.compare.matching import Compared, Facing, Pair, compare_sides
from pages.shared import controls, wording
from pages.shared.before_after import room_for
from pages.shared.components.aligned_tokens import aligned_tokens
from pages.shared.context import PageContext, is_dark, say, sentence
from pages.shared.explain import what_am_i_looking_at
from pages.shared.fields import box, segments
from pages.shared.scrolling_figure import scrolling_figure
from transformer.analysis.comparison.head_matching import Matching, Place
from transformer.figures.attention.comparison import WIDTH, difference_figure, for_column
from transformer.figures.attention.head_matching import matching_figure
from transformer.figures.attention.matrix import head_heatmap
from transformer.lab import AttentionKind

_PAIRINGS = {"matched": "The one that matches", "same": "The same place"}
_LONGEST = 70
"""Characters of a sentence above its matrix."""
_EXPLAINED = """
Queries are rows and keys are columns on both sides. A seed deals the roles of heads out at random, so head 3 of one
model need not be head 3 of another: heads are compared by what they look at in the same tokens. The distance of two
heads is the Jensen-Shannon distance of their rows *p* and *q* (0: the same weights, 1: never a key in common), and the
Hungarian method pairs heads so that all distances together are least.
"""
_DISTANCE = (
    r"d = \sqrt{\tfrac{1}{2} \textstyle\sum_j \left( p_j \log_2 \frac{p_j}{m_j} + q_j \log_2 \frac{q_j}{m_j} \right)}, "
    r"\qquad m = \tfrac{1}{2}(p + q)"
)


def show_outputs(context: PageContext, pair: Pair) -> None:
    """Both outputs, what differs marked."""
    first, second = pair.first.seen, pair.second.seen
    with room_for(2 * len(pair.aligned)):
        aligned_tokens(
            (first.target_tokens, first.probabilities.tolist()),
            (second.target_tokens, second.probabilities.tolist()),
            pair.aligned,
            labels=pair.labels,
            key="two-outputs",
        )
    differing = len(pair.differing)
    st.markdown(
        "Both write the same tokens."
        if not differing
        else f"{differing} of {len(pair.aligned)} places differ: {_changed(pair)}"
    )
    _below(lambda: check_outputs(pair), lambda: take_outputs_away(context, pair))


def show_heads(context: PageContext, pair: Pair, chosen: Choices) -> None:
    """One head of each side, side by side, and the difference of the two."""
    facing = _choose_heads(context, pair, chosen)
    with st.container(horizontal=True, gap="medium", key="two-pictures"):
        for name, _, _ in facing.sides:
            with st.container(width=WIDTH):
                _draw_head(context, facing, name)
        with st.container(width=WIDTH):
            _draw_difference(context, facing)
        with st.container(width=WIDTH):
            _draw_matching(context, facing)
    what_am_i_looking_at(_EXPLAINED, context.lab.model.config, equation=_DISTANCE)


def _choose_heads(context: PageContext, pair: Pair, chosen: Choices) -> Facing:
    """The controls for the heads that stand side by side."""
    kind = context.view.kind
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        controls.choose_kind(context)
        controls.choose_layer(context, width=80)
        heads = list(range(context.lab.model.config.n_heads))
        box("Head", heads, context.head, lambda head: controls.choose(head=head), key="choose-head", width=80)
        matching = _matching(context, pair)
        wanted = _pairing(pair, chosen, matching)
        if isinstance(matching, Matching):
            segments(
                "Head on the right",
                list(_PAIRINGS),
                wanted,
                PAGE.take("pairing"),
                key="two-pairing",
                names=_PAIRINGS.__getitem__,
                hide_label=False,
            )
    say(*controls.problems("kind", "layer", "head"))
    here = (context.layer, context.head)
    there = _across(pair, kind, here, matching if isinstance(matching, Matching) and wanted == "matched" else None)
    return Facing(pair, kind, here, there, compare_sides(pair, kind), matching)


def _across(pair: Pair, kind: AttentionKind, here: Place, matching: Matching | None) -> Place:
    """The head on the right: the one matched, else the one in the same place; where there is none, the nearest, which
    is said."""
    n_layers, n_heads = pair.second.seen.attention(kind).weights.shape[:2]
    missing = ""
    if matching is None:
        there = min(here[0], n_layers - 1), min(here[1], n_heads - 1)
        missing = "does not exist there" * (there != here)
    elif (there := matching.partner(here)) is None:
        there, missing = matching.nearest(here), "is left over by the matching"
    if missing:
        n = n_layers * n_heads
        st.markdown(
            f"{wording.plain(pair.second.name)} has {n} such head{'s' * (n > 1)}: layer {here[0]}, head {here[1]} "
            f"{missing}. The nearest one stands on the right: layer {there[0]}, head {there[1]}."
        )
    return there


def _draw_head(context: PageContext, facing: Facing, name: str) -> None:
    _, side, (layer, head) = next(shown for shown in facing.sides if shown[0] == name)
    attention = side.seen.attention(facing.kind)
    whose = side.name if facing.pair.two == "models" else shorten(side.seen.text, _LONGEST, placeholder=" …")
    st.caption(f"**{wording.plain(whose)}** · layer {layer} · head {head}")
    figure = head_heatmap(
        attention.weights[layer, head],
        attention.queries,
        attention.keys,
        kind=facing.kind,
        mask=attention.mask[layer],
        dark=is_dark(),
    )
    scrolling_figure(for_column(figure, len(attention.queries), len(attention.keys)), key=f"two-{name}")
    _below(lambda: check_head(facing, name, _drawn(figure)), lambda: take_head_away(context, facing, name))


def _draw_difference(context: PageContext, facing: Facing) -> None:
    compared = facing.compared
    if not isinstance(compared, Compared):
        st.caption(f"No difference is drawn. {compared}")
        return
    st.caption(f"{facing.kind.label} · right minus left · {compared.note}")
    left, right = facing.weights
    figure = difference_figure(
        left,
        right,
        compared.first.queries,
        compared.first.keys,
        kind=facing.kind,
        mask=facing.mask,
        names=("left", "right"),
        dark=is_dark(),
    )
    if np.array_equal(left, right):
        st.markdown("Both are equal: the largest difference is exactly 0.")
    else:
        scrolling_figure(figure, key="two-difference")
    _below(
        lambda: check_two_difference(facing, _drawn(figure)),
        lambda: take_two_difference_away(context, facing),
    )


def _draw_matching(context: PageContext, facing: Facing) -> None:
    matching = facing.matching
    if not isinstance(matching, Matching):
        st.caption(matching)
        return
    st.caption("How far apart every two heads are · framed: the pairs that are closest all together")
    figure = matching_figure(
        matching.distances,
        matching.heads,
        matching.others,
        matching.partners,
        chosen=matching.heads.index(facing.here),
        kind=facing.kind,
        names=("left", "right"),
        dark=is_dark(),
    )
    scrolling_figure(figure, key="two-matching")
    best = matching.partner(facing.here)
    said = f"These two heads: distance **{wording.number(matching.distance(facing.here, facing.there))}**."
    if best is not None and best != facing.there:
        nearest = wording.number(matching.distance(facing.here, best))
        said += f" The head that matches is layer {best[0]}, head {best[1]}: {nearest}."
    st.markdown(said)
    st.caption(
        f"Mean Jensen-Shannon distance of {matching.n_rows} rows of the page's sentence and its model's examples, each "
        "with the left model's output."
    )
    _below(lambda: check_two_matching(facing), lambda: take_matching_away(context, facing))


def _below(check_decoding: Callable[[], None], take: Callable[[], None]) -> None:
    """What stands under every figure."""
    with st.container(horizontal=True, gap="small"):
        check_decoding()
        take()


def _drawn(figure: go.Figure) -> np.ndarray:
    """The numbers of a figure's matrix, as it holds them."""
    return np.asarray(figure.data[0].z)  # type: ignore[attr-defined]


def _matching(context: PageContext, pair: Pair) -> Matching | str:
    """The heads of both models brought together, or why that says nothing here."""
    if pair.two == "sentences":
        return "Both sentences went through the same heads: there is nothing to match."
    if not same_words(pair.first.lab, pair.second.lab):
        return (
            f"Heads are matched by what they look at in the same tokens; {wording.plain(pair.first.name)} and "
            f"{wording.plain(pair.second.name)} cut sentences into different ones."
        )
    try:
        return get_matching(pair.first, pair.second, context.view.kind)
    except ValueError as error:
        return wording.plain(sentence(str(error)))


def _pairing(pair: Pair, chosen: Choices, matching: Matching | str) -> str:
    if isinstance(matching, str):
        return "same"
    return chosen.pairing or ("same" if pair.first.lab.name == pair.second.lab.name else "matched")


def _changed(pair: Pair) -> str:
    """The first places that differ, in words."""
    a, b = pair.first.seen.target_tokens, pair.second.seen.target_tokens
    found = []
    for i, j in pair.differing:
        left = "nothing" if i is None else wording.token(a[i])
        right = "nothing" if j is None else wording.token(b[j])
        found.append(f"{left} / {right}")
    return f"{', '.join(found[: wording.MOST_NAMED])}{' …' * (len(found) > wording.MOST_NAMED)}"
