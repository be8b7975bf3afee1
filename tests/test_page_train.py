"""Train: every field is taken over or refused in a sentence, one press starts a run, and a run shows how it stands."""

import json
import os

import psutil
import pytest
from page_models import checked, open_page, texts
from page_runs import PINNED, made_run, put_status, trained_run

from pages.common.training.plans import CHOICES, LABELS, recommended
from pages.common.wording import plain
from transformer import corpora, runs


@pytest.fixture(autouse=True)
def room(tmp_path, monkeypatch):
    """An empty folder of runs."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(corpora, "TOKENIZER_PAIRS_OF_TASK", 50)
    return tmp_path / "runs"


@pytest.fixture
def started(monkeypatch):
    """The runs that the page starts: noted, not started."""
    ids = []
    monkeypatch.setattr(runs, "start", ids.append)
    return ids


def field(at, name):
    for kind in (at.number_input, at.selectbox, at.text_area):
        for element in kind:
            if element.key == f"train-{name}":
                return element
    raise KeyError(name)


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
    assert field(at, "steps").value == plan.steps and field(at, "d_model").value == plan.d_model
    assert field(at, "sentences").value.splitlines()[0] == "a b c d e"
    assert "No runs yet" in texts(at)
    assert "235,008 parameters" in texts(at) and "not measured here yet" in texts(at)


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
}


def test_every_field_reaches_the_run(started):
    at = open_page("train")
    for name, value in NEW_VALUES.items():
        at = checked(field(at, name).set_value(value).run())
    press_train(at)
    made = runs.get_run(started[0]).settings
    found = vars(made.model) | vars(made.train) | {"steps": made.train.max_steps}
    found["target_percent"] = made.train.target_exact_match * 100
    assert {name: found[name] for name in NEW_VALUES} == NEW_VALUES
    assert made.model.embedding_dropout == 0.2


@pytest.mark.parametrize("corpus", CHOICES["corpus"])
def test_another_corpus_brings_its_recipe_and_its_examples(corpus):
    at = checked(field(open_page("train"), "corpus").set_value(corpus).run())
    assert field(at, "steps").value == recommended(corpus).steps
    assert field(at, "sentences").value.splitlines() == list(corpora.load_corpus(corpus).examples[:3])


@pytest.mark.parametrize("preset", CHOICES["preset"])
def test_every_preset_can_be_taken(preset):
    at = checked(field(open_page("train"), "preset").set_value(preset).run())
    assert "parameters" in texts(at)
    assert field(at, "preset").value in (preset, "recipe")


def test_a_run_may_end_by_the_clock(started):
    at = checked(field(open_page("train"), "schedule").set_value("paper").run())
    at = checked(field(at, "until").set_value("seconds").run())
    at = checked(field(at, "seconds").set_value(12.0).run())
    assert "ends after 12 s" in texts(at)
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
    at = checked(field(open_page("train"), "seed").set_value(5).run())
    at = checked(field(at, name).set_value(value).run())
    sentences = [element.value for element in at.markdown if plain(said) in element.value]
    assert len(sentences) == 1 and (f"{value:,}" if isinstance(value, int) else f"{value:g}") in sentences[0].replace(
        "\\", ""
    )
    assert train_button(at).disabled and not started
    assert field(at, name).value == value and field(at, "seed").value == 5


def test_a_contradiction_of_two_fields_is_refused():
    at = checked(field(open_page("train"), "until").set_value("seconds").run())
    assert "no known last step" in texts(at) and train_button(at).disabled


def test_back_to_the_recipe():
    at = checked(field(open_page("train"), "d_model").set_value(130).run())
    at = checked(next(b for b in at.button if b.label == "Back to the recipe").click().run())
    assert field(at, "d_model").value == recommended("reverse").d_model and not train_button(at).disabled


def test_own_sentences_are_followed_and_unseen_words_named(started):
    at = checked(field(open_page("train"), "sentences").set_value("a b c\n\nc <i>Zebra\n").run())
    assert "Zebra" in texts(at) and "will never have seen" in texts(at)
    press_train(at)
    assert runs.get_run(started[0]).settings.pinned == ("a b c", "c <i>Zebra")


@pytest.mark.parametrize(
    ("typed", "said"),
    [("a " * 5_000, "tokens with its end mark"), ("\n".join("abcdefg"), "more than the 5")],
)
def test_sentences_that_cannot_be_followed_are_refused_and_stay_in_the_field(typed, said):
    at = checked(field(open_page("train"), "sentences").set_value(typed).run())
    assert said in texts(at) and train_button(at).disabled
    assert len(field(at, "sentences").value) > 10


def test_no_sentences_at_all_may_be_followed(started):
    press_train(checked(field(open_page("train"), "sentences").set_value("").run()))
    assert runs.get_run(started[0]).settings.pinned == ()


def test_what_cannot_be_started_is_said_and_nothing_is_lost(monkeypatch, room):
    room.parent.mkdir(exist_ok=True)
    room.write_text("a file where the folder of runs should be")
    at = checked(field(open_page("train"), "seed").set_value(5).run())
    at = press_train(at)
    assert "The run was not started" in texts(at)
    assert field(at, "seed").value == 5


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


# A run


def test_a_finished_run_shows_its_curves_its_sentences_and_a_head():
    run_id = trained_run()
    at = open_page("train", run=run_id)
    lines = json.loads(at.get("plotly_chart")[0].proto.spec)["data"]
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
    assert "Step 20:" in texts(at) and len(at.get("plotly_chart")) == 2


def test_the_head_can_be_chosen(monkeypatch):
    at = open_page("train", run=trained_run())
    before = at.get("plotly_chart")[1].proto.spec
    at = checked(field(at, "head").set_value(1).run())
    assert at.get("plotly_chart")[1].proto.spec != before


def test_the_time_is_estimated_from_the_last_run():
    run_id = trained_run(max_steps=40)
    sizes = {"d_model": "16", "n_heads": "2", "d_ff": "32", "n_encoder_layers": "1", "n_decoder_layers": "1"}
    same = open_page("train", batch_tokens="64", threads="1", precision="float32", **sizes)
    assert "estimate: about" in texts(same) and f"at the speed of {run_id}" in texts(same)
    near = open_page("train", batch_tokens="128", threads="1", precision="float32", **sizes)
    assert f"scaled from the speed of {run_id}" in texts(near)
    assert "not measured here yet" in texts(open_page("train"))


def test_look_inside_opens_the_attention_page_on_this_run_and_sentence():
    run_id = trained_run()
    at = checked(open_page("train", run=run_id).button(key="run-look").click().run())
    assert at.selectbox(key="choose-model").value == run_id
    assert at.text_input(key="choose-text").value == PINNED[0]


def test_a_failed_run_says_its_sentence_and_offers_to_resume(started):
    run_id = made_run()
    put_status(run_id, state="failed", step=3, error="the loss is no longer a finite number at step 3: lower the rate")
    at = open_page("train", run=run_id)
    assert plain("The loss is no longer a finite number at step 3") in texts(at)
    assert bars(at)["tone"] == "failed"
    checked(at.button(key="run-resume").click().run())
    assert started == [run_id]


def test_a_run_at_work_is_drawn_live_and_takes_requests():
    run_id = trained_run()
    me = psutil.Process(os.getpid())
    put_status(run_id, state="running", phase="training", pid=me.pid, create_time=me.create_time())
    at = open_page("train", run=run_id)
    assert bars(at)["state"] == "Training" and len(at.get("plotly_chart")) == 1
    at = checked(at.button(key="run-pause").click().run())
    assert json.loads((runs.run_folder(run_id) / runs.REQUEST_FILE).read_text()) == {"request": "pause"}
    assert bars(at)["state"] == "Pausing" and at.button(key="run-pause").disabled
    put_status(run_id, state="paused", phase="")
    at = checked(at.run())
    assert bars(at)["state"] == "Paused"
    at = checked(at.button(key="run-stop").click().run())
    assert bars(at)["state"] == "Stopped"


def test_a_request_that_comes_too_late_is_answered_in_a_sentence():
    run_id = trained_run()
    me = psutil.Process(os.getpid())
    put_status(run_id, state="running", phase="training", pid=me.pid, create_time=me.create_time())
    at = open_page("train", run=run_id)
    put_status(run_id, state="finished")
    at = checked(at.button(key="run-stop").click().run())
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
    other = checked(field(other, "seed").set_value(5).run())
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
    at = checked(field(open_page("train", run=run_id), "seed").set_value(5).run())
    at = checked(at.switch_page("pages/attention.py").run())
    at.query_params.clear()
    at = checked(at.switch_page("pages/train.py").run())
    assert field(at, "seed").value == 5 and at.query_params["run"] == run_id


def test_every_field_has_a_label():
    at = open_page("train")
    labels = {element.label for kind in (at.number_input, at.selectbox, at.text_area) for element in kind}
    assert set(LABELS.values()) - {"End after"} <= labels


def test_a_rerun_that_left_before_the_url_changed_takes_nothing_back(started):
    at = open_page("train", seed="3")
    at = checked(field(at, "sentences").set_value("a b").run())
    del at.query_params["sentence"]  # as the browser still has it
    press_train(at)
    assert runs.get_run(started[0]).settings.pinned == ("a b",)


def test_the_back_button_brings_the_plan_before_back(monkeypatch):
    at = open_page("train", seed="3")
    at = checked(field(at, "seed").set_value(4).run())
    monkeypatch.setattr("pages.common.training.memory._ON_ITS_WAY_S", 0.0)
    at.query_params["seed"] = "3"
    assert field(checked(at.run()), "seed").value == 3
