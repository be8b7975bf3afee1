"""The experiment on attention and length: its models are equal in size, and its rule says what the numbers say."""

from dataclasses import replace
from statistics import fmean

import pytest

from transformer.config import CorpusConfig
from transformer.data.batches import fits
from transformer.data.corpora import corpus_tokenizer, load_corpus
from transformer.experiments import recount
from transformer.experiments.estimate import START_S, estimated_s
from transformer.experiments.outcome import Outcome
from transformer.experiments.paper import why_attention
from transformer.experiments.paper.why_attention import (
    EXPERIMENT,
    LONG,
    MODELS,
    PRONOUNS,
    SHORT,
    STEPS,
    TASKS,
    VECTOR,
    WITH,
    measure,
    pairs_of,
)
from transformer.experiments.paper.why_attention import _in_place as in_place
from transformer.experiments.results import Results, Row, load_results
from transformer.model.families import count_parameters


def results(of):
    """Made-up shares of symbols in place, by (model, length)."""
    rows = []
    for cell, seed in EXPERIMENT.plan(EXPERIMENT.budget("long")):
        share = of.get((cell["model"], cell["length"]), 1.0) - 0.001 * (seed % 5) * (cell["model"] == VECTOR)
        if cell["steps"] < max(STEPS):
            share = (0.9 if cell["model"] == VECTOR else 0.5) - 0.001 * (seed % 5)  # it decides nothing
        rows.append(Row(cell=cell, seed=seed, values={"symbols": share, "exact_match": share}, elapsed_s=1.0))
    return Results(experiment="why-attention", budget="long", rows=tuple(rows))


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_the_models_have_equally_many_parameters(task):
    vocab_size = corpus_tokenizer(load_corpus(task.corpus), task.corpus).vocab_size
    counts = [count_parameters(replace(model, vocab_size=vocab_size)) for model in task.models.values()]
    assert max(counts) <= 1.012 * min(counts)


@pytest.mark.slow
@pytest.mark.parametrize("length", [5, 11, 13])
def test_pronoun_sentences_are_held_out_and_past_the_longest_of_training_they_do_not_fit_there(length):
    pairs, corpus = pairs_of(PRONOUNS, length), load_corpus(PRONOUNS)
    tokenizer = corpus_tokenizer(corpus, CorpusConfig(name=PRONOUNS))
    assert len(pairs) == 200 and all(len(pair.source.split()) == length for pair in pairs)
    assert set(pairs) <= set(corpus.held_out["random"])
    longest = TASKS[PRONOUNS].models[WITH].max_length
    assert sum(fits(pair, tokenizer, longest) for pair in pairs) == (200 if length <= 11 else 0)


@pytest.mark.slow_variants
@pytest.mark.parametrize("model", MODELS)
def test_longer_sentences_than_in_training_are_translated(model):
    found = measure({"task": PRONOUNS, "model": model, "steps": 2, "length": 13}, 0, 1)
    assert 0 <= found["exact_match"] <= found["symbols"] <= 1


@pytest.mark.parametrize(
    ("shares", "outcome", "besides"),
    [
        ({(VECTOR, LONG): 0.2}, Outcome.HOLDS, Outcome.HOLDS),
        ({(WITH, LONG): 0.2}, Outcome.FAILS, Outcome.FAILS),
        # It lost less by length.
        ({(WITH, LONG): 0.55, (VECTOR, LONG): 0.5, (VECTOR, SHORT): 0.92}, Outcome.HOLDS, Outcome.FAILS),
        # It had not learned the short ones.
        ({(VECTOR, LONG): 0.5, (VECTOR, SHORT): 0.2}, Outcome.UNLEARNED, Outcome.FAILS),
    ],
    ids=str,
)
def test_the_rule(shares, outcome, besides):
    found = results(shares)
    verdict = EXPERIMENT.verdict(found)
    assert verdict.outcome is outcome
    assert verdict.outcomes[f"reverse, {SHORT} to {LONG}"] is besides
    assert verdict.outcomes[f"reverse, length {LONG}, {min(STEPS):,} steps"] is Outcome.FAILS
    again = EXPERIMENT.again([{**row.cell, "seed": row.seed, **row.values} for row in found.rows])
    for one in verdict.findings:
        found_again = recount.mean_and_ends(again[one.name], one.method)
        assert found_again == pytest.approx((one.estimate, one.low, one.high), abs=1e-6)


def test_symbols_are_counted_in_their_places():
    assert in_place("a b c", "a b c") == 1
    assert in_place("a c b", "a b c") == pytest.approx(1 / 3)
    assert in_place("", "a b") == 0 and in_place("a b c d", "a b") == 1


def test_a_model_is_trained_once_for_all_lengths():
    why_attention._trained.cache_clear()
    cells = [{"task": "reverse", "model": VECTOR, "steps": 3, "length": length} for length in (2, 4)]
    found = [measure(cell, 0, 1) for cell in cells]
    assert all(set(values) == {"exact_match", "symbols"} for values in found)
    assert found == [measure(cell, 0, 1) for cell in cells]
    assert why_attention._trained.cache_info().misses == 1


def test_the_lengths_of_a_training_follow_each_other():
    plan = EXPERIMENT.plan(EXPERIMENT.budget("long"))
    trainings = [(cell["model"], cell["steps"], seed) for cell, seed in plan]
    begun = [each for before, each in zip([None, *trainings], trainings, strict=False) if each != before]
    assert len(begun) == len(set(begun)) < len(plan)


def test_the_estimate_of_a_budget_counts_each_training_whatever_lengths_it_tests():
    full, small = EXPERIMENT.budget(), EXPERIMENT.budget("small")
    shipped = load_results(EXPERIMENT.name)
    trainings: dict[tuple, float] = {}
    for row in shipped.rows:
        key = (row.cell["model"], row.cell["steps"], row.seed)
        trainings[key] = max(row.elapsed_s, trainings.get(key, 0.0))
    asked = {(cell["model"], cell["steps"]) for cell, _ in EXPERIMENT.plan(small)}
    once = fmean(
        sum(s for (*kind, of), s in trainings.items() if tuple(kind) in asked and of == seed) for seed in full.seeds
    )
    assert estimated_s(EXPERIMENT, small) == pytest.approx(START_S + len(small.seeds) * once, rel=0.05)
    assert estimated_s(EXPERIMENT, full) == pytest.approx(START_S + sum(row.elapsed_s for row in shipped.rows))


def test_a_training_that_is_not_shipped_is_estimated_by_its_steps():
    full = EXPERIMENT.budget()
    (shipped,) = full.levels["steps"]
    longer = replace(full, levels={**full.levels, "steps": (3 * shipped,)})
    assert 2.5 * estimated_s(EXPERIMENT, full) < estimated_s(EXPERIMENT, longer) < 3 * estimated_s(EXPERIMENT, full)
