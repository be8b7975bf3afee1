"""A decoding records a bounded number of bytes, however long the model's outputs may be."""

import numpy as np
import pytest

from transformer.config import LONGEST_MODEL, ModelConfig, RecurrentConfig
from transformer.inspection import inspection
from transformer.inspection.inspection import MAX_RECORDED_BYTES, most_steps, newest_rows
from transformer.interventions import DisableMask
from transformer.lab import Lab, load
from transformer.model.families import build_model


@pytest.mark.parametrize("kind", [ModelConfig, RecurrentConfig])
def test_a_model_of_the_longest_sentences_stays_within_the_bytes(kind):
    small = {"vocab_size": 100, "d_model": 16, "n_encoder_layers": 2, "n_decoder_layers": 2}
    small |= {"n_heads": 4} if kind is ModelConfig else {}
    model = build_model(kind(max_length=LONGEST_MODEL, **small))
    n = most_steps(model, 100)
    assert 500 < n <= LONGEST_MODEL
    attention = 2 * (4 * 4 + 1) * n * (n + 100) if kind is ModelConfig else 0
    assert attention + 4 * 100 * n <= MAX_RECORDED_BYTES


@pytest.mark.parametrize("name", ["pronouns-en-fr", "reverse", "reverse-rnn-attention", "reverse-conv"])
def test_the_shipped_models_reach_their_own_limit(name):
    model = load(name).model
    assert most_steps(model, model.config.max_length) == model.config.max_length


def test_a_longer_output_is_cut_off_and_says_that_it_did_not_end(monkeypatch):
    lab = load("reverse")
    whole = lab.inspect("a b c d e f")
    row = whole.decoder_self.weights[:, :, 0, 0].nbytes + whole.decoder_self.mask[:, 0, 0].nbytes
    monkeypatch.setattr(inspection, "MAX_RECORDED_BYTES", 3 * (row * (3 + 7) + whole.log_probs[0].nbytes))
    cut = lab.inspect("a b c d e f")
    assert whole.ended and not cut.ended and cut.target_ids == whole.target_ids[:3]
    assert np.array_equal(cut.cross.weights, whole.cross.weights[:, :, :3])


def test_steps_that_pass_the_whole_prefix_keep_their_newest_rows_alone(monkeypatch):
    lab: Lab = load("reverse")
    trimmed = lab.inspect("a b c d", [DisableMask("causal")])
    kept = []
    monkeypatch.setattr("transformer.lab.newest_rows", lambda step: kept.append(newest_rows(step)) or step)
    whole = lab.inspect("a b c d", [DisableMask("causal")])
    for kind, attention in whole.attentions.items():
        assert np.array_equal(trimmed.attentions[kind].weights, attention.weights)
        assert np.array_equal(trimmed.attentions[kind].mask, attention.mask)
    sizes = [t.size(-2) for step in kept[1:] for t in step.recording.values()]
    assert len(kept) == len(whole.target_ids) - 1 and set(sizes) == {1}
