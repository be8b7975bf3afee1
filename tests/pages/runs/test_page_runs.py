"""The Runs page: every run is in the table, any curves can be laid over each other, and one run is selected."""

import json

import pytest
from page_exports import with_menus
from page_models import checked, follow, open_page, texts
from page_runs import PINNED, button, columns, curves, made_run, put_status, table, trained_run

from pages.shared.wording import plain
from transformer.checkpoints.settings import METRICS_FILE
from transformer.runs import run_folder
from transformer.runs.status import run_folder as folder_of

pytestmark = pytest.mark.usefixtures("room", "no_shipped")


def test_without_runs_the_page_invites_to_train():
    at = open_page("runs")
    assert "No runs yet" in texts(at) and not at.get("plotly_chart")


def test_the_table_tells_what_each_run_is_and_reached():
    run_id, waiting = trained_run(), made_run()
    rows = table(open_page("runs"))
    assert list(rows) == [waiting, run_id] or list(rows) == [run_id, waiting]
    row = rows[run_id]
    last = [r for r in run_folder.metrics(run_id) if r["split"] == "validation"][-1]
    assert (row["corpus"], row["state"], row["step"]) == ("reverse", "finished", "20")
    assert float(row["exact match, %"]) == pytest.approx(100 * last["exact_match"], abs=0.05)
    assert float(row["validation loss"]) == pytest.approx(last["loss"], rel=5e-3)
    assert rows[waiting]["state"] == "not started" and rows[waiting]["validation loss"] == "–"


def test_the_table_and_the_line_below_it_tell_the_same_step_and_time():
    run_id = trained_run()
    put_status(run_id, state="stopped", reason="asked", step=19, elapsed_s=42.0)  # resumed from before the last metrics
    at = open_page("runs", run=run_id)
    assert (table(at)[run_id]["step"], table(at)[run_id]["time"]) == ("19", "42 s")
    assert "step 19 of 20 · in 42 s" in texts(at)


def test_a_damaged_run_does_not_hide_the_others(room):
    run_id = trained_run()
    (room / made_run() / "config.json").write_text("{")
    assert list(table(open_page("runs"))) == [run_id]


def test_shipped_models_stand_beside_the_runs(room, monkeypatch):
    run_id = trained_run("mine")
    shipped = trained_run("theirs")
    (room.parent / "shipped").mkdir()
    (room / shipped).rename(room.parent / "shipped" / shipped)
    rows = table(open_page("runs"))
    assert {name: row["state"] for name, row in rows.items()} == {run_id: "finished", shipped: "shipped"}


def test_the_curves_of_the_shown_runs_are_laid_over_each_other():
    first, second, third = trained_run(), trained_run(seed=1), trained_run(seed=2)
    at = open_page("runs", show=[third, first])
    assert [line["name"] for line in curves(at)["data"]] == [third, first]
    assert [name for name, row in table(at).items() if row["shown"]] != [second]
    assert at.query_params["show"] == [third, first]


def test_only_runs_on_one_corpus_are_laid_over_each_other_at_first():
    reverse, copy, again = trained_run(), trained_run(corpus="copy"), trained_run(seed=1)
    at = open_page("runs")
    shown = {name for name, row in table(at).items() if row["shown"]}
    assert shown in ({reverse, again}, {copy}) and "different corpora" not in texts(at)
    assert "These runs learn 2 different corpora" in texts(open_page("runs", show=[reverse, copy]))


def test_the_curves_are_explained():
    trained_run()
    at = with_menus(open_page("runs"), "compared-runs-explained")
    assert "The loss is how surprised the model is" in texts(at)


@pytest.mark.parametrize(
    ("key", "value", "axis", "title"),
    [
        ("quantity", "exact match", "yaxis", "exact match, %"),
        ("quantity", "training loss", "yaxis", "loss, nats per token"),
        ("against", "seconds", "xaxis", "seconds of training"),
        ("scale", "linear", "yaxis", "loss, nats per token"),
    ],
)
def test_quantity_axis_and_scale_can_be_chosen(key, value, axis, title):
    trained_run()
    at = open_page("runs")
    control = next(element for element in at.segmented_control if element.key == f"runs-{key}")
    at = checked(control.set_value(value).run())
    layout = curves(at)["layout"]
    assert layout[axis]["title"]["text"] == title
    assert layout["yaxis"].get("type") == (None if value in ("linear", "exact match") else "log")


@pytest.mark.parametrize("name", ["quantity", "against", "scale"])
def test_a_link_that_names_no_curve_says_so(name):
    trained_run()
    at = open_page("runs", **{name: "zzz"})
    assert plain(f"The link says {name} “zzz”, which must be one of:") in texts(at) and name not in at.query_params


def test_a_score_that_none_of_the_runs_has_gives_way_and_comes_back():
    unscored, scored = trained_run(), trained_run(seed=1)
    rows = [row | {"bleu": 40.0} if row["split"] == "validation" else row for row in run_folder.metrics(scored)]
    (folder_of(scored) / METRICS_FILE).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    at = open_page("runs", quantity="BLEU", show=unscored)
    assert plain("None of these runs was scored by BLEU: you see validation loss.") in texts(at)
    assert at.query_params["quantity"] == "BLEU" and curves(at)["layout"]["yaxis"]["title"]["text"].startswith("loss")
    at = open_page("runs", quantity="BLEU", show=[unscored, scored])
    assert "None of these runs" not in texts(at) and curves(at)["layout"]["yaxis"]["title"]["text"] == "BLEU, 0 to 100"


def test_smoothed_training_loss_is_named_as_such():
    trained_run()
    at = open_page("runs")
    at = checked(next(e for e in at.segmented_control if e.key == "runs-quantity").set_value("training loss").run())
    assert "label-smoothed" in texts(at)


def test_look_inside_opens_the_attention_page_on_the_run_in_hand():
    run_id = trained_run()
    at = follow(open_page("runs", run=run_id), "Look inside", "attention")
    assert at.radio(key="choose-model").value == run_id
    assert at.text_input(key="choose-text").value == PINNED[0]


def test_a_paused_run_is_resumed(monkeypatch):
    started = []
    monkeypatch.setattr(run_folder, "resume", lambda run_id, **_: started.append(run_id))
    run_id = trained_run()
    put_status(run_id, state="paused", reason="")
    checked(button(open_page("runs", run=run_id), "Resume").click().run())
    assert started == [run_id]


def test_a_failed_run_says_its_sentence():
    run_id = made_run()
    put_status(run_id, state="failed", error="the disk is full")
    assert "The disk is full" in texts(open_page("runs", run=run_id))


def test_a_link_to_runs_that_are_gone_says_so():
    run_id = trained_run()
    at = open_page("runs", show=["gone-1", run_id], run="gone-2")
    assert plain("“gone-1”, “gone-2”") in texts(at)
    assert [line["name"] for line in curves(at)["data"]] == [run_id]


def test_with_shipped_models_alone_the_page_still_invites(room):
    shipped = trained_run("theirs")
    (room.parent / "shipped").mkdir()
    (room / shipped).rename(room.parent / "shipped" / shipped)
    at = open_page("runs")
    assert list(table(at)) == [shipped]
    assert next(link.proto.label for link in at.get("page_link")).startswith("None of these is yours yet")


def test_the_table_shows_the_settings_that_differ_and_no_others():
    first = trained_run()
    assert columns(open_page("runs")) == []
    second = trained_run(seed=4000, label_smoothing=0.0, evaluate_pairs=1_500)
    at = open_page("runs")
    (_, pairs, _) = settings = columns(at)
    assert settings == ["label smoothing", pairs, "seed"]
    rows = table(at)
    assert (rows[first]["seed"], rows[second]["seed"]) == ("0", "4000"), "a seed counts nothing"
    assert rows[second][pairs] == "1,500"
    assert (rows[first]["label smoothing"], rows[second]["label smoothing"]) == ("0.1", "0")


def test_a_shipped_model_adds_no_columns_beside_two_runs(room):
    trained_run(), trained_run()
    shipped = trained_run("theirs", seed=9)
    (room.parent / "shipped").mkdir()
    (room / shipped).rename(room.parent / "shipped" / shipped)
    assert columns(open_page("runs")) == []


def test_the_timeline_of_the_run_in_hand_stands_below():
    run_id = trained_run()
    assert "The timeline of a sentence" in texts(open_page("runs", run=run_id))
