"""Train: every field is taken over or refused in a sentence, one press starts a run, and a run shows how it stands."""

import json
import os
from typing import ClassVar

import psutil
import pytest
from page_models import checked, follow, open_page, texts
from page_runs import PINNED, made_run, put_status, trained_run

from pages.common.training import measuring, timing
from pages.common.training.form import WITHOUT
from pages.common.training.plan_fields import CHOICES, LABELS, PARTS
from pages.common.training.plan_text import parsed, written
from pages.common.training.plans import recommended
from pages.common.wording import plain
from transformer import corpora, runs
from transformer.config import missing_parts
from transformer.corpora import CORPORA
from transformer.rehearsal import Rehearsal


@pytest.fixture(autouse=True)
def room(tmp_path, monkeypatch):
    """An empty folder of runs."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(corpora, "TOKENIZER_PAIRS_OF_TASK", 50)
    monkeypatch.setenv(measuring.MEASURE, "ask")
    monkeypatch.setattr(measuring, "measurements", Measurements)
    Measurements.found, Measurements.begun = None, []
    return tmp_path / "runs"


@pytest.fixture
def started(monkeypatch):
    """The runs that the page starts: noted, not started."""
    ids = []
    monkeypatch.setattr(runs, "start", lambda run_id, **_: ids.append(run_id))
    return ids


class Measurements:
    """Stands for those of the server: what the tests say was measured, and what the page asked for."""

    found = None
    begun: ClassVar[list] = []

    def find(self, work):
        return self.found

    def is_measuring(self, work):
        return work in self.begun

    def begin(self, work, tokenizer, *, owner):
        self.begun.append(work)

    def cancel(self):
        pass


MEASURED = Rehearsal(
    **{"step_s": 0.03, "evaluation_s": 0.5, "snapshot_s": 0.01, "scoring_s": 2.0, "steps": 40},
    **{"n_parameters": 235_008, "device": "cpu", "precision": "float32", "threads": 2},
)


def opened(at, *, key="more"):
    """The page with one of its expanders opened."""
    at.session_state[f"train-{key}"] = True
    return checked(at.run())


def button(at, label):
    return next(button for button in at.button if button.label == label)


def field(at, name):
    for kind in (at.number_input, at.text_input, at.selectbox, at.text_area, at.toggle):
        for element in kind:
            if element.key == f"train-{name}":
                return element
    raise KeyError(name)


def fill(at, name, value):
    """The page after a value was entered in a field; None empties it."""
    element = field(at, name)
    return checked(element.set_value(written(value) if element.type == "text_input" else value).run())


def shows(at, name):
    """What a field shows, numbers as such."""
    element = field(at, name)
    return parsed(name, element.value) if element.type == "text_input" else element.value


def press_train(at):
    button = next(button for button in at.button if button.label == "Train")
    return checked(button.click().run())


def train_button(at):
    return next(button for button in at.button if button.label == "Train")


def bars(at):
    """What the component with the readings was given."""
    found = [json.loads(element.proto.json) for element in at.get("bidi_component") if element.proto.json]
    return next(data for data in found if isinstance(data, dict) and "readings" in data)


# Before the start


def test_the_page_is_filled_in_with_the_recipe_and_invites():
    at = open_page("train")
    plan = recommended("reverse")
    assert shows(at, "steps") == plan.steps and field(at, "d_model").value == plan.d_model
    assert field(at, "sentences").value.splitlines()[0] == "a b c d e"
    assert "No runs yet" in texts(at)
    assert "235,008 parameters" in texts(at) and "not measured here yet" in texts(at)
    assert "steps an epoch" in texts(at) and "MB of memory" in texts(at)


def test_one_press_starts_what_is_filled_in(started):
    at = press_train(open_page("train"))
    assert started == ["reverse-1"]
    settings = runs.get_run("reverse-1").settings
    model, train, corpus = recommended("reverse").configs()
    assert (settings.train, settings.corpus, settings.model.d_model) == (train, corpus, model.d_model)
    assert settings.pinned[0] == "a b c d e"
    assert at.query_params["run"] == "reverse-1"


NEW_VALUES = {
    **{"n_encoder_layers": 1, "n_decoder_layers": 3, "d_model": 32, "n_heads": 2, "d_ff": 48, "seed": 7},
    **{"steps": 30, "learning_rate": 0.001, "label_smoothing": 0.0, "warmup_steps": 5, "batch_tokens": 128},
    **{"evaluate_every": 10, "threads": 1, "dropout": 0.2, "target_percent": 98.0},
    **{"positions": "learned", "norm": "pre", "schedule": "constant", "precision": "float32"},
    **{"tokenizer": "char", "max_length": 40, "patience": 3, "device": "cpu", "seconds": 500.0, "longest": 12},
}


def test_every_field_reaches_the_run(started):
    at = opened(open_page("train"))
    for name, value in NEW_VALUES.items():
        at = fill(at, name, value)
    press_train(at)
    made = runs.get_run(started[0]).settings
    found = vars(made.model) | vars(made.train) | vars(made.corpus) | {"seed": made.train.seed}
    found |= {"steps": made.train.max_steps, "seconds": made.train.max_seconds}
    found["target_percent"] = made.train.target_exact_match * 100
    assert {name: found[name] for name in NEW_VALUES} == NEW_VALUES
    assert made.model.embedding_dropout == 0.2


@pytest.mark.parametrize("corpus", CORPORA)
def test_another_corpus_brings_its_recipe_and_its_examples(corpus):
    at = fill(open_page("train"), "corpus", corpus)
    assert shows(at, "steps") == recommended(corpus).steps
    assert field(at, "sentences").value.splitlines() == list(corpora.load_corpus(corpus).examples[:3])


@pytest.mark.parametrize("preset", CHOICES["preset"])
def test_every_preset_can_be_taken(preset):
    at = fill(open_page("train"), "preset", preset)
    assert "parameters" in texts(at)
    assert field(at, "preset").value in (preset, "recipe")


def test_a_run_may_end_by_the_clock_alone(started):
    at = fill(opened(open_page("train")), "schedule", "paper")
    at = fill(at, "steps", None)
    assert "Neither steps nor seconds" in texts(at) and train_button(at).disabled
    at = fill(at, "seconds", 12.0)
    press_train(at)
    assert runs.get_run(started[0]).settings.train.max_seconds == 12


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("d_model", 130, "must be divisible by the number of heads"),
        ("d_model", 0, "must be at least 1"),
        ("steps", 0, "must be at least 1"),
        ("steps", -5, "must be at least 1"),
        ("learning_rate", -1.0, "must be above 0"),
        ("n_heads", 0, "must be at least 1"),
        ("label_smoothing", 1.0, "must lie in"),
        ("batch_tokens", 0, "must be at least 1"),
        ("threads", 0, "must be above 0"),
        ("target_percent", 0.0, "must lie above 0"),
        ("d_ff", 10**9, "take at most"),
    ],
)
def test_a_bad_setting_is_refused_at_its_field_and_nothing_is_lost(name, value, said, started):
    at = fill(opened(open_page("train")), "seed", 5)
    at = fill(at, name, value)
    sentences = [element.value for element in at.markdown if plain(said) in element.value]
    assert len(sentences) == 1 and (f"{value:,}" if isinstance(value, int) else f"{value:g}") in sentences[0].replace(
        "\\", ""
    )
    assert train_button(at).disabled and not started
    assert shows(at, name) == value and field(at, "seed").value == 5


def test_a_contradiction_of_two_fields_is_refused():
    at = fill(open_page("train", seconds="9"), "steps", None)
    assert "no known last step" in texts(at) and train_button(at).disabled


def test_back_to_the_recipe():
    at = fill(opened(open_page("train")), "d_model", 130)
    at = checked(button(at, "Back to the recipe").click().run())
    assert field(at, "d_model").value == recommended("reverse").d_model and not train_button(at).disabled


def test_own_sentences_are_followed_and_unseen_words_named(started):
    at = fill(open_page("train"), "sentences", "a b c\n\nc <i>Zebra\n")
    assert "Zebra" in texts(at) and "will never have seen" in texts(at)
    press_train(at)
    assert runs.get_run(started[0]).settings.pinned == ("a b c", "c <i>Zebra")


@pytest.mark.parametrize(
    ("typed", "said"),
    [("a " * 5_000, "tokens with its end mark"), ("\n".join("abcdefg"), "more than the 5")],
)
def test_sentences_that_cannot_be_followed_are_refused_and_stay_in_the_field(typed, said):
    at = fill(open_page("train"), "sentences", typed)
    assert said in texts(at) and train_button(at).disabled
    assert len(field(at, "sentences").value) > 10


def test_no_sentences_at_all_may_be_followed(started):
    press_train(fill(open_page("train"), "sentences", ""))
    assert runs.get_run(started[0]).settings.pinned == ()


def test_what_cannot_be_started_is_said_and_nothing_is_lost(monkeypatch, room):
    room.parent.mkdir(exist_ok=True)
    room.write_text("a file where the folder of runs should be")
    at = fill(open_page("train"), "seed", 5)
    at = press_train(at)
    assert "The run was not started" in texts(at)
    assert field(at, "seed").value == 5


# What it will take


def test_a_measurement_is_made_when_asked_for_and_its_estimate_stays_with_the_run(started):
    at = open_page("train")
    assert not Measurements.begun
    at = checked(button(at, "Measure a few steps").click().run())
    assert Measurements.begun[0].model.vocab_size > 20 and "Measuring a few steps here" in texts(at)
    Measurements.found, Measurements.begun = MEASURED, []
    at = checked(at.run())
    assert plain("About 24 s here: 600 steps at 30 ms, 12 evaluations; then 2 s for held-out pairs.") in texts(at)
    press_train(at)
    estimate = timing.read_estimate(runs.run_folder(started[0]))
    assert estimate is not None and estimate.training_s == pytest.approx(24, abs=0.5) and estimate.scoring_s == 2


def test_a_first_visitor_need_not_ask(monkeypatch):
    monkeypatch.setenv(measuring.MEASURE, "")
    at = open_page("train")
    assert Measurements.begun and "Measuring a few steps here" in texts(at)


def test_what_cannot_be_measured_says_why():
    Measurements.found = "none of the 200 pairs fits into max_length (2) tokens"
    assert plain("The time could not be measured: none of the 200 pairs fits") in texts(open_page("train"))


def test_more_memory_than_there_is_is_said(monkeypatch):
    monkeypatch.setattr("pages.common.training.costs._free", lambda device: 10**6)
    at = open_page("train")
    assert plain("take smaller sizes or fewer tokens a batch") in texts(at) and not train_button(at).disabled


def test_the_costs_in_full_and_the_schedule_as_a_curve():
    Measurements.found = MEASURED
    at = checked(open_page("train").segmented_control(key="train-look").set_value("costs").run())
    assert at.query_params["look"] == "costs"
    for said in ("235,008", "Adam's two means", "Steps an epoch", "Held-out pairs", "measured over 40"):
        assert said in texts(at) or plain(said) in texts(at)
    (curve,) = (json.loads(chart.proto.spec) for chart in at.get("plotly_chart"))
    assert curve["layout"]["yaxis"]["title"]["text"] == "learning rate"
    at = fill(at, "d_model", 130)
    assert "once its fields are right" in texts(at)


def test_the_schedule_is_drawn_beside_its_field():
    at = opened(open_page("train"))
    titles = [json.loads(chart.proto.spec)["layout"].get("yaxis", {}).get("title") for chart in at.get("plotly_chart")]
    assert {"text": "learning rate"}.items() <= titles[0].items()


# The corpus


def upload(at, name, content):
    return checked(at.file_uploader[0].set_value((name, content, "text/plain")).run())


def pairs(count):
    return "".join(f"the word{i} is here\tle mot{i} est ici\tCC-BY\n" for i in range(count)).encode()


def test_an_uploaded_file_is_shown_and_trained_on(started, room):
    at = upload(open_page("train"), "my pairs.tsv", pairs(300) + pairs(2) + b"one side only\n")
    assert field(at, "corpus").value in at.query_params["corpus"] and at.query_params["look"] == "corpus"
    said = texts(at)
    assert plain("300 of the 303 rows are used") in said.replace(",", "") or "300 of the 303 rows are used" in said
    assert "repeated, kept once" in said or plain("repeated, kept once") in said
    assert plain("one side only") in said and plain("le mot0 est ici") in said
    chart = json.loads(at.get("plotly_chart")[0].proto.spec)
    assert [bars["name"] for bars in chart["data"]] == ["source", "target"]
    at = fill(at, "steps", 10)
    press_train(at)
    settings = runs.get_run(started[0]).settings
    assert settings.corpus.name == "corpus/my pairs.tsv" and settings.train.max_steps == 10
    assert "my pairs.tsv" in open_page("train").selectbox(key="train-corpus").options


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("few.tsv", b"a\tb\n", "200"),
        ("picture.tsv", b"\x89PNG", "UTF-8"),
        ("wrong.jsonl", b"{}\n" * 300, "wrong.jsonl"),
        ("latin.csv", "été,summer\n".encode("latin-1") * 300, "UTF-8"),
        ("bomb.zip", b"PK nothing", "bomb.zip"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_at_the_field_and_nothing_is_lost(name, content, said):
    at = fill(open_page("train"), "seed", 5)
    at = upload(at, name, content)
    assert plain(said) in texts(at)
    assert field(at, "corpus").value == "reverse" and field(at, "seed").value == 5 and not train_button(at).disabled


def test_a_vocabulary_that_is_too_large_is_refused_and_the_ceiling_filled_in(started):
    at = upload(open_page("train"), "mine.tsv", pairs(300))
    at = fill(opened(at), "vocab_size", 90_000)
    assert plain("Vocabulary (90000) is too large") in texts(at) and train_button(at).disabled
    offer = next(button for button in at.button if button.label.startswith("Take "))
    at = checked(offer.click().run())
    ceiling = shows(at, "vocab_size")
    assert f"{ceiling:,}" in offer.label and not train_button(at).disabled
    press_train(at)
    assert runs.get_run(started[0]).settings.model.vocab_size == ceiling


def test_a_generated_corpus_is_shown_too():
    at = checked(open_page("train", corpus="sort").segmented_control(key="train-look").set_value("corpus").run())
    for said in ("to train on", "for validation", "No source sentence is in two splits", "tokens on average"):
        assert plain(said) in texts(at) or said in texts(at)


def test_pairs_that_are_too_long_are_counted_beside_the_limit():
    at = open_page("train", max_length="6")
    assert "will be skipped" in texts(opened(at))
    assert "No pair fits into 1 tokens" in texts(open_page("train", max_length="1", sentence=""))


# Leaving a part out


@pytest.mark.parametrize("part", PARTS)
def test_each_part_has_a_switch_that_reaches_the_run(part, started):
    at = opened(open_page("train"), key="without")
    switch = at.toggle(key=f"train-without-{part}")
    assert switch.label == WITHOUT[part][0] and WITHOUT[part][1] in texts(at)
    at = checked(switch.set_value(True).run())
    press_train(at)
    settings = runs.get_run(started[0]).settings
    assert len(missing_parts(settings.model, settings.train)) == 1
    at = checked(at.toggle(key=f"train-without-{part}").set_value(False).run())
    assert "left out" not in texts(at)


# Links


def test_a_link_fills_in_the_fields():
    at = open_page("train", corpus="sort", d_model="96", positions="none", sentence=["b a", "d c"])
    assert (field(at, "corpus").value, field(at, "d_model").value) == ("sort", 96)
    assert field(at, "sentences").value == "b a\nd c"
    assert at.query_params["d_model"] == "96" and "cannot tell one order" in texts(at)


def test_a_hand_edited_link_says_what_is_wrong_with_it():
    at = open_page("train", corpus="klingon", d_model="wide", run="../../etc")
    for said in ("klingon", "wide", "cannot be a run"):
        assert said in texts(at)
    assert field(at, "corpus").value == "reverse"


def test_a_link_to_a_run_that_is_gone_says_so():
    assert plain("There is no run reverse-77 here any more") in texts(open_page("train", run="reverse-77"))


def test_a_link_carries_every_setting_of_a_run():
    at = open_page("train", start_from="reverse", set="train.accumulate=3", causal_mask="off")
    assert "Begins with the weights of reverse" in texts(at) and "no causal mask" in texts(at)
    assert "accumulate 3" in texts(opened(at)).replace("\\", "")
    at = checked(button(at, "Drop these").click().run())
    at = checked(button(at, "Begin with weights drawn by lot").click().run())
    assert "set" not in at.query_params and "start_from" not in at.query_params
    assert "which is no setting" in texts(open_page("train", set="train.speed=9"))


# A run


def test_a_finished_run_shows_its_curves_its_sentences_and_a_head():
    run_id = trained_run()
    at = open_page("train", run=run_id)
    drawn = [json.loads(element.proto.json) for element in at.get("bidi_component") if element.proto.json]
    lines = [line for data in drawn for panel in data.get("panels", ()) for line in panel["series"]]
    assert [line["name"] for line in lines] == [
        "training loss, label-smoothed",
        "validation loss, not smoothed",
        "validation exact match",
    ]
    data = bars(at)
    assert data["state"] == "Finished" and data["share"] == 1 and "all its steps are done" in data["rest"]
    assert [name for name, *_ in data["readings"]][:5] == [
        *("training loss", "validation loss", "exact match", "learning rate", "speed"),
    ]
    assert "step 20" in texts(at)  # of the weights to look into
    assert next(data for data in drawn if "frames" in data)["frames"][-1]["step"] == 20


def test_look_inside_opens_the_attention_page_on_this_run_and_sentence():
    run_id = trained_run()
    at = follow(open_page("train", run=run_id), "Look inside", "attention")
    assert at.selectbox(key="choose-model").value == run_id
    assert at.text_input(key="choose-text").value == PINNED[0]


def test_a_failed_run_says_its_sentence_and_offers_to_resume(started):
    run_id = made_run()
    put_status(run_id, state="failed", step=3, error="the loss is no longer a finite number at step 3: lower the rate")
    at = open_page("train", run=run_id)
    assert plain("The loss is no longer a finite number at step 3") in texts(at)
    assert bars(at)["tone"] == "failed"
    checked(at.button(key="run-primary").click().run())
    assert started == [run_id]


def test_a_run_at_work_is_drawn_live_and_takes_requests():
    run_id = trained_run()
    me = psutil.Process(os.getpid())
    put_status(run_id, state="running", phase="training", pid=me.pid, create_time=me.create_time())
    at = open_page("train", run=run_id)
    assert bars(at)["state"] == "Training"
    at = checked(at.button(key="run-primary").click().run())
    assert json.loads((runs.run_folder(run_id) / runs.REQUEST_FILE).read_text()) == {"request": "pause"}
    assert bars(at)["state"] == "Pausing" and at.button(key="run-primary").disabled
    put_status(run_id, state="paused", phase="")
    at = checked(at.run())
    assert bars(at)["state"] == "Paused"
    at = checked(at.button(key="run-second").click().run())
    assert bars(at)["state"] == "Stopped"


def test_a_request_that_comes_too_late_is_answered_in_a_sentence():
    run_id = trained_run()
    me = psutil.Process(os.getpid())
    put_status(run_id, state="running", phase="training", pid=me.pid, create_time=me.create_time())
    at = open_page("train", run=run_id)
    put_status(run_id, state="finished")
    at = checked(at.button(key="run-second").click().run())
    assert plain(f"{run_id} cannot stop") in texts(at)


def test_the_newest_run_is_shown_and_another_can_be_chosen():
    first, second = trained_run(), made_run()
    at = open_page("train", run=second)
    at = checked(at.selectbox(key="run-on-show").set_value(first).run())
    assert at.query_params["run"] == first and bars(at)["state"] == "Finished"


def test_a_link_that_names_a_corpus_shows_a_run_of_it_and_no_other():
    run_id = trained_run()
    other = open_page("train", corpus="copy", sentence="a b")
    assert "run" not in other.query_params and "No run of *copy* yet" in texts(other)
    other = fill(other, "seed", 5)
    assert "run" not in other.query_params
    assert open_page("train", corpus="reverse", sentence="a b").query_params["run"] == run_id
    assert open_page("train").query_params["run"] == run_id


def test_without_a_run_of_the_corpus_its_shipped_model_is_shown():
    trained_run()
    at = open_page("train", corpus="pronouns-en-fr")
    assert "learned this corpus" in texts(at) and len(at.get("plotly_chart")) == 1


def test_plan_and_run_survive_a_page_change():
    run_id = trained_run()
    made_run()
    at = fill(open_page("train", run=run_id), "seed", 5)
    at = checked(at.switch_page("pages/attention.py").run())
    at.query_params.clear()
    at = checked(at.switch_page("pages/train.py").run())
    assert field(at, "seed").value == 5 and at.query_params["run"] == run_id


def test_every_field_has_a_label():
    at = opened(open_page("train"))
    labels = {
        element.label for kind in (at.number_input, at.text_input, at.selectbox, at.text_area) for element in kind
    }
    others = {"start_from", "others", "causal_mask", "scale_scores", "residual"}
    assert {label for name, label in LABELS.items() if name not in others} <= labels


def test_a_rerun_that_left_before_the_url_changed_takes_nothing_back(started):
    at = open_page("train", seed="3")
    at = fill(at, "sentences", "a b")
    del at.query_params["sentence"]  # as the browser still has it
    press_train(at)
    assert runs.get_run(started[0]).settings.pinned == ("a b",)


def test_the_back_button_brings_the_plan_before_back(monkeypatch):
    at = open_page("train", seed="3")
    at = fill(at, "seed", 4)
    monkeypatch.setattr("pages.common.training.memory._ON_ITS_WAY_S", 0.0)
    at.query_params["seed"] = "3"
    assert field(checked(at.run()), "seed").value == 3
