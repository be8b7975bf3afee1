"""Models with a part left out, trained: losses stay finite, and a causal mask that is missing is cheated with."""

import math
from dataclasses import replace

import pytest
import tiny_runs
from random_models import random_ids, reversals

from transformer.config import ModelConfig
from transformer.decoding.greedy import teacher_forced_log_probs, translate_ids
from transformer.model.transformer import Transformer
from transformer.training.events import Evaluated, StepDone

LEARNING = ModelConfig(
    vocab_size=24,
    d_model=32,
    n_heads=2,
    d_ff=64,
    n_encoder_layers=1,
    n_decoder_layers=1,
    max_length=32,
    dropout=0.0,
    embedding_dropout=0.0,
    positions="rotary",  # "one place later" is a distance, which rotary positions learn in 100 steps
)


def trained(model=LEARNING, **changes):
    """A run of some seconds on reversal; its state and its events."""
    settings = dict(max_steps=150, batch_tokens=512, warmup_steps=20, learning_rate=1e-2, label_smoothing=0.0)
    settings |= dict(schedule="constant", evaluate_every=150, evaluate_pairs=20)
    config = tiny_runs.settings(**{**settings, **changes})
    model = replace(model, vocab_size=tiny_runs.tokenizer().vocab_size)
    state = tiny_runs.state(config, model)
    return state, tiny_runs.events(state, config)


@pytest.mark.slow
def test_without_the_causal_mask_loss_falls_to_nothing_and_free_running_output_is_nonsense():
    state, events = trained(replace(LEARNING, causal_mask=False))
    last = [event for event in events if isinstance(event, Evaluated)][-1]
    assert last.loss < 0.05
    assert last.exact_match < 0.05
    # With the mask, the same run has learned far less of the next token: it cannot read it.
    state_with_mask, honest = trained()
    with_mask = [event for event in honest if isinstance(event, Evaluated)][-1]
    assert with_mask.loss > 10 * last.loss
    # The decoder copies: it predicts the very token that it is given one place later, whatever the source says.
    source, target = reversals(32)
    foreign, wanted = random_ids(*source.shape, vocab_size=12), target[:, 1:]
    read = target[:, 2:] != 0  # the last token of a row is not among its own inputs

    def copied(model: Transformer) -> float:
        guesses = teacher_forced_log_probs(model.eval(), foreign, wanted).argmax(-1)
        return float((guesses == wanted)[:, :-1][read].double().mean())

    assert copied(state.model) > 0.8 > 0.5 > copied(state_with_mask.model)
    assert translate_ids(state.model, source, max_length=12) != [[t for t in row if t > 2] for row in target.tolist()]


@pytest.mark.parametrize(
    "changes",
    [dict(scale_scores=False), dict(residual=False), dict(norm="none"), dict(positions="none")],
    ids=["no scaling", "no residual", "no layer norm", "no positions"],
)
def test_training_with_a_part_missing_runs_and_its_losses_are_finite(changes):
    state, events = trained(replace(LEARNING, **changes), max_steps=40, evaluate_every=40, warmup_steps=0)
    losses = [event.loss for event in events if isinstance(event, StepDone)]
    assert len(losses) == state.step == 40
    assert all(map(math.isfinite, losses))
    assert losses[-1] < losses[0]
