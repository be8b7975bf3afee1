"""Tests that a model's use of its source is measured pair by pair, and that only a model without it is told."""

from dataclasses import replace

import pytest
import tiny_runs
import torch
from torch.nn.functional import cross_entropy

from transformer.analysis.training.doctor import source_ignored
from transformer.analysis.training.findings import Finding
from transformer.analysis.training.source_use import mean_cosine, source_use
from transformer.checkpoints.settings import SHIPPED_FOLDER
from transformer.checkpoints.store import load_checkpoint
from transformer.config import PRESETS, CorpusConfig, ModelConfig, TrainConfig
from transformer.data.corpora import corpus_tokenizer, load_corpus
from transformer.text.pairs import Pair
from transformer.text.tokenizer import BOS, EOS
from transformer.training.loop import train_steps
from transformer.training.state import new_state


def test_the_cosine_is_the_mean_over_all_pairs_of_real_tokens():
    states, lengths = torch.randn(2, 5, 8, dtype=torch.float64), (5, 3)
    mask = torch.arange(5) < torch.tensor(lengths)[:, None]
    again = [
        torch.cosine_similarity(states[row, i], states[row, j], dim=0).item()
        for row, length in enumerate(lengths)
        for i in range(length)
        for j in range(length)
        if i != j
    ]
    assert mean_cosine(states, mask) == pytest.approx(sum(again) / len(again), abs=1e-12)


def test_the_losses_are_those_of_each_pair_alone_with_its_own_source_and_the_next():
    model, tokenizer = tiny_runs.state(tiny_runs.settings()).model.eval(), tiny_runs.tokenizer()
    pairs = tiny_runs.corpus().validation[:4]
    found = source_use(model, pairs, tokenizer)

    def loss(shift: int) -> float:
        total, tokens = 0.0, 0
        for number, pair in enumerate(pairs):
            source = torch.tensor([[*tokenizer.encode(pairs[(number + shift) % 4].source), EOS]])
            target = tokenizer.encode_target(pair.target)
            given, wanted = torch.tensor([[BOS, *target]]), torch.tensor([*target, EOS])
            with torch.no_grad():
                logits = model(source, given, torch.ones_like(source).bool(), torch.ones_like(given).bool())
            total += cross_entropy(logits[0], wanted, reduction="sum").item()
            tokens += len(wanted)
        return total / tokens

    assert found.loss == pytest.approx(loss(0), abs=1e-5)
    assert found.exchanged == pytest.approx(loss(1), abs=1e-5)
    assert found.n_pairs == 4


def test_of_one_pair_or_equal_sources_nothing_is_measured():
    model, tokenizer = tiny_runs.state(tiny_runs.settings()).model, tiny_runs.tokenizer()
    (pair,) = tiny_runs.corpus().validation[:1]
    assert source_use(model, [pair], tokenizer) is None
    assert source_use(model, [pair, Pair(pair.source, pair.source)], tokenizer) is None


@pytest.mark.parametrize("name", ["reverse", "reverse-learned", "pronouns-en-fr", "pronouns-en-fr-learned"])
def test_the_shipped_models_use_their_source(name):
    checkpoint, corpus = load_checkpoint(SHIPPED_FOLDER / name), load_corpus(name.removesuffix("-learned"))
    found = source_use(checkpoint.model, corpus.validation, checkpoint.tokenizer)
    assert found.rise > 1
    assert source_ignored(found, checkpoint.model.config, TrainConfig()) is None


COLLAPSING = TrainConfig(
    max_steps=150, batch_tokens=512, learning_rate=1e-2, warmup_steps=10, schedule="constant", evaluate_every=150
)
DEEP = replace(PRESETS["tiny"], d_model=32, n_heads=2, d_ff=64, n_encoder_layers=4)


def diagnosed(model: ModelConfig, train: TrainConfig) -> Finding | None:
    """The finding on a model of the pronoun corpus after these steps, whose loss has fallen below 2 nats."""
    corpus = load_corpus("pronouns-en-fr")
    tokenizer = corpus_tokenizer(corpus, CorpusConfig(name="pronouns-en-fr"))
    state = new_state(replace(model, vocab_size=tokenizer.vocab_size), train, tiny_runs.CPU)
    *_, last = train_steps(state, train, corpus, tokenizer)
    assert last.step == train.max_steps
    found = source_use(state.model.eval(), corpus.validation, tokenizer)
    assert found.loss < 2.2
    return source_ignored(found, model, train)


@pytest.mark.slow
def test_a_run_that_collapses_is_told_though_its_loss_falls():
    """At a rate that is too high, four layers of post-norm learn what French looks like and nothing of the English."""
    finding = diagnosed(DEEP, COLLAPSING)
    assert finding is not None and "changes by 0 nats" in finding.sentence
    for advice in ("than 0.01", "than 10 steps", "(pre)", "Muon"):
        assert advice in finding.advice


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [dict(learning_rate=2.5e-3), dict(warmup_steps=100), dict(norm="pre"), dict(optimizer="muon")],
    ids=str,
)
def test_whatever_the_doctor_advises_helps(changes):
    model = {name: value for name, value in changes.items() if name == "norm"}
    train = {name: value for name, value in changes.items() if name != "norm"}
    assert diagnosed(replace(DEEP, **model), replace(COLLAPSING, max_steps=200, **train)) is None


def test_a_model_whose_encoder_says_the_same_of_every_token_is_told():
    state = tiny_runs.state(tiny_runs.settings())
    with torch.no_grad():
        last = state.model.encoder.layers[-1].add_norm_ffn.norm
        last.weight.zero_()
        last.bias.fill_(1.0)
    found = source_use(state.model.eval(), tiny_runs.corpus().validation, tiny_runs.tokenizer())
    assert found.cosine == pytest.approx(1.0) and found.rise == pytest.approx(0.0, abs=1e-6)
    finding = source_ignored(found, tiny_runs.MODEL, TrainConfig(learning_rate=4e-3, warmup_steps=800))
    assert finding.severity == "serious"
    assert "The output does not depend on the source" in finding.sentence and "mean cosine 1.0000" in finding.sentence
    assert "lower peak learning rate than 0.004" in finding.advice and "longer warm-up than 800 steps" in finding.advice
