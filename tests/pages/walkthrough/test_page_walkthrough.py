"""Walkthrough: every step of every kind of model opens, every control is turned, nonsense is answered."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from page_exports import with_menus
from page_models import CLASSIC, PRONOUNS, checked, open_page, save_untrained, texts
from random_models import randomise
from tiny_runs import tokenizer

from pages.shared.wording import number
from transformer.analysis.trace.steps import steps
from transformer.checkpoints.settings import Settings
from transformer.checkpoints.store import save_checkpoint
from transformer.config import CorpusConfig, ModelConfig, TrainConfig
from transformer.interventions import parse_intervention
from transformer.lab import Lab, load
from transformer.model.taps import Site
from transformer.model.transformer import Transformer
from transformer.training.state import weights_of

KINDS = {
    "paper": {},
    "pre": {"norm": "pre", "positions": "rotary", "activation": "gelu"},
    "alibi": {"positions": "alibi", "norm": "pre", "residual": False},
    "bare": {"causal_mask": False, "scale_scores": False, "residual": False, "norm": "none", "positions": "none"},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder of runs with untrained models: one of English sentences, and one of symbols of every kind."""
    folder = tmp_path_factory.mktemp("runs")
    save_untrained(folder)
    sizes = dict(d_model=16, n_heads=2, d_ff=16, n_encoder_layers=1, n_decoder_layers=1, max_length=8)
    for name, parts in KINDS.items():
        config = ModelConfig(vocab_size=tokenizer().vocab_size, **sizes, **parts)
        torch.manual_seed(0)
        model = Transformer(config)
        randomise(model)
        settings = Settings(name=name, model=config, train=TrainConfig(), corpus=CorpusConfig(name="reverse"))
        save_checkpoint(folder / name, settings, tokenizer(), weights_of(model))
    return folder


@pytest.fixture(autouse=True)
def models(runs, monkeypatch):
    """The runs of this module."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(runs))


def walkthrough(**parameters):
    return open_page("walkthrough", **{"model": PRONOUNS, "text": CLASSIC, **parameters})


def the_map(at):
    return next(
        data
        for element in at.get("bidi_component")
        if "order" in (data := json.loads(element.proto.json))
    )  # fmt: skip


def said(at):
    return texts(at).replace("\\", "")


HOLDS = ":green[:material/check:] **The equation gives what the pass computed.**"


def checked_badges(at, *badges):
    """The page with these badges open."""
    return with_menus(at, *(badges or ("step-numbers-proof",)))


@pytest.mark.slow
def test_the_walk_goes_from_the_first_step_to_the_last_and_every_equation_holds():
    at = open_page("walkthrough", model="pre", text="a b c")
    titles = []
    order = steps(load("pre").model)
    for index, step in enumerate(order):
        assert f"{index + 1} of {len(order)}" in texts(at)
        assert the_map(at)["chosen"] == str(step)
        assert at.code and HOLDS in texts(checked_badges(at)), str(step)
        titles.append(next(m.value for m in at.markdown if m.value.startswith("## ")))
        at = checked(at.button(key="walk-next-below").click().run())
    assert titles[0] == "## Words become numbers" and "what comes next" in titles[-1]
    assert the_map(at)["chosen"] == str(order[0])  # to the beginning again


@pytest.mark.slow
@pytest.mark.parametrize("model", ["reverse-rnn-attention", "reverse-rnn"])
def test_the_walk_through_a_recurrent_model_holds_at_every_step(model):
    at = open_page("walkthrough", model=model, text="a b c")
    order = steps(load(model).model)
    for index, step in enumerate(order):
        assert f"{index + 1} of {len(order)}" in texts(at)
        assert the_map(at)["chosen"] == str(step)
        assert at.code and HOLDS in texts(checked_badges(at)), str(step)
        at = checked(at.button(key="walk-next-below").click().run())
    assert the_map(at)["chosen"] == str(order[0])


@pytest.mark.parametrize(
    ("model", "station", "words"),
    [
        ("reverse-rnn", "encoder.vector", "all that the decoder ever gets"),
        ("reverse-rnn-attention", "decoder.cross.weights", "alignment"),
        ("reverse-rnn-attention", "decoder.recurrent.gates", "the context that attention has just gathered"),
    ],
)
def test_a_recurrent_models_steps_say_what_they_do_and_hold(model, station, words):
    at = checked_badges(open_page("walkthrough", model=model, text="a b c", station=station))
    assert words in texts(at) and HOLDS in texts(at) and "has no encoder self-attention" not in texts(at)


@pytest.mark.parametrize("model", ["reverse-rnn", "reverse-rnn-attention"])
def test_three_tokens_of_a_recurrent_model_at_a_glance(model):
    at = open_page("walkthrough", model=model, text="a b c", show="overview")
    assert "with its neighbours" in said(at) and ("attention weight" in said(at)) == (model != "reverse-rnn")


@pytest.mark.parametrize(
    ("model", "station", "words"),
    [
        ("paper", "encoder.ffn.add", "brought to mean 0"),
        ("alibi", "decoder.self.penalty", "lowered with the distance"),
        ("alibi", "decoder.final", "one more layer norm"),
        ("bare", "decoder.self.masked", "without a causal mask"),
        ("bare", "decoder.cross.output", "hear every head"),
        ("bare", "decoder.logits", "could come next"),
        ("bare", "decoder.probabilities", "Greedy decoding"),
    ],
)
def test_steps_of_other_kinds_of_model_say_what_they_do(model, station, words):
    at = checked_badges(open_page("walkthrough", model=model, text="a b c", station=station))
    assert words in texts(at) and HOLDS in texts(at)


def test_layer_head_token_and_step_are_chosen_and_in_the_url():
    at = walkthrough(station="encoder.self.weights")
    at = checked(at.selectbox(key="walk-layer").set_value(1).run())
    at = checked(at.selectbox(key="walk-head").set_value(3).run())
    at = checked(at.selectbox(key="walk-token").set_value(2).run())
    assert "Encoder · layer 1 · self-attention · head 3" in texts(at)
    wanted = {"station": "encoder.self.weights", "layer": "1", "head": "3", "token": "2"}
    assert wanted.items() <= dict(at.query_params).items()
    at = walkthrough(station="decoder.cross.weights")
    at = checked(at.selectbox(key="walk-token").set_value(1).run())
    assert at.query_params["step"] == "1"


def test_back_and_next_go_one_step():
    at = walkthrough(station="decoder.self.scaled", kind="decoder_self", layer="1")
    at = checked(at.button(key="walk-next-above").click().run())
    assert at.query_params["station"] == "decoder.self.masked" and at.query_params["layer"] == "1"
    at = checked(at.button(key="walk-back-below").click().run())
    at = checked(at.button(key="walk-back-above").click().run())
    assert at.query_params["station"] == "decoder.self.products"
    assert walkthrough().button(key="walk-back-above").disabled


def test_the_pronoun_is_followed_where_the_sentence_has_one():
    at = walkthrough(station="encoder.embedding")
    seen = load(PRONOUNS).inspect(CLASSIC)
    assert seen.source_tokens[at.selectbox(key="walk-token").value].strip("▁") == "it"


def test_the_numbers_on_the_page_are_the_ones_of_the_decoding():
    at = walkthrough(station="decoder.probabilities", step="0")
    seen = load(PRONOUNS).inspect(CLASSIC)
    assert f"with probability **{number(float(seen.probabilities[0]))}**" in texts(at)
    figures = [json.loads(chart.proto.spec) for chart in at.get("plotly_chart")]
    assert "probabilities of the 12 best" in figures[1]["layout"]["annotations"][0]["text"]


def test_a_switch_is_marked_on_the_map_and_told_where_it_acts():
    switch = "off:decoder.0.cross:1"
    at = walkthrough(station="decoder.cross.context", head="1", layer="0", switch=switch)
    assert "head 1 off**: numbers here moved by up to" in said(at)
    marked = [box for box in the_map(at)["boxes"] if box["switched"]]
    assert [box["step"] for box in marked] == ["decoder.cross.context"]
    layouts = [json.loads(chart.proto.spec)["layout"] for chart in at.get("plotly_chart")]
    names = [note["text"] for layout in layouts for note in layout["annotations"]]
    assert any("as computed" in name for name in names) and any("as a switch leaves it · all 0" in n for n in names)
    at = walkthrough(station="decoder.self.qkv", layer="1", switch=switch)
    assert "in a layer that is not unfolded" in texts(at)
    assert not [box for box in the_map(at)["boxes"] if box["switched"]]


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"station": "encoder.nowhere"}, "There is no step “encoder.nowhere”"),
        ({"station": "<script>alert(1)</script>"}, "There is no step"),
        ({"token": "99", "station": "encoder.ids"}, "The link says token “99”, but here it goes from 0 to"),
        ({"step": "77", "station": "decoder.ids"}, "The link says step “77”, but here it goes from 0 to"),
        ({"token": "x"}, "The link says token “x”, which must be a whole number"),
        ({"layer": "9", "station": "decoder.ffn.hidden"}, "Layer 9 does not exist"),
        ({"head": "9", "station": "encoder.self.qkv"}, "Head 9 does not exist"),
    ],
)
def test_a_link_that_asks_for_what_is_not_there_is_answered_in_a_sentence(parameters, sentence):
    at = walkthrough(**parameters)
    assert sentence in said(at)
    assert HOLDS in texts(checked_badges(at))


def test_another_sentence_follows_other_tokens():
    at = walkthrough(station="encoder.ids", token="12")
    at = checked(at.text_input(key="choose-text").set_value("The cat slept.").run())
    assert "token" not in at.query_params and "The link says" not in texts(at)


def test_a_model_without_the_step_of_the_link_says_so():
    at = open_page("walkthrough", model="bare", text="a b", station="encoder.positions")
    assert "There is no step “encoder.positions” in bare" in said(at)
    ghosts = [box["label"] for box in the_map(at)["boxes"] if box["ghost"]]
    assert ghosts == ["no positions", "no positions"]


WROTE, ODDS = "They are the weights that wrote the output", "They are the probabilities that wrote the output"


@pytest.mark.parametrize("switch", ["off:decoder.0.cross:1", "mask:causal"])
@pytest.mark.parametrize(("sublayer", "kind"), [("cross", "cross"), ("self", "decoder_self")])
def test_the_whole_map_and_the_weights_of_a_step_are_checked(switch, sublayer, kind):
    at = walkthrough(station=f"decoder.{sublayer}.weights", kind=kind, switch=switch, step="2")
    at = checked_badges(at, "trace-map-proof", "step-numbers-proof")
    assert "Every step's equation gives what the pass computed" in texts(at)
    assert "Recording does not change the pass" in texts(at) and ":red[" not in texts(at)
    assert texts(at).count(WROTE) == 2 and ODDS in texts(at)
    assert ("Step 2’s own pass" in texts(at)) == (switch == "mask:causal")


@pytest.mark.parametrize("step", [0, 2, 5])
@pytest.mark.parametrize(
    ("model", "text", "switches"),
    [(PRONOUNS, CLASSIC, ["mask:causal"]), ("bare", "a b c d", [])],
    ids=["lifted", "bare"],
)
def test_without_a_causal_mask_each_step_is_shown_in_its_own_pass(model, text, switches, step):
    lab = load(model)
    seen = lab.inspect(text, map(parse_intervention, switches))
    at = open_page(
        "walkthrough", model=model, text=text, station="decoder.probabilities", step=str(step), switch=switches
    )
    assert f"with probability **{number(float(seen.probabilities[step]))}**" in texts(at)
    before = {0: "**Step 0’s own pass**: the start mark alone.", 2: "the 2 tokens written before it, none after"}
    assert before.get(step, "the 5 tokens written before it, none after") in texts(at)
    assert (
        ":red[" not in (check := texts(checked_badges(at)))
        and ODDS in check
        and f"step {step} of the decoding" in check
    )


def test_the_words_of_the_mask_say_what_the_pass_did():
    at = walkthrough(station="decoder.self.masked", kind="decoder_self", switch="mask:causal", step="3")
    assert "No token may look at a later one" not in texts(at) and "nothing is hidden here" in texts(at)
    assert "lifted the **causal mask**" in texts(at) and "masked self-attention" not in texts(at)
    assert "Masked multi-head attention" not in [frame["label"] for frame in the_map(at)["frames"]]
    at = walkthrough(station="decoder.self.masked", kind="decoder_self", switch="forbid:decoder.0.self:3,1", layer="0")
    assert "No token may look at a later one" in texts(at) and "Hidden by a switch: 1 entry." in texts(at)
    assert "Masked multi-head attention" in [frame["label"] for frame in the_map(at)["frames"]]
    at = walkthrough(station="encoder.self.masked", switch="forbid:encoder.0.self:3,1", layer="0")
    assert "every entry stays open" not in texts(at) and "Hidden by a switch: 1 entry." in texts(at)


@pytest.mark.parametrize("switch", ["off:decoder.0.cross:1", "mask:causal"])
@pytest.mark.parametrize(
    ("station", "claim"), [("decoder.cross.weights", WROTE), ("decoder.probabilities", ODDS)], ids=["weights", "odds"]
)
def test_an_inspection_that_is_not_of_this_pass_turns_the_badges_red(monkeypatch, switch, station, claim):
    from pages.shared import loading

    honest = loading.get_inspection

    def get_inspection(*arguments):
        seen = honest(*arguments)
        cross = replace(seen.cross, weights=seen.cross.weights + np.float32(0.001))
        return replace(
            seen, attentions={**seen.attentions, "cross": cross}, log_probs=seen.log_probs + np.float32(0.001)
        )

    monkeypatch.setattr(loading, "get_inspection", get_inspection)
    at = checked_badges(
        walkthrough(station=station, kind="cross", switch=switch, step="1"), "trace-map-proof", "step-numbers-proof"
    )
    assert texts(at).count(f":red[**{claim}.**]") == 2


def test_a_pass_whose_numbers_are_wrong_turns_map_and_step_red(monkeypatch):
    honest = Lab.trace

    def trace(self, *arguments):
        found = honest(self, *arguments)
        site = Site.parse("decoder.0.cross.weights")
        wrong = found.taken[site] + 0.01
        return replace(found, taken={**found.taken, site: wrong}, offered={**found.offered, site: wrong})

    monkeypatch.setattr(Lab, "trace", trace)
    at = walkthrough(station="decoder.cross.weights", layer="0", kind="cross", text="The old cat slept.")
    said = texts(checked_badges(at, "trace-map-proof", "step-numbers-proof"))
    assert ":red[**Every step's equation gives what the pass computed.**]" in said
    assert ":red[**The equation gives what the pass computed.**]" in said
    assert ":red[**They are the weights that wrote the output.**]" in said


def test_tokens_are_never_markup():
    at = walkthrough(text="<b>x</b> </script> it", station="encoder.self.weights")
    specs = "".join(chart.proto.spec for chart in at.get("plotly_chart"))
    assert "<b>x</b>" not in specs and "</script>" not in specs


def test_of_a_layer_that_does_not_exist_the_one_that_is_named_instead_is_shown():
    at = walkthrough(station="decoder.cross.context", kind="cross", layer="9")
    assert "Layer 1 is shown" in texts(at) and "Decoder · layer 1" in texts(at)
    assert at.query_params["layer"] == "1"


def test_the_numbers_that_move_are_those_of_the_pass():
    at = walkthrough(station="encoder.self.context", layer=1, head=2, token=8)
    lab = load(PRONOUNS)
    taken = lab.trace(lab.inspect(CLASSIC)).taken
    weights = taken[Site("encoder", 1, "self", "weights")][2, 8]
    values = taken[Site("encoder", 1, "self", "v")][2, 8, :3]
    tokens = lab.inspect(CLASSIC).source_tokens
    best = [f"{tokens[i]} {weights[i]:.2f}" for i in weights.argsort(descending=True)[:2]]
    moving = {moved["name"]: moved["text"].replace("−", "-") for moved in the_map(at)["moving"]}
    assert moving == {"weights": f"{best[0]} {best[1]} …", "v": f"{values[0]:.2f} {values[1]:.2f} {values[2]:.2f} …"}


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_move_into_every_step_of_every_model(kind):
    at = open_page("walkthrough", model=kind, text="a b c")
    for step in map(str, steps(load(kind).model)):
        at.query_params["station"] = step
        moving = the_map(checked(at.run()))["moving"]
        assert bool(moving) != step.endswith(".ids")


def test_three_tokens_are_seen_from_input_to_output():
    at = walkthrough(show="overview", token=8, step=10)
    assert not any("order" in json.loads(element.proto.json) for element in at.get("bidi_component"))
    figure = json.loads(at.get("plotly_chart")[0].proto.spec)
    words = [text for trace in figure["data"] if trace.get("mode") == "text" for text in trace["text"]]
    seen = load(PRONOUNS).inspect(CLASSIC)
    assert seen.source_tokens[8] in words and f"{seen.target_tokens[10]} {seen.probabilities[10]:.3f}" in words
    checked_badges(at, "trace-overview-proof")
    assert "7 checks, run just now: all hold." in texts(at)


@pytest.mark.parametrize("kind", KINDS)
def test_the_overview_shows_every_kind_of_model(kind):
    at = checked(open_page("walkthrough", model=kind, text="a b c", show="overview"))
    assert len(at.get("plotly_chart")) == 1
