"""The experiments that decode and train: what they measure, and what their rules say of numbers that are known."""

import math
from dataclasses import replace

import pytest
import torch

from transformer.config import PRESETS, CorpusConfig, DecodeConfig, TrainConfig
from transformer.data.batches import encode_sources
from transformer.data.corpora import load_corpus
from transformer.experiments.outcome import Outcome
from transformer.experiments.paper import EXPERIMENTS, beam_search, heads, scaling, warm_up
from transformer.experiments.results import Results, Row
from transformer.experiments.training import HIGHEST, begin, train_briefly
from transformer.model.taps import Recorder, Site

BRIEF = TrainConfig(max_steps=2, batch_tokens=64, evaluate_pairs=4)


def results(name: str, rows: list[Row]) -> Results:
    """Returns results of made-up rows."""
    return Results(experiment=name, budget="full", rows=tuple(rows))


def row(seed: int, values: dict[str, float], **cell) -> Row:
    """Returns a made-up row."""
    return Row(cell=cell, seed=seed, values=values, elapsed_s=1.0)


def groups(verdict) -> dict[str, str]:
    """Returns the outcome of each part of the claim, as words."""
    return {name: str(outcome) for name, outcome in verdict.groups.items()}


def test_the_derivatives_of_the_softmax_are_those_of_autograd(within):
    scores = torch.randn(3, 5, dtype=torch.float64)
    jacobians = [torch.autograd.functional.jacobian(lambda s: s.softmax(dim=-1), line) for line in scores]
    expected = torch.stack([each.norm() for each in jacobians]).mean()
    within(torch.tensor(scaling._at_the_start(scores)["gradient"], dtype=torch.float64), expected, 1e-12)


def test_equal_scores_have_all_entropy_and_far_apart_ones_none():
    assert scaling._at_the_start(torch.zeros(2, 8).double())["entropy"] == pytest.approx(1.0)
    sure = scaling._at_the_start(1e4 * torch.eye(2, 8).double())
    assert sure["entropy"] == pytest.approx(0.0, abs=1e-9) and sure["gradient"] == pytest.approx(0.0, abs=1e-9)


def before_training(kind: str, d_k: int) -> dict[str, float]:
    """Returns what is measured of a kind of score before any training."""
    return scaling.measure({"steps": 0, "rate": 0.0, "score": kind, "d_k": d_k}, 0, 1)


def test_dot_products_vary_as_much_as_they_have_terms():
    for d_k in (4, 64):
        plain, scaled = (before_training(kind, d_k) for kind in ("unscaled", "scaled"))
        assert plain["variance"] == pytest.approx(d_k, rel=0.25)
        assert scaled["variance"] == pytest.approx(plain["variance"] / d_k, rel=1e-4)  # the same queries and keys


def test_models_differ_in_their_score_alone():
    for d_k in (scaling.SMALL, scaling.LARGE):
        models = [scaling._model(kind, d_k) for kind in scaling.SCORES]
        assert {model.d_model // model.n_heads for model in models} == {d_k}
        assert [(model.score, model.scale_scores) for model in models] == [
            ("dot", True),
            ("dot", False),
            ("additive", True),
        ]


@pytest.mark.parametrize("kind", scaling.SCORES)
def test_how_sharp_the_first_attention_is_leaves_out_padding(kind):
    state, read, tokenizer = begin(CorpusConfig(name="reverse"), scaling._model(kind, 16), TrainConfig(seed=0))
    first = Site.parse("encoder.0.self.weights")
    shares = []
    for pair in read.validation:
        source, mask = encode_sources([pair.source], tokenizer, max_length=64)
        state.model.eval().encode(source, mask, tap=(recorder := Recorder(first.__eq__)))
        weights = recorder.recording[first]
        shares.append(torch.distributions.Categorical(weights.double()).entropy() / math.log(source.size(1)))
    expected = torch.cat([share.flatten() for share in shares]).mean()
    assert before_training(kind, 16)["first_entropy"] == pytest.approx(float(expected), rel=1e-5)
    assert "first_entropy" not in before_training(kind, 32)


def scaling_rows(learned: dict[str, float]) -> list[Row]:
    """Returns made-up rows: unscaled scores grow with d_k, are sharper, and learn so much at the lower rate."""
    found = []
    for cell, seed in EXPERIMENTS["scaling"].plan(EXPERIMENTS["scaling"].budget()):
        unscaled, d_k, by_chance = cell["score"] == "unscaled", int(cell["d_k"]), 0.01 * (seed % 5)
        values = {
            "variance": (d_k if unscaled else 1.0) * (1 + by_chance),
            "gradient": 0.01 if unscaled else 0.2,
            "first_entropy": (0.3 if unscaled else 0.8) + by_chance * unscaled,
        }
        if cell["steps"]:
            lower = cell["rate"] == scaling.RATES[0]
            exact = learned[str(cell["score"])] if d_k == scaling.LARGE else 0.9 - by_chance
            values = {"exact_match": exact if lower else 0.0, "validation_loss": 0.1 if lower else 1.0}
        found.append(row(seed, values, **cell))
    return found


def test_scaling_holds_where_unscaled_scores_learn_less():
    verdict = scaling.judge(results("scaling", scaling_rows({"scaled": 0.9, "unscaled": 0.1, "additive": 0.9})))
    assert set(groups(verdict).values()) == {Outcome.HOLDS}
    assert "d_k = 64, each at its better rate: after 400 steps scaled 90 %, unscaled 10 %" in verdict.sentence


def test_scaling_fails_where_unscaled_scores_learn_more():
    verdict = scaling.judge(results("scaling", scaling_rows({"scaled": 0.2, "unscaled": 0.9, "additive": 0.9})))
    found = groups(verdict)
    assert found[scaling._WORSE] == Outcome.FAILS and found[scaling._VARIANCE] == found[scaling._SAME] == Outcome.HOLDS


def test_a_factor_has_the_levels_at_which_a_metric_is_measured():
    made_up = results("scaling", scaling_rows({"scaled": 0.9, "unscaled": 0.1, "additive": 0.9}))
    assert made_up.levels("steps") == (0, *scaling.STEPS) and made_up.levels("steps", "variance") == (0,)
    assert made_up.levels("rate", "exact_match") == scaling.RATES
    assert made_up.levels("d_k", "exact_match") == (scaling.SMALL, scaling.LARGE)


@pytest.mark.parametrize("gain", [-0.5, 0.0, 0.5])
def test_warm_up_is_judged_by_the_loss_without_it(gain):
    def loss(seed: int, start: str) -> float:
        sign = 1 if start == warm_up.WITH else -1
        return 1.0 + 0.01 * seed * sign + (gain if start == warm_up.WITHOUT else 0.0)

    rows = [
        row(
            seed,
            {"validation_loss": loss(seed, start), "exact_match": 0.5, "diverged": 0.0},
            norm=norm,
            rate=rate,
            start=start,
        )
        for seed in range(3)
        for norm in warm_up.NORMS
        for rate in warm_up.RATES
        for start in (warm_up.WITH, warm_up.WITHOUT)
    ]
    verdict = warm_up.EXPERIMENT.judge(results("warm-up", rows))
    expected = {-0.5: Outcome.FAILS, 0.0: Outcome.UNKNOWN, 0.5: Outcome.HOLDS}[gain]
    assert set(groups(verdict).values()) == {expected}
    assert "0 of 18 trainings diverged" in verdict.sentence


def test_the_rate_of_a_start_is_chosen_by_the_other_seeds():
    losses = {0.0003: [4.0, 4.0, 4.0, 4.0], 0.001: [2.0, 1.0, 1.1, 1.2], 0.003: [0.5, 3.0, 3.1, 3.2]}
    rows = [
        row(
            seed,
            {"validation_loss": loss if start == warm_up.WITH else 10.0, "exact_match": 0.5, "diverged": 0.0},
            norm="post",
            rate=rate,
            start=start,
        )
        for rate, of_seeds in losses.items()
        for seed, loss in enumerate(of_seeds)
        for start in (warm_up.WITH, warm_up.WITHOUT)
    ]
    best, found = warm_up.COMPARISONS[0], results("warm-up", rows)
    gaps = best.again([{**each.cell, "seed": each.seed, **each.values} for each in rows])
    assert gaps == pytest.approx([10 - loss for loss in losses[0.001]])  # though the first seed is lucky at 0.003
    assert best.finding(found).estimate == pytest.approx(sum(gaps) / 4)


def test_heads_are_judged_against_one_head_of_the_same_seed():
    worse = {1: 0.1, heads.HEADS[-1]: -0.1}
    rows = [
        row(
            seed,
            {"validation_loss": seed + worse.get(n, 0.0) - 0.001 * seed * n, "exact_match": 0.5},
            task=task,
            heads=n,
            steps=steps,
        )
        for seed in heads.SEEDS
        for task in heads.TASKS
        for n in heads.HEADS
        for steps in heads.STEPS
    ]
    verdict = heads.EXPERIMENT.verdict(results("heads", rows))
    assert verdict.outcome is Outcome.HOLDS  # seeds lie far apart, pairs do not
    assert list(verdict.groups.values()) == [Outcome.HOLDS, Outcome.FAILS]


def test_a_beam_of_one_is_greedy_and_held_out_names_are_unseen():
    lab, pairs = beam_search.load_model("emoji-en-fr"), beam_search.held_out("emoji-en-fr")
    seen = {pair.source for pair in load_corpus("emoji-en-fr").train}
    assert len(pairs) >= beam_search.GROUP * beam_search.GROUPS and not seen & {pair.source for pair in pairs}
    greedy = {"model": "emoji-en-fr", "beam": 1, "alpha": 0.0, "stop": beam_search.IN_FULL}
    found = beam_search.measure(greedy, 2, 1)
    texts = lab.translate([pair.source for pair in pairs[20:30]])
    assert found["length_ratio"] == pytest.approx(sum(map(len, texts)) / sum(len(pair.target) for pair in pairs[20:30]))
    wide = beam_search.measure(greedy | {"beam": 8}, 2, 1)
    assert wide["log_prob"] >= found["log_prob"]


@pytest.mark.parametrize(
    ("changed", "settings"),
    [
        ({"beam": 4}, {"beam": 4}),
        ({"alpha": 1.0}, {"alpha": 1.0}),
        ({"stop": beam_search.EARLY}, {"early_stopping": True}),
        ({}, {}),
    ],
    ids=str,
)
def test_a_beam_decodes_as_its_cell_says(monkeypatch, changed, settings):
    given, lab = [], beam_search.load_model("emoji-en-fr")
    monkeypatch.setattr(type(lab), "translations", lambda self, texts, chosen: given.append((texts, chosen)) or [])
    cell = {"model": "emoji-en-fr", "beam": 2, "alpha": 0.6, "stop": beam_search.IN_FULL}
    with pytest.raises(ValueError, match="zip"):
        beam_search.measure(cell | changed, 3, 1)
    ((texts, chosen),) = given
    assert chosen == replace(DecodeConfig(method="beam", beam=2, alpha=0.6, early_stopping=False), **settings)
    assert texts == [pair.source for pair in beam_search.held_out("emoji-en-fr")[30:40]]


def test_a_brief_training_follows_from_its_seed():
    once, again, other = (train_briefly("reverse", PRESETS["tiny"], BRIEF, seed=seed, run="x") for seed in (1, 1, 2))
    assert once == again != other
    assert once["steps_to_target"] == 52 and once["exact_match"] == 0  # never: past the end
    assert 0 < once["validation_loss"] < HIGHEST


def test_a_loss_that_is_no_number_counts_as_diverged(monkeypatch):
    wild = TrainConfig(max_steps=30, batch_tokens=64, evaluate_pairs=4, weight_decay=1e30, warmup_steps=0)
    found = train_briefly("reverse", PRESETS["tiny"], wild, seed=0, run="x")
    assert found["diverged"] == 1 and found["exact_match"] == 0 and found["validation_loss"] == HIGHEST
