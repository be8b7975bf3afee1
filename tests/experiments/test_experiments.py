"""The framework of the paper lab, on an experiment whose answer is known."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from fakes.experiment import CLAIMS, HALF_WIDTH, fake_experiment

from transformer.experiments import recount
from transformer.experiments.experiment import Competence
from transformer.experiments.intervals import bootstrap_interval, exponents, t_interval, t_quantile, t_tails
from transformer.experiments.measuring import run_experiment
from transformer.experiments.outcome import Finding, Outcome, Verdict, allowed_text, finding, holm, together
from transformer.experiments.paper import EXPERIMENTS, find_experiment
from transformer.experiments.results import ExperimentError, Results, Row, read_results


@pytest.mark.parametrize(
    ("claim", "outcome"), [("holds", Outcome.HOLDS), ("fails", Outcome.FAILS), ("open", Outcome.UNKNOWN)]
)
def test_a_known_experiment_gets_its_known_verdict(claim, outcome, tmp_path):
    experiment = fake_experiment(claim)
    results = run_experiment(experiment, experiment.budget(), tmp_path / "fake.json")
    verdict = experiment.judge(results)
    assert verdict.outcome is outcome and verdict.groups == {"coin": outcome}
    (found,) = verdict.findings
    assert (found.low, found.high) == pytest.approx((0.5 - HALF_WIDTH, 0.5 + HALF_WIDTH), abs=1e-4)
    assert found.interval == "95 % t interval over 3 seeds"
    assert (found.least, found.most) == CLAIMS[claim]


@pytest.mark.parametrize(
    ("asked", "short"),
    [
        (Competence(metric="share", least=0.5, arms={"one": {"coin": "fair"}}), {}),
        (Competence(metric="share", least=0.6, arms={"one": {"coin": "fair"}}), {"one": 0.5}),
        (
            Competence(metric="share", least=0.6, arms={"one": {"coin": "fair"}, "other": {"coin": "false"}}),
            {"one": 0.5},
        ),
        (Competence(metric="share", least=0.6, arms={"best": {}}, best_of="coin"), {}),
        (Competence(metric="share", least=0.8, arms={"best": {}}, best_of="coin"), {"best": 0.7}),
        (Competence(metric="share", least=0.8, arms={"not measured": {"coin": "bent"}}), {}),
    ],
)
def test_a_verdict_stays_open_while_an_arm_of_it_has_not_learned(asked, short):
    experiment = replace(fake_experiment("holds"), competence=asked)
    rows = tuple(
        Row(cell={"coin": coin}, seed=seed, values={"share": middle + 0.1 * (seed - 1)}, elapsed_s=1.0)
        for coin, middle in (("fair", 0.5), ("false", 0.7))
        for seed in range(3)
    )
    verdict = experiment.verdict(Results(experiment="fake", budget="full", rows=rows))
    assert verdict.unlearned == pytest.approx(short)
    assert verdict.outcome is verdict.outcomes["share"] is (Outcome.UNLEARNED if short else Outcome.HOLDS)
    plain = [{**row.cell, "seed": row.seed, **row.values} for row in rows]
    assert asked.again(plain) == pytest.approx(short)


def test_two_seeds_are_too_few_to_tell(tmp_path):
    experiment = fake_experiment("holds")
    results = run_experiment(experiment, experiment.budget("short"), tmp_path / "fake.json")
    verdict = experiment.judge(results)
    assert verdict.outcome is Outcome.UNKNOWN and "at least 3 are needed" in verdict.findings[0].interval


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_too_few_measurements_for_a_verdict_are_counted(name):
    with pytest.raises(ValueError, match=r"0 of [0-9,]+ measurements are too few for a verdict"):
        EXPERIMENTS[name].verdict(Results(experiment=name, budget="full"))


def test_all_cells_meet_a_seed_before_the_next_one():
    experiment = fake_experiment("holds")
    plan = [(cell["coin"], seed) for cell, seed in experiment.plan(experiment.budget())]
    assert plan == [(coin, seed) for seed in (0, 1, 2) for coin in ("fair", "false")]
    fair = replace(experiment, skips=lambda cell: cell["coin"] == "false")
    assert [cell["coin"] for cell, _ in fair.plan(fair.budget())] == ["fair"] * 3


def test_a_stopped_experiment_goes_on_where_it_was(tmp_path):
    path, met = tmp_path / "deep" / "fake.json", []

    def stop_at_the_fourth(cell, seed):
        met.append((cell["coin"], seed))
        if len(met) == 4:
            raise KeyboardInterrupt

    experiment = fake_experiment("holds", stop_at_the_fourth)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(experiment, experiment.budget(), path, command="the first command")
    assert len(read_results(path).rows) == 3
    seen = []
    results = run_experiment(experiment, experiment.budget(), path, command="another", on_row=seen.append)
    assert len(met) == 7 and len(set(met)) == 6  # the one that was interrupted is measured again, no other
    assert [(row.cell["coin"], row.seed) for row in results.rows] == [
        (cell["coin"], seed) for cell, seed in experiment.plan(experiment.budget())
    ]
    assert results.command == "the first command" and [each.done for each in seen] == [4, 5, 6]
    again = run_experiment(experiment, experiment.budget(), path)
    assert again == results and len(met) == 7


def test_measurements_that_are_added_stand_in_the_order_of_the_plan(tmp_path):
    path, experiment = tmp_path / "fake.json", fake_experiment("holds")
    budget = experiment.budget()
    run_experiment(experiment, replace(budget, levels={"coin": ("false",)}), path)
    results = run_experiment(experiment, budget, path)
    assert [(row.cell, row.seed) for row in results.rows] == list(experiment.plan(budget))


def test_results_of_another_version_are_not_mixed_with_new_ones(tmp_path):
    path, experiment = tmp_path / "fake.json", fake_experiment("holds")
    run_experiment(experiment, experiment.budget(), path)
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"versions": {"torch": "0.1"}}))
    met = []
    counted = fake_experiment("holds", lambda cell, seed: met.append(seed))
    run_experiment(counted, counted.budget(), path)
    assert len(met) == 6


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"factors": ["coin"], "metrics": [], "columns": [], "rows": [[1]]}']
)
def test_a_file_without_results_is_refused_in_a_sentence(text, tmp_path):
    path = tmp_path / "fake.json"
    path.write_text(text)
    with pytest.raises(ExperimentError, match=r"fake\.json holds no results that can be read"):
        read_results(path)


def test_unknown_names_are_answered_with_those_there_are():
    with pytest.raises(ExperimentError, match=r"there is no experiment 'table-9'; there are: .*table-1"):
        find_experiment("table-9")
    with pytest.raises(ValueError, match="fake has no budget 'huge'; choose one of: full, short"):
        fake_experiment("holds").budget("huge")


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (1.0, 2.0, Outcome.HOLDS),
        (1.2, 1.8, Outcome.HOLDS),
        (0.9, 1.5, Outcome.UNKNOWN),
        (0.0, 3.0, Outcome.UNKNOWN),
        (2.1, 2.5, Outcome.FAILS),
        (0.1, 0.9, Outcome.FAILS),
        (math.nan, math.nan, Outcome.UNKNOWN),
    ],
)
def test_an_interval_inside_holds_outside_fails_and_across_cannot_be_told(low, high, outcome):
    middle = (low + high) / 2
    given = {"name": "", "group": "", "unit": "", "interval": ""}
    found = Finding(**given, estimate=middle, low=low, high=high, least=1.0, most=2.0)
    assert found.outcome is outcome


def test_what_is_allowed_is_said_in_words():
    assert allowed_text(0.5, 2.0) == "0.5 to 2"
    assert allowed_text(0.0, math.inf) == "at least 0" and allowed_text(-math.inf, 0.5) == "at most 0.5"


def test_one_failure_fails_and_one_open_question_stays_open():
    holds, fails, unknown, unlearned = Outcome
    assert together([holds, holds]) is Outcome.HOLDS
    assert together([holds, unknown]) is Outcome.UNKNOWN
    assert together([holds, unknown, fails]) is Outcome.FAILS
    assert together([holds, fails, unlearned]) is Outcome.UNLEARNED


def numbers(name: str, values: list[float]) -> Finding:
    """Returns the finding that these are at least 0 on average."""
    return finding(name, t_interval(values), group=name, unit="", least=0.0)


CLEAR, NEAR, BELOW = [1.0, 1.1, 0.9], [0.5, 0.9, 0.6], [-1.0, -1.1, -0.9]


def test_one_finding_decides_and_the_others_must_be_the_clearer_the_more_there_are():
    first, *others = (numbers(f"{i}", values) for i, values in enumerate([NEAR, CLEAR, BELOW, NEAR]))
    verdict = Verdict(findings=(first, *others), primary="0", sentence="")
    assert 0.025 < first.p < 0.05 and first.outcome is others[2].outcome is verdict.outcome is Outcome.HOLDS
    assert list(verdict.outcomes.values()) == [Outcome.HOLDS, Outcome.HOLDS, Outcome.FAILS, Outcome.HOLDS]
    five = Verdict(
        findings=(first, *others, numbers("5", NEAR)), primary="0", sentence=""
    )  # 0.031 is more than 0.05 / 2
    assert [five.outcomes[name] for name in ("3", "5")] == [Outcome.UNKNOWN] * 2
    assert Verdict(findings=(first,), primary="not measured", sentence="").outcome is Outcome.UNKNOWN


def test_holms_correction_is_recounted_and_keeps_a_family_of_nulls_within_the_level():
    assert holm([0.01, 0.04, 0.03, 0.005]) == [True, False, False, True]  # the example of most textbooks
    rng, wrong = np.random.default_rng(0), 0
    for p_values in rng.random((4_000, 6)) ** 3 * [1, 1, 1, 1, 1, 20]:
        told = holm(list(p_values))
        assert {i for i, one in enumerate(told) if one} == recount.holm(dict(enumerate(p_values)))
    for p_values in rng.random((4_000, 6)):
        wrong += any(holm(list(p_values)))
    assert wrong / 4_000 == pytest.approx(0.05, abs=0.01)  # three standard errors


@pytest.mark.parametrize("interval", [t_interval, bootstrap_interval])
def test_a_p_value_is_the_level_whose_interval_ends_at_the_border(interval):
    values = list(np.random.default_rng(2).normal(1.0, 1.0, size=12))
    found = interval(values)
    for border in (found.low, found.high):
        assert found.p_value(border) == pytest.approx(0.05, abs=1e-4)
    for border in (0.0, 0.6, 1.3):
        again = recount.p_value(values, found.method, *((border, math.inf) if border < 1 else (-math.inf, border)))
        assert found.p_value(border) == pytest.approx(again, rel=1e-5, abs=1e-12)


def test_a_verdict_that_hangs_on_the_draws_of_the_bootstrap_says_so():
    values = list(np.random.default_rng(2).normal(1.0, 1.0, size=12))
    found = bootstrap_interval(values)
    at_the_end, far = (finding("", found, group="", unit="", least=least) for least in (found.low + 1e-6, 0.0))
    assert not at_the_end.settled and far.settled
    assert finding("", t_interval(values), group="", unit="", least=t_interval(values).low).settled


@pytest.mark.parametrize("n", [5, 28])
def test_the_smallest_effect_that_can_be_told_is_told_in_four_of_five_cases(n):
    rng, told = np.random.default_rng(0), []
    for _ in range(1_500):
        values = rng.normal(size=n)
        error = (t_quantile(n - 1) + t_quantile(n - 1, 0.4)) / math.sqrt(n)  # at the true spread, which is 1
        told.append(t_interval(list(values + error)).low > 0)
    assert np.mean(told) == pytest.approx(0.8, abs=0.06)
    values = list(rng.normal(size=n))
    expected = (t_quantile(n - 1) + t_quantile(n - 1, 0.4)) * np.std(values, ddof=1) / math.sqrt(n)
    assert t_interval(values).smallest == pytest.approx(expected)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 27, 28])
def test_the_tails_of_student_are_those_of_its_density(freedom):
    for t in (0.0, 0.3, 1.0, 2.5, 6.0):
        assert t_tails(t, freedom) == pytest.approx(1 - 2 * recount._above_zero(t, freedom), abs=1e-9)


@pytest.mark.parametrize(
    ("name", "budget"), [(name, each.name) for name in EXPERIMENTS for each in EXPERIMENTS[name].budgets]
)
def test_every_budget_measures_what_decides(name, budget):
    experiment, rng = EXPERIMENTS[name], np.random.default_rng(0)
    rows = tuple(
        Row(
            cell=cell,
            seed=seed,
            values={each.name: rng.uniform(0.1, 1.0) for each in experiment.metrics},
            elapsed_s=1.0,
        )
        for cell, seed in experiment.plan(experiment.budget(budget))
    )
    verdict = experiment.verdict(Results(experiment=name, budget=budget, rows=rows))
    assert verdict.deciding is not None and not math.isnan(verdict.deciding.p)


def test_both_ways_to_the_quantile_of_student_agree():
    for freedom in (1, 2, 4, 9, 30, 31, 39, 200):
        assert t_quantile(freedom) == pytest.approx(recount.student(freedom), rel=2e-4)


def test_t_intervals_cover_the_mean_as_often_as_they_say():
    rng = np.random.default_rng(0)
    draws = rng.normal(3.0, 2.0, size=(2_000, 5))
    covered = [(found := t_interval(list(values))).low <= 3.0 <= found.high for values in draws]
    assert np.mean(covered) == pytest.approx(0.95, abs=0.015)  # three standard errors of 2,000 draws


def test_bootstrap_intervals_are_recounted_and_about_as_wide_as_the_normal_one():
    values = list(np.random.default_rng(1).normal(size=40))
    found = bootstrap_interval(values)
    assert (found.estimate, found.low, found.high) == pytest.approx(
        recount.mean_and_ends(values, "bootstrap"), abs=1e-9
    )
    assert found.high - found.low == pytest.approx(2 * 1.96 * np.std(values) / math.sqrt(40), rel=0.1)


def test_exponents_of_a_power_law_are_found():
    sizes = [(n, d) for n in (16, 64, 256) for d in (8, 32)]
    cost = [3.0 * n**2 * d**0.5 for n, d in sizes]
    assert exponents(sizes, cost) == pytest.approx((2.0, 0.5))
    assert recount.power([2, 4, 16], [5 * n**1.5 for n in (2, 4, 16)]) == pytest.approx(1.5)


def test_every_experiment_says_all_that_a_reader_needs():
    for name, experiment in EXPERIMENTS.items():
        assert name == experiment.name
        metrics = {metric.name for metric in experiment.metrics}
        factors = {factor.name for factor in experiment.factors}
        for chart in experiment.charts:
            assert chart.metric in metrics and {chart.x, chart.by} <= factors
        for budget in experiment.budgets:
            assert set(budget.levels) == factors and len(budget.seeds) >= 3
        assert len(experiment.budgets) > 1, f"{name} has no smaller budget"
        for text in (experiment.question, experiment.claim, experiment.section, experiment.setting):
            assert text
        assert experiment.rule.endswith(".") and experiment.change_of_mind.endswith(".")
