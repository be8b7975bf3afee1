"""Train and its URL: a link fills in the fields or says what is wrong with it, and nothing chosen is lost."""

import pytest
from page_models import checked, open_page, texts
from page_runs import button, made_run, trained_run
from page_train import field, fill, opened, press_train, shows

from pages.shared.wording import plain
from transformer.runs import run_folder

pytestmark = pytest.mark.usefixtures("room", "measurements")


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
    at = open_page("train", start_from="reverse", accumulate="3", causal_mask="off")
    assert "Starts from the weights of reverse" in texts(at) and "no causal mask" in texts(at)
    assert "Batches a step 3" in texts(at) and field(opened(at, key="rare"), "accumulate").value == 3
    at = checked(button(at, "Random initial weights").click().run())
    assert "start_from" not in at.query_params


def test_a_link_of_an_earlier_version_names_settings_as_the_command_line_does():
    given = ["train.accumulate=3", "model.tie_output=false", 'model.activation="gelu"', "model.embedding_dropout=0.2"]
    at = opened(open_page("train", set=given), key="rare")
    values = {"accumulate": 3, "tie_output": False, "activation": "gelu", "embedding_dropout": 0.2}
    assert {name: shows(at, name) for name in values} == values
    assert "set" not in at.query_params and at.query_params["accumulate"] == "3"
    assert plain("“train.speed=9”, which is not a setting") in texts(open_page("train", set="train.speed=9"))
    assert plain("asks for “zzz” here, which is not a number") in texts(open_page("train", set="train.accumulate=zzz"))


def test_a_link_that_names_a_corpus_shows_a_run_of_it_and_no_other():
    run_id = trained_run()
    other = open_page("train", corpus="copy", sentence="a b")
    assert "run" not in other.query_params and "No run of *copy* yet" in texts(other)
    other = fill(other, "seed", 5)
    assert "run" not in other.query_params
    assert open_page("train", corpus="reverse", sentence="a b").query_params["run"] == run_id
    assert open_page("train").query_params["run"] == run_id


def test_plan_and_run_survive_a_page_change():
    run_id = trained_run()
    made_run()
    at = fill(open_page("train", run=run_id), "seed", 5)
    at = checked(at.switch_page("pages/attention/page.py").run())
    at.query_params.clear()
    at = checked(at.switch_page("pages/train/page.py").run())
    assert field(at, "seed").value == 5 and at.query_params["run"] == run_id


def test_a_rerun_that_left_before_the_url_changed_takes_nothing_back(started):
    at = open_page("train", seed="3")
    at = fill(at, "sentences", "a b")
    del at.query_params["sentence"]  # as the browser still has it
    press_train(at)
    assert run_folder.get_run(started[0]).settings.pinned == ("a b",)


def test_the_back_button_brings_the_plan_before_back():
    at = open_page("train", seed="3")
    at = fill(at, "seed", 4)
    at.query_params["seed"] = "3"
    assert field(checked(at.run()), "seed").value == 3


def test_what_stands_open_is_the_corpus_the_size_the_time_and_the_button():
    at = open_page("train", corpus="reverse")
    (settings,) = (box for box in at.expander if box.label == "Settings")
    kinds = ("selectbox", "text_input", "number_input", "text_area", "toggle")
    folded = {element.key for kind in kinds for element in settings.get(kind)}
    fields = {element.key for kind in kinds for element in at.main.get(kind)}
    assert {key for key in fields - folded if key and key.startswith("train-")} == {
        "train-corpus",
        "train-preset",
        "train-seconds",
    }
    assert at.session_state["train-settings"] is False and "Not as in the recipe" not in texts(at)


def test_a_folded_setting_that_a_link_names_is_said_and_one_that_is_wrong_opens_the_fold():
    assert plain("Not as in the recipe: Seed 7.") in texts(open_page("train", corpus="reverse", seed="7"))
    at = open_page("train", corpus="reverse", n_heads="7")
    assert at.session_state["train-settings"] is True
