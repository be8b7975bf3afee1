"""The plan behind the Train page's fields: it survives a URL, and refuses in sentences that name the way out."""

from dataclasses import replace

import pytest

from pages.common.training import timing
from pages.common.training.plans import CHOICES, LABELS, OWN, RECIPE, Plan, lines_of, read, recommended
from transformer.config import PRESETS
from transformer.corpora import CORPORA
from transformer.recipes import RECIPES


def as_url(plan: Plan) -> dict[str, list[str]]:
    return {name: [value] if isinstance(value, str) else value for name, value in plan.parameters().items()}


@pytest.mark.parametrize("corpus", CORPORA)
def test_what_is_recommended_has_no_fault_and_is_the_recipe(corpus):
    plan = recommended(corpus)
    model, train, chosen = plan.configs()
    assert not plan.faults() and not plan.notes() and plan.preset == RECIPE
    assert (model, train, chosen.name) == (RECIPES[corpus].model, RECIPES[corpus].train, corpus)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"d_model": 96, "positions": "learned", "learning_rate": 5e-4},
        {"until": "seconds", "seconds": 12.5, "schedule": "constant"},
        {"threads": 1, "target_percent": None},
        {"target_percent": 99.0, "sentences": ("a b c", "t & s = ?")},
        {"d_model": 130, "steps": 0},
    ],
)
@pytest.mark.parametrize("corpus", ["reverse", "pronouns-en-fr"])
def test_a_plan_survives_the_url(corpus, changes):
    plan = replace(recommended(corpus), **changes)
    assert read(as_url(plan)) == (plan, ())


def test_what_the_recipe_says_anyway_stays_out_of_the_url():
    assert recommended("reverse").parameters() == {}
    assert recommended("copy").parameters() == {"corpus": "copy"}


@pytest.mark.parametrize(
    ("name", "text"),
    [("d_model", "wide"), ("positions", "spiral"), ("learning_rate", "nan"), ("steps", "1e99"), ("corpus", "klingon")],
)
def test_a_link_that_makes_no_sense_leaves_the_recipe_and_says_so(name, text):
    plan, wrong = read({name: [text]})
    assert plan == recommended("reverse")
    assert wrong[0][0] == name and text in wrong[0][1]


FAULTS = [
    ({"d_model": 130}, "d_model", "d_model (130) must be divisible by the number of heads (4)", "128 or 132"),
    ({"d_model": 0}, "d_model", "d_model (0) must be at least 1", "64"),
    ({"n_heads": 0}, "n_heads", "Heads (0) must be at least 1", "4"),
    ({"n_encoder_layers": -1}, "n_encoder_layers", "(-1) must be at least 1", "2"),
    ({"n_decoder_layers": 99}, "n_decoder_layers", "99", "at most 24"),
    ({"d_model": 10**9, "n_heads": 1}, "d_model", "1,000,000,000", "at most 4,096"),
    ({"steps": 0}, "steps", "The number of steps (0) must be at least 1", "600"),
    (
        {"until": "seconds", "seconds": 0.0, "schedule": "paper"},
        "seconds",
        "The number of seconds (0) must be above 0",
        "60",
    ),
    ({"learning_rate": -1.0}, "learning_rate", "Learning rate (-1) must be above 0", "0.003"),
    ({"learning_rate": None}, "learning_rate", "empty", "0.003"),
    ({"label_smoothing": 1.0}, "label_smoothing", "must lie in [0, 1)", "0.1"),
    ({"dropout": 1.5}, "dropout", "must lie in [0, 1)", "0"),
    ({"threads": 0}, "threads", "must be above 0", "empty"),
    ({"seed": 1.5}, "seed", "whole number", "take 2"),
    ({"target_percent": 120.0}, "target_percent", "120", "99"),
    ({"until": "seconds", "schedule": "cosine"}, "schedule", "no known last step", "end after steps"),
    ({"sentences": tuple("abcdef")}, "sentences", "6 sentences", "5"),
]


@pytest.mark.parametrize(("changes", "field", "said", "way_out"), FAULTS)
def test_a_setting_that_cannot_work_is_refused_at_its_field_with_the_way_out(changes, field, said, way_out):
    plan = replace(recommended("reverse"), **changes)
    faults = plan.faults()
    assert list(faults) == [field]
    assert said in faults[field] and way_out in faults[field]
    with pytest.raises(ValueError, match=LABELS[field].split(",")[0]):
        plan.configs()


def test_two_faults_are_both_said():
    plan = replace(recommended("reverse"), steps=0, learning_rate=-1.0)
    assert set(plan.faults()) == {"steps", "learning_rate"}


@pytest.mark.parametrize(
    "changes",
    [
        {"d_model": 130, "learning_rate": -1.0, "steps": 0},
        {"learning_rate": None, "seed": 1.5, "n_decoder_layers": 99, "dropout": 1.5, "sentences": tuple("abcdef")},
        {"d_model": None, "n_heads": 2.5, "batch_tokens": 0, "target_percent": 120.0},
        {"until": "seconds", "seconds": 0.0, "schedule": "cosine", "threads": 0},
    ],
)
def test_every_bad_field_has_its_sentence_whatever_is_wrong_elsewhere(changes):
    plan = replace(recommended("reverse"), **changes)
    assert set(plan.faults()) == set(changes) - {"until"}


def test_the_limit_that_does_not_count_cannot_be_wrong():
    plan = replace(recommended("reverse"), until="seconds", schedule="paper", steps=None)
    assert not plan.faults() and plan.configs()
    assert not replace(recommended("reverse"), seconds=-1.0).faults()


def test_rotary_positions_need_heads_of_even_width():
    plan = replace(recommended("reverse"), d_model=66, n_heads=2, positions="rotary")
    assert "odd part (33)" in plan.faults()["d_model"] and "64 or 68" in plan.faults()["d_model"]
    assert "odd part (7)" in replace(plan, d_model=7, n_heads=1).faults()["d_model"]
    assert not replace(plan, d_model=68).faults()


def test_an_odd_width_is_only_wrong_with_sinusoids():
    plan = replace(recommended("reverse"), d_model=63, n_heads=1)
    assert "even" in plan.faults()["d_model"]
    assert not replace(plan, positions="learned").faults()


def test_a_warm_up_longer_than_the_run_is_noted_and_allowed():
    plan = replace(recommended("reverse"), steps=50, warmup_steps=100)
    assert "never reaches its peak" in plan.notes()["warmup_steps"]
    assert "mirror image" in replace(plan, positions="alibi").notes()["positions"]
    assert not plan.faults()


def test_a_preset_fills_in_the_sizes_and_is_recognised_by_them():
    plan = recommended("reverse").with_preset("medium")
    assert (plan.d_model, plan.n_heads, plan.preset) == (PRESETS["medium"].d_model, PRESETS["medium"].n_heads, "medium")
    assert replace(plan, d_ff=77).preset == OWN
    assert plan.with_preset(RECIPE) == recommended("reverse")
    assert all(recommended("reverse").with_preset(name).preset in CHOICES["preset"] for name in CHOICES["preset"])


def test_seconds_end_a_run_instead_of_steps():
    plan = replace(recommended("reverse"), until="seconds", seconds=30.0, schedule="paper")
    _, train, _ = plan.configs()
    assert train.max_seconds == 30 and train.max_steps > 100_000


def test_each_line_is_a_sentence_once():
    assert lines_of("  a  b \n\n a b\nc ") == ("a b", "c")


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.4, "0 s"), (25, "25 s"), (130, "2 min 10 s"), (1200, "20 min"), (3900, "1 h 5 min")]
)
def test_durations_are_said_in_words(seconds, said):
    assert timing.duration(seconds) == said


def test_without_a_run_no_time_is_invented():
    _, train, _ = recommended("reverse").configs()
    assert "not measured" in timing.said(train, None)
    assert timing.time_left(train, step=0, elapsed_s=0.0) is None


def test_the_time_left_is_at_the_runs_own_speed():
    _, train, _ = recommended("reverse").configs()
    assert timing.time_left(train, step=100, elapsed_s=10.0) == pytest.approx((train.max_steps - 100) / 10)
    timed = replace(train, max_seconds=30.0)
    assert timing.time_left(timed, step=100, elapsed_s=10.0) == 20
    assert timing.share_done(timed, step=100, elapsed_s=15.0) == 0.5


def test_where_nothing_was_measured_here_the_shipped_models_time_is_told_as_such():
    _, train, _ = recommended("reverse").configs()
    said = timing.said(train, None, shipped_s=61.3)
    assert "not measured here yet" in said and "the shipped model took 61 s" in said
