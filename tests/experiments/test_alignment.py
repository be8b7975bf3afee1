"""Attention as alignment and parallel training: error rates by other code, and rules on numbers that are known."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from transformer.config import CorpusConfig, TrainConfig
from transformer.data.corpora import PRONOUNS
from transformer.experiments import recount
from transformer.experiments.outcome import Outcome
from transformer.experiments.paper import alignment, parallel_training
from transformer.experiments.results import ExperimentError, Results, Row
from transformer.experiments.training import train_model
from transformer.model.families import count_parameters
from transformer.model.taps import Recorder

BRIEF = TrainConfig(max_steps=2, batch_tokens=256)


@pytest.mark.parametrize("name", alignment.MODELS)
def test_error_rates_are_those_of_one_pair_at_a_time(name):
    trained = train_model(CorpusConfig(name=PRONOUNS), alignment.MODELS[name], BRIEF, seed=0, run="x")
    pairs, model, tokenizer = trained.corpus.validation[:5], trained.model, trained.tokenizer
    found, _ = alignment.error_rates(trained, pairs)
    heads = model.config.n_heads * (1 if name == alignment.LSTM else model.config.n_decoder_layers)
    assert len(found) == (heads if name == alignment.LSTM else heads + 2)
    predicted, gold = set(), set()
    for number, pair in enumerate(pairs):
        source = torch.tensor([[*tokenizer.encode(pair.source), 2]])
        target = torch.tensor([[1, *tokenizer.encode_target(pair.target)]])
        recorder, real = Recorder(), torch.ones_like(source, dtype=torch.bool)
        with torch.no_grad():
            model.decode(target, model.encode(source, real), real, torch.ones_like(target).bool(), tap=recorder)
        weights = [value for site, value in recorder.recording.items() if str(site).endswith("cross.weights")]
        first = weights[0][0, 0].double().numpy()[:-1, :-1]  # the first head; words are tokens here
        predicted |= {(number, int(np.argmax(row)), place) for place, row in enumerate(first)}
        gold |= {(number, *link) for link in pair.alignment}
    expected = 1 - 2 * len(predicted & gold) / (len(predicted) + len(gold))
    assert float(found[0]) == pytest.approx(expected)


def looks(errors: dict[str, float], choosing: dict[str, float] | None = None, *, right: float = 0.99) -> Results:
    """Makes up error rates, of both trainings; where a look is not named, its rate is 0.5."""
    rows = [
        Row(
            cell={"steps": steps, "look": look},
            seed=seed,
            values={
                "error": errors.get(look, 0.5) + 0.001 * seed,
                "choosing": (choosing or errors).get(look, 0.5),
                "error_read": 0.5,
                "exact_match": right,
            },
            elapsed_s=1.0,
        )
        for seed in alignment.EXPERIMENT.budget().seeds
        for steps in alignment.STEPS
        for look in alignment.LOOKS
    ]
    return Results(experiment="alignment", budget="full", rows=tuple(rows))


GOOD = {alignment.LSTM: 0.1, alignment.HEADS[5]: 0.12, alignment.AVERAGE: 0.2, alignment.DIAGONAL: 0.4}


@pytest.mark.parametrize(
    ("changed", "outcome", "average"),
    [
        ({}, Outcome.HOLDS, Outcome.HOLDS),
        ({alignment.DIAGONAL: 0.05}, Outcome.FAILS, Outcome.HOLDS),
        ({alignment.AVERAGE: 0.02}, Outcome.HOLDS, Outcome.FAILS),
    ],
    ids=str,
)
def test_the_rule_on_alignment(changed, outcome, average):
    found = looks(GOOD | changed)
    verdict = alignment.judge(found)
    assert verdict.outcome is outcome and verdict.primary.startswith("1,600 steps: ")
    assert verdict.groups["The best head aligns better than the average"] is average
    again = alignment.again([{**row.cell, "seed": row.seed, **row.values} for row in found.rows])
    for one in verdict.findings:
        found_again = recount.mean_and_ends(again[one.name], one.method)
        assert found_again == pytest.approx((one.estimate, one.low, one.high), abs=1e-6)


def test_the_best_head_is_not_chosen_by_the_pairs_that_score_it():
    chosen = alignment.HEADS[2]
    verdict = alignment.judge(looks(GOOD, {chosen: 0.1}))
    (gap,) = (each for each in verdict.findings if each.name == "1,600 steps: best head − LSTM")
    assert gap.estimate == pytest.approx(0.5 - 0.1)


def test_models_that_translate_badly_say_nothing_of_alignment():
    assert alignment.EXPERIMENT.verdict(looks(GOOD)).outcome is Outcome.HOLDS
    assert alignment.EXPERIMENT.verdict(looks(GOOD, right=0.8)).outcome is Outcome.UNLEARNED


def test_models_that_race_are_of_equal_size_and_meet_equal_sentences():
    models = parallel_training.MODELS.values()
    counts = [count_parameters(replace(each, vocab_size=parallel_training.VOCABULARY)) for each in models]
    assert max(counts) <= 1.012 * min(counts)
    batch = parallel_training._batch(16)
    assert batch.source.shape == batch.target_in.shape == (parallel_training.TOKENS // 16, 16)
    assert (batch.target_in[:, 1:] == batch.target_out[:, :-1]).all() and batch.n_tokens == batch.target_mask.sum()


@pytest.mark.parametrize(("lead", "outcome"), [(3.0, Outcome.HOLDS), (0.5, Outcome.FAILS)])
def test_the_rule_on_parallel_training(lead, outcome):
    rows = [
        Row(
            cell={"device": "processor", "length": length, "model": model},
            seed=seed,
            values={
                "tokens_per_s": (100.0 + seed) * (lead ** (length > 8) if model == parallel_training.ALONE else 1.0)
            },
            elapsed_s=1.0,
        )
        for seed in range(3)
        for length in (8, 256)
        for model in parallel_training.MODELS
    ]
    verdict = parallel_training.judge(Results(experiment="parallel-training", budget="full", rows=tuple(rows)))
    assert verdict.outcome is outcome
    again = parallel_training.again([{**row.cell, "seed": row.seed, **row.values} for row in rows])
    for one in verdict.findings:
        found_again = recount.mean_and_ends(again[one.name], one.method)
        assert found_again == pytest.approx((one.estimate, one.low, one.high), abs=1e-6)


def test_a_gpu_that_is_not_there_is_refused_in_a_sentence(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ExperimentError, match="there is no GPU"):
        parallel_training.measure({"device": "GPU", "length": 8, "model": parallel_training.ALONE}, 0, 1)
