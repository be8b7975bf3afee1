"""The plan behind the Train page's fields: it survives a URL, and refuses in sentences that name the way out."""

import random
from dataclasses import asdict, replace

import pytest
from page_runs import made_run

from pages.train.plan_errors import faults, notes
from pages.training import corpora, durations
from pages.training.plan_fields import CHOICES, NO_STEP_LIMIT, OWN, PARTS, RECIPE, SETTINGS, SWITCHES
from pages.training.plans import Plan, lines_of, plan_of, recommended
from transformer.access.people import NOBODY, Person, acting_as
from transformer.config import FAMILIES, PRESETS, missing_parts
from transformer.data.corpora import CORPORA, CorpusError
from transformer.data.recipes import RECIPES
from transformer.data.uploads import save_upload
from transformer.runs import run_folder
from transformer.runs.benchmark import Benchmark, forecast


def as_url(plan: Plan) -> dict[str, list[str]]:
    return {name: [value] if isinstance(value, str) else value for name, value in plan.parameters().items()}


@pytest.mark.parametrize("corpus", CORPORA)
def test_what_is_recommended_has_no_fault_and_is_the_recipe(corpus):
    plan = recommended(corpus)
    model, train, chosen = plan.configs()
    assert not faults(plan) and not notes(plan) and plan.preset == RECIPE
    assert (model, train, chosen.name) == (RECIPES[corpus].model, RECIPES[corpus].train, corpus)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"d_model": 96, "positions": "learned", "learning_rate": 5e-4},
        {"steps": None, "seconds": 12.5, "schedule": "constant"},
        {"seconds": 60.0, "patience": 3, "device": "cpu", "precision": "bfloat16"},
        {"threads": 1, "target_percent": None},
        {"tokenizer": "bpe", "vocab_size": 500, "max_length": 40},
        {"longest": 20, "sentences": ()},
        {"score": "additive", "positions": "alibi"},
        {"causal_mask": False, "scale_scores": False, "residual": False, "norm": "none", "warmup_steps": 0},
        {"start_from": "reverse", "accumulate": 2, "activation": "gelu", "tie_output": False, "corpus_seed": 3},
        {"dropout": 0.3, "embedding_dropout": 0.1, "epsilon": 1e-12},
        {"target_percent": 99.0, "sentences": ("a b c", "t & s = ?")},
        {"d_model": 130, "steps": 0},
    ],
)
@pytest.mark.parametrize("corpus", ["reverse", "pronouns-en-fr"])
def test_a_plan_survives_the_url(corpus, changes):
    plan = replace(recommended(corpus), **changes)
    assert Plan.read(as_url(plan)) == (plan, ())


def test_what_the_recipe_says_anyway_stays_out_of_the_url():
    assert recommended("reverse").parameters() == {}
    assert recommended("copy").parameters() == {"corpus": "copy"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(
            ("d_model", "wide"),
            ("positions", "spiral"),
            ("score", "cosine"),
            ("learning_rate", "nan"),
            ("steps", "1e99"),
        ),
        *(("corpus", "klingon"), ("causal_mask", "maybe"), ("device", "../tpu"), ("start_from", "../x")),
    ],
)
def test_a_link_that_makes_no_sense_leaves_the_recipe_and_says_so(name, text):
    plan, wrong = Plan.read({name: [text]})
    assert plan == recommended("reverse")
    assert wrong[0].place == name and text in wrong[0].sentence


FAULTS = [
    ({"d_model": 130}, "d_model", "d_model (130) must be divisible by the number of heads (4)", "128 or 132"),
    ({"d_model": 0}, "d_model", "d_model (0) must be at least 1", "64"),
    ({"n_heads": 0}, "n_heads", "The number of heads (0) must be at least 1", "4"),
    ({"n_encoder_layers": -1}, "n_encoder_layers", "(-1) must be at least 1", "2"),
    ({"n_decoder_layers": 99}, "n_decoder_layers", "99", "at most 24"),
    ({"d_model": 10**9, "n_heads": 1}, "d_model", "1,000,000,000", "at most 4,096"),
    ({"steps": 0}, "steps", "The number of steps (0) must be at least 1", "400"),
    ({"seconds": 0.0}, "seconds", "The number of seconds (0) must be above 0", "empty"),
    ({"steps": None, "schedule": "paper"}, "steps", "Neither steps nor seconds", "400"),
    ({"patience": 0}, "patience", "(0) must be above 0", "empty"),
    ({"max_length": 0}, "max_length", "(0) must be at least 1", "64"),
    ({"vocab_size": 3}, "vocab_size", "Vocabulary (3) must be at least 8", "empty"),
    ({"longest": 100}, "longest", "The longest string (100) must be at most 64", "empty"),
    ({"device": "cuda:7"}, "device", "not present on this machine", "auto"),
    ({"attention_dropout": 2.0}, "attention_dropout", "Attention dropout (2) must lie in [0, 1)", "the recipe has 0"),
    ({"embedding_dropout": 1.0}, "embedding_dropout", "must lie in [0, 1)", "or leave the field empty"),
    ({"accumulate": 0}, "accumulate", "Batches a step (0) must be at least 1", "the recipe has 1"),
    ({"average_last": None}, "average_last", "This field is empty", "the recipe has 1"),
    ({"learning_rate": -1.0}, "learning_rate", "Learning rate (-1) must be above 0", "0.01"),
    ({"learning_rate": None}, "learning_rate", "empty", "0.01"),
    ({"label_smoothing": 1.0}, "label_smoothing", "must lie in [0, 1)", "0.1"),
    ({"dropout": 1.5}, "dropout", "must lie in [0, 1)", "0"),
    ({"threads": 0}, "threads", "must be above 0", "empty"),
    ({"seed": 1.5}, "seed", "whole number", "take 2"),
    ({"target_percent": 120.0}, "target_percent", "120", "99"),
    ({"steps": None, "seconds": 9.0, "schedule": "cosine"}, "schedule", "no known last step", "fill in the steps"),
    (
        {"schedule": "wsd", "warmup_steps": 200},
        "warmup_steps",
        "The warm-up (200) must end by step 160, from which the schedule (wsd) falls",
        "another schedule",
    ),
    ({"schedule": "wsd", "steps": 40}, "warmup_steps", "must end by step 16", "more in all"),
    ({"sentences": tuple("abcdef")}, "sentences", "6 sentences", "5"),
    (
        {"score": "additive", "positions": "rotary"},
        "score",
        "The score (additive) cannot go with positions (rotary)",
        "other positions",
    ),
    (
        {"score": "additive", "scale_scores": False},
        "score",
        "so that the division by √d_k (off) would do nothing",
        "switch that on",
    ),
]


@pytest.mark.parametrize(("changes", "field", "said", "way_out"), FAULTS)
def test_a_setting_that_cannot_work_is_refused_at_its_field_with_the_way_out(changes, field, said, way_out):
    plan = replace(recommended("reverse"), **changes)
    found = faults(plan)
    assert list(found) == [field]
    assert said in found[field] and way_out in found[field]


def test_two_faults_are_both_said():
    plan = replace(recommended("reverse"), steps=0, learning_rate=-1.0)
    assert set(faults(plan)) == {"steps", "learning_rate"}


@pytest.mark.parametrize(
    "changes",
    [
        {"d_model": 130, "learning_rate": -1.0, "steps": 0},
        {"learning_rate": None, "seed": 1.5, "n_decoder_layers": 99, "dropout": 1.5, "sentences": tuple("abcdef")},
        {"d_model": None, "n_heads": 2.5, "batch_tokens": 0, "target_percent": 120.0},
        {"seconds": 0.0, "threads": 0, "vocab_size": 2, "device": "mars"},
    ],
)
def test_every_bad_field_has_its_sentence_whatever_is_wrong_elsewhere(changes):
    plan = replace(recommended("reverse"), **changes)
    assert set(faults(plan)) == set(changes)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_plan_without_a_fault_has_settings_that_a_run_can_have(family):
    draw, numbers, accepted = random.Random(0), (-1, 0, 0.5, 1, 2, 3, 8, 63, 100, 1e6, None), 0
    for _ in range(300):
        changes: dict = {}
        for name in draw.sample(sorted(SETTINGS.keys() - {"corpus", "columns", "device"}), 4):
            values = (True, False) if name in SWITCHES else CHOICES.get(name, numbers)
            changes[name] = draw.choice(values)
        plan = replace(recommended("reverse", family), **changes)
        if not faults(plan):
            plan.configs()  # raises nothing
            accepted += 1
    assert accepted > 50


def test_a_longest_string_is_for_the_tasks_that_have_one():
    assert "copy, reverse, sort" in faults(replace(recommended("dates"), longest=20))["longest"]
    plan = replace(recommended("reverse"), longest=20)
    assert not faults(plan) and plan.configs()[2].longest == 20


def test_rotary_positions_need_heads_of_even_width():
    plan = replace(recommended("reverse"), d_model=66, n_heads=2, positions="rotary")
    assert "odd part (33)" in faults(plan)["d_model"] and "64 or 68" in faults(plan)["d_model"]
    assert "odd part (7)" in faults(replace(plan, d_model=7, n_heads=1))["d_model"]
    assert not faults(replace(plan, d_model=68))


def test_an_odd_width_is_only_wrong_with_sinusoids():
    plan = replace(recommended("reverse"), d_model=63, n_heads=1)
    assert "even" in faults(plan)["d_model"]
    assert not faults(replace(plan, positions="learned"))


def test_a_warm_up_longer_than_the_run_is_noted_and_allowed():
    plan = replace(recommended("reverse"), steps=50, warmup_steps=100)
    assert "never reaches its peak" in notes(plan)["warmup_steps"]
    assert "which way a sentence runs" in notes(replace(plan, positions="alibi"))["positions"]
    assert not faults(plan)


def test_a_preset_fills_in_the_sizes_and_is_recognised_by_them():
    plan = recommended("reverse").with_preset("medium")
    assert (plan.d_model, plan.n_heads, plan.preset) == (PRESETS["medium"].d_model, PRESETS["medium"].n_heads, "medium")
    assert replace(plan, d_ff=77).preset == OWN
    assert plan.with_preset(RECIPE) == recommended("reverse")
    assert all(recommended("reverse").with_preset(name).preset in CHOICES["preset"] for name in CHOICES["preset"])


def test_steps_seconds_or_both_end_a_run():
    plan = replace(recommended("reverse"), seconds=30.0, schedule="paper")
    _, both, _ = plan.configs()
    assert (both.max_seconds, both.max_steps) == (30, plan.steps)
    _, clock, _ = replace(plan, steps=None).configs()
    assert (clock.max_seconds, clock.max_steps) == (30, NO_STEP_LIMIT)


@pytest.mark.parametrize("part", PARTS)
def test_each_part_can_be_left_out_and_put_back(part):
    plan = replace(recommended("reverse"), positions="learned")
    without = plan.with_part(part, present=False)
    model, train, _ = without.configs()
    assert without.left_out == (part,) and len(missing_parts(model, train)) == 1 and not faults(without)
    back = without.with_part(part, present=True)
    assert back.left_out == () and (back == plan or part == "positions")


def test_a_run_becomes_the_plan_that_trains_it_again(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    run = run_folder.get_run(made_run(accumulate=2, beta2=0.95, max_seconds=7.5, patience=2))
    plan = plan_of(run.settings)
    assert Plan.read(as_url(plan)) == (plan, ()) and not faults(plan)
    model, train, corpus = plan.configs()
    assert train == run.settings.train and corpus == run.settings.corpus
    assert asdict(model) == asdict(run.settings.model) | {"vocab_size": model.vocab_size}
    assert plan.sentences == run.settings.pinned


def test_an_uploaded_corpus_is_carried_by_the_url_and_found_again_from_its_run(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    path = save_upload("mine.tsv", "".join(f"word{i} here\tmot{i} ici\n" for i in range(300)).encode())
    plan = replace(recommended(path.parent.name), seed=3, vocab_size=300, max_length=40)
    assert Plan.read(as_url(plan)) == (plan, ()) and plan.corpus in as_url(plan)["corpus"][0]
    model, train, corpus = plan.configs()
    assert corpus.name == str(path)
    run = run_folder.create_run(model, train, corpus)
    assert plan_of(run_folder.get_run(run).settings).corpus == plan.corpus
    path.unlink()
    again = plan_of(run_folder.get_run(run).settings)
    assert again.corpus == f"run:{run}" and not faults(again)
    assert again.configs()[2].name == str(tmp_path / run / "corpus" / "mine.tsv")
    gone = Plan.read({"corpus": ["0" * 24]})[1]
    assert gone[0].place == "corpus" and "bring it again" in gone[0].sentence


def test_each_line_is_a_sentence_once():
    assert lines_of("  a  b \n\n a b\nc ") == ("a b", "c")


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.4, "0 s"), (25, "25 s"), (130, "2 min 10 s"), (1200, "20 min"), (3900, "1 h 5 min")]
)
def test_durations_are_said_in_words(seconds, said):
    assert durations.duration(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.0312, "31 ms"), (0.168, "170 ms"), (0.0024, "2.4 ms"), (2.41, "2.4 s"), (168.0, "170 s")]
)
def test_the_time_of_a_step_is_said_to_two_digits(seconds, said):
    assert durations.each(seconds) == said


MEASURED = Benchmark(
    step_s=0.03,
    evaluation_s=0.5,
    snapshot_s=0.01,
    scoring_s=2.0,
    steps=40,
    n_parameters=235_008,
    device="cpu",
    precision="float32",
    threads=2,
)


def test_the_estimate_is_the_sum_of_what_was_measured():
    _, train, _ = recommended("reverse").configs()
    found = forecast(MEASURED, train)
    assert found.steps_s == pytest.approx(400 * 0.03) and found.evaluations == 16
    assert found.training_s == pytest.approx(12 + 16 * 0.5, abs=1) and found.scoring_s == 2
    said = durations.said(train, MEASURED)
    assert "about 20 s here" in said and "400 steps at 30 ms" in said and "2 s for held-out pairs" in said
    assert "at most" in durations.said(replace(train, target_exact_match=0.99), MEASURED)
    assert "beside reverse-1" in durations.said(train, MEASURED, beside=["reverse-1"])
    assert "here once a and b have ended: " in durations.said(train, MEASURED, after=["a", "b"])


def test_the_clock_bounds_the_estimate():
    _, train, _ = replace(recommended("reverse"), seconds=6.0).configs()
    found = durations.estimate_of(MEASURED, train)
    assert found.training_s <= 6
    assert forecast(MEASURED, train).steps == pytest.approx(6 / (0.03 + 0.5 / 25), abs=1)


def test_the_estimate_stays_with_the_run_and_is_compared_with_what_it_took(tmp_path):
    _, train, _ = recommended("reverse").configs()
    assert durations.compared(tmp_path, train, step=400, elapsed_s=58) == ""
    durations.write_estimate(tmp_path, durations.estimate_of(MEASURED, train))
    assert durations.compared(tmp_path, train, step=400, elapsed_s=22) == "estimated 20 s, took 22 s"
    assert durations.compared(tmp_path, train, step=200, elapsed_s=13) == ""


def test_the_time_left_is_at_the_runs_own_speed():
    _, train, _ = recommended("reverse").configs()
    assert durations.time_left(train, step=100, elapsed_s=10.0) == pytest.approx((train.max_steps - 100) / 10)
    timed = replace(train, max_seconds=30.0)
    assert durations.time_left(timed, step=100, elapsed_s=10.0) == 20
    assert durations.time_left(train, step=0, elapsed_s=0.0) is None
    assert durations.share_done(timed, step=100, elapsed_s=15.0) == 0.5


def test_a_visitor_is_offered_and_reaches_their_own_files_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    content = {name: "".join(f"{name} {i}\tmot {i}\n" for i in range(300)).encode() for name in ("ada", "bob")}
    paths = {}
    for name in content:
        with acting_as(Person(id=name)):
            paths[name] = save_upload(f"{name}.tsv", content[name])
    ada, bob = (paths[name].parent.name for name in content)
    assert set(corpora.offered()) == {*CORPORA, ada, bob}, "the operator sees all"
    with acting_as(Person(id="bob")):
        assert corpora.offered() == (*CORPORA, bob)
        with pytest.raises(CorpusError, match="the file that this link names is not here: bring it again"):
            corpora.config_name(ada)
        same = save_upload("same.tsv", content["ada"])
        assert same != paths["ada"] and same.name == "same.tsv", "nobody is told who else has it"
    with acting_as(NOBODY):
        assert corpora.offered() == tuple(CORPORA)
