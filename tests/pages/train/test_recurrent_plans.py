"""Plans of recurrent models on the Train page."""

from dataclasses import replace

import pytest
from page_models import field, open_page, texts

from pages.train.plan_errors import faults
from pages.training.plans import Plan, plan_of, recommended
from transformer.checkpoints.settings import find_checkpoint, read_settings
from transformer.config import ModelConfig, RecurrentConfig


def test_a_plan_of_another_family_is_its_recipe_and_goes_there_and_back():
    plan = recommended("reverse")
    other = plan.with_family("rnn")
    model, train, _ = other.configs()
    assert isinstance(model, RecurrentConfig) and model.attention == "none" and model.d_model == 128
    assert train.optimizer == "adamw" and other == recommended("reverse", "rnn")
    assert other.with_family("transformer") == plan and isinstance(plan.configs()[0], ModelConfig)


@pytest.mark.parametrize("changes", [{}, {"attention": "general", "input_feeding": True, "cell": "gru"}])
def test_a_link_carries_it(changes):
    plan = Plan(**{**vars(recommended("sort", "rnn")), **changes})
    parameters = {name: [value] if isinstance(value, str) else value for name, value in plan.parameters().items()}
    assert Plan.read(parameters) == (plan, ())


@pytest.mark.parametrize("name", ["reverse-rnn", "pronouns-en-fr-rnn-attention"])
def test_the_plan_of_a_run_trains_the_same_again(name):
    settings = read_settings(find_checkpoint(name))
    plan = plan_of(settings)
    model, train, corpus = plan.configs()
    assert faults(plan) == {}
    assert model == type(model)(**{**vars(settings.model), "vocab_size": model.vocab_size})
    assert (train, corpus) == (settings.train, settings.corpus)


@pytest.mark.parametrize(
    ("changes", "name", "said"),
    [
        (
            {"d_model": 33},
            "d_model",
            "must be even where the encoder reads both ways, as each direction has half of it: take 32 or 34.",
        ),
        (
            {"input_feeding": True},
            "input_feeding",
            "Input feeding (on) is for dot and general attention and would do nothing with attention (none): ",
        ),
        ({"n_encoder_layers": 5}, "n_encoder_layers", "at most 4"),
        ({"dropout": 1}, "dropout", "lie in"),
    ],
    ids=str,
)
def test_what_cannot_work_is_said_at_its_field(changes, name, said):
    found = faults(Plan(**{**vars(recommended("reverse", "rnn")), **changes}))
    assert set(found) == {name} and said in found[name]


def test_settings_of_transformers_are_no_faults_of_it():
    plan = Plan(**{**vars(recommended("reverse", "rnn")), "n_heads": 7, "score": "additive", "positions": "rotary"})
    assert faults(plan) == {}


def test_the_page_shows_its_fields_and_no_others():
    at = open_page("train", corpus="reverse", family="rnn")
    labels = {box.label for box in at.selectbox}
    assert {"Model", "Cell", "Attention"} <= labels and "Positions" not in labels and "Preset" not in labels
    assert not [box for box in at.number_input if box.label == "Heads"]
    field(at.selectbox, "Model").select("transformer").run()
    assert "Positions" in {box.label for box in at.selectbox} and not at.exception


def test_its_costs_are_estimated():
    said = texts(open_page("train", corpus="reverse", family="rnn", attention="additive", look="costs"))
    assert "Parameters | **415,360**" in said


def test_another_family_keeps_what_was_chosen_where_its_recipe_does_not_differ():
    plan = replace(recommended("reverse"), weight_decay=0.1, seed=5, learning_rate=0.5, d_model=96)
    other = plan.with_family("rnn")
    assert (other.weight_decay, other.seed) == (0.1, 5)
    recipe = recommended("reverse", "rnn")
    assert (other.learning_rate, other.d_model, other.beta2) == (recipe.learning_rate, recipe.d_model, recipe.beta2)
    assert other.with_family("transformer") == replace(recommended("reverse"), weight_decay=0.1, seed=5)
