"""The tree of a beam search: every path is a hypothesis of the search, every score its own."""

import pytest
import torch
from random_models import half_trained_model, reversals

from transformer.analysis.steps.search_tree import search_tree
from transformer.decoding.beam import length_norm
from transformer.decoding.greedy import teacher_forced_log_probs
from transformer.figures.steps.search_tree import Candidate, search_figure
from transformer.model.taps import Recorder


@pytest.fixture(scope="module")
def source():
    row = next(row for row in reversals(16)[0] if int((row != 0).sum()) > 5)
    return row[row != 0].tolist()


@pytest.fixture(scope="module")
def tree(source):
    return search_tree(half_trained_model(), source, size=3, alpha=0.6, norm="paper")


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
    candidates = [
        Candidate(n.step, "<b>", n.parent, n.log_prob, n.score, n.fate, n.on_best, f"rank {n.rank}") for n in tree.nodes
    ]
    fig = search_figure(candidates, dark=dark)
    points = [trace for trace in fig.data if trace.mode == "markers+text"]
    assert sum(len(trace.x) for trace in points) == len(tree.nodes)
    assert len({(x, y) for trace in points for x, y in zip(trace.x, trace.y, strict=True)}) == len(tree.nodes)
    lines = [trace for trace in fig.data if trace.mode == "lines"]
    assert sum(list(t.x).count(None) for t in lines) == sum(node.parent is not None for node in tree.nodes)
    assert "&lt;b&gt;" in points[0].text[0] and "log-probability" in points[0].customdata[0][1]
    places = {index: (x, y) for t in points for (index, _), x, y in zip(t.customdata, t.x, t.y, strict=True)}
    assert sorted(places) == list(range(len(tree.nodes)))
    assert all(places[index][0] == node.step for index, node in enumerate(tree.nodes))


def test_attention_of_every_candidate_is_that_of_reading_its_words_again(tree, within, source):
    model = half_trained_model()
    for index in (*range(0, len(tree.nodes), 3), *map(tree.index_of, tree.results)):
        ids = [node.token for node in tree.path(index)]
        recorder = Recorder()
        teacher_forced_log_probs(model, torch.tensor([source]), torch.tensor([ids]), tap=recorder)
        found = tree.attention(index)
        for layer in range(model.config.n_decoder_layers):
            whole = recorder.recording[f"decoder.{layer}.cross.weights"][0]
            within(torch.from_numpy(found[layer]), whole, 1e-5)


def test_places_among_the_results_are_known(tree):
    for place, result in enumerate(tree.results, start=1):
        assert tree.place_of(tree.index_of(result)) == place
    pruned = next(i for i, node in enumerate(tree.nodes) if node.fate == "pruned")
    assert tree.place_of(pruned) is None
    assert tree.kept_last(0).log_prob >= max(n.log_prob for n in tree.nodes if n.step == 0 and n.fate == "pruned")
