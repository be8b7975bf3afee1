"""Tests of the timeline's film: the browser gets each snapshot's exact weights, or the reason there is no film."""

from dataclasses import replace

import numpy as np
import pytest
from films import STEPS, TEXT, draw, film, lab_at, large, opened
from page_models import texts
from page_runs import at_work, made_run
from streamlit.testing.v1 import AppTest

from pages.shared.components.run_timeline import MASKED, THUMBNAIL, _levels
from pages.shared.wording import number, plain
from pages.training.timeline.frames import Timeline, _key, advance, decoded_with
from transformer.analysis.training.timeline import row_entropy
from transformer.checkpoints.store import load_checkpoint
from transformer.lab import Attention, Lab
from transformer.runs import run_folder
from transformer.runs.kept_weights import snapshots_of
from transformer.runs.status import run_folder as folder_of

pytestmark = pytest.mark.usefixtures("whole_films")


def test_the_browser_gets_the_weights_of_each_snapshot_exactly(film_run):
    at = opened(film_run, film_layer="0", film_head="1")
    data = film(at)
    assert [frame["step"] for frame in data["frames"]] == STEPS and data["selected"] == [0, 1]
    index = STEPS.index(8)
    seen = lab_at(film_run, 8).inspect(TEXT)
    shown = large(data, index)
    assert np.array_equal(shown, seen.cross.weights[0, 1, : len(shown)])
    written = [data["tokens"][token]["text"] for token in data["frames"][index]["written"]]
    assert written == [token.strip("▁") for token in seen.target_tokens[: len(written)]]
    assert data["frames"][-1]["stays"] == [1] * len(data["frames"][-1]["written"])


def test_what_a_pass_could_not_see_is_no_weight(film_run):
    data = film(opened(film_run, film_kind="decoder_self", film_rows="forced"))
    shown = large(data, len(STEPS) - 1)
    assert np.array_equal(np.isnan(shown), np.triu(np.ones(shown.shape, dtype=bool), 1))


def test_thumbnails_hold_levels_and_a_large_head_is_drawn_by_its_largest_weights():
    weights = np.zeros((1, 1, 60, 30), dtype=np.float32)
    weights[0, 0, 59, 29], weights[0, 0, 0, 0] = 1.0, 0.5
    mask = np.ones((1, 60, 30), dtype=bool)
    mask[0, :30, 15:] = False
    levels = _levels(Attention("cross", weights, mask, ("q",) * 60, ("k",) * 30))[0, 0]
    assert levels.shape == (THUMBNAIL, THUMBNAIL)
    assert (levels[-1, -1], levels[0, 0], levels[0, -1]) == (254, 127, MASKED)


def test_without_a_sudden_change_the_page_says_so(film_run, monkeypatch):
    monkeypatch.setattr("transformer.analysis.training.timeline.MIN_SHARE", 2.0)
    at = opened(film_run)
    assert film(at)["scores"]["jump"] is None
    assert "No sudden change" in texts(at) and "The most sudden change" not in texts(at)


def test_the_heads_scores_are_their_entropies_on_the_same_words(film_run, any_fall_is_sudden):
    at = opened(film_run)
    data = film(at)
    goal = Lab(load_checkpoint(folder_of(film_run))).inspect(TEXT).target_ids
    expected = []
    for step in STEPS[:-1]:
        seen = lab_at(film_run, step).inspect(TEXT, forced=dict(enumerate(goal))).cross
        expected.append(row_entropy(seen.weights[:, :, :40], seen.mask[:, :40]).ravel())
    values = np.array(data["scores"]["values"]).T  # -> [frame head]
    assert values[:-1] == pytest.approx(np.array(expected), rel=1e-3)
    layer, head, first, last = data["scores"]["jump"]
    before, after = values[first, layer * 2 + head], values[last, layer * 2 + head]
    assert f"decoder {layer} cross head {head}" in texts(at)
    assert f"between step {STEPS[first]:,} and {STEPS[last]:,}" in texts(at)
    assert before > after and number(float(before))[:4] in texts(at)


def test_the_loss_of_the_run_and_of_the_sentence_stand_below_the_slider(film_run):
    training, validation, own = film(opened(film_run))["curves"]
    rows = [row for row in run_folder.metrics(film_run) if row["split"] == "train"]
    assert training["x"] == [row["step"] for row in rows]
    assert training["y"] == pytest.approx([row["loss"] for row in rows], rel=1e-3)
    assert validation["x"] == [10, 20] and own["x"] == STEPS


def test_a_finished_timeline_names_the_last_step_whose_output_is_forced(film_run):
    run = run_folder.get_run(film_run)
    found, frames = snapshots_of(run), Timeline(run=film_run, text=TEXT)
    advance(frames, run, found[:-1], budget_s=60)
    goal, before = frames.goal, frames.goal_step
    frames.own[_key(found[-1])] = replace(decoded_with(run, found[-1], TEXT), ids=goal)
    advance(frames, run, found, budget_s=60)
    assert (frames.goal, before, frames.goal_step) == (goal, 19, 20)


def test_a_newest_output_that_cannot_be_forced_is_no_output_of_step_minus_one(film_run, monkeypatch):
    monkeypatch.setattr("pages.training.timeline.frames.PAD", load_checkpoint(folder_of(film_run)).model.config.eos_id)
    said = texts(opened(film_run, film_rows="forced"))
    assert "cannot be forced: no entropies" in said and "output of step" not in said and "made to write" not in said


def test_a_run_that_was_never_started_has_no_timeline(own_film_run):
    assert "opens with the first snapshot" in texts(opened(made_run()))


@pytest.fixture
def newest_alone(own_film_run):
    """A run whose snapshots are gone."""
    for path in run_folder.snapshots(own_film_run).values():
        path.unlink()
    return own_film_run


def test_a_model_too_large_for_snapshots_says_so_and_shows_its_newest_weights(newest_alone, monkeypatch):
    n_parameters = load_checkpoint(folder_of(newest_alone)).model.n_parameters()
    monkeypatch.setattr("pages.training.timeline.panel.SNAPSHOT_LIMIT", n_parameters - 1)
    at = opened(newest_alone)
    assert f"more than {n_parameters - 1:,} parameters keep no snapshots" in texts(at)
    assert [frame["step"] for frame in film(at)["frames"]] == [20]


def test_one_snapshot_alone_does_not_make_a_model_too_large(newest_alone):
    at = opened(newest_alone)
    assert "keep no snapshots" not in texts(at) and "nothing to scrub through" in texts(at)
    at_work(newest_alone, step=20)
    at = opened(newest_alone)
    assert "keep no snapshots" not in texts(at) and "nothing to scrub through" not in texts(at), "more will follow"


def test_a_run_that_is_gone_says_so(film_run):
    assert plain("there is no run 'gone'") in texts(AppTest.from_function(draw, args=("gone",)).run())
