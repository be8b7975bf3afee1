"""The Heads page: every control turned, on untrained models; what it says is what the library measures."""

import threading
import time
from dataclasses import asdict, replace

import pytest
import torch
from page_exports import opened, proved, verdicts, with_menus
from page_models import CLASSIC, PRONOUNS, REVERSE, checked, field, follow, heads, open_page, texts
from random_models import random_model
from streamlit.testing.v1 import AppTest

from pages.heads import choices
from pages.heads.choices import Choices
from pages.heads.head_text import profile_text
from pages.shared.wording import number, plain
from transformer.analysis.heads.addresses import HeadAt, heads_of
from transformer.analysis.heads.importance import output_effects
from transformer.analysis.heads.leave_one_out import HideKeys
from transformer.analysis.heads.pair_sample import PairSample
from transformer.analysis.heads.published import publish_survey
from transformer.analysis.heads.survey import Profile, Survey, survey
from transformer.checkpoints.store import load_tensors, save_checkpoint, save_tensors
from transformer.data.corpora import load_corpus
from transformer.interventions import compile_interventions, parse_intervention
from transformer.lab import load
from transformer.model.taps import Site, chain
from transformer.training.evaluation import fitting
from transformer.training.state import weights_of

pytestmark = pytest.mark.usefixtures("untrained_models")


def figure(at: AppTest, index: int = 0) -> str:
    return at.get("plotly_chart")[index].proto.spec


def test_it_says_on_how_much_every_head_was_measured_and_opens_each_on_the_attention_page():
    at = heads(PRONOUNS)
    lab = load(PRONOUNS)
    pairs = fitting(load_corpus("pronouns-en-fr").validation, lab.tokenizer, lab.model.config.max_length, 50)
    found = survey(lab.model, pairs, lab.tokenizer)
    said = texts(at)
    assert f"50 of 20,542 validation pairs: {found.n_source:,} source and {found.n_target:,} target tokens" in said
    labels = [link.proto.label for link in at.get("page_link")]
    names = [label for label in labels if " · head " in label and not label.startswith("Open ")]
    assert len(names) == len(heads_of(lab.model)) and len(set(names)) == len(names)
    opened = follow(at, "decoder 0 self · head 2", "attention")
    assert field(opened.selectbox, "Head").value == 2 and field(opened.selectbox, "Layer").value == 0
    assert field(opened.text_input, "Sentence").value == CLASSIC


def test_a_longer_bar_than_that_of_a_heads_role_is_said_to_come_from_fewer_rows():
    at, kind = HeadAt("decoder", 0, "cross", 0), "cross"
    weight = {"diagonal": 0.2, "alignment": 0.536, "same_token": 0.71}
    blank = dict(entropy=1.0, evenness=0.5, largest=0.6, written=None, read=None)
    profile = Profile(at, weight, dict.fromkeys(weight, 0.5), **blank)
    rows = {"diagonal": 900, "alignment": 800, "same_token": 120}
    counts = dict(n_pairs=1, n_source=1, n_target=1, n_links=1, n_referents=0)
    even = {kind: dict.fromkeys(weight, 0.1)}
    blanks = dict(distances={}, reach={}, layer_entropy={})
    found = Survey((profile,), even, {kind: rows}, n_rows={kind: 1_000}, **blanks, **counts)
    said = profile_text(found, profile)
    assert "**the aligned word**: 0.536 of its weight, averaged over the 800 rows that have such a place" in said
    assert said.endswith("Higher averages come from fewer rows: 0.710 for the same token (120 of 1,000 rows).")
    lower = replace(profile, weight={**weight, "same_token": 0.3})
    assert "fewer rows" not in profile_text(found, lower)


@pytest.mark.parametrize("section", ["roles", "alike"])
def test_all_validation_pairs_are_gone_through_while_the_first_ones_are_shown(section, own_models, monkeypatch):
    monkeypatch.setattr("pages.heads.patterns.FIRST", 20)
    held = threading.Event()

    def slow(model, pairs, tokenizer, *, tell, **settings):
        while len(pairs) > 20 and not held.is_set():
            tell(0.25)
            time.sleep(0.002)
        return survey(model, pairs, tokenizer, tell=tell, **settings)

    monkeypatch.setattr("pages.heads.patterns.survey", slow)
    try:
        at = open_page("heads", model=REVERSE, section=section)
        assert "Measured on 20 of 1,000 validation pairs" in texts(at) and at.button(key="heads-cancel")
        first = figure(at)
        checked(at.button(key="heads-cancel").click().run())
        assert "all 1,000 validation pairs: cancelled" in texts(at) and "Measured on 20 of 1,000" in texts(at)
        held.set()
        checked(at.button(key="heads-go-on").click().run())
        deadline = time.monotonic() + 60
        while "Measured on all 1,000 validation pairs" not in texts(at) and time.monotonic() < deadline:
            checked(at.run())
    finally:
        held.set()
    lab = load(REVERSE)
    pairs = fitting(load_corpus("reverse").validation, lab.tokenizer, lab.model.config.max_length, 1_000)
    found = survey(lab.model, pairs, lab.tokenizer, unit="character")
    assert f"all 1,000 validation pairs: {found.n_source:,} source and {found.n_target:,} target" in texts(at)
    assert figure(at) != first


def test_the_first_pairs_of_a_model_do_not_wait_until_all_of_another_are_read(own_models, monkeypatch):
    monkeypatch.setattr("pages.heads.patterns.FIRST", 20)

    def slow(model, pairs, tokenizer, *, tell, **settings):
        while len(pairs) > 20:
            tell(0.25)
            time.sleep(0.002)
        return survey(model, pairs, tokenizer, tell=tell, **settings)

    monkeypatch.setattr("pages.heads.patterns.survey", slow)
    one = open_page("heads", model=PRONOUNS)
    try:
        assert "Measured on 20 of 20,542 validation pairs" in texts(one)
        other = open_page("heads", model=REVERSE)
        assert "Measured on 20 of 1,000 validation pairs" in texts(other)
        checked(other.button(key="heads-cancel").click().run())
    finally:
        checked(one.button(key="heads-cancel").click().run())


@pytest.mark.parametrize("section", ["roles", "alike"])
def test_a_survey_that_was_published_is_shown_without_measuring(section, own_models, monkeypatch):
    found = publish_survey(load(REVERSE).checkpoint)

    def measured(*inputs, **settings):
        raise AssertionError("the page measures")

    monkeypatch.setattr("pages.heads.patterns.survey", measured)
    at = open_page("heads", model=REVERSE, section=section)
    said = f"Measured on all 1,000 validation pairs when the model was published: {found.n_source:,} source and"
    assert said in texts(at) and "measures some of them again" in texts(at)
    assert len(at.get("plotly_chart")) == (4 if section == "roles" else 1)


def test_a_survey_of_other_weights_is_not_shown(own_models):
    publish_survey(load(REVERSE).checkpoint)
    tensors, notes = load_tensors(own_models / REVERSE / "weights.safetensors")
    name = "decoder.layers.0.cross_attention.query.weight"
    save_tensors(own_models / REVERSE / "weights.safetensors", {**tensors, name: tensors[name] * 2}, notes)
    said = texts(open_page("heads", model=REVERSE))
    assert "Measured on all 1,000 validation pairs: " in said and "was published" not in said


@pytest.mark.parametrize("wrong", [False, True])
def test_a_corrupted_number_of_a_published_survey_turns_its_badge_red(wrong, own_models, monkeypatch):
    def corrupted(*inputs, **settings):
        found = survey(*inputs, **settings)
        sums = {**found.sums, "cross.weight.diagonal": found.sums["cross.weight.diagonal"].copy()}
        sums["cross.weight.diagonal"][0, 1] *= 1.1
        return replace(found, sums=sums if wrong else found.sums)

    monkeypatch.setattr("transformer.analysis.heads.published.survey", corrupted)
    publish_survey(load(REVERSE).checkpoint)
    at = proved("heads", "pattern-map-proof", model=REVERSE)
    assert "when the model was published" in texts(at)
    assert verdicts(at) == ((1, 1) if wrong else (2, 0))
    assert (":red[**Over all pairs the same numbers come out again" in texts(at)) == wrong


def test_the_number_of_pairs_is_chosen_reopened_by_its_link_and_written_on_the_export():
    at = heads()
    assert "Measured on 50 of 1,000 validation pairs" in texts(at)
    checked(field(at.selectbox, "Maximum pairs").set_value("all").run())
    assert at.query_params["pairs"] == "all" and "Measured on all 1,000 validation pairs" in texts(at)
    again = open_page("heads", model=REVERSE, pairs="all", section="worth", worth="loss")
    assert "Measured on all 1,000 validation pairs" in texts(again) and "over the 1,000 pairs" in texts(again)
    usual = open_page("heads", model=REVERSE, section="worth", worth="loss")
    assert "Measured on 500 of 1,000 validation pairs" in texts(usual) and "pairs" not in usual.query_params
    pairs = tuple(load_corpus("reverse").validation[:20])
    some = PairSample(pairs, 1_000, "validation pairs")
    assert (some.file_name, some.description) == ("20-of-1000-pairs", "20 of 1,000 validation pairs")
    assert some.first(5).file_name == "5-of-1000-pairs" and some.first(5).digest != some.digest
    away = opened("heads", "pattern-map-export", model=REVERSE, pairs="50", text="a b c d")
    assert "on 50 of 1,000 validation pairs" in texts(away)
    assert any("validation_sample(lab.checkpoint, 50)" in sublayer.value for sublayer in away.code)


def test_colours_numbers_and_heads_are_chosen_and_stand_in_the_link():
    at = heads()
    before = figure(at)
    box = field(at.selectbox, "Colours show")
    assert any("aligned" in option for option in box.options)
    checked(box.set_value("entropy").run())
    assert figure(at) != before and at.query_params["colour"] == "entropy"
    checked(at.segmented_control(key="heads-heads").set_value("cross").run())
    assert at.query_params["heads"] == "cross"
    assert len([link for link in at.get("page_link") if link.proto.label.startswith("decoder 0 cross")]) == 4
    checked(at.segmented_control(key="heads-measure").set_value("peak").run())
    assert at.query_params["measure"] == "peak"


def test_own_sentences_are_measured_and_a_refused_one_is_named():
    at = heads(data="own")
    area = field(at.text_area, "Sentences, one per line")
    checked(area.set_value("a b c\n" + "a " * 40 + "\nc d").run())
    assert "2 sentences, translated by the model itself" in texts(at)
    assert "is left out" in texts(at) and "2 sentences say little" in texts(at)
    assert at.query_params["lines"]


def test_a_file_of_pairs_is_measured_and_a_bad_one_is_told():
    at = heads(data="file")
    assert "nothing to measure on yet" in texts(at)
    content = "\n".join(f"{a} {b}\t{b} {a}" for a in "abcdefgh" for b in "ijklmn").encode()
    checked(at.file_uploader[0].set_value(("pairs.tsv", content, "text/plain")).run())
    assert "all 48 pairs of the file" in texts(at)
    checked(at.file_uploader[0].set_value(("pairs.tsv", b"no tab here", "text/plain")).run())
    assert "has no usable pair" in texts(at)


def test_the_columns_of_a_file_of_pairs_are_chosen_and_swapped():
    """Of three columns of text nothing says which two are meant; the chosen ones are measured, in that direction."""
    at = heads(data="file")
    rows = [(f"{a} {b}", f"{b} {a}", f"{a} {a} {b}") for a in "abcdefgh" for b in "ijklmn"]
    file = ("three.tsv", "\n".join(map("\t".join, rows)).encode(), "text/plain")
    checked(at.file_uploader[0].set_value(file).run())
    assert plain("three.tsv has 3 columns, and nothing says which two to learn from") in texts(at)
    assert all("Swap" not in button.label for button in at.button)
    checked(at.selectbox(key="heads-columns-source").set_value(0).run())
    assert "nothing says which two" in texts(at) and at.selectbox(key="heads-columns-source").value == 0
    checked(at.selectbox(key="heads-columns-target").set_value(1).run())
    assert plain("Columns 1 and 2 of 3; 48 of 48 pairs kept.") in texts(at) and "all 48 pairs of the file" in texts(at)
    before = figure(at)
    checked(at.button(key="heads-columns-swap").click().run())
    assert "Columns 2 and 1 of 3" in texts(at) and figure(at) != before
    checked(at.file_uploader[0].set_value(("pairs.tsv", b"no tab here", "text/plain")).run())
    assert not any("heads-columns" in (box.key or "") for box in at.selectbox)


def test_similar_heads_are_grouped_and_the_distance_can_be_chosen():
    at = heads(section="alike", closest="0.05")
    assert "No two heads are that similar" in texts(at)
    checked(at.select_slider(key="heads-closest").set_value(0.7).run())
    assert "apart on average" in texts(at) and at.query_params["closest"] == "0.7"
    checked(at.segmented_control(key="heads-heads").set_value("encoder_self").run())
    assert any(link.proto.label.startswith("encoder 0") for link in at.get("page_link"))


def test_the_importance_of_each_head_for_this_translation_is_measured_under_the_visitors_switches():
    switch = "off:decoder.0.cross:1"
    at = heads(section="worth", text="a b c", switch=switch)
    lab = load(REVERSE)
    seen = lab.inspect("a b c", [parse_intervention(switch)])
    effects = output_effects(lab.model, seen.source_ids, seen.target_ids, seen.interventions)
    changing = sum(effect.instead is not None for effect in effects)
    said = texts(at)
    assert f"{changing} of {len(effects)} heads change" in said or f"None of the {len(effects)} heads" in said
    assert "Your switches hold throughout" in said


def test_a_removed_head_can_be_set_to_its_mean():
    at = heads(section="worth", text="a b c", switch="mean:decoder.0.self:1")
    zero = figure(at)
    checked(at.segmented_control(key="heads-removal").set_value("mean").run())
    assert figure(at) != zero and at.query_params["removal"] == "mean"
    lab = load(REVERSE)
    assert f"Means over {lab.head_means.pairs:,} validation pairs, measured just now" in texts(at)
    seen = lab.inspect("a b c", [parse_intervention("mean:decoder.0.self:1")])
    means = lab.head_means.means
    effects = output_effects(lab.model, seen.source_ids, seen.target_ids, seen.interventions, means=means)
    worst = min(effects, key=lambda effect: effect.log_prob)
    assert f"log-probability changes by {number(worst.log_prob, signed=True)} nats" in texts(at)
    checked(at.segmented_control(key="heads-measured_by").set_value("loss").run())
    assert "With all heads: loss" in texts(at)


def test_without_means_the_page_says_so_and_zero_is_the_way_out(own_models, monkeypatch):
    def absent(checkpoint):
        raise ValueError("the mean of a head is taken over validation sentences; set heads to zero")

    monkeypatch.setattr("transformer.lab.head_means", absent)
    at = heads(PRONOUNS, section="worth", removal="mean")
    assert "The mean of a head is taken over validation sentences" in texts(at)
    checked(at.segmented_control(key="heads-removal").set_value("zero").run())
    assert "when removed alone" in texts(at)


@pytest.mark.parametrize(
    "worth, said", [("loss", "With all heads: loss"), ("exact_match", "With all heads: exact match")]
)
def test_the_importance_of_each_head_on_the_pairs_comes_with_an_interval(worth, said):
    at = heads(section="worth")
    checked(at.segmented_control(key="heads-measured_by").set_value(worth).run())
    assert said in texts(at) and "percentile bootstrap over the 50 pairs, 2,000 samples" in texts(at)
    assert "on 50 of 1,000 validation pairs" in texts(at)
    assert "error_x" in figure(at, 2)


def test_where_no_head_is_left_to_remove_the_page_says_so():
    off = [f"off:{sublayer}:0,1,2,3" for sublayer in ("encoder.0.self", "decoder.0.self", "decoder.0.cross")]
    for removal in ("zero", "mean"):
        assert "No head is left to remove" in texts(heads(section="worth", removal=removal, text="a b c", switch=off))
    assert "With all heads: loss" in texts(heads(section="worth", worth="loss", text="a b c", switch=off))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (0.25, "lowers this output's log-probability: its lowest change is +0.250 nats, without encoder 0 · head"),
        (0.0, "No removal lowers this output's log-probability: its lowest change is 0 nats"),
        (-2e-7, "log-probability, but for rounding: its lowest change is −2 × 10⁻⁷ nats"),
        (-0.5, "Most needed: without encoder 0 · head"),
    ],
)
def test_a_head_whose_removal_costs_nothing_is_not_called_needed(change, said, own_models, monkeypatch):
    def all_alike(*inputs, **settings):
        found = sorted(output_effects(*inputs, **settings), key=lambda effect: effect.at.stack != "encoder")
        return tuple(replace(effect, log_prob=change, instead=None) for effect in found)

    monkeypatch.setattr("pages.heads.importance.output_effects", all_alike)
    shown = texts(heads(section="worth", text="a b c"))
    assert said in shown and ("Most needed" in shown) == (change < -1e-6)


def test_where_no_source_token_has_an_effect_none_is_called_the_largest():
    said = texts(heads(section="evidence", text="a b c d", switch="block:decoder.0.cross"))
    assert "Every effect is exactly 0." in said and "The largest effect" not in said
    assert "No head's weights can be ranked" in said


def test_the_explanation_names_the_columns_of_this_table():
    said = texts(with_menus(heads(), "pattern-map-explained"))
    assert "**Prev.** On the token" in said and "**Aligned.**" in said and "**Referent.**" not in said


def test_more_of_ones_own_sentences_than_a_link_carries_are_cut_and_that_is_said():
    at = heads(data="own")
    area = field(at.text_area, "Sentences, one per line")
    checked(area.set_value("a b\n" * 400).run())
    assert "You typed 1,600 characters" in texts(at) and len(at.query_params["lines"]) == 1_500
    checked(field(at.text_area, "Sentences, one per line").set_value("a b\nb c").run())
    assert "You typed" not in texts(at)
    assert "has 1,600 characters" in Choices.read({"lines": "x" * 1_600})[1][0].sentence


def test_attention_is_set_against_erasing_each_token():
    at = heads(section="evidence", text="a b c d")
    first, said = figure(at), texts(at)
    assert "ρ = " in said and "within an output token" in said and "The largest effect: without" in said
    checked(at.segmented_control(key="heads-hiding").set_value("cross").run())
    assert figure(at) != first and at.query_params["erase"] == "cross"
    assert "is given, even on a hidden token" not in texts(at)
    short = heads(section="evidence", text="a")
    assert "needs 3 source tokens" in texts(short)


@pytest.mark.parametrize(
    ("switch", "erase", "kept"),
    [
        ("row:decoder.0.cross.1:0:2", "cross", True),
        ("row:encoder.0.self.1:0:2", "hidden", True),
        ("row:encoder.0.self.1:0:2", "cross", False),
        ("row:decoder.0.cross.1:0:uniform", "cross", False),
    ],
)
def test_a_row_that_a_switch_overwrites_is_said_to_keep_its_weight_on_an_erased_token_where_it_does(
    switch, erase, kept
):
    at = heads(section="evidence", text="a b c d", erase=erase, switch=switch)
    shown = texts(with_menus(at, "leave-one-out-explained"))
    assert ("keeps the weights it is given, even on a hidden token" in shown) == kept
    lab, sublayer = load(REVERSE), Site.parse(switch.split(":")[1].rsplit(".", 1)[0] + ".weights")
    recorded = {}

    def record(site, tensor):
        recorded[site] = tensor
        return tensor

    seen = lab.inspect("a b c d", [parse_intervention(switch)])
    ids = torch.tensor([seen.source_ids] * len(seen.source_ids)), torch.tensor([[1]] * len(seen.source_ids))
    tap = compile_interventions(seen.interventions, lab.model)
    lab.model(*ids, tap=chain(chain(tap, HideKeys(erase)), record))
    on_the_erased = recorded[sublayer][range(len(ids[0])), 1, 0, range(len(ids[0]))]
    hidden = erase == "hidden" or sublayer.sublayer == "cross"
    assert bool((on_the_erased > 0).any()) == (kept or not hidden)


@pytest.mark.parametrize(
    "parameters",
    [
        {"section": "nowhere", "pairs": "7", "closest": "x", "colour": "<script>", "sort": "-nothing"},
        {"section": "smallest", "exact": "99", "goal": "all"},
        {"section": "evidence", "erase": "everything"},
        {"section": "worth", "worth": "gold", "data": "none"},
    ],
)
def test_each_nonsense_in_a_link_is_answered_in_a_sentence_until_the_next_change(parameters):
    at = open_page("heads", model=REVERSE, **{"pairs": "50", **parameters})
    wrong = {name: value for name, value in parameters.items() if value not in choices.SECTIONS}
    said = [plain(f"The link says {name} “{value}”") for name, value in wrong.items()]
    assert all(sentence in texts(at) for sentence in said)
    at = checked(at.segmented_control(key="heads-section").set_value("alike").run())
    assert not any(sentence in texts(at) for sentence in said)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"section": "smallest", "step": "999", "into": "999999", "goal": "token"}, "token 999 does not exist"),
        ({"section": "evidence", "layer": "99"}, "Layer 99 does not exist"),
        ({"head": "99"}, "Head 99 does not exist"),
        ({"section": "alike", "switch": "off:decoder.9.cross:0"}, "is left out"),
    ],
)
def test_what_a_link_asks_for_and_is_not_there_is_answered_in_a_sentence(parameters, said):
    assert said in texts(heads(**parameters))


def test_a_model_that_sees_later_words_has_no_loss_to_compare_and_all_else(own_models):
    settings = load(REVERSE).checkpoint.settings
    torch.manual_seed(3)
    model = random_model(**{**asdict(settings.model), "causal_mask": False})
    tokenizer = load(REVERSE).tokenizer
    seeing = replace(settings, name="seeing", model=model.config)
    save_checkpoint(own_models / "seeing", seeing, tokenizer, weights_of(model))
    at = heads("seeing", section="worth", worth="loss", text="a b")
    assert "sees the words that it has to predict" in texts(at)
    explained = texts(with_menus(heads("seeing", section="worth", text="a b"), "output-importance-explained"))
    assert "Loss and exact match are not measured for this model" in explained
    assert "Loss and exact match come from" not in explained and "percentile bootstraps" not in explained
    at = heads(section="worth", text="a b", switch="mask:causal")
    switched = texts(with_menus(at, "output-importance-explained"))
    assert "Loss and exact match come from" in switched and "Your switches are not used in them" in switched
    at = heads(section="worth", text="a b")
    assert "Your switches are not used in them" not in texts(with_menus(at, "output-importance-explained"))
    for section in ("roles", "alike", "smallest", "evidence"):
        assert texts(heads("seeing", section=section, text="a b", goal="any", exact="1", most="1"))
    assert "the decoder sees later words" in texts(heads("seeing", text="a b"))
    assert "sees later words" not in texts(heads(text="a b"))


def test_a_link_describes_the_choices_completely():
    chosen = Choices(
        **{
            **dict(section="smallest", data="own", lines="a b\nc", pairs=100, colour="entropy", measure="peak"),
            **dict(heads="cross", sort="-loss", closest=0.15, measured_by="loss", removal="mean", step=2, into=7),
            **dict(goal="token", exact=2, most=5, hiding="cross"),
        }
    )
    assert Choices.read(chosen.parameters()) == (chosen, ())
    assert Choices().parameters() == {} and set(choices.SECTIONS) >= {"roles", "worth"}
