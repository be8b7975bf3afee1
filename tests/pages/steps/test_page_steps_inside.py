"""Decoder steps, its other looks: the logit lens, a reference, branches as a tree, play, links that ask too much."""

import json
import threading

import numpy as np
import pytest
from page_exports import with_menus
from page_models import REVERSE, checked, open_page, texts

import pages.steps.stepper as stepper
from pages.shared import waiting
from pages.shared.wording import number
from pages.steps import loading
from pages.steps.choices import Choices
from transformer.analysis.steps.branches import prefix_tree
from transformer.analysis.steps.candidates import rank
from transformer.analysis.steps.exposure_bias import reference_losses
from transformer.analysis.steps.logit_lens import logit_lens
from transformer.interventions import AblateHeads
from transformer.lab import load

pytestmark = pytest.mark.usefixtures("untrained_models")


def steps(**parameters):
    return open_page("steps", **{"model": REVERSE, "text": "a b c d", **parameters})


def figures(at):
    return [json.loads(chart.proto.spec) for chart in at.get("plotly_chart")]


def lens_of(step, switches=()):
    lab = load(REVERSE)
    seen = lab.inspect("a b c d", switches)
    return lab, seen, logit_lens(lab.model, seen.source_ids, seen.target_ids, step, switches)


def drawn(at, key):
    return key in [button.key for button in at.button]


def test_inside_a_step_stand_the_lens_and_a_sum_of_parts():
    at, (lab, seen, found) = steps(look="inside", step="2"), lens_of(2)
    lens, bars = figures(at)
    assert [note["text"] for note in lens["layout"]["annotations"]] and lens["layout"]["yaxis"]["ticktext"] == [
        "before layer 0",
        "after layer 0",
    ]
    against = at.selectbox(key="against").value
    difference = found.difference(seen.target_ids[2], against)
    assert f"**{number(difference, signed=True)}**" in texts(at)
    parts = found.contributions(lab.model, seen.target_ids[2], against)
    assert f"{len(parts)} parts sum to {number(sum(v for _, v in parts), signed=True)}" in texts(at)
    assert bars["layout"]["yaxis"]["ticktext"][-1] == "together"
    assert "Only the last norm was trained" in texts(with_menus(at, "logit-lens-depths-explained"))
    other = next(token for token in at.selectbox(key="against").options if token != lab.tokenizer.piece(against))
    at = checked(at.selectbox(key="against").select(other).run())
    chosen = at.selectbox(key="against").value
    assert at.query_params["against"] == str(chosen) != str(against)
    assert f"**{number(found.difference(seen.target_ids[2], chosen), signed=True)}**" in texts(at)


def test_inside_compares_before_and_after_under_switches():
    spec = AblateHeads("decoder", 0, "cross", (1,))
    at, (lab, seen, found) = steps(look="inside", switch=str(spec)), lens_of(0, (spec,))
    lens, bars = figures(at)
    assert len(bars["data"]) == 2 and "Marks: without the switches" in texts(at)
    baseline = logit_lens(lab.model, seen.source_ids, seen.target_ids, 0)
    assert found.log_probs.shape[0] == 2 and lens["layout"]["xaxis"]["ticktext"][1] == "without switches"
    ranks = [f"{rank(row, seen.target_ids[0])} " for row in baseline.log_probs]
    assert all(text.startswith(rank) for text, rank in zip(lens["data"][2]["text"], ranks, strict=True))


def test_a_reference_is_read_twice_and_the_divergence_is_said():
    at = steps(look="reference")
    at = checked(at.text_input(key="reference").set_value("d c b a").run())
    lab = load(REVERSE)
    ids = [*lab.tokenizer.encode("d c b a"), 2]
    seen = reference_losses(lab.model, lab.inspect("a b c d").source_ids, ids)
    (losses,) = figures(at)
    assert len(losses["data"]) == 2 and f"{number(float(seen.forced_loss.mean()))} nats per token" in texts(at)
    expected = "writes this very reference" if seen.divergence is None else f"at position {seen.divergence}"
    assert expected in texts(at) or "The output ends before" in texts(at)
    at = checked(at.text_input(key="reference").set_value("d 猫").run())
    assert "This reference cannot be followed" in texts(at) and at.text_input(key="reference").value == "d 猫"
    at = checked(at.text_input(key="reference").set_value("a " * 30).run())
    assert "the model writes at most 20: shorten it" in texts(at).replace("\\", "")


def test_exposure_is_measured_when_asked_for_and_remembered():
    at = steps(look="reference")
    at = checked(at.button(key="measure-exposure").click().run())
    for _ in range(60):  # each run waits a second for it
        if not drawn(at, "cancel-exposure"):
            break
        at = checked(at.run())
    assert "Largest at position" in texts(at) and len(figures(at)) == 1
    assert not drawn(at, "measure-exposure")


def test_a_visitor_cancels_the_measurement_for_nobody_else(monkeypatch):
    begun, going_on = [], threading.Event()

    def slow(*_, tell):
        begun.append(tell)
        while not going_on.wait(0.01):
            tell(0.5)
        raise ValueError("no more to measure")

    monkeypatch.setattr(loading, "exposure_bias", slow)
    monkeypatch.setattr(waiting, "FIRST_WAIT_S", 0.0)
    first, second = (steps(look="reference", switch="off:encoder.0.self:1") for _ in range(2))
    first = checked(first.button(key="measure-exposure").click().run())
    second = checked(second.run())
    assert drawn(first, "cancel-exposure") and drawn(second, "measure-exposure")
    second = checked(second.button(key="measure-exposure").click().run())
    second = checked(second.button(key="cancel-exposure").click().run())
    first = checked(first.run())
    assert drawn(first, "cancel-exposure") and drawn(second, "measure-exposure") and len(begun) == 1
    first = checked(first.button(key="cancel-exposure").click().run())
    assert drawn(first, "measure-exposure") and len(begun) == 1


def test_branches_are_drawn_as_a_tree_or_two_beside_each_other():
    lab = load(REVERSE)
    at = steps(roads="1:5;2:6", road="1", roads_as="tree")
    branches = [
        lab.inspect("a b c d").target_ids,
        *(lab.inspect("a b c d", forced=f).target_ids for f in ({1: 5}, {2: 6})),
    ]
    points = next(t for t in figures(at)[0]["data"] if t.get("mode") == "markers+text")
    assert len(points["x"]) == len(prefix_tree(branches))
    at = checked(at.segmented_control(key="branches-as").set_value("pair").run())
    pair = figures(at)[0]
    assert [trace["name"].split(":")[0] for trace in pair["data"]] == ["branch 1", "output"]
    at = checked(at.selectbox(key="beside").set_value(2).run())
    assert at.query_params["beside"] == "2" and figures(at)[0]["data"][1]["name"].startswith("branch 2")
    at = checked(at.segmented_control(key="branches-as").set_value("lines").run())
    assert "roads_as" not in at.query_params


def test_play_walks_to_the_last_step_and_stops(monkeypatch):
    monkeypatch.setattr(stepper, "PLAY_S", 1e-6)
    at = steps()
    at = checked(at.button(key="step-play").click().run())
    last = len(load(REVERSE).inspect("a b c d").target_ids) - 1
    assert at.slider(key="step").value == last and at.button(key="step-play").label == "Play"


def test_the_beginning_can_be_edited_from_what_stands_there():
    at, lab = steps(step="2"), load(REVERSE)
    written = lab.inspect("a b c d").target_ids
    assert at.text_input(key="begin").value == lab.tokenizer.decode(written[:2])
    at = checked(at.text_input(key="begin").set_value("d 猫").run())
    assert "These words cannot be forced" in texts(at) and at.text_input(key="begin").value == "d 猫"


def test_samples_stand_as_a_tree_with_their_counts():
    tree = figures(steps(look="samples"))[-1]
    points = next(trace for trace in tree["data"] if trace.get("mode") == "markers+text")
    assert any(" ×" in text for text in points["text"])


@pytest.mark.parametrize("look", ["beam", "samples", "reference"])
def test_the_other_looks_compare_before_and_after_too(look):
    at = steps(look=look, switch="off:decoder.0.cross:1", reference="d c b a")
    assert "ithout the switches" in texts(at) or "ithout them" in texts(at)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        (dict(look="beam", beam="0"), "The link says beam “0”, which must be a whole number from 1 to 10; 1 is used"),
        (
            dict(look="beam", beam="10000"),
            "The link says beam “10000”, which must be a whole number from 1 to 10; 10 is used",
        ),
        (dict(look="beam", alpha="nan"), "The link says alpha “nan”, which must lie between 0 and 2; 0.6 is used"),
        (dict(look="samples", temperature="0"), "The link says temperature “0”, which must lie between 0.1 and 5"),
        (dict(look="samples", temperature="-3"), "temperature “-3”, which must lie between 0.1 and 5; 0.1 is used"),
        (dict(look="samples", top_p="x"), "The link says top_p “x”, which must lie between 0.05 and 1; 1 is used"),
        (dict(look="film"), "The link says look “film”, which must be one of: steps, inside, beam, samples, reference"),
        (dict(step="99"), "There is no step 99: this output has steps 0 to"),
        (dict(step="-1"), "The link says step “-1”, which must be a whole number from 0"),
        (dict(roads="x:y"), "The link names a branch that cannot be read"),
        (dict(roads="1:5", road="9"), "There is no branch 9: there are branches 0 to 1; 0 is used."),
        (dict(look="inside", against="x"), "The link says against “x”, which must be a whole number"),
        (dict(look="beam", node="-3"), "The link says node “-3”, which must be a whole number"),
        (dict(roads="1:999999"), "the forced token 999999 is not in the vocabulary"),
        (dict(look="inside", against="999999"), "which a vocabulary of"),
        (dict(look="beam", node="999999"), "The link names candidate 999,999; this tree has"),
    ],
    ids=str,
)
def test_what_a_link_asks_too_much_is_said_at_the_field(parameters, sentence):
    assert sentence in texts(steps(**parameters)).replace("\\", "")


def test_choices_come_back_from_their_parameters():
    choices = Choices(look="inside", against=7, branches_as="pair", branches=(((1, 5),), ((2, 6),)), branch=1, beside=2)
    assert Choices.read(choices.parameters()) == (choices, ())
    assert Choices.read(Choices(look="beam", node=5).parameters())[0].node == 5
    assert Choices.read({"against": "x", "beside": "9", "roads_as": "ring", "node": "-3"})[0] == Choices()
    assert np.isfinite(Choices.read({"alpha": "-1"})[0].alpha)
