"""The label-smoothed loss: torch's meaning of smoothing, sums over real tokens, and a sane start."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from random_models import ragged_batch, random_model

from transformer.config import ModelConfig, TrainConfig
from transformer.data.batches import BatchStream
from transformer.model.transformer import Transformer
from transformer.text.pairs import Pair
from transformer.text.tokenizer import EOS
from transformer.text.word_tokenizer import train_words
from transformer.training import loss as losses
from transformer.training.loss import Smoothing, smoothed_cross_entropy


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_the_loss_is_the_cross_entropy_against_mass_spread_over_all_classes(within, smoothing):
    logits, targets = torch.randn(7, 11, dtype=torch.float64), torch.randint(11, (7,))
    wanted = F.one_hot(targets, 11) * (1 - smoothing) + smoothing / 11
    expected = -(wanted * logits.log_softmax(dim=-1)).sum()
    within(smoothed_cross_entropy(logits, targets, Smoothing(smoothing)), expected, 1e-5)  # computed in float32


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_selecting_real_positions_equals_torch_ignoring_padding(within, smoothing):
    model = random_model()
    source, target = ragged_batch()
    logits, labels = model(source, target), target.roll(-1, dims=1)
    real = labels != 0
    expected = F.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=0, label_smoothing=smoothing, reduction="sum"
    )
    within(
        smoothed_cross_entropy(logits[real], labels[real], Smoothing(smoothing)), expected, 1e-4
    )  # a sum of 14 losses


def test_the_loss_of_two_batches_together_is_the_sum_of_theirs(within):
    logits, targets = torch.randn(9, 5), torch.randint(5, (9,))
    parts = smoothed_cross_entropy(logits[:4], targets[:4], Smoothing(0.1)) + smoothed_cross_entropy(
        logits[4:], targets[4:], Smoothing(0.1)
    )
    within(smoothed_cross_entropy(logits, targets, Smoothing(0.1)), parts, 1e-5)


def test_bfloat16_logits_are_summed_in_float32():
    logits, targets = torch.randn(4_000, 9), torch.randint(9, (4_000,))
    loss = smoothed_cross_entropy(logits.bfloat16(), targets)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(smoothed_cross_entropy(logits, targets).item(), rel=1e-3)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("vocab_size", [50, 2_000])
def test_the_first_loss_is_near_the_logarithm_of_the_vocabulary(tied, vocab_size):
    model = Transformer(ModelConfig(vocab_size=vocab_size, d_model=64, n_heads=4, d_ff=128, tie_output=tied)).eval()
    source, target = (torch.randint(4, vocab_size, (16, 12)) for _ in range(2))
    labels = torch.randint(4, vocab_size, (16, 12))
    loss = smoothed_cross_entropy(model(source, target).flatten(0, 1), labels.flatten()) / labels.numel()
    assert abs(loss.item() - math.log(vocab_size)) < 1


@pytest.mark.parametrize("over", [None, "words"], ids=["uniform", "unigram"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("is_fused", [False, True], ids=["as on a CPU", "as compiled on a GPU"])
def test_the_loss_by_chunks_is_that_of_all_logits(monkeypatch, within, smoothing, is_fused, over):
    monkeypatch.setattr(losses, "_CHUNK", 1_000)  # several chunks, the last of fewer rows
    if is_fused:
        monkeypatch.setattr(losses, "_compiled_slope", lambda: losses._loss_and_slope)
        monkeypatch.setattr(losses, "_chunk", lambda x, w, targets, s, wanted: losses._fused_chunk(x, w, targets, s))
    leaves = [torch.randn(n, 8, dtype=torch.float64, requires_grad=True) for n in (50, 90)]
    targets = torch.randint(90, (50,))
    spread = torch.full((90,), 1 / 90, dtype=torch.float64) if over is None else torch.rand(90).double().softmax(0)
    given = Smoothing(smoothing, None if over is None else spread)
    found = losses.projected_cross_entropy(*leaves, targets, given) * 3
    expected = smoothed_in_double(F.linear(*leaves), targets, smoothing, spread) * 3
    within(found, expected, 1e-9)
    for one, other in zip(*(torch.autograd.grad(loss, leaves) for loss in (found, expected)), strict=True):
        within(one, other, 1e-11)


def smoothed_in_double(logits, targets, smoothing, spread):
    """The cross-entropy against the target distribution, written out."""
    wanted = (1 - smoothing) * F.one_hot(targets, len(spread)).double() + smoothing * spread
    return -(wanted * logits.log_softmax(dim=-1)).sum()


def test_a_unigram_smoothing_follows_what_training_predicts(within):
    pairs = [Pair("a b", "a a b"), Pair("c", "a"), Pair("a " * 40, "c")]  # the last one is too long for the model
    words = train_words([side for pair in pairs for side in (pair.source, pair.target)], None)
    stream = BatchStream(pairs, words, batch_tokens=64, seed=0, max_length=16)
    config = TrainConfig(label_smoothing=0.2, smoothing="unigram")
    over = losses.smoothing_of(config, stream, words.vocab_size + 1, torch.device("cpu")).over
    expected = torch.zeros(words.vocab_size + 1)
    for token, count in zip([*words.encode_target("a b"), EOS], (3, 1, 2), strict=True):
        expected[token] = count / 6
    within(over, expected, 1e-7)
    for other in ({"smoothing": "uniform"}, {"label_smoothing": 0.0}):
        assert losses.smoothing_of(replace(config, **other), stream, words.vocab_size, torch.device("cpu")).over is None


def test_a_unigram_smoothing_is_that_of_the_target_distribution_written_out(within):
    logits, targets, over = torch.randn(7, 11), torch.randint(11, (7,)), torch.rand(11).softmax(0)
    expected = smoothed_in_double(logits.double(), targets, 0.3, over.double())
    within(smoothed_cross_entropy(logits, targets, Smoothing(0.3, over)).double(), expected, 1e-4)
    assert smoothed_cross_entropy(logits, targets, Smoothing(0.0, over)) == smoothed_cross_entropy(logits, targets)
