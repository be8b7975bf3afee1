"""Outputs as a tree: every output is a path, what is shared stands once, and the pictures hold the numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.analysis.steps.branches import prefix_tree
from transformer.analysis.steps.output_checks import check_changes
from transformer.figures.steps.branches import TreeToken, branches_figure, two_branches_figure
from transformer.inspection.token_alignment import edit_marks

OUTPUTS = [(4, 5, 6, 2), (4, 7, 2), (9, 2), (4, 7, 2, 8), (4, 5, 6, 2)]


def test_every_output_is_a_path_and_every_prefix_one_node():
    tree = prefix_tree(OUTPUTS)
    for index, ids in enumerate(OUTPUTS):
        path = [node for node in tree if index in node.outputs]
        assert tuple(node.token for node in path) == ids
        assert [tree[node.parent] for node in path[1:]] == path[:-1] and path[0].parent is None
    assert len(tree) == len({ids[: n + 1] for ids in OUTPUTS for n in range(len(ids))})
    assert len({(node.step, node.row) for node in tree}) == len(tree)
    assert {node.row for node in tree if 0 in node.outputs} == {0}


def test_weights_add_up_where_outputs_meet():
    tree = prefix_tree(OUTPUTS, [50, 20, 10, 15, 5])
    assert [node.weight for node in tree if node.step == 0] == [90, 10]
    assert sum(node.weight for node in tree if node.step == 1) == 100
    with pytest.raises(ValueError, match="5 outputs need as many weights, not 1"):
        prefix_tree(OUTPUTS, [1.0])


@given(st.text(alphabet="abc", max_size=7), st.text(alphabet="abc", min_size=1, max_size=7))
def test_marks_of_changed_tokens_hold_and_any_other_mark_is_noticed(before, after):
    changed = np.isin(np.arange(len(after)), sorted(edit_marks(before, after)[1]))
    assert check_changes(before, after, changed).holds
    for place in range(len(after)):
        wrong = changed.copy()
        wrong[place] = not wrong[place]
        assert not check_changes(before, after, wrong).holds


def test_a_token_that_stands_elsewhere_in_the_other_output_may_be_marked():
    """Three substitutions change "xxa" into "ayy"; to keep the a takes two deletions and two insertions."""
    assert check_changes("xxa", "ayy", np.array([True, True, True])).holds
    assert not check_changes("xxa", "ayy", np.array([False, True, True])).holds


@pytest.mark.parametrize("dark", [False, True])
def test_the_tree_is_drawn_with_its_notes(dark):
    nodes = [
        TreeToken(b.step, "<b>", b.row, b.parent, f"{b.weight:g} ×", 0.5, b.row == 0, "drawn often")
        for b in prefix_tree(OUTPUTS)
    ]
    fig = branches_figure(nodes, dark=dark)
    points = next(trace for trace in fig.data if trace.mode == "markers+text")
    assert len(points.x) == len(nodes) and "&lt;b&gt;" in points.text[0] and "4 ×" in points.text[0]
    lines = [trace for trace in fig.data if trace.mode == "lines"]
    assert len(lines) == sum(node.parent is not None for node in nodes)
    for line, node in zip(lines, (node for node in nodes if node.parent is not None), strict=True):
        above = nodes[node.parent]
        *way, gap = zip(line.x, line.y, strict=True)
        ends = (*way[0], *way[-1])
        assert gap == (None, None), "the pen is lifted before the next line"
        assert ends == (above.step, above.row, node.step, node.row)


def test_two_branches_show_both_probabilities_and_both_tokens():
    fig = two_branches_figure(
        ["output", "branch 1"], [["a", "b", "c"], ["a", "<i>"]], [np.array([1, 0.5, 0.2]), np.ones(2)]
    )
    assert list(fig.data[0].y) == [1, 0.5, 0.2] and len(fig.data[1].y) == 2
    assert fig.layout.xaxis.ticktext[0] == "a" and fig.layout.xaxis.ticktext[1] == "b<br>&lt;i&gt;"
