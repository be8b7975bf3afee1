"""Decoder steps: every control turned, every number from the decoding, every nonsense answered in a sentence."""

import json
from base64 import b64decode

import numpy as np
import pytest
from page_exports import with_menus
from page_models import CLASSIC, PRONOUNS, REVERSE, checked, open_page, texts

from pages.shared.components.frontend import unpacked_arrays
from pages.shared.wording import number
from pages.steps import samples
from pages.steps.choices import Choices
from transformer.analysis.steps.candidates import candidates, rank
from transformer.analysis.steps.samples import Sampling, draw_samples
from transformer.analysis.steps.search_tree import search_tree
from transformer.interventions import AblateHeads
from transformer.lab import load

pytestmark = pytest.mark.usefixtures("untrained_models")


def steps(**parameters):
    return open_page("steps", **{"model": REVERSE, "text": "a b c d", **parameters})


def figures(at):
    return [json.loads(chart.proto.spec) for chart in at.get("plotly_chart")]


def numbers(value):
    """A list of a figure, however it is sent."""
    return np.frombuffer(b64decode(value["bdata"]), dtype=value["dtype"]) if isinstance(value, dict) else value


def matrix(value):
    """A matrix of a figure, however it is sent."""
    if not isinstance(value, dict):
        return np.array(value, dtype=float)
    return numbers(value).reshape([int(n) for n in value["shape"].split(",")])


def another(seen, step, place=3):
    """A token that could have been written at a step."""
    return next(t for t in candidates(seen.log_probs[step], 9).ids[place:] if t not in (0, 1, 2, seen.target_ids[step]))


def forced_by(at) -> dict[int, int]:
    """The tokens that the page's link forces, by step."""
    pairs = (pair.split(":") for pair in at.query_params["roads"].split(","))
    return {int(step): int(token) for step, token in pairs}


def test_the_first_step_is_shown_with_the_numbers_of_the_decoding():
    at, seen = steps(), load(REVERSE).inspect("a b c d")
    found = candidates(seen.log_probs[0], 10)
    bars, cross, own = figures(at)
    assert bars["data"][0]["text"][0].startswith(f"{found.probabilities[0]:#.3g}")
    assert f"Entropy {number(found.entropy)} nats" in texts(at)
    word = seen.target_tokens[0].strip("▁")
    assert f"*{word}* was written: probability {number(float(seen.probabilities[0]))}" in texts(at)
    assert "1 position went through the 1 decoder layers and left 64 numbers" in texts(at)
    assert "those of 0 earlier positions (0 numbers)" in texts(at)
    assert cross["layout"]["height"] > own["layout"]["height"]


def test_the_stepper_walks_and_the_cache_is_counted():
    at = steps()
    at = checked(at.slider(key="step").set_value(4).run())
    assert at.query_params["step"] == "4"
    assert "those of 4 earlier positions (256 numbers) were reused" in texts(at)
    at = checked(at.button(key="step-on").click().run())
    assert at.slider(key="step").value == 5
    at = checked(at.button(key="step-back").click().run())
    at = checked(at.button(key="step-back").click().run())
    assert at.slider(key="step").value == 3


def test_another_token_is_forced_and_both_branches_are_shown():
    seen = load(REVERSE).inspect("a b c d")
    token = another(seen, 2)
    at = steps(step="2")
    at = checked(at.selectbox(key="force").set_value(token).run())
    assert at.query_params["roads"] == f"2:{token}" and at.query_params["road"] == "1"
    branch = load(REVERSE).inspect("a b c d", forced={2: token})
    assert branch.target_ids[:3] == (*seen.target_ids[:2], token)
    p = float(np.exp(branch.log_probs[2, token]))
    assert f"was forced here: rank {rank(branch.log_probs[2], token)}, probability {number(p)}" in texts(at)
    assert "branch 1: log-probability" in texts(at)
    at = checked(at.button_group(key="select-branch").set_value(0).run())
    assert "road" not in at.query_params and "was written" in texts(at)
    at = checked(at.button(key="discard").click().run())
    assert "roads" not in at.query_params


def test_a_branch_may_leave_a_branch():
    seen = load(REVERSE).inspect("a b c d")
    first = another(seen, 1)
    at = steps(roads=f"1:{first}", road="1", step="3")
    branch = load(REVERSE).inspect("a b c d", forced={1: first})
    second = another(branch, 3)
    at = checked(at.selectbox(key="force").set_value(second).run())
    assert at.query_params["roads"] == f"1:{first};1:{first},3:{second}"
    assert at.query_params["road"] == "2"


@pytest.mark.parametrize(("roads_as", "badge"), [("lines", "lines"), ("tree", "tree"), ("pair", "pair")])
def test_the_badge_of_the_branches_checks_every_one(roads_as, badge):
    at = steps(roads="1:5;2:7", road="1", roads_as=roads_as)
    said = texts(with_menus(at, f"branch-{badge}-proof"))
    n = 2 if roads_as == "pair" else 3
    assert f"**{8 * n} checks, run just now: all hold.**" in said and "these tokens were forced" in said


def test_a_beginning_is_forced():
    at = steps()
    at = checked(at.text_input(key="begin").set_value("d c").run())
    tokenizer = load(REVERSE).tokenizer
    forced = tokenizer.encode("d c")
    assert at.query_params["roads"] == ",".join(f"{i}:{token}" for i, token in enumerate(forced))
    assert at.slider(key="step").value == 2


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("force", 0, "cannot be written"),
        ("begin", "zebra", "never seen in training"),
        ("begin", "a " * 25, "These words have 25 tokens"),
        ("reference", "zebra", "This reference cannot be followed"),
    ],
)
def test_what_cannot_be_is_said_at_the_field(key, value, sentence):
    at = steps()
    field = at.selectbox(key=key) if key == "force" else at.text_input(key=key)
    at = checked(field.set_value(value).run())
    assert sentence in texts(at).replace("\\", "")
    at = checked(at.slider(key="step").set_value(1).run())
    if key != "reference":
        assert sentence not in texts(at).replace("\\", "")


@pytest.mark.parametrize("roads", ["0:99999", "400:5", "x", "1:2:3", ";;;"])
def test_a_link_with_branches_that_cannot_be_written_still_opens(roads):
    at = steps(roads=roads, road="7", step="9999")
    assert "log-probability" not in texts(at)
    if roads in ("0:99999", "400:5"):
        assert "A branch is left out" in texts(at)


def test_the_reference_token_is_ranked_while_the_branch_follows_it():
    seen = load(REVERSE).inspect("a b c d")
    tokenizer = load(REVERSE).tokenizer
    wanted = tokenizer.encode("d c b a")[0]
    at = checked(steps().text_input(key="reference").set_value("d c b a").run())
    assert f"rank {rank(seen.log_probs[0], wanted)} of {tokenizer.vocab_size}" in texts(at)
    at = checked(at.slider(key="step").set_value(5).run())
    assert "left the reference at step" in texts(at)


def test_the_log_scale_the_head_and_the_switches_act_on_the_pictures():
    at = steps(step="1")
    assert figures(at)[0]["layout"]["xaxis"].get("type") != "log"
    at = checked(at.toggle(key="scale").set_value(True).run())
    assert figures(at)[0]["layout"]["xaxis"]["type"] == "log" and at.query_params["scale"] == "log"
    average = figures(at)[1]["data"][0]["customdata"]
    at = checked(at.selectbox(key="choose-head").set_value(1).run())
    assert figures(at)[1]["data"][0]["customdata"] != average
    at = steps(step="1", switch="mask:causal")
    assert "**Cache**: not used" in texts(at) and "2 positions went through" in texts(at)
    assert all(len(figure["data"]) == 2 for figure in figures(at)), "marks for all that is without the switches"
    at = steps(switch="off:decoder.0.cross:1", head="1")
    lab = load(REVERSE)
    branch = lab.inspect("a b c d", [AblateHeads("decoder", 0, "cross", (1,))])
    baseline = lab.attention_on(branch, ())["cross"].weights[0, 1, 0]
    np.testing.assert_allclose(numbers(figures(at)[1]["data"][1]["x"]), baseline, atol=1e-6)


def test_another_sentence_begins_with_its_own_output():
    at = steps(step="3", roads="1:5", road="1")
    at = checked(at.text_input(key="choose-text").set_value("d a").run())
    assert "roads" not in at.query_params and at.slider(key="step").value == 0


def test_the_gold_translation_is_the_reference_of_the_pronoun_corpus():
    at = open_page("steps", model=PRONOUNS, text=CLASSIC)
    assert "The reference goes on with" in texts(at)


def test_the_beam_is_a_tree_with_its_results():
    at = steps(look="beam")
    lab = load(REVERSE)
    tree = search_tree(lab.model, lab.inspect("a b c d").source_ids, size=4, alpha=0.6, norm="paper")
    figure, attention = figures(at)
    assert sum(len(trace["x"]) for trace in figure["data"] if "name" in trace) == len(tree.nodes)
    best = tree.attention(tree.index_of(tree.results[0]))[0].mean(axis=0)
    np.testing.assert_allclose(matrix(attention["data"][0]["z"]), best, atol=1e-6)
    assert f"score {number(tree.results[0].score)} = {number(tree.results[0].log_prob)} nats" in texts(at)
    at = checked(at.slider(key="beam-beam").set_value(2).run())
    assert len(figures(at)[0]["data"]) and "**3.**" not in texts(at) and at.query_params["beam"] == "2"
    at = checked(at.slider(key="beam-alpha").set_value(0.0).run())
    at = checked(at.selectbox(key="beam-norm").set_value("length").run())
    at = checked(at.toggle(key="beam-stop").set_value(True).run())
    wanted = search_tree(
        lab.model, lab.inspect("a b c d").source_ids, size=2, alpha=0, norm="length", early_stopping=True
    )
    assert f"score {number(wanted.results[0].log_prob)} =" in texts(at)
    assert (at.query_params["alpha"], at.query_params["norm"], at.query_params["stop"]) == ("0", "length", "early")


def test_a_candidate_of_the_beam_shows_why_it_was_pruned_and_where_it_looked():
    lab = load(REVERSE)
    tree = search_tree(lab.model, lab.inspect("a b c d").source_ids, size=4, alpha=0.6, norm="paper")
    index = next(i for i, n in enumerate(tree.nodes) if n.fate == "pruned" and n.token not in (1, 2) and n.step > 0)
    node, kept = tree.nodes[index], tree.kept_last(tree.nodes[index].step)
    assert kept is not None
    at = steps(look="beam", node=str(index), head="1")
    said = texts(at).replace("\\", "")
    assert f"number {node.rank} of this step's candidates: pruned, as the beam has room for 4" in said
    assert f"{kept.log_prob - node.log_prob:.3g} below that of the last one that went on" in said
    np.testing.assert_allclose(matrix(figures(at)[1]["data"][0]["z"]), tree.attention(index)[0, 1], atol=1e-6)
    at = checked(at.button(key="walk-hypothesis").click().run())
    forced = forced_by(at)
    ids = tuple(each.token for each in tree.path(index))
    assert lab.inspect("a b c d", forced=forced).target_ids[: len(ids)] == ids


def test_results_say_where_they_stood_without_the_switches():
    at = steps(look="beam", switch="off:decoder.0.cross:1")
    assert "without the switches" in texts(at)


def test_a_result_of_the_beam_is_stepped_through_as_a_branch():
    at = checked(steps(look="beam").button(key="walk-result-2").click().run())
    lab = load(REVERSE)
    tree = search_tree(lab.model, lab.inspect("a b c d").source_ids, size=4, alpha=0.6, norm="paper")
    assert "look" not in at.query_params
    forced = forced_by(at)
    assert lab.inspect("a b c d", forced=forced).target_ids[: len(tree.results[1].ids)] == tree.results[1].ids


def test_samples_follow_their_settings_and_are_counted():
    at = steps(look="samples", step="1")
    lab = load(REVERSE)
    seen = lab.inspect("a b c d")
    found = draw_samples(lab.model, seen.source_ids, (), Sampling(), n=100, seed=0)
    assert f"{len(found)} different output" in texts(at) and f"**{found[0].count} ×**" in texts(at)
    at = steps(look="samples", step="1", top_k="1")
    assert "**100 ×**" in texts(at) and "same as greedy" in texts(at)
    settings = {"temperature": 2.0, "top_k": 0, "top_p": 0.9, "min_p": 0.05}
    at = steps(look="samples", step="1", **{name: f"{value:g}" for name, value in settings.items()})
    at = checked(at.slider(key="draw-seed").set_value(3).run())
    assert float(at.query_params["seed"]) == 3
    found = draw_samples(lab.model, seen.source_ids, (), Sampling(**settings), n=100, seed=3)
    assert f"with seed 3: {len(found)} different output" in texts(at)
    assert {name: float(at.query_params.get(name, 0)) for name in settings} == settings


def distribution(at):
    """Returns the header and the arrays from which the bars of a step's distribution are drawn."""
    (element,) = (element for element in at.get("bidi_component") if element.proto.bytes)
    return unpacked_arrays(element.proto.bytes)


def test_the_bars_have_the_steps_whole_distribution_and_the_settings():
    settings = {"temperature": 0.7, "top_k": 5, "top_p": 0.9, "min_p": 0.1}
    at = steps(look="samples", step="1", **{name: f"{value:g}" for name, value in settings.items()})
    lab = load(REVERSE)
    seen = lab.inspect("a b c d")
    header, (log_probs,) = distribution(at)
    assert np.array_equal(log_probs, seen.log_probs[1]) and log_probs.dtype == np.float32
    assert tuple(header["ids"]) == candidates(seen.log_probs[1], 10).ids
    assert header["settings"] == settings and header["never"] == lab.model.config.pad_id
    switched = steps(look="samples", switch="off:decoder.0.cross:1")
    _, (changed, baseline) = distribution(switched)
    branch = lab.inspect("a b c d", [AblateHeads("decoder", 0, "cross", (1,))])
    assert np.array_equal(changed, branch.log_probs[0])
    assert np.array_equal(baseline, lab.without_switches(branch)[0])


@pytest.mark.parametrize(
    "sent", [{"temperature": float("nan"), "top_k": "x", "top_p": -3, "min_p": None}, {"top_k": 10**12}, {}], ids=str
)
def test_whatever_the_sliders_send_ends_within_their_limits(sent, monkeypatch):
    taken = {}
    monkeypatch.setattr(samples, "change", taken.update)
    samples._take(sent)
    draw = Sampling(**taken)
    assert 0.1 <= draw.temperature <= 5 and 0 <= draw.top_k <= 50
    assert 0.05 <= draw.top_p <= 1 and 0 <= draw.min_p <= 1


def test_choices_are_read_back_from_their_parameters():
    choices = Choices(step=3, branch=2, branches=(((1, 5),), ((1, 5), (3, 7))), scale="log", reference="c b a")
    beam = Choices(look="beam", beam=7, alpha=1.2, norm="length", stop="early")
    drawn = Choices(look="samples", temperature=0.7, top_k=5, top_p=0.9, min_p=0.1, seed=4)
    for chosen in (choices, beam, drawn):
        assert Choices.read(chosen.parameters()) == (chosen, ())
    assert Choices.read({"step": "-1", "road": "99", "scale": "x", "alpha": "nan"})[0] == Choices()
    assert Choices.read({"beam": "0"})[0].beam == 1
    assert Choices.read({"beam": "9999", "alpha": "99"})[0] == Choices(beam=10, alpha=2.0)


@pytest.mark.parametrize(
    ("look", "figure", "says"),
    [
        ("beam", "beam-tree", "A beam search keeps several beginnings"),
        ("samples", "sampling-distribution", "each step draws one at random"),
    ],
)
def test_beams_and_samples_are_explained(look, figure, says):
    at = with_menus(steps(look=look), f"{figure}-explained")
    assert says in texts(at) and at.latex


def test_samples_say_what_label_smoothing_does_to_them():
    at = steps(model=PRONOUNS, text=CLASSIC, look="samples")
    assert "lower the temperature or top-p" in texts(at) and "Trained with label smoothing 0.1" in texts(at)
    without = steps(look="samples")
    smoothing = load(REVERSE).checkpoint.settings.train.label_smoothing
    assert ("lower the temperature or top-p" in texts(without)) == bool(smoothing)
