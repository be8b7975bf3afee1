"""Table 3 and section 5.4, small: narrow keys are what they say, and accuracy is counted token by token."""

from dataclasses import replace

import pytest
import torch

from transformer.config import PRESETS, CorpusConfig, TrainConfig
from transformer.experiments.paper import averaging, regularisation, table_3
from transformer.experiments.training import train_model
from transformer.model.attention import MultiHeadAttention
from transformer.model.families import build_model
from transformer.model.masks import AttentionMask
from transformer.model.taps import Address, Recorder, Site


def test_narrow_keys_give_the_scores_of_keys_that_are_no_wider():
    attention = MultiHeadAttention(64, 4, dropout=0.0, address=Address("encoder", 0, "self")).double().eval()
    before = {name: getattr(attention, name) for name in ("query", "key")}
    x = torch.randn(2, 5, 64, dtype=torch.float64)
    with torch.no_grad():
        q, k = (linear(x).unflatten(-1, (4, 16)).transpose(1, 2)[..., :4] for linear in before.values())
        table_3.narrow_keys(attention, 4)
        recorder = Recorder()
        attention(x, None, AttentionMask.of(torch.ones(1, 1, 1, 5, dtype=torch.bool), x.dtype), tap=recorder)
    scores = recorder.recording[Site("encoder", 0, "self", "scores")]
    torch.testing.assert_close(scores, q @ k.transpose(2, 3) / 4**0.5, rtol=0, atol=1e-12)


def test_numbers_that_take_no_part_are_not_trained_and_the_others_are():
    model = build_model(replace(table_3._BASE, vocab_size=12))
    table_3.narrow_keys(model, 2)
    source = torch.randint(3, 12, (2, 5))
    model.encode(source, torch.ones_like(source, dtype=torch.bool)).pow(2).sum().backward()
    attention = next(module for module in model.modules() if isinstance(module, MultiHeadAttention))
    gradient = attention.query.parametrizations.weight.original.grad.view(4, 16, -1)
    assert (gradient[:, 2:] == 0).all() and gradient[:, :2].abs().sum() > 0
    assert attention.value.weight.grad.view(4, 16, -1).abs().sum(dim=2).min() > 0  # values keep their width


def test_accuracy_is_that_of_a_plain_count():
    model = replace(PRESETS["tiny"], d_model=16, d_ff=32)
    train = TrainConfig(max_steps=2, batch_tokens=64)
    trained = train_model(CorpusConfig(name=regularisation.CORPUS), model, train, seed=0, run="x")
    pairs = trained.corpus.validation[:4]
    right = total = 0
    for pair in pairs:
        source = torch.tensor([[*trained.tokenizer.encode(pair.source), 2]])
        target = torch.tensor([[1, *trained.tokenizer.encode_target(pair.target), 2]])
        real = torch.ones_like(source, dtype=torch.bool)
        with torch.no_grad():
            memory = trained.model.encode(source, real)
            states = trained.model.decode(target[:, :-1], memory, real, torch.ones_like(target[:, :-1]).bool())
            right += int((trained.model.project(states).argmax(dim=-1) == target[:, 1:]).sum())
        total += target.size(1) - 1
    assert regularisation._accuracy(trained, pairs) == pytest.approx(right / total)


def test_one_checkpoint_is_the_trained_model_itself(monkeypatch):
    monkeypatch.setattr(averaging, "PAIRS", 8)
    found = [averaging.measure({"task": "sort", "averaged": count}, 0, 20) for count in (1, 5)]
    again = averaging._scores("sort", 0, 20)
    assert found == [again[1], again[5]] and found[0]["loss"] != found[1]["loss"]
