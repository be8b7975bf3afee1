"""The beam on the Decoder steps page: its settings, the tree of hypotheses, and its results to walk through."""

from collections.abc import Sequence

import streamlit as st

from pages.common import loading, wording
from pages.common.components.scrolling_figure import scrolling_figure
from pages.common.controls import Scene, say
from pages.common.pictures import is_dark
from pages.common.step_choices import HIGHEST_ALPHA, WIDEST_TREE, Choices, Road, change, said_of, take_road
from pages.common.step_proofs import prove_totals
from transformer.analysis.search_tree import Node, SearchTree
from transformer.beam import Hypothesis, length_norm
from transformer.figures.search_tree import Branch, tree_figure
from transformer.interventions import Intervention

_NORMS = {"paper": "((5 + length) / 6)^α, the paper", "length": "length^α"}


def choose_beam(chosen: Choices) -> None:
    """Size, norm and stopping rule; each acts at once."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        for name, label, low, high, step in (
            ("beam", "Beam size", 1, WIDEST_TREE, 1),
            ("alpha", "Strength of the length norm, α", 0.0, HIGHEST_ALPHA, 0.1),
        ):
            st.session_state[f"beam-{name}"] = getattr(chosen, name)
            st.slider(
                label,
                low,
                high,
                step=step,
                key=f"beam-{name}",
                on_change=lambda name=name: change(**{name: st.session_state[f"beam-{name}"]}),
            )
        st.session_state["beam-norm"] = chosen.norm
        st.selectbox(
            "Score = log-probability divided by",
            list(_NORMS),
            key="beam-norm",
            format_func=_NORMS.__getitem__,
            on_change=lambda: change(norm=st.session_state["beam-norm"]),
        )
        st.session_state["beam-stop"] = chosen.stop == "early"
        st.toggle(
            "Stop early",
            key="beam-stop",
            help="On: when as many hypotheses as the beam is wide have ended. Off: when none can be overtaken.",
            on_change=lambda: change(stop="early" if st.session_state["beam-stop"] else "late"),
        )
    say(*said_of("beam", "alpha", "norm", "stop"))


def show_beam(scene: Scene, chosen: Choices) -> None:
    """The tree of the real search and its results; under switches, with the best result without them."""
    tree = _search(scene, chosen, scene.view.switches)
    _show_results(scene, chosen, tree)
    if scene.view.switches:
        usual = _search(scene, chosen, ()).results[0]
        same = usual.ids == tree.results[0].ids
        st.caption(
            f"Without the switches the best result is {'the same' if same else wording.plain(_text(scene, usual))}, "
            f"score {wording.number(usual.score)}."
        )
    st.caption(
        "A column holds a step's candidates, the most probable on top, under each its token and score. The way of the "
        "best result is blue. Point at one to read what became of it and why."
    )
    branches = [
        Branch(
            node.step,
            scene.lab.tokenizer.piece(node.token),
            node.parent,
            node.log_prob,
            node.score,
            node.fate,
            node.on_best,
            _why(node, tree),
        )
        for node in tree.nodes
    ]
    scrolling_figure(tree_figure(branches, dark=is_dark()), key="beam-tree")
    prove_totals(scene, tree.results, key="proof-beam")


def _search(scene: Scene, chosen: Choices, switches: Sequence[Intervention]) -> SearchTree:
    return loading.get_search(
        scene.lab,
        scene.view.text,
        switches,
        size=chosen.beam,
        alpha=chosen.alpha,
        norm=chosen.norm,
        early_stopping=chosen.stop == "early",
    )


def _text(scene: Scene, result: Hypothesis) -> str:
    return scene.lab.tokenizer.decode(list(result.ids[:-1] if result.ended else result.ids))


def _show_results(scene: Scene, chosen: Choices, tree: SearchTree) -> None:
    greedy = loading.get_inspection(scene.lab, scene.view.text, scene.view.switches).target_ids
    for place, result in enumerate(tree.results, start=1):
        text = _text(scene, result)
        divisor = length_norm(len(result.ids), chosen.alpha, chosen.norm)
        notes = "".join((" · greedy's" * (result.ids == greedy), " · cut off" * (not result.ended)))
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.button(
                "Walk",
                key=f"walk-result-{place}",
                help="Step by step through this hypothesis, with its attention",
                on_click=lambda ids=result.ids: _walk(scene, ids),
            )
            st.markdown(
                f"**{place}.** {wording.plain(text) or '*(nothing was written)*'}  \n:gray[score "
                f"{wording.number(result.score)} = {wording.number(result.log_prob)} nats ÷ {wording.number(divisor)} "
                f"({len(result.ids)} tokens){notes}]"
            )


def _walk(scene: Scene, ids: tuple[int, ...]) -> None:
    """Takes the road to these ids: forces just the tokens that greedy would not write there."""
    road: Road = ()
    while True:
        written = loading.get_road(scene.lab, scene.view.text, scene.view.switches, road).target_ids
        step = next((i for i, (a, b) in enumerate(zip(ids, written, strict=False)) if a != b), None)
        if step is None:
            break
        road = (*road, (step, ids[step]))
    take_road(road, road[0][0] if road else 0)
    change(look="steps")


def _why(node: Node, tree: SearchTree) -> str:
    match node.fate:
        case "goes on":
            return f"number {node.rank} of this step's candidates: goes on"
        case "ended":
            return f"number {node.rank} of this step's candidates: ended, and was kept as complete"
        case "pruned":
            return f"number {node.rank} of this step's candidates: pruned, as the beam has room for {tree.size}"
        case "left over":
            return "still in the beam when the search was over"
