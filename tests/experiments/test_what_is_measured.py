"""Checks what experiments train and count: their arms differ in the factors alone, and no pair is left out."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from types import SimpleNamespace

import pytest
import torch

from transformer.config import AnyModelConfig, CorpusConfig, TrainConfig
from transformer.data.corpora import load_corpus
from transformer.experiments import training
from transformer.experiments.experiment import Experiment
from transformer.experiments.paper import (
    EXPERIMENTS,
    alignment,
    averaging,
    parallel_training,
    regularisation,
    scaling,
    warm_up,
    why_attention,
)
from transformer.experiments.results import Cell, Level
from transformer.experiments.training import Trained

SEED, STEPS = 3, 60


@dataclass(frozen=True)
class Asked:
    """What a training was asked for."""

    corpus: CorpusConfig
    model: AnyModelConfig
    train: TrainConfig
    alter: object

    @property
    def settings(self) -> dict[str, object]:
        """All settings by their names; `d_k` is the width of keys that are narrowed."""
        parts = {"corpus": self.corpus, "model": self.model, "train": self.train}
        settings = {f"{part}.{name}": value for part, config in parts.items() for name, value in asdict(config).items()}
        return settings | ({"d_k": self.alter.keywords["d_k"]} if self.alter else {})


REMEMBERED = (
    alignment._measured,
    averaging._scores,
    parallel_training._seconds,
    why_attention._trained,
    why_attention.pairs_of,
)
"""Caches of the last training, for all levels that it serves."""


@pytest.fixture(autouse=True)
def nothing_remembered():
    """Measures anew in each test, and leaves nothing that a stand-in measured."""
    for each in REMEMBERED:
        each.cache_clear()
    yield
    for each in REMEMBERED:
        each.cache_clear()


class BeforeTheTrainingError(Exception):
    """Ends a measurement where its training would begin."""


@pytest.fixture
def asked_for(monkeypatch):
    """What the measurement of a cell asks to be trained; None where it trains nothing."""
    asked: list[Asked] = []

    def train(corpus, model, train, see, run, alter=None):
        asked.append(Asked(corpus, model, train, alter))
        raise BeforeTheTrainingError

    def measure(experiment: Experiment, cell: Cell) -> Asked | None:
        asked.clear()
        try:
            experiment.measure(cell, SEED, STEPS)
        except BeforeTheTrainingError:
            (only,) = asked
            return only
        return None

    monkeypatch.setattr(training, "_train", train)
    return measure


TASK = {"task": lambda task: {"corpus.name": task}}
TRAINED_FOR = {"steps": lambda steps: {"train.max_steps": steps, "train.evaluate_every": steps}}
TABLE_3 = {
    "base": {},
    "B: d_k 4": {"d_k": 4},
    "B: d_k 2": {"d_k": 2},
    "C: 1 layer": {"model.n_encoder_layers": 1, "model.n_decoder_layers": 1},
    "C: 3 layers": {"model.n_encoder_layers": 3, "model.n_decoder_layers": 3},
    "C: d_model 32": {"model.d_model": 32, "model.d_ff": 128},
    "C: d_model 96": {"model.d_model": 96, "model.d_ff": 384},
    "E: learned": {"model.positions": "learned"},
}
SCORES = {
    "scaled": {"model.score": "dot", "model.scale_scores": True},
    "unscaled": {"model.score": "dot", "model.scale_scores": False},
    "additive": {"model.score": "additive", "model.scale_scores": True},
}
MEANT: Mapping[str, Mapping[str, Callable[[Level], Mapping[str, object]]]] = {
    "heads": TASK | TRAINED_FOR | {"heads": lambda heads: {"model.n_heads": heads}},
    "warm-up": {
        "norm": lambda norm: {"model.norm": norm},
        "rate": lambda rate: {"train.learning_rate": rate},
        "start": lambda start: {"train.warmup_steps": {warm_up.WITH: STEPS // 10, warm_up.WITHOUT: 0}[start]},
    },
    "averaging": TASK | {"averaged": lambda count: {}},
    "regularisation": TRAINED_FOR
    | {
        "dropout": lambda rate: {"model.dropout": rate, "model.embedding_dropout": rate},
        "smoothing": lambda share: {"train.label_smoothing": share},
    },
    "table-3": TASK | TRAINED_FOR | {"model": TABLE_3.__getitem__},
    "scaling": {
        "steps": lambda steps: {"train.max_steps": steps},
        "rate": lambda rate: {"train.learning_rate": rate},
        "score": SCORES.__getitem__,
        "d_k": lambda d_k: {"model.n_heads": 64 // d_k},
    },
}
"""The settings that each level of a factor stands for."""


@pytest.mark.parametrize("name", MEANT)
def test_the_trainings_of_two_cells_differ_in_what_their_levels_mean_and_in_nothing_else(name, asked_for):
    experiment, meant = EXPERIMENTS[name], MEANT[name]
    assert set(meant) == {factor.name for factor in experiment.factors}
    cells = list({tuple(cell.items()): cell for cell, _ in experiment.plan(experiment.budget())}.values())
    trained = [(cell, asked.settings) for cell in cells if (asked := asked_for(experiment, cell)) is not None]
    usual = trained[0][1]
    for cell, settings in trained:
        levels = {key: value for factor, level in cell.items() for key, value in meant[factor](level).items()}
        assert settings == usual | levels
        assert (settings["train.seed"], settings["train.max_steps"]) == (SEED, cell.get("steps", STEPS))
    if name == "scaling":
        assert {cell["d_k"] for cell, _ in trained} == {scaling.SMALL, scaling.LARGE}
    else:
        assert len(trained) == len(cells)


@pytest.mark.parametrize("name", ["heads", "table-3"])
def test_losses_that_are_compared_have_no_floor_of_label_smoothing(name, asked_for):
    experiment = EXPERIMENTS[name]
    cell, _ = next(iter(experiment.plan(experiment.budget())))
    assert asked_for(experiment, cell).train.label_smoothing == 0


@pytest.mark.parametrize("task", why_attention.TASKS)
def test_each_arm_of_why_attention_is_its_own_model_and_meets_no_longer_sentence_than_it_says(task, asked_for):
    experiment = EXPERIMENTS["why-attention" if task != why_attention.PRONOUNS else "why-attention-elsewhere"]
    known = why_attention.TASKS[task]
    for name, model in known.models.items():
        asked = asked_for(experiment, {"task": task, "model": name, "steps": 7, "length": known.short})
        assert (asked.corpus, asked.model) == (known.corpus, model)
        assert (asked.train.seed, asked.train.max_steps) == (SEED, 7)
        attention = asked.model.attention if name in (why_attention.VECTOR, why_attention.WITH) else ""
        assert attention == {why_attention.VECTOR: "none", why_attention.WITH: "additive"}.get(name, "")
        positions = {why_attention.ALONE: "sinusoidal", why_attention.ROTARY: "rotary"}.get(name)
        assert positions is None or asked.model.positions == positions


def test_strings_of_training_are_as_long_as_the_setting_says():
    shown = load_corpus(why_attention.TASKS["reverse"].corpus).train
    lengths = {len(shown[index].source.split()) for index in range(2_000)}
    assert lengths == set(range(1, 17))


@pytest.mark.parametrize("length", [4, 16, 24])
def test_all_strings_of_a_length_are_translated(length, monkeypatch):
    counted = []
    monkeypatch.setattr(why_attention, "exact_match", lambda written, wanted: counted.append((written, wanted)) or 0.0)
    why_attention.measure({"task": "reverse", "model": why_attention.VECTOR, "steps": 1, "length": length}, SEED, 1)
    ((written, wanted),) = counted
    assert len(written) == len(wanted) == 200 == len(set(wanted))
    assert {len(text.split()) for text in wanted} == {length}


def test_heads_are_chosen_on_other_pairs_than_they_are_scored_on_and_all_are_of_the_validation_split(monkeypatch):
    corpus, met = load_corpus(alignment.PRONOUNS), []

    def rates(trained, pairs):
        met.append(pairs)
        n_looks = 1 if trained.model == alignment.MODELS[alignment.LSTM] else len(alignment.HEADS) + 2
        return torch.zeros(n_looks), torch.ones(n_looks)

    monkeypatch.setattr(
        alignment, "train_model", lambda corpus_config, config, *args, **kwargs: Trained(config, corpus, None)
    )
    monkeypatch.setattr(alignment, "error_rates", rates)
    translated = []
    monkeypatch.setattr(alignment, "_share_right", lambda trained, pairs: translated.append(pairs) or 1.0)
    alignment._measured(SEED, STEPS)
    assert translated == [met[1], met[3]]
    assert [len(pairs) for pairs in met] == [250] * 4 and met[:2] == met[2:]
    choosing, scored = ({pair.source for pair in pairs} for pairs in met[:2])
    validation = {pair.source for pair in corpus.validation}  # it and training share none: see test_pronoun_corpus.py
    assert not choosing & scored and choosing | scored <= validation


def test_averages_are_of_the_last_checkpoints_of_one_training(monkeypatch):
    model, scored = torch.nn.Linear(1, 1), []

    def train(corpus, config, train, *, seed, run, on_step):
        for step in range(1, train.max_steps + 1):
            torch.nn.init.constant_(model.weight, step)
            on_step(step, model)
        return Trained(model, load_corpus("sort"), None)

    def evaluate(model, pairs, tokenizer):
        scored.append(len(pairs))
        return SimpleNamespace(loss=model.weight.item(), exact_match=0.0)

    monkeypatch.setattr(averaging, "train_model", train)
    monkeypatch.setattr(averaging, "evaluate", evaluate)
    monkeypatch.setattr(averaging, "fitting", lambda pairs, tokenizer, longest, count: list(pairs)[:count])
    found = averaging._scores("sort", SEED, 200)
    assert {count: values["loss"] for count, values in found.items()} == {1: 200, 5: 180, 10: 155}
    assert scored == [500] * 3


def test_regularised_models_are_scored_on_all_names_that_they_did_not_see(monkeypatch):
    corpus, scored = load_corpus(regularisation.CORPUS), []
    monkeypatch.setattr(regularisation, "train_model", lambda *args, **kwargs: Trained(None, corpus, None))
    monkeypatch.setattr(regularisation, "_accuracy", lambda trained, pairs: scored.append(pairs) or 0.5)
    monkeypatch.setattr(
        regularisation,
        "evaluate",
        lambda model, pairs, tokenizer, overlap_scores: (
            scored.append(pairs) or SimpleNamespace(perplexity=1, chrf=None)
        ),
    )
    regularisation.measure({"dropout": 0.1, "smoothing": 0.1, "steps": 300}, SEED, STEPS)
    assert len(corpus.held_out["random"]) == 194 and len(corpus.validation) == 91
    for pairs in scored:
        assert {pair.source for pair in pairs} == {
            pair.source for pair in (*corpus.validation, *corpus.held_out["random"])
        }
    assert len(scored) == 2


def test_the_speed_of_a_model_is_its_own_and_the_least_of_the_repeats_counts(monkeypatch):
    names = list(parallel_training.MODELS)
    seconds = {name: iter([9.0, 4.0 + index, 2.0 + index, 3.0 + index]) for index, name in enumerate(names)}
    built = []

    def model(name, length):
        built.append((name, length))
        return SimpleNamespace(to=lambda device: name)

    monkeypatch.setattr(parallel_training, "_model", model)
    monkeypatch.setattr(parallel_training, "_step", lambda model, batch, device: model)
    monkeypatch.setattr(parallel_training, "_timed", lambda step, device: next(seconds[step]))
    for index, name in enumerate(names):
        cell = {"device": parallel_training.CPU, "model": name, "length": 32}
        found = parallel_training.measure(cell, SEED, 3)
        assert found == {"tokens_per_s": pytest.approx(2_048 / (2.0 + index))}
    assert built == [(name, 32) for name in names]  # all in turn, once


@pytest.mark.parametrize("length", [8, 256])
def test_batches_that_are_timed_are_all_target_tokens(length):
    batch = parallel_training._batch(length)
    assert batch.target_out.shape == (2_048 // length, length) and batch.n_tokens == 2_048
    assert batch.source_mask.all() and batch.target_mask.all()
    assert torch.equal(batch.target_in[:, 1:], batch.target_out[:, :-1])
