"""Beam search: its settings, the tree of hypotheses, and its results to step through."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from pages.shared import fields, loading, wording
from pages.shared.components.tokens import token_chips
from pages.shared.context import Decoded, PageContext, is_dark, say
from pages.shared.controls import choose_layer_or_average
from pages.shared.exhibit import exhibit, get_data
from pages.shared.guard import guard
from pages.shared.scrolling_figure import scrolling_figure
from pages.shared.url.session import problems
from pages.steps.choices import MAX_ALPHA, MAX_BEAM, PAGE, Choices, Forced, change, take_branch
from pages.steps.loading import get_branch, get_search
from transformer.analysis.steps.search_tree import SearchTree
from transformer.config import DecodeConfig
from transformer.decoding.beam import length_norm
from transformer.interventions import Intervention
from transformer.model.seq2seq import attention_layers
from transformer.setting import about
from transformer.views.steps.beam_search import BeamData, BeamResult, BeamTree, HypothesisAttention
from transformer.views.steps.subjects import Search

_NORMS = {"paper": "((5 + length) / 6)^α, the paper", "length": "length^α"}


@guard("The beam search")
def render_beam(context: Decoded, chosen: Choices) -> None:
    """Renders the settings, the results, the tree of the real search, and the attention of one hypothesis."""
    _render_settings(chosen)
    tree = _search(context, chosen, context.view.switches)
    baseline = _search(context, chosen, ()) if context.view.switches else None
    subject, nodes = Search(context.lab, context.inspection, tree, baseline), len(tree.nodes)
    index = chosen.node if 0 <= chosen.node < nodes else tree.index_of(tree.results[0])
    view = BeamTree(chosen=index)
    _render_results(context, chosen, get_data(subject, view))
    st.caption(
        "Each column holds a step's candidates, the most probable on top, each with its token and score. The best "
        "result's path is blue. Click a candidate to see where its hypothesis looked, and why it went on or not."
    )
    if chosen.node >= nodes:
        st.caption(f"The link names candidate {chosen.node:,}; this tree has {nodes:,}. The best one is shown.")
    data = exhibit(subject, view, draw=partial(_render_tree, view, f"beam-tree-{chosen.node}"), width=640)
    if data is not None:
        _render_hypothesis(context, subject, data, index)


def _render_settings(chosen: Choices) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        for name, low, high in (("beam", 1, MAX_BEAM), ("alpha", 0.0, MAX_ALPHA)):
            known, value = about(DecodeConfig, name), getattr(chosen, name)
            fields.slider(known.label, low, high, value, PAGE.take(name), key=f"beam-{name}", step=known.step)
        fields.box("Score = log-probability divided by", _NORMS, chosen.norm, PAGE.take("norm"), key="beam-norm")
        fields.toggle(
            about(DecodeConfig, "early_stopping").label,
            chosen.stop == "early",
            lambda on: change(stop="early" if on else "late"),
            key="beam-stop",
            help="On: stops when as many hypotheses have ended as the beam is wide. Off: stops when none can be "
            "overtaken.",
        )
    say(*PAGE.said("beam", "alpha", "norm", "stop", "node"))


def _search(context: PageContext, chosen: Choices, switches: Sequence[Intervention]) -> SearchTree:
    return get_search(
        context.lab,
        context.view.text,
        switches,
        size=chosen.beam,
        alpha=chosen.alpha,
        norm=chosen.norm,
        early_stopping=chosen.stop == "early",
    )


def _render_tree(view: BeamTree, key: str, data: BeamData) -> None:
    def take_clicked() -> None:
        points = st.session_state[key].selection.points
        if points:
            change(node=int(points[-1]["customdata"][0]))

    scrolling_figure(view.figure(data, dark=is_dark()), key=key, on_select=take_clicked, selection_mode="points")


def _render_hypothesis(context: PageContext, subject: Search, found: BeamData, index: int) -> None:
    """Renders one hypothesis: what became of it, and its cross-attention as the search recorded it."""
    if not attention_layers(context.lab.model):
        st.markdown(
            f"Step {found.step[index]}: {wording.plain(found.reasons[index])}. No attention to show: it has none."
        )
        return
    view = HypothesisAttention(candidate=index, layer=context.layer, head=context.view.head)
    data = get_data(subject, view)
    token_chips(data.tokens, label="the hypothesis", probabilities=data.probabilities.tolist(), key="hypothesis")
    st.markdown(f"Step {found.step[index]}: {wording.plain(found.reasons[index])}.")
    left, right = st.columns([3, 2], gap="medium")
    with left:
        st.caption("Its cross-attention")
        exhibit(subject, view, data=data, width=640)
    with right:
        choose_layer_or_average(context)
        say(*problems("layer", "head"))
        st.button("Step through it", key="walk-hypothesis", on_click=lambda: _step_through(context, data.ids))


def _render_results(context: PageContext, chosen: Choices, data: BeamData) -> None:
    greedy = loading.get_inspection(context.lab, context.view.text, context.view.switches).target_ids
    for place, result in enumerate(data.results, start=1):
        divisor, notes = length_norm(len(result.ids), chosen.alpha, chosen.norm), []
        if result.ids == greedy:
            notes.append("same as greedy")
        if not result.ended:
            notes.append("cut off")
        if data.baseline is not None:
            notes.append(_baseline_text(result, data.baseline))
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.button(
                "Step through",
                key=f"walk-result-{place}",
                help="Shows this hypothesis step by step, with its attention",
                on_click=lambda ids=result.ids: _step_through(context, ids),
            )
            score = (
                f"score {wording.number(result.score)} = {wording.number(result.log_prob)} nats ÷ "
                f"{wording.number(divisor)} ({len(result.ids)} tokens)"
            )
            text = wording.plain(result.text) or "*(nothing was written)*"
            st.markdown(f"**{place}.** {text}  \n:gray[{' · '.join([score, *notes])}]")


def _baseline_text(result: BeamResult, baseline: Sequence[BeamResult]) -> str:
    """Says where a result stood in the search without the switches."""
    found = next((place for place, other in enumerate(baseline, start=1) if other.ids == result.ids), None)
    if found is None:
        return "without the switches not among the results"
    return f"without the switches number {found}, score {wording.number(baseline[found - 1].score)}"


def _step_through(context: PageContext, ids: tuple[int, ...]) -> None:
    """Selects the branch of these ids: forces just the tokens that greedy decoding would not write there."""
    forced: Forced = ()
    while True:
        written = get_branch(context.lab, context.view.text, context.view.switches, forced).target_ids
        step = next((i for i, (a, b) in enumerate(zip(ids, written, strict=False)) if a != b), None)
        if step is None:
            break
        forced = (*forced, (step, ids[step]))
    take_branch(forced, forced[0][0] if forced else 0)
    change(look="steps")
