"""The beam on the Decoder steps page: its settings, the tree of hypotheses, and its results to walk through."""

import math
from collections.abc import Sequence
from itertools import pairwise

import plotly.graph_objects as go
import streamlit as st

from pages.shared import fields, loading, wording
from pages.shared.components.token_chips import token_chips
from pages.shared.context import is_dark
from pages.shared.controls import PageContext, choose_layer_or_average, say
from pages.shared.scrolling_figure import scrolling_figure
from pages.steps.checks import check_hypothesis, check_totals
from pages.steps.choices import HIGHEST_ALPHA, PAGE, WIDEST_TREE, Choices, Road, change, take_road
from pages.steps.export_search import take_search_away
from transformer.analysis.heads.importance import head_average
from transformer.analysis.steps.search_tree import Node, SearchTree
from transformer.decoding.beam import Hypothesis, length_norm
from transformer.figures.attention.matrix import head_heatmap
from transformer.figures.steps.search_tree import Branch, tree_figure
from transformer.interventions import Intervention

_NORMS = {"paper": "((5 + length) / 6)^α, the paper", "length": "length^α"}


def choose_beam(chosen: Choices) -> None:
    """Size, norm and stopping rule; each acts at once."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        for name, label, low, high, step in (
            ("beam", "Beam size", 1, WIDEST_TREE, 1),
            ("alpha", "Strength of the length norm, α", 0.0, HIGHEST_ALPHA, 0.1),
        ):
            value = getattr(chosen, name)
            fields.slider(label, low, high, value, PAGE.take(name), key=f"beam-{name}", step=step)
        fields.box(
            "Score = log-probability divided by",
            list(_NORMS),
            chosen.norm,
            PAGE.take("norm"),
            key="beam-norm",
            names=_NORMS.__getitem__,
        )
        fields.toggle(
            "Stop early",
            chosen.stop == "early",
            lambda on: change(stop="early" if on else "late"),
            key="beam-stop",
            help="On: when as many hypotheses as the beam is wide have ended. Off: when none can be overtaken.",
        )
    say(*PAGE.said("beam", "alpha", "norm", "stop", "node"))


def show_beam(context: PageContext, chosen: Choices) -> None:
    """The tree of the real search, its results, and the attention of a hypothesis; under switches, results without."""
    tree = _search(context, chosen, context.view.switches)
    usual = _search(context, chosen, ()) if context.view.switches else None
    _show_results(context, chosen, tree, usual)
    st.caption(
        "A column holds a step's candidates, the most probable on top, under each its token and score. The way of the "
        "best result is blue. Click a candidate to see where its hypothesis looked, and why it went on or not."
    )
    index = chosen.node if 0 <= chosen.node < len(tree.nodes) else tree.index_of(tree.results[0])
    if chosen.node >= len(tree.nodes):
        st.caption(f"The link names candidate {chosen.node:,}; this tree has {len(tree.nodes):,}. Shown is the best.")
    figure = _draw_tree(context, tree, index, chosen)
    check_totals(context, tree.results, key="proof-beam")
    attention = _show_hypothesis(context, tree, index)
    take_search_away(context, chosen, tree, index, figure, attention)


def _draw_tree(context: PageContext, tree: SearchTree, index: int, chosen: Choices) -> go.Figure:
    piece = context.lab.tokenizer.piece
    branches = [
        Branch(n.step, piece(n.token), n.parent, n.log_prob, n.score, n.fate, n.on_best, became(n, place, tree))
        for place, n in enumerate(tree.nodes)
    ]
    figure = tree_figure(branches, chosen=index, dark=is_dark())
    key = f"beam-tree-{chosen.node}"

    def take_clicked() -> None:
        points = st.session_state[key].selection.points
        if points:
            change(node=int(points[-1]["customdata"][0]))

    scrolling_figure(figure, key=key, on_select=take_clicked, selection_mode="points")
    return figure


def _show_hypothesis(context: PageContext, tree: SearchTree, index: int) -> go.Figure:
    """One hypothesis: what became of it, and its cross-attention as the search recorded it."""
    node, path = tree.nodes[index], tree.path(index)
    ids = tuple(each.token for each in path)
    written = [context.lab.tokenizer.piece(token) for token in ids]
    before = (0.0, *(each.log_prob for each in path))
    shares = [math.exp(total - earlier) for earlier, total in pairwise(before)]
    token_chips(written, label="the hypothesis", probabilities=shares, key="hypothesis")
    why = became(node, index, tree)
    st.markdown(f"Step {node.step}: {wording.plain(why[:1].lower() + why[1:])}.")
    weights = tree.attention(index)
    head = context.view.head
    shown = head_average(weights, context.layer) if head is None else weights[context.layer, head]
    figure = head_heatmap(shown, written, context.inspection.cross.keys, kind="cross", dark=is_dark())
    left, right = st.columns([3, 2], gap="medium")
    with left:
        st.caption("Its cross-attention")
        scrolling_figure(figure, key="hypothesis-attention")
        check_hypothesis(context, ids, weights)
    with right:
        choose_layer_or_average(context)
        st.button("Walk through it", key="walk-hypothesis", on_click=lambda: _walk(context, ids))
    return figure


def _search(context: PageContext, chosen: Choices, switches: Sequence[Intervention]) -> SearchTree:
    return loading.get_search(
        context.lab,
        context.view.text,
        switches,
        size=chosen.beam,
        alpha=chosen.alpha,
        norm=chosen.norm,
        early_stopping=chosen.stop == "early",
    )


def _text(context: PageContext, result: Hypothesis) -> str:
    return context.lab.tokenizer.decode(list(result.ids[:-1] if result.ended else result.ids))


def _show_results(context: PageContext, chosen: Choices, tree: SearchTree, usual: SearchTree | None) -> None:
    greedy = loading.get_inspection(context.lab, context.view.text, context.view.switches).target_ids
    for place, result in enumerate(tree.results, start=1):
        text = _text(context, result)
        divisor = length_norm(len(result.ids), chosen.alpha, chosen.norm)
        notes = "".join((" · greedy's" * (result.ids == greedy), " · cut off" * (not result.ended)))
        notes += "" if usual is None else _without(result, usual)
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.button(
                "Walk",
                key=f"walk-result-{place}",
                help="Step by step through this hypothesis, with its attention",
                on_click=lambda ids=result.ids: _walk(context, ids),
            )
            st.markdown(
                f"**{place}.** {wording.plain(text) or '*(nothing was written)*'}  \n:gray[score "
                f"{wording.number(result.score)} = {wording.number(result.log_prob)} nats ÷ {wording.number(divisor)} "
                f"({len(result.ids)} tokens){notes}]"
            )


def _without(result: Hypothesis, usual: SearchTree) -> str:
    """What the search without the switches made of a result."""
    found = next((place for place, other in enumerate(usual.results, start=1) if other.ids == result.ids), None)
    if found is None:
        return " · without the switches not among the results"
    return f" · without the switches number {found}, score {wording.number(usual.results[found - 1].score)}"


def _walk(context: PageContext, ids: tuple[int, ...]) -> None:
    """Takes the road to these ids: forces just the tokens that greedy would not write there."""
    road: Road = ()
    while True:
        written = loading.get_branch(context.lab, context.view.text, context.view.switches, road).target_ids
        step = next((i for i, (a, b) in enumerate(zip(ids, written, strict=False)) if a != b), None)
        if step is None:
            break
        road = (*road, (step, ids[step]))
    take_road(road, road[0][0] if road else 0)
    change(look="steps")


def became(node: Node, index: int, tree: SearchTree) -> str:
    """What became of a candidate, and why, with the numbers that decided it."""
    said = f"number {node.rank} of this step's candidates"
    place = tree.place_of(index)
    match node.fate:
        case "goes on":
            return f"{said}: goes on"
        case "ended" if place is not None:
            return f"{said}: ended, and is result {place} by its score"
        case "ended":
            return f"{said}: ended, but {tree.size} complete hypotheses have better scores"
        case "left over" if place is not None:
            return f"{said}: cut off at the length limit, and is result {place} by its score"
        case "left over":
            return f"{said}: still in the beam when the search was over"
    kept = tree.kept_last(node.step)
    if kept is None or kept.log_prob < node.log_prob:
        return f"{said}: pruned, as an end counts only among the best {tree.size}"
    total, gap = wording.number(node.log_prob), wording.number(kept.log_prob - node.log_prob)
    return (
        f"{said}: pruned, as the beam has room for {tree.size}. Its log-probability, {total} nats, is {gap} below that "
        "of the last one that went on"
    )
