"""The results that come with the lab: each verdict follows from its file, recomputed by other code."""

import json
import math
import re

import pytest

from transformer.experiments import recount
from transformer.experiments.outcome import Outcome
from transformer.experiments.paper import EXPERIMENTS, listed
from transformer.experiments.results import load_results, shipped_file

VERDICTS = {
    "why-attention": Outcome.HOLDS,
    "table-1": Outcome.HOLDS,
    "scaling": Outcome.HOLDS,
    "beam-search": Outcome.UNKNOWN,
    "warm-up": Outcome.UNKNOWN,
    "heads": Outcome.UNKNOWN,
    "alignment": Outcome.FAILS,
    "parallel-training": Outcome.HOLDS,
    "averaging": Outcome.HOLDS,
    "table-3": Outcome.FAILS,
    "regularisation": Outcome.UNKNOWN,
}
"""The verdict of each experiment as the documents repeat it."""
shipped = pytest.mark.parametrize("name", VERDICTS)


def rows_of(name: str) -> list[dict]:
    """Returns the rows of the file, read by no code of the library."""
    content = json.loads(shipped_file(name).read_text(encoding="utf-8"))
    return [dict(zip(content["columns"], row, strict=True)) for row in content["rows"]]


def test_all_experiments_with_results_have_a_verdict_here():
    assert {each.name for each in listed()} == set(VERDICTS) <= set(EXPERIMENTS)


@shipped
def test_a_critic_is_answered_in_whole_sentences(name):
    objections = EXPERIMENTS[name].objections
    assert len(objections) >= 2
    assert all(said.endswith((".", "?")) for pair in objections.items() for said in pair)


@shipped
def test_the_verdict_is_recomputed_from_the_file(name):
    experiment = EXPERIMENTS[name]
    verdict = experiment.verdict(load_results(name))
    again = experiment.again(rows_of(name))
    assert {found.name for found in verdict.findings} == set(again)
    outcomes, p_values = {}, {}
    for found in verdict.findings:
        values = again[found.name]
        estimate, low, high = recount.mean_and_ends(values, found.method)
        assert (found.estimate, found.low, found.high) == pytest.approx((estimate, low, high), rel=1e-3, abs=1e-6)
        p_values[found.name] = recount.p_value(values, found.method, found.least, found.most)
        assert found.p == pytest.approx(p_values[found.name], rel=1e-3, abs=1e-9)
        inside, outside = found.least <= low and high <= found.most, high < found.least or low > found.most
        outcomes[found.name] = Outcome.HOLDS if inside else Outcome.FAILS if outside else Outcome.UNKNOWN
    told = recount.holm({name: p for name, p in p_values.items() if name != verdict.primary})
    others = {name: out if name in told else Outcome.UNKNOWN for name, out in outcomes.items()}
    assert verdict.outcomes == others | {verdict.primary: verdict.outcome}
    short = experiment.competence.again(rows_of(name)) if experiment.competence is not None else {}
    assert verdict.unlearned == pytest.approx(short)
    assert verdict.outcome is (Outcome.UNLEARNED if short else outcomes[verdict.primary]) is VERDICTS[name]


@shipped
def test_a_file_is_whole_and_says_how_it_was_made(name):
    experiment, results = EXPERIMENTS[name], load_results(name)
    budget = experiment.budget()
    assert results.budget == budget.name
    plan = [(tuple(cell.items()), seed) for cell, seed in experiment.plan(budget)]
    assert [(tuple(row.cell.items()), row.seed) for row in results.rows] == plan
    assert len(budget.seeds) >= 5, "a verdict hangs on it"
    assert results.command.startswith(f"python -m transformer experiment run {name} --out checkpoints/experiments/")
    assert re.fullmatch(r"[0-9a-f]{10}(, [0-9a-f]{10})*", results.commit), "made by code that is in the history"
    assert {"python", "torch", "numpy"} <= set(results.versions) and results.created and results.machine
    assert all(math.isfinite(value) for row in results.rows for value in row.values.values())
    assert shipped_file(name).stat().st_size < 300_000


@shipped
def test_the_sentence_names_no_number_that_is_missing(name):
    sentence = EXPERIMENTS[name].verdict(load_results(name)).sentence
    assert "nan" not in sentence and sentence.endswith(".")
