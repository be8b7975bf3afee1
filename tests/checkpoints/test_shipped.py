"""The shipped models are what their commands make: these ask for their settings, which take the same steps again."""

import shlex
from dataclasses import replace

import pytest
import torch
from documents.commands import made_commands

from transformer.__main__ import main
from transformer.analysis.heads.pair_sample import validation_sample
from transformer.analysis.heads.published import published_survey
from transformer.analysis.heads.survey_checks import check_survey, value_of
from transformer.checkpoints.settings import SHIPPED_FOLDER, read_settings
from transformer.checkpoints.store import history, load_checkpoint
from transformer.cli import train_commands
from transformer.data.corpora import load_corpus
from transformer.lab import load
from transformer.training.events import StepDone
from transformer.training.loop import train_steps
from transformer.training.state import new_state

OWN = ("reverse", "reverse-learned", "pronouns-en-fr", "pronouns-en-fr-learned")
SURVEYED = (*OWN, "emoji-en-fr", "emoji-en-ko")
STEPS = 4


@pytest.mark.slow_variants
@pytest.mark.parametrize("name", OWN)
def test_training_again_takes_the_first_steps_that_the_shipped_model_took(name):
    folder = SHIPPED_FOLDER / name
    settings, tokenizer = read_settings(folder), load_checkpoint(folder).tokenizer
    recorded = {row["step"]: row for row in history(folder) if row["split"] == "train"}
    state = new_state(settings.model, settings.train, torch.device("cpu"))
    again = []
    for event in train_steps(state, settings.train, load_corpus(settings.corpus), tokenizer):
        again.append(event)
        if len(again) == STEPS:
            break
    for event in again:
        assert isinstance(event, StepDone)
        assert event.tokens == recorded[event.step]["tokens"]
        assert event.loss == pytest.approx(recorded[event.step]["loss"], abs=1e-4)
        assert event.learning_rate == pytest.approx(recorded[event.step]["learning_rate"])


@pytest.mark.parametrize("name", OWN)
def test_the_command_in_the_card_asks_for_the_settings_it_was_trained_with(name, monkeypatch):
    settings, asked = read_settings(SHIPPED_FOLDER / name), []
    monkeypatch.setattr(train_commands.run_folders, "create_run", lambda *configs, **_: asked.append(configs) or name)
    monkeypatch.setattr(train_commands, "_train_here", lambda *_: None)
    python, m, package, *arguments = shlex.split(settings.command)
    assert (python, m, package) == ("python", "-m", "transformer")
    assert settings.command in (SHIPPED_FOLDER / name / "CARD.md").read_text()
    assert main(arguments) == 0
    ((model, train, corpus),) = asked
    assert replace(model, vocab_size=settings.model.vocab_size) == settings.model
    assert (train, corpus) == (settings.train, settings.corpus)


def test_make_checkpoints_asks_for_the_settings_of_the_shipped(monkeypatch):
    asked = {}
    monkeypatch.setattr(
        train_commands.run_folders, "create_run", lambda *configs, name, **_: asked.setdefault(name, configs) and name
    )
    monkeypatch.setattr(train_commands, "_train_here", lambda *_: None)
    for line in made_commands("checkpoints"):
        if "-m transformer" in line:
            assert main(shlex.split(line.partition("-m transformer")[2])) == 0
    models = {path.parent.name for path in SHIPPED_FOLDER.glob("*/config.json")}
    assert set(asked) == {name for name in models if not name.startswith("everyday-")}  # of files that are not here
    for name, (model, train, corpus) in asked.items():
        settings = read_settings(SHIPPED_FOLDER / name)
        assert replace(model, vocab_size=settings.model.vocab_size) == settings.model, name
        assert (train, corpus) == (settings.train, settings.corpus), name


@pytest.mark.parametrize("name", ["emoji-en-fr", "emoji-en-ko"])
def test_the_names_that_a_model_of_emoji_opens_on_are_held_out_and_the_first_is_right(name):
    corpus = load_corpus(name)
    targets = {pair.source: pair.target for pair in (*corpus.validation, *corpus.held_out["seen words"])}
    assert set(corpus.examples) <= set(targets)
    (written,) = load(name).translate(corpus.examples[:1])
    assert written == targets[corpus.examples[0]]


@pytest.mark.slow_variants
@pytest.mark.parametrize("name", SURVEYED)
def test_it_comes_with_a_survey_of_its_heads_which_measured_again_is_the_same(name):
    """Where this fails after a change of the survey, `publish_survey` measures it anew."""
    checkpoint = load_checkpoint(SHIPPED_FOLDER / name)
    sample = validation_sample(checkpoint)
    found = published_survey(checkpoint, sample)
    assert found is not None and found.n_pairs == len(sample.pairs)
    columns = [(profile.at, column) for profile in found.profiles for column in (*profile.weight, "entropy")]
    shown = [value_of(found, *column) for column in columns]
    checks = check_survey(checkpoint.model, sample, checkpoint.tokenizer, found, columns, shown)
    assert [check.holds for check in checks] == [True, True]
