"""The race: two runs on the same data and seed, followed in one picture, and an end that is told in their numbers."""

import json
from dataclasses import replace
from itertools import islice

import pytest
import tiny_runs
import torch
from page_models import checked, component, matrix, open_page, texts
from page_runs import READABLE, UNREADABLE, at_work, notes, put_status, trained_run, typed_string

from pages.race.choices import MATCHES, OPTIMIZERS, PLACES, WHOLE, Race, Racer
from pages.race.curves import curves_of, parts_of
from pages.race.ending import verdict
from pages.race.titles import summary, titles
from pages.shared.live.watches import Look
from pages.training.live.results import Result, result_of
from pages.training.live.settings import PARTS, TASKS
from transformer.data.batches import BatchStream
from transformer.data.corpora import corpus_tokenizer, load_corpus
from transformer.runs import run_folder
from transformer.runs.status import RunError
from transformer.runs.worker import train_run


@pytest.fixture(autouse=True)
def started(monkeypatch, tmp_path):
    """The runs that were started, none of which trains; a folder of runs of one's own."""
    found = []
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    monkeypatch.setattr(run_folder, "start", lambda run_id, steps_per_s=None: found.append(run_id))
    return found


def press(at, **further):
    return checked(at.button(key="race-start").click().run(**further))


def of_match(name, **changes):
    left, right = MATCHES[name]
    return Race(left=left, right=right, **changes)


def ids():
    return {run.id for run in run_folder.list_runs()}


def batches_of(plan, n):
    """The first batches that a run of this plan learns from."""
    model, train, corpus = plan.configs()
    text = load_corpus(corpus.name)
    stream = BatchStream(
        text.train,
        corpus_tokenizer(text, corpus),
        batch_tokens=train.batch_tokens,
        seed=train.seed,
        max_length=model.max_length,
    )
    return [batch for batch, _ in islice(stream, n)]


def test_it_opens_with_a_question_and_nothing_running(started):
    at = open_page("race")
    assert at.button(key="race-start").label == "Start the race"
    assert at.selectbox(key="race-match").value == "With and without positions"
    assert "which one gets it right first?" in texts(at)
    assert not started and not ids()


def test_a_press_starts_both_runs_which_differ_in_nothing_else(started):
    at = press(open_page("race", seed="7"))
    left, right = (run_folder.get_run(run_id).settings for run_id in started)
    assert [at.query_params[f"{place}_run"] for place in PLACES] == [[run_id] for run_id in started] or [
        at.query_params[f"{place}_run"] for place in PLACES
    ] == started
    assert (left.model.positions, right.model.positions) == ("sinusoidal", "none")
    assert replace(right.model, positions="sinusoidal") == left.model
    assert (left.train, left.corpus, left.pinned) == (right.train, right.corpus, right.pinned)
    assert (left.train.seed, left.train.threads, left.pinned) == (7, 1, ("a b c d e f",))


@pytest.mark.parametrize("task", TASKS)
def test_both_sides_of_every_match_learn_from_the_same_examples_in_the_same_order(task):
    plans = [of_match(name, task=task, seed=3).plan(place) for name in MATCHES for place in PLACES]
    settings = [plan.configs()[1] for plan in plans]
    assert len({(one.max_steps, one.evaluate_every, one.evaluate_pairs) for one in settings}) == 1
    first = batches_of(plans[0], 4)
    for plan in plans[1:]:
        for one, other in zip(first, batches_of(plan, 4), strict=True):
            assert torch.equal(one.source, other.source) and torch.equal(one.target_in, other.target_in)


def test_adam_has_its_own_rate_and_averages_and_warms_up_unless_that_is_switched_off():
    adam = Racer(optimizer="adamw").plan_for("reverse", 0, "a b").configs()[1]
    assert (adam.optimizer, adam.learning_rate, adam.warmup_steps, adam.beta1, adam.beta2) == (
        "adamw",
        3e-3,
        50,
        0.9,
        0.99,
    )
    cold = Racer(optimizer="adamw", without=("warmup_steps",)).plan_for("reverse", 0, "a b").configs()[1]
    assert cold.warmup_steps == 0


def test_a_turned_knob_drops_the_race_and_leaves_no_run_behind(started):
    at = press(open_page("race", expected="left"))
    at = checked(at.selectbox(key="race-right-heads").set_value(1).run())
    assert at.query_params["right"] in ("heads:1;without:positions", ["heads:1;without:positions"])
    assert "left_run" not in at.query_params and "expected" not in at.query_params
    assert at.button(key="race-start").label == "Start the race" and len(started) == 2
    checked(at.run())
    assert not ids()


def test_a_match_sets_both_sides_and_settings_of_ones_own_make_none(started):
    at = checked(open_page("race").selectbox(key="race-match").set_value("Muon against Adam").run())
    assert at.query_params["right"] in ("optimizer:adamw", ["optimizer:adamw"])
    at = checked(at.toggle(key="race-left-part-residual").set_value(False).run())
    assert at.selectbox(key="race-match").value is None
    assert "## Muon, without residual connections" in texts(at) and "## Adam, with residual connections" in texts(at)


def test_where_the_second_run_cannot_be_made_the_first_is_not_kept(started, monkeypatch):
    create, made = run_folder.create_run, []

    def create_one(*args, **options):
        if made:
            raise RunError("the quota is used up")
        made.append(create(*args, **options))
        return made[0]

    monkeypatch.setattr(run_folder, "create_run", create_one)
    at = press(open_page("race"))
    assert "The quota is used up" in texts(at) and made and not ids() and not started
    assert "left_run" not in at.query_params


def test_pause_and_going_on_concern_those_at_work_alone(started, monkeypatch):
    paused = []
    monkeypatch.setattr(run_folder, "pause", paused.append)
    at = press(open_page("race"))
    left, right = started
    put_status(left, state="finished")
    at_work(right)
    at = checked(at.run())
    assert at.button(key="race-start").label == "Pause"
    at = press(at)
    assert paused == [right]
    put_status(right, state="paused")
    at = checked(at.run())
    assert at.button(key="race-start").label == "Go on"
    press(at)
    assert started == [left, right, right]


@pytest.mark.parametrize(("text", "note"), [*READABLE, *UNREADABLE])
def test_a_string_that_cannot_be_read_as_typed_is_told_once_at_the_field_and_the_race_goes_on(started, text, note):
    at = typed_string(open_page("race"), "race", text)
    assert notes(at) == [note], "before there is a race"
    at = press(at)
    left, right = started
    for run_id in started:
        at_work(run_id)
    at = checked(at.run())
    assert notes(at) == [note] and at.button(key="race-start").label == "Pause"
    assert at.text_input(key="race-text").value == text.strip(" \ufeff"), "nothing of it is dropped"
    at = typed_string(at, "race", "c b a")
    assert notes(at) == [] and started == [left, right]
    assert all(run_folder.get_run(run_id).status.active for run_id in started)
    for run_id in started:
        put_status(run_id, state="stopped")  # nobody trains them


def test_a_string_too_long_for_the_models_has_no_output_on_either_side():
    left, right = trained_run(), trained_run()
    at = open_page("race", left_run=left, right_run=right, text=" ".join("a" * 40))
    assert notes(at) == ["Your input has 41 tokens with its end mark, and the model takes at most 32: shorten it."]
    assert component(at, "tokens") is None and matrix(at) is None
    assert [caption.value for caption in at.caption].count("–") == 2
    (link,) = (link.proto for link in at.get("page_link") if link.proto.label == "Look into both, side by side")
    assert "text=" not in link.query_string
    at = typed_string(at, "race", "a b")
    assert notes(at) == [] and component(at, "tokens") and matrix(at)


def test_a_run_that_is_gone_is_said():
    run_id = trained_run()
    at = open_page("race", left_run=run_id, right_run="gone")
    assert "A run of this race is no longer here" in texts(at)
    assert at.button(key="race-start").label == "Start the race" and ids() == {run_id}


def test_the_end_of_a_race_is_told_and_leads_to_both_models():
    left, right = trained_run(), trained_run()
    at = open_page("race", left_run=left, right_run=right, text="a b c")
    (link,) = (link.proto for link in at.get("page_link") if link.proto.label == "Look into both, side by side")
    assert link.query_string == f"model={left}&other={right}&text=a+b+c"
    assert "Neither learned it" in texts(at)
    at = press(at)
    assert at.query_params["seed"] in ("1", ["1"]), "one seed is one sample"
    assert {left, right} < ids(), "a finished run is kept"


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"task": "magic"}, "“magic”"),
        ({"left": "brain:big"}, "“brain:big”, which has settings that do not exist; whole is used."),
        ({"right": "heads:3"}, "“heads:3”, which has settings that do not exist; whole is used."),
        ({"right": "model:rnn;heads:3"}, "model:rnn is used."),
        ({"left": ""}, ""),
        ({"left_run": "../secret"}, "cannot be a run's name"),
        ({"seed": "-5"}, "“-5”"),
        ({"expected": "both"}, "“both”"),
    ],
)
def test_nonsense_in_a_link_is_said(parameters, said):
    assert said in texts(open_page("race", **parameters)).replace("\\", "")


@pytest.mark.parametrize("name", MATCHES)
def test_the_sides_of_every_match_have_names_that_tell_them_apart_and_a_link(name):
    race = of_match(name)
    one, other = titles(race)
    assert one != other and not one[0].islower() and not other[0].islower()
    assert Race.read(race.parameters()) == (race, ())
    assert summary(race.left) != summary(race.right)


def test_every_knob_is_named_where_it_tells_the_sides_apart():
    for changes, said in (
        ({"layers": 1}, "1 layer"),
        ({"heads": 8}, "8 heads"),
        ({"positions": "learned"}, "Learned positions"),
        ({"optimizer": "adamw"}, "Adam"),
        *(({"without": (part,)}, "Without") for part in PARTS),
    ):
        one, other = titles(Race(left=WHOLE, right=replace(WHOLE, **changes)))
        assert said in other and one != other
    assert titles(Race(left=Racer(model="rnn", heads=2), right=Racer(model="rnn"))) == ("Left", "Right")
    assert titles(Race(left=WHOLE, right=Racer(model="rnn"))) == ("Transformer", "RNN")
    assert titles(Race(left=Racer(heads=1), right=Racer(model="rnn"))) == ("Transformer, 1 head", "RNN")
    assert set(OPTIMIZERS.values()) == {"Muon", "Adam"}


def result(exact=1.0, first=200, loss=0.5):
    return Result(
        exact=exact,
        loss=loss,
        steps=400,
        n_examples=200,
        first_right=first,
        seconds=None if first is None else first / 100,
    )


POSITIONS = Race(left=WHOLE, right=Racer(without=("positions",)), expected="left")


@pytest.mark.parametrize(
    ("race", "left", "right", "said"),
    [
        (
            POSITIONS,
            result(),
            result(0.06, None),
            "**With positions** was first: 95 % right at step 200, after 2.0 s of training. **Without positions** did "
            "not learn it: 6 % of 200 new examples right after 400 steps. Without positions the encoder sees which "
            "symbols there are, but not their order. As you expected.",
        ),
        (
            POSITIONS,
            result(0.5, None),
            result(0.97, 300),
            "**Without positions** was first: 95 % right at step 300, after 3.0 s of training. **With positions** "
            "learned it in part: 50 % of 200 new examples right after 400 steps. You expected something else.",
        ),
        (
            of_match("Muon against Adam"),
            result(1, 300),
            result(0.96, 375),
            "**Muon** was first: 95 % right at step 300, after 3.0 s of training. **Adam** needed 375 steps and 3.8 s.",
        ),
        (
            of_match("Four heads against one", expected="neither"),
            result(),
            result(0.99),
            "**Both learned it, and at the same step**: 95 % right for the first time at step 200. As you expected.",
        ),
        (
            of_match("Transformer against RNN"),
            result(0.9, 300),
            result(0.01, None),
            "**Neither learned it.** Transformer gets 90 % of 200 new examples right after 400 steps; RNN gets 1 % of "
            "200 new examples right after 400 steps. An RNN without attention has one vector of the input, which must "
            "hold every symbol and its place.",
        ),
        (
            Race(left=WHOLE, right=WHOLE, expected="neither"),
            result(),
            result(),
            "**Both did the same**, to the last digit: 100 % of 200 new examples right, a loss of 0.5 nats per token. "
            "The same settings and the same seed make the same run. As you expected.",
        ),
        (POSITIONS, None, result(), "**With positions** was stopped before it was tested once."),
    ],
)
def test_the_end_is_told_by_the_runs_own_numbers(race, left, right, said):
    """A side that was 95 % right for a while but is not at the end has not learned it."""
    assert verdict(race, titles(race), left, right) == said


def test_a_result_is_the_last_validation_of_the_run_and_the_first_that_was_right():
    run = run_folder.get_run(trained_run())
    assert result_of(run_folder.get_run(tiny_runs.create())) is None
    rows = [
        {
            "split": "validation",
            "step": step,
            "loss": 0.5,
            "perplexity": 1.0,
            "exact_match": exact,
            "elapsed_s": step / 10,
        }
        for step, exact in ((10, 0.02), (20, 0.96), (30, 0.99))
    ]
    (run.folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = result_of(run)
    assert (found.exact, found.first_right, found.seconds, found.has_learned) == (0.99, 20, 2.0, True)


def test_the_curves_of_both_are_streamed_as_the_page_would_draw_them():
    left, right = (run_folder.get_run(run_id) for run_id in (trained_run(), tiny_runs.create(pinned=())))
    curves = curves_of(left, right, ("Left", "Right"))
    parts = [part for part in parts_of(curves) if part.beside]
    assert [part.name for part in parts] == ["validation-loss", "exact-match"]
    assert all(part.beside == (right.folder,) for part in parts)
    for one, part in zip(curves, parts, strict=True):
        step, data = part.data(Look(left, None))
        assert data == one.described(one.view.data(one.folders)) and step == 20
        json.dumps(data, allow_nan=False)
        first, second = data["panels"][0]["series"]
        assert (first["name"], second["name"]) == ("Left", "Right")
        assert first["x"][-1] == 20 and second["x"] == []
        train = part.data(Look(left, None))[0]
    train_run(right.id)
    assert parts[0].data(Look(left, None))[0] == 2 * train, "the stream's step grows with either run"


def test_one_address_stands_for_a_race_each_time_it_is_drawn():
    left, right = (run_folder.get_run(tiny_runs.create()) for _ in range(2))
    assert parts_of(curves_of(left, right, ("a", "b"))) == parts_of(curves_of(left, right, ("a", "b")))
