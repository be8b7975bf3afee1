"""The Playground: a press starts a run, a knob replaces it, and its end is told in its own numbers."""

import json
import os
import time
from dataclasses import replace
from urllib.parse import parse_qs

import numpy as np
import pytest
import tiny_runs
from page_models import checked, component, matrix, open_page, texts
from page_runs import READABLE, TOO_LONG, UNREADABLE, at_work, notes, put_status, typed_string

from pages.playground import ending
from pages.playground import guess as guess_module
from pages.playground.choices import SLOW, Knobs
from pages.playground.trials import WHOLE, trial_of
from pages.shared.live.watches import Look
from pages.training.live import parts as live_parts
from pages.training.live.clearest import Clearest, clearest_head, output_of
from pages.training.live.settings import MODELS, PARTS, TASKS
from transformer.analysis.training.progress import progress_of
from transformer.runs import run_folder
from transformer.runs.live.watched import LiveOutput
from transformer.runs.status import Status, write_status
from transformer.runs.status import run_folder as folder_of
from transformer.runs.worker import train_run
from transformer.views.training.timeline import decode_snapshot


@pytest.fixture
def started(monkeypatch, tmp_path):
    """The runs that were started, none of which trains; a folder of runs of one's own."""
    found = []
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    monkeypatch.setattr(run_folder, "start", lambda run_id, steps_per_s=None: found.append(run_id))
    return found


def parts(at):
    """The switches of parts."""
    found = [toggle for toggle in at.toggle if toggle.key.startswith("playground-part")]
    assert len(found) == len(PARTS)
    return found


def settings_of(run_id):
    return run_folder.get_run(run_id).settings


def test_it_opens_on_reverse_with_one_large_button_and_nothing_running(started):
    at = open_page("playground")
    assert at.button(key="playground-play").label == "Play"
    assert at.selectbox(key="playground-task").value == "reverse"
    assert all(toggle.value for toggle in parts(at))
    assert not started


def test_play_starts_the_run_that_train_would_start(started):
    at = checked(open_page("playground").button(key="playground-play").click().run())
    (run_id,) = started
    assert at.query_params["run"] == run_id
    model, train, _ = Knobs().plan.configs()
    found = settings_of(run_id)
    assert (replace(found.model, vocab_size=model.vocab_size), found.train, found.corpus.name) == (
        model,
        train,
        "reverse",
    )
    assert found.pinned == ("a b c d e f",)


@pytest.mark.parametrize("model", MODELS)
def test_a_run_leaves_the_other_cores_to_its_page_and_to_other_runs(model):
    assert Knobs(model=model).plan.configs()[1].threads == 1


def test_turning_a_knob_replaces_the_run_at_once_and_leaves_none_behind(started):
    at = checked(open_page("playground").button(key="playground-play").click().run())
    at = checked(at.selectbox(key="playground-heads").set_value(1).run())
    at = checked(at.toggle(key="playground-part-residual").set_value(False).run())
    assert len(started) == 3
    last = settings_of(started[-1]).model
    assert (last.n_heads, last.residual) == (1, False)
    checked(at.run())
    assert [run.id for run in run_folder.list_runs()] == [started[-1]]


def test_a_knob_turned_before_play_starts_nothing(started):
    at = checked(open_page("playground").selectbox(key="playground-task").set_value("sort").run())
    assert not started and at.query_params["task"] == "sort"


def test_every_part_can_be_taken_away_and_every_task_be_planned():
    for task in TASKS:
        for part in PARTS:
            plan = Knobs(task=task, without=(part,)).plan
            assert plan.left_out == (part,)
            plan.configs()


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"task": "magic"}, "“magic”"),
        ({"heads": "3"}, "“3”"),
        ({"layers": "77"}, "“77”"),
        ({"without": "brain"}, "“brain”"),
        ({"run": "../secret"}, "cannot be a run's name"),
        ({"seed": "-5"}, "“-5”"),
        ({"slow": "perhaps"}, "slow “perhaps”, which must be on; it is left out."),
    ],
)
def test_nonsense_in_a_link_is_said(started, parameters, said):
    assert said in texts(open_page("playground", **parameters)).replace("\\", "")


@pytest.mark.parametrize(("text", "note"), [*READABLE, *UNREADABLE])
def test_a_string_that_cannot_be_read_as_typed_is_told_at_the_field_and_the_run_goes_on(started, text, note):
    at = typed_string(open_page("playground"), "playground", text)
    assert notes(at) == [note], "before there is a run"
    at = checked(at.button(key="playground-play").click().run())
    (run_id,) = started
    at_work(run_id)
    at = checked(at.run())
    assert notes(at) == [note] and at.query_params["run"] in (run_id, [run_id])
    assert at.text_input(key="playground-text").value == text.strip(" \ufeff"), "nothing of it is dropped"
    at = typed_string(at, "playground", "c b a")
    assert notes(at) == [] and started == [run_id] and run_folder.get_run(run_id).status.active
    put_status(run_id, state="stopped")  # nobody trains it


@pytest.mark.parametrize(("text", "pinned"), [(TOO_LONG[0], ()), ("", ("a b c d e f",)), ("a Z", ("a Z",))])
def test_a_run_starts_whatever_was_typed_and_translates_what_it_can_read(started, text, pinned):
    at = typed_string(open_page("playground"), "playground", text)
    checked(at.button(key="playground-play").click().run())
    assert settings_of(started[-1]).pinned == pinned


def test_a_string_too_long_for_the_model_has_no_output_and_no_head(started):
    """Told by the run's own limit: a link may name a smaller model than the knobs make."""
    run_id = tiny_runs.create(pinned=())
    train_run(run_id)
    at = open_page("playground", run=run_id, text=" ".join("a" * 40))
    assert notes(at) == ["Your input has 41 tokens with its end mark, and the model takes at most 32: shorten it."]
    assert component(at, "tokens") is None and matrix(at) is None
    assert [caption.value for caption in at.caption].count("–") == 2
    at = typed_string(at, "playground", "a b")
    assert notes(at) == [] and component(at, "tokens") and matrix(at)


def test_of_characters_without_a_token_each_is_named_and_nothing_else(started):
    at = typed_string(open_page("playground", task="addition"), "playground", "47+8x")
    assert notes(at) == ["*x* has no token: the model reads <unk> (unknown) instead."]
    at = typed_string(at, "playground", "")
    assert notes(at) == ["Your input is empty, so the model reads *47+85* instead."]
    at = checked(at.selectbox(key="playground-task").set_value("dates").run())
    assert notes(at) == [] and at.text_input(key="playground-text").value == "March 5, 1987"


def test_a_link_with_too_long_a_string_is_told_at_the_field_alone(started):
    at = open_page("playground", text="a " * 150)
    said = texts(at).replace("\\", "")
    assert said.count("has 300 characters, but a link carries only 200") == 1
    assert "a link carries only" not in texts(typed_string(at, "playground", "a b"))


def test_a_run_that_is_gone_leaves_the_page_at_its_beginning(started):
    at = open_page("playground", run="gone")
    assert at.button(key="playground-play").label == "Play"


def test_the_end_is_told_by_the_runs_own_numbers(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    run = run_folder.get_run(tiny_runs.create())
    rows = [
        {"split": "validation", "step": step, "loss": 2.5, "perplexity": 1.0, "exact_match": exact, "elapsed_s": 1.0}
        for step, exact in ((10, 0.02), (20, 0.96), (30, 0.99))
    ]
    write_rows(run, rows[:1])
    said, onwards = ending.ending(run, Knobs(without=("positions",), expected="fails"))
    assert said.startswith("**It did not learn it.** As you expected. After") and "2 % of 10 new examples" in said
    assert said.endswith("not their order.")
    assert "causal mask away: will it still learn?" in onwards.said
    assert onwards.buttons["It will"] == {**WHOLE, "without": ("causal_mask",), "expected": "learns"}
    write_rows(run, rows)
    said, onwards = ending.ending(run, Knobs())
    assert "99 % of 10 new examples right, over 95 % for the first time at step 20" in said
    assert onwards.buttons["It won't"] == {**WHOLE, "without": ("positions",), "expected": "fails"}
    said = ending.ending(run, Knobs(heads=1, expected="fails"))[0]
    assert said.endswith("at step 20. You expected the opposite. One head in each layer is enough for it.")


def test_five_experiments_follow_a_success_each_once_and_then_another_task(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    run = run_folder.get_run(tiny_runs.create())
    row = {"split": "validation", "step": 1, "loss": 1.0, "perplexity": 1.0, "exact_match": 1.0, "elapsed_s": 1.0}
    write_rows(run, [row])
    knobs, seen = Knobs(), []
    while (onwards := ending.ending(run, knobs)[1]).said:
        knobs = knobs.changed(**onwards.buttons["It will"])
        seen.append((knobs.model, knobs.heads, knobs.without))
        knobs.plan.configs()
    assert seen == [
        ("transformer", 4, ("positions",)),
        ("transformer", 4, ("causal_mask",)),
        ("transformer", 1, ()),
        ("transformer", 1, ("scale_scores",)),
        ("rnn", 4, ()),
    ]
    one_head = Knobs(heads=1).plan.configs()[0]
    assert one_head.d_model // one_head.n_heads == 64, "as the fourth says"
    assert onwards.buttons == {"Now learn to sort": {**WHOLE, "task": "sort"}}
    assert trial_of(Knobs(layers=3)) is None and ending.ending(run, Knobs(heads=2))[1].buttons == {
        "Put everything back": WHOLE
    }


@pytest.mark.parametrize(
    ("task", "written", "said"),
    [
        ("reverse", "c b a </s>", "Your own input comes out right."),
        ("copy", "c b a </s>", "with the right letters in the wrong order"),
        ("sort", "a b c </s>", "Your own input comes out right."),
        ("reverse", "c c c c c c", "It writes 1 of your 3 letters, in the right place."),
        ("reverse", "a c a </s>", "It writes 2 of your 3 letters, 1 of them in the right place."),
        ("reverse", "</s>", "It writes 0 of your 3 letters."),
    ],
)
def test_what_a_failure_made_of_ones_own_letters_is_told(task, written, said, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    run = run_folder.get_run(tiny_runs.create())
    row = {"split": "validation", "step": 1, "loss": 1.0, "perplexity": 1.0, "exact_match": 0.0, "elapsed_s": 1.0}
    write_rows(run, [row])
    output = output_with(np.ones((1, 1, len(written.split()), 4)) / 4, written.split())
    assert said in ending.ending(run, Knobs(task=task, without=("positions",)), output)[0]


def test_a_loss_that_is_low_only_while_it_sees_its_answers_is_told_as_that(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    run, knobs = run_folder.get_run(tiny_runs.create()), Knobs(without=("causal_mask",))
    row = {"split": "validation", "step": 1, "loss": 0.1, "perplexity": 1.0, "exact_match": 0.0, "elapsed_s": 1.0}
    write_rows(run, [row])
    told = ending.ending(run, knobs)[0]
    assert (
        "**Its loss fell to 0.1, yet it did not learn it.** Writing by itself" in told and "learned to read it" in told
    )
    write_rows(run, [row | {"loss": 1.0}])
    assert ending.ending(run, knobs)[0].startswith("**It did not learn it.** After")


def output_with(weights, tokens, source=("a", "b", "c", "</s>")):
    n_layers, _, n_rows, n_columns = weights.shape
    return LiveOutput(
        step=1,
        text=" ".join(source[:-1]),
        source=tuple(source),
        tokens=tuple(tokens),
        probabilities=np.ones(len(tokens)),
        ended=tokens[-1] == "</s>",
        weights=weights,
        mask=np.ones((n_layers, n_rows, n_columns), bool),
    )


@pytest.mark.parametrize(
    ("weights", "guess", "said"),
    [
        (
            np.eye(4)[[2, 1, 0, 3]],
            "anti_diagonal",
            "it looks at the last one, and so on backwards: a head puts 100 % of its weight there, as you guessed.",
        ),
        (
            np.eye(4),
            "anti_diagonal",
            "and so on in order: a head puts 100 % of its weight there. You guessed “backwards”.",
        ),
        (
            np.eye(4)[[1, 2, 0, 3]],
            "",
            "puts 100 % of its weight on one letter at a time; which one",
        ),
        (np.full((4, 4), 0.25), "even", "even the clearest puts only 25 % of its weight on one, as you guessed."),
    ],
)
def test_what_became_of_the_attention_is_told_beside_the_guess(weights, guess, said):
    """End marks on both sides are left out: they make no order."""
    assert said in guess_module.said_of(output_with(weights[None, None], ["c", "b", "a", "</s>"]), guess)


def test_the_question_is_asked_before_play_where_its_pictures_fit(started):
    at = open_page("playground")
    assert "A guess first" in texts(at) and pictures(at)["chosen"] == ""
    assert [picture["label"] for picture in pictures(at)["pictures"]] == list(
        guess_module.TEXTS.table("shapes").values()
    )
    at = open_page("playground", guess="even")
    assert pictures(at)["chosen"] == "even" and "Now press Play." in texts(at)
    at = checked(at.button(key="playground-play").click().run())
    assert "A guess first" not in texts(at)
    assert [picture["label"] for picture in pictures(at)["pictures"]] == ["your guess"]
    at = checked(at.selectbox(key="playground-heads").set_value(2).run())
    assert "guess" not in at.query_params and pictures(at) is None, "of another experiment nothing was guessed"
    for other in ({"task": "dates"}, {"model": "rnn"}):
        assert "A guess first" not in texts(open_page("playground", **other))


def test_a_link_may_name_the_run_of_another_model(started):
    model, train, corpus = Knobs(model="rnn").plan.configs()
    run_id = run_folder.create_run(replace(model, d_model=16), replace(train, max_steps=1), corpus)
    train_run(run_id)
    at = open_page("playground", run=run_id, guess="even")
    assert at.selectbox(key="playground-model").value == "transformer" and "no attention to draw" in texts(at)
    assert [picture["label"] for picture in pictures(at)["pictures"]] == ["your guess"]


def pictures(at):
    """The data of the row of small matrices, if there is one."""
    found = (json.loads(element.proto.json) for element in at.get("bidi_component"))
    return next((data for data in found if "pictures" in data), None)


def test_slow_motion_is_taken_over_by_the_run_at_work_and_by_the_next(started, monkeypatch):
    paces = []
    monkeypatch.setattr(run_folder, "start", lambda run_id, pace=None: started.append(run_id) or paces.append(pace))
    monkeypatch.setattr(run_folder, "hold_to", lambda run_id, pace: paces.append((run_id, pace)))
    at = checked(open_page("playground", slow="on").button(key="playground-play").click().run())
    assert paces == [SLOW]
    at = checked(at.toggle(key="playground-slow").set_value(False).run())
    assert paces == [SLOW] and "slow" not in at.query_params, "it waits: there is nothing to slow down"
    now = Status(state="running", phase="training", pid=os.getpid(), heartbeat=time.time())
    write_status(folder_of(started[0]), now)
    at = checked(at.toggle(key="playground-slow").set_value(True).run())
    assert paces == [SLOW, (started[0], SLOW)] and at.query_params["run"] == started[0]
    checked(at.toggle(key="playground-slow").set_value(False).run())
    assert paces[-1] == (started[0], None) and len(started) == 1


def test_an_rnn_has_neither_knobs_nor_switches_of_a_transformer(started):
    at = open_page("playground", model="rnn", layers="3", without="residual")
    boxes = {name: at.selectbox(key=f"playground-{name}") for name in ("layers", "heads", "positions")}
    assert all(box.disabled and box.value is None for box in boxes.values())
    assert all(toggle.disabled for toggle in parts(at))
    checked(at.button(key="playground-play").click().run())
    model = settings_of(started[-1]).model
    assert (model.family, model.attention, model.n_encoder_layers) == ("rnn", "none", 1)


def write_rows(run, rows):
    import json

    (run.folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert progress_of(run.folder).last("validation", "exact_match") == rows[-1]["exact_match"]


def test_the_clearest_head_is_the_one_of_the_last_layer_with_the_largest_weights():
    from transformer.checkpoints.settings import find_checkpoint

    shown = decode_snapshot(find_checkpoint("reverse"), "weights.safetensors", "a b c d e f")
    found = clearest_head(output_of(shown))
    weights = shown.attention["cross"].weights
    rivals = [head.max(-1).mean() for head in weights[-1]]
    assert found.mean_of_largest == pytest.approx(max(rivals))
    assert found.layer == len(weights) - 1 and rivals[found.head] == max(rivals)


def test_the_picture_changes_to_another_head_only_where_that_is_clearly_clearer():
    weights = np.array([[[[1.0, 0.0]], [[0.5, 0.5]], [[0.5, 0.5]]], [[[0.7, 0.3]], [[0.72, 0.28]], [[0.6, 0.4]]]])
    output = output_with(weights, ("a",), source=("a", "</s>"))
    assert clearest_head(output)[:2] == (1, 1)
    assert clearest_head(output, Clearest(1, 0, 0.9))[:2] == (1, 0)
    assert clearest_head(output, Clearest(1, 2, 0.9))[:2] == (1, 1)


@pytest.mark.parametrize("build", ["state", "output", "head", "curves"])
def test_a_run_at_work_is_streamed_as_the_page_would_draw_it(started, build):
    run_id = tiny_runs.create(pinned=())
    train_run(run_id)
    run = run_folder.get_run(run_id)
    output = output_of(decode_snapshot(run.folder, "weights.safetensors", "a b c"))
    part = next(part for part in live_parts.PARTS if part.name == build)
    assert part.data(Look(run, None)) is None or build in ("state", "curves")
    step, data = part.data(Look(run, output))
    assert step == 20
    json.dumps(data, allow_nan=False)
    match build:
        case "state":
            assert (data["state"], data["share"]) == ("Finished", 1.0)
        case "output":
            assert [token["text"] for token in data["tokens"]] == list(output.tokens[: len(data["tokens"])])
        case "head":
            assert data["title"].startswith("Last layer's clearest head, now head ")
        case "curves":
            assert data["panels"][0]["series"][0]["x"][-1] == 20


def test_a_model_that_lacks_something_can_be_raced_against_the_whole_one(started):
    run_id = tiny_runs.create(pinned=())
    train_run(run_id)
    for given, right, match in (
        ({"without": "positions"}, "without:positions", "With and without positions"),
        ({"heads": "1"}, "heads:1", "Four heads against one"),
        ({}, None, None),
    ):
        at = open_page("playground", run=run_id, seed="5", **given)
        links = [link.proto for link in at.get("page_link") if link.proto.page == "race"]
        assert [parse_qs(link.query_string) for link in links] == (
            [{"right": [right], "task": ["reverse"], "seed": ["5"]}] if right else []
        )
        if right:
            race = open_page("race", **{name: values[0] for name, values in parse_qs(links[0].query_string).items()})
            assert race.selectbox(key="race-match").value == match
