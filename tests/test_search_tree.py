"""The tree of a beam search: every path is a hypothesis of the search, every score its own."""

import pytest
from random_models import half_trained_model, reversals

from transformer.analysis.search_tree import search_tree
from transformer.beam import length_norm
from transformer.figures.search_tree import Branch, tree_figure


@pytest.fixture(scope="module")
def tree():
    source = next(row for row in reversals(16)[0] if int((row != 0).sum()) > 5)
    return search_tree(half_trained_model(), source[source != 0].tolist(), size=3, alpha=0.6, norm="paper")


def path(tree, node):
    """The tokens from the first step to this node."""
    before = () if node.parent is None else path(tree, tree.nodes[node.parent])
    return (*before, node.token)


def test_every_result_is_a_path_with_its_score(tree):
    paths = {path(tree, node): node for node in tree.nodes}
    assert len(paths) == len(tree.nodes) and len(tree.results) == 3
    for result in tree.results:
        node = paths[result.ids]
        assert node.fate == ("ended" if result.ended else "left over")
        assert (node.log_prob, node.score) == (pytest.approx(result.log_prob), pytest.approx(result.score))
        assert node.score == pytest.approx(node.log_prob / length_norm(len(result.ids), 0.6, "paper"))


def test_only_what_goes_on_is_continued_and_never_more_than_the_beam_is_wide(tree):
    for step in {node.step for node in tree.nodes}:
        goes_on = [i for i, node in enumerate(tree.nodes) if node.step == step and node.fate == "goes on"]
        parents = {node.parent for node in tree.nodes if node.step == step + 1}
        assert len(goes_on) <= 3 and parents <= set(goes_on)


def test_the_best_way_is_marked_from_the_first_step_to_the_last(tree):
    marked = [node for node in tree.nodes if node.on_best]
    assert [node.token for node in marked] == list(tree.results[0].ids)
    assert [node.step for node in marked] == list(range(len(tree.results[0].ids)))


@pytest.mark.parametrize("dark", [False, True])
def test_the_figure_has_a_point_for_every_node_and_a_line_for_every_continuation(tree, dark):
    branches = [
        Branch(n.step, "<b>", n.parent, n.log_prob, n.score, n.fate, n.on_best, f"rank {n.rank}") for n in tree.nodes
    ]
    fig = tree_figure(branches, dark=dark)
    points = [trace for trace in fig.data if trace.mode == "markers+text"]
    assert sum(len(trace.x) for trace in points) == len(tree.nodes)
    assert len({(x, y) for trace in points for x, y in zip(trace.x, trace.y, strict=True)}) == len(tree.nodes)
    lines = [trace for trace in fig.data if trace.mode == "lines"]
    assert sum(len(trace.x) for trace in lines) == 3 * sum(node.parent is not None for node in tree.nodes)
    assert "&lt;b&gt;" in points[0].text[0] and "log-probability" in points[0].customdata[0]
