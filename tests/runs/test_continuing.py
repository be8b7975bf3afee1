"""Continuing another run: the weights are those, whatever becomes of it, and what does not fit is refused."""

from dataclasses import replace

import pytest
from safetensors.torch import load_file
from tiny_runs import MODEL, settings

from transformer.checkpoints.settings import START_FILE, WEIGHTS_FILE, read_settings
from transformer.config import CorpusConfig
from transformer.data import corpora
from transformer.runs import run_folder
from transformer.runs.status import RunError
from transformer.runs.status import run_folder as folder_of
from transformer.runs.warm_start import same_start, start_of
from transformer.runs.worker import train_run


@pytest.fixture(scope="module", autouse=True)
def room(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("runs")
        patch.setenv("ATTENTION_LAB_RUNS", str(folder))
        patch.setattr(corpora, "TOKENIZER_PAIRS_OF_TASK", 50)
        yield folder


def create(model=MODEL, corpus="reverse", name=None, start_from=None, **changes):
    config = CorpusConfig(name=corpus)
    return run_folder.create_run(model, settings(**changes), config, pinned=("a b",), name=name, start_from=start_from)


@pytest.fixture(scope="module")
def parent(room):
    run_id = create(name="parent")
    train_run(run_id)
    return run_id


def weights(path):
    return {name: value.tolist() for name, value in load_file(path).items()}


def test_a_run_begins_with_the_weights_of_its_parent_and_not_with_its_moments(parent):
    child = create(start_from=parent, seed=3)
    assert train_run(child).state == "finished"
    assert weights(run_folder.snapshots(child)[0]) == weights(folder_of(parent) / WEIGHTS_FILE)
    assert weights(folder_of(child) / WEIGHTS_FILE) != weights(folder_of(parent) / WEIGHTS_FILE)
    assert run_folder.metrics(child)[0]["step"] == 1


def test_the_card_and_the_config_name_the_parent_and_its_step(parent):
    child = create(start_from=parent)
    train_run(child)
    folder = folder_of(child)
    named = read_settings(folder).parent
    assert named is not None and (named.run, named.step) == (parent, 20)
    card = " ".join((folder / "CARD.md").read_text().split())
    assert 'It continues "parent", whose weights stood at step 20, with a new optimiser' in card


def test_it_does_not_matter_what_becomes_of_the_parent():
    short_lived = create(name="short-lived")
    train_run(short_lived)
    child = create(start_from=short_lived)
    run_folder.delete(short_lived)
    assert train_run(child).state == "finished"


def test_the_same_seed_from_the_same_start_gives_the_same_weights(parent):
    first = create(start_from=parent)
    train_run(first)
    folder = folder_of(first)
    again = create(start_from=same_start(folder, read_settings(folder)))
    train_run(again)
    assert (folder / WEIGHTS_FILE).read_bytes() == (folder_of(again) / WEIGHTS_FILE).read_bytes()
    named = read_settings(folder_of(again)).parent
    assert named is not None and (named.run, named.step) == (parent, 20)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"d_model": 32}, "d_model 16 there and 32 here"),
        ({"score": "additive"}, "score dot there and additive here"),
        ({"n_encoder_layers": 2, "norm": "pre"}, "n_encoder_layers 1 there and 2 here, norm post there and pre here"),
    ],
)
def test_other_sizes_are_refused_with_both_numbers(parent, room, changes, sentence):
    before = sorted(room.iterdir())
    with pytest.raises(RunError, match=sentence):
        create(replace(MODEL, **changes), start_from=parent)
    assert sorted(room.iterdir()) == before


def test_another_vocabulary_of_the_same_size_is_refused(parent, room):
    path = folder_of(parent) / "tokenizer.json"
    kept = path.read_text()
    try:
        path.write_text(kept.replace('"a"', '"zz"'))
        with pytest.raises(RunError, match=r"another vocabulary \(token \d+ is 'zz' there and 'a' here\)"):
            create(start_from=parent)
    finally:
        path.write_text(kept)


def test_another_corpus_is_refused(parent):
    with pytest.raises(RunError, match="vocab_size 24 there and 47 here"):
        create(corpus="dates", start_from=parent)


def test_a_parent_that_is_not_there_or_has_no_weights_is_refused():
    with pytest.raises(RunError, match="there is no model 'gone'"):
        start_of("gone")
    with pytest.raises(RunError, match="has no weights yet"):
        start_of(create(name="waiting"))


def test_a_start_that_went_missing_is_a_sentence(parent):
    child = create(start_from=parent)
    (folder_of(child) / START_FILE).unlink()
    with pytest.raises(RunError, match="began with the weights of parent, which did not come with it"):
        same_start(folder_of(child), read_settings(folder_of(child)))
    status = train_run(child)
    assert status.state == "failed" and START_FILE in status.error
