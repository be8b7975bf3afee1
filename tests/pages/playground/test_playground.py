"""The Playground: a press starts a run, a knob replaces it, and its end is told in its own numbers."""

import json
from dataclasses import replace

import numpy as np
import pytest
import tiny_runs
from page_models import checked, open_page, texts

from pages.playground import ending, following
from pages.playground.choices import PARTS, TASKS, Knobs
from pages.playground.clearest import Clearest, clearest_head, output_of
from pages.shared.live.watches import Look
from transformer.analysis.training.progress import progress_of
from transformer.runs import run_folder
from transformer.runs.live.watched import LiveOutput
from transformer.runs.worker import train_run
from transformer.views.training.timeline import decode_snapshot


@pytest.fixture
def started(monkeypatch, tmp_path):
    """The runs that were started, none of which trains; a folder of runs of one's own."""
    found = []
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    monkeypatch.setattr(run_folder, "start", lambda run_id: found.append(run_id))
    return found


def settings_of(run_id):
    return run_folder.get_run(run_id).settings


def test_it_opens_on_reverse_with_one_large_button_and_nothing_running(started):
    at = open_page("playground")
    assert at.button(key="playground-play").label == "Play"
    assert at.selectbox(key="playground-task").value == "reverse"
    assert all(toggle.value for toggle in at.toggle)
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
    ],
)
def test_nonsense_in_a_link_is_said(started, parameters, said):
    assert said in texts(open_page("playground", **parameters)).replace("\\", "")


def test_a_run_that_is_gone_leaves_the_page_at_its_beginning(started):
    at = open_page("playground", run="gone")
    assert at.button(key="playground-play").label == "Play"


def test_the_end_is_told_by_the_runs_own_numbers(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    run = run_folder.get_run(tiny_runs.create())
    rows = [
        {"split": "validation", "step": step, "loss": 2.5, "perplexity": 1.0, "exact_match": exact, "elapsed_s": 1.0}
        for step, exact in ((10, 0.2), (20, 0.96), (30, 0.99))
    ]
    write_rows(run, rows[:1])
    said, onwards = ending.ending(run, Knobs(without=("positions",)))
    assert "did not learn" in said and "20 % of 10 new examples" in said and "2.5 nats" in said
    assert "not their order" in said and onwards.knobs == {"without": ("causal_mask",)}
    write_rows(run, rows)
    said, onwards = ending.ending(run, Knobs())
    assert "99 % of 10 new examples right" in said and "at step 20" in said
    assert onwards.knobs == {"without": ("positions",)}


def write_rows(run, rows):
    import json

    (run.folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert progress_of(run.folder).last("validation", "exact_match") == rows[-1]["exact_match"]


def test_the_clearest_head_is_the_one_with_the_largest_weights():
    from transformer.checkpoints.settings import find_checkpoint

    shown = decode_snapshot(find_checkpoint("reverse"), "weights.safetensors", "a b c d e f")
    found = clearest_head(output_of(shown))
    weights = shown.attention["cross"].weights
    rivals = [[head.max(-1).mean() for head in layer] for layer in weights]
    assert found.mean_of_largest == pytest.approx(np.max(rivals))
    assert rivals[found.layer][found.head] == np.max(rivals)


def test_the_picture_changes_to_another_head_only_where_that_is_clearly_clearer():
    output = LiveOutput(
        step=1,
        text="a",
        source=("a", "</s>"),
        tokens=("a",),
        probabilities=np.ones(1),
        ended=True,
        weights=np.array([[[[0.7, 0.3]], [[0.72, 0.28]]], [[[0.5, 0.5]], [[0.6, 0.4]]]]),
        mask=np.ones((2, 1, 2), bool),
    )
    assert clearest_head(output)[:2] == (0, 1)
    assert clearest_head(output, Clearest(0, 0, 0.9))[:2] == (0, 0)
    assert clearest_head(output, Clearest(1, 1, 0.9))[:2] == (0, 1)


@pytest.mark.parametrize("build", ["state", "output", "head", "curves"])
def test_a_run_at_work_is_streamed_as_the_page_would_draw_it(started, build):
    run_id = tiny_runs.create(pinned=())
    train_run(run_id)
    run = run_folder.get_run(run_id)
    output = output_of(decode_snapshot(run.folder, "weights.safetensors", "a b c"))
    part = next(part for part in following.PARTS if part.name == build)
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
            assert "its clearest" in data["title"]
        case "curves":
            assert data["panels"][0]["series"][0]["x"][-1] == 20
