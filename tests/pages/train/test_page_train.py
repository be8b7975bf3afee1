"""Train, before the start: every field is taken over or refused in a sentence, and one press starts a run."""

from dataclasses import fields

import pytest
from page_models import checked, open_page, texts
from page_runs import button
from page_train import field, fill, opened, press_train, shows, train_button

from pages.shared.wording import plain
from pages.train.form import WITHOUT
from pages.training.plan_fields import CHOICES, LABELS, PARTS, SWITCHES
from pages.training.plans import recommended
from transformer.config import FAMILIES, CorpusConfig, TrainConfig, missing_parts
from transformer.data import corpora
from transformer.data.corpora import CORPORA
from transformer.runs import run_folder

pytestmark = pytest.mark.usefixtures("room", "measurements")


def test_the_page_is_filled_in_with_the_recipe_and_invites():
    at = open_page("train")
    plan = recommended("reverse")
    assert shows(at, "steps") == plan.steps and field(at, "d_model").value == plan.d_model
    assert field(at, "sentences").value.splitlines()[0] == "a b c d e"
    assert "No runs yet" in texts(at)
    assert "235,008 parameters" in texts(at) and "not measured here yet" in texts(at)
    assert "steps per epoch" in texts(at) and "MB of memory" in texts(at)


def test_one_press_starts_what_is_filled_in(started):
    at = press_train(open_page("train"))
    assert started == ["reverse-1"]
    settings = run_folder.get_run("reverse-1").settings
    model, train, corpus = recommended("reverse").configs()
    assert (settings.train, settings.corpus, settings.model.d_model) == (train, corpus, model.d_model)
    assert settings.pinned[0] == "a b c d e"
    assert at.query_params["run"] == "reverse-1"


NEW_VALUES = {
    **{"n_encoder_layers": 1, "n_decoder_layers": 3, "d_model": 32, "n_heads": 2, "d_ff": 48, "seed": 7},
    **{"steps": 30, "learning_rate": 0.001, "label_smoothing": 0.0, "warmup_steps": 5, "batch_tokens": 128},
    **{"evaluate_every": 10, "threads": 1, "dropout": 0.2, "target_percent": 98.0},
    **{"positions": "learned", "norm": "pre", "score": "additive", "schedule": "constant", "precision": "float32"},
    **{"tokenizer": "char", "max_length": 40, "patience": 3, "device": "cpu", "seconds": 500.0, "longest": 12},
    "window": 4,
    **{"activation": "gelu", "embedding_dropout": 0.3, "attention_dropout": 0.1, "activation_dropout": 0.15},
    **{"tie_embeddings": False, "tie_output": False, "output_bias": True, "norm_epsilon": 1e-6, "accumulate": 2},
    **{"optimizer": "adamw", "beta1": 0.8, "beta2": 0.9, "epsilon": 1e-8, "momentum": 0.5, "weight_decay": 0.01},
    **{"clip_norm": 0.0, "evaluate_pairs": 20, "test_pairs": 30, "average_last": 2, "compile": True, "corpus_seed": 4},
}


def test_every_field_reaches_the_run(started):
    at = opened(opened(open_page("train")), key="rare")
    for name, value in NEW_VALUES.items():
        at = fill(at, name, value)
    press_train(at)
    made = run_folder.get_run(started[0]).settings
    found = vars(made.model) | vars(made.corpus) | vars(made.train) | {"corpus_seed": made.corpus.seed}
    found |= {"steps": made.train.max_steps, "seconds": made.train.max_seconds}
    found |= {"target_percent": made.train.target_exact_match * 100, "vocab_size": made.corpus.vocab_size}
    assert {name: found[name] for name in NEW_VALUES} == NEW_VALUES


@pytest.mark.parametrize("family", FAMILIES)
def test_every_setting_of_a_run_has_a_field(family):
    at = open_page("train", family=family)
    for expander in ("more", "rare", "without"):
        at = opened(at, key=expander)
    kinds = (at.number_input, at.text_input, at.selectbox, at.text_area, at.toggle)
    keys = {(element.key or "").removeprefix("train-") for kind in kinds for element in kind}
    called = {"max_steps": "steps", "max_seconds": "seconds", "target_exact_match": "target_percent"}
    called |= {"name": "corpus", **{part: f"without-{part}" for part in ("causal_mask", "scale_scores", "residual")}}
    follow = {"pad_id", "bos_id", "eos_id", "columns"}  # of the tokenizer; of a file
    settings = {item.name for config in (FAMILIES[family], TrainConfig, CorpusConfig) for item in fields(config)}
    assert {called.get(name, name) for name in settings - follow} | {"corpus_seed"} <= keys


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
    assert run_folder.get_run(started[0]).settings.train.max_seconds == 12


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
        ("target_percent", 0.0, "must be above 0"),
        ("d_ff", 10**9, "must be at most"),
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


@pytest.mark.parametrize(("typed", "steps"), [("20,000", 20_000), ("1e3", 1_000), (" 40 ", 40)])
def test_a_number_may_be_typed_as_people_write_it(typed, steps):
    at = checked(field(open_page("train"), "steps").set_value(typed).run())
    assert shows(at, "steps") == steps and at.query_params["steps"] == str(steps) and not train_button(at).disabled


def test_what_is_no_number_stays_in_its_field_and_is_refused_there():
    at = checked(field(open_page("train", seconds="9"), "seconds").set_value("soon").run())
    assert plain("“soon” is not a number") in texts(at) and "Fix first: End after, seconds" in texts(at)
    assert field(at, "seconds").value == "soon" and train_button(at).disabled
    at = checked(field(at, "corpus").set_value("copy").run())
    assert shows(at, "seconds") is None and not train_button(at).disabled


def test_a_fraction_where_a_whole_number_belongs_is_refused_with_the_nearest():
    at = fill(open_page("train"), "d_model", 64.5)
    assert plain("d_model (64.5) must be a whole number: take 64.") in texts(at) and train_button(at).disabled
    assert field(at, "d_model").value == 64.5


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
    assert run_folder.get_run(started[0]).settings.pinned == ("a b c", "c <i>Zebra")


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
    assert run_folder.get_run(started[0]).settings.pinned == ()


def test_what_cannot_be_started_is_said_and_nothing_is_lost(monkeypatch, room):
    room.parent.mkdir(exist_ok=True)
    room.write_text("a file where the folder of runs should be")
    at = fill(open_page("train"), "seed", 5)
    at = press_train(at)
    assert "The run was not started" in texts(at)
    assert field(at, "seed").value == 5


@pytest.mark.parametrize("part", PARTS)
def test_each_part_has_a_switch_that_reaches_the_run(part, started):
    at = opened(open_page("train"), key="without")
    switch = at.toggle(key=f"train-without-{part}")
    assert switch.label == WITHOUT[part][0] and WITHOUT[part][1] in texts(at)
    at = checked(switch.set_value(True).run())
    press_train(at)
    settings = run_folder.get_run(started[0]).settings
    assert len(missing_parts(settings.model, settings.train)) == 1
    at = checked(at.toggle(key=f"train-without-{part}").set_value(False).run())
    assert "left out" not in texts(at)


def test_every_field_has_a_label():
    at = opened(opened(open_page("train")), key="rare")
    labels = {
        element.label for kind in (at.number_input, at.text_input, at.selectbox, at.text_area) for element in kind
    }
    others = {
        "columns",
        "start_from",
        *SWITCHES,
        "cell",
        "attention",
        "kernel",
    }  # columns of a file; the last three of others
    assert {label for name, label in LABELS.items() if name not in others} <= labels
