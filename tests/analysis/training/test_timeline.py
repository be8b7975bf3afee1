"""The timeline: what is shown at a step is what that snapshot does, and what is said of a head was measured."""

import json
import math

import numpy as np
import pytest
from films import STEPS, TEXT, lab_at, opened
from page_models import texts
from page_runs import at_work, put_status

from pages.training.timeline.frames import Timeline, advance, halving
from transformer.analysis.training.progress import current_rows, samples_of
from transformer.analysis.training.timeline import largest_jump, row_entropy
from transformer.runs import run_folder
from transformer.runs.kept_weights import Snapshot, newest_step, snapshots_of
from transformer.runs.trainer import SNAPSHOT_BYTES, SNAPSHOTS_AN_OCTAVE, is_snapshot_step, snapshots_an_octave

pytestmark = pytest.mark.usefixtures("whole_films")


def test_snapshots_lie_four_to_an_octave_where_heads_form():
    kept = [step for step in range(600) if is_snapshot_step(step, 4)]
    assert kept[:9] == [0, 1, 2, 4, 8, 16, 19, 23, 27]
    assert [step for step in kept if 128 <= step <= 512] == [128, 152, 181, 215, 256, 304, 362, 431, 512]
    assert [step for step in range(130) if is_snapshot_step(step, 1)] == [0, 1, 2, 4, 8, 16, 32, 64, 128]


@pytest.mark.parametrize(("parameters", "steps"), [(235_008, 600), (972_544, 1_000), (2_000_000, 2_000), (9, 10)])
def test_the_snapshots_of_a_run_stay_within_their_share_of_the_disk(parameters, steps):
    an_octave = snapshots_an_octave(parameters, steps)
    kept = sum(is_snapshot_step(step, an_octave) for step in range(steps + 1))
    assert kept * parameters * 4 <= SNAPSHOT_BYTES or an_octave == SNAPSHOTS_AN_OCTAVE[-1]


def test_a_model_too_large_for_many_snapshots_keeps_powers_of_two():
    assert snapshots_an_octave(15_000_000, 100_000) == 1


def test_entropy_is_zero_for_one_key_and_the_log_of_their_number_for_all():
    even, sharp = np.full((3, 4), 0.25), np.eye(3, 4)
    weights = np.stack([even, sharp])[None].astype(np.float32)
    found = row_entropy(weights, np.ones((1, 3, 4), dtype=bool))
    assert found[0] == pytest.approx([math.log(4), 0.0])


def test_rows_without_a_choice_do_not_count():
    mask = np.tril(np.ones((1, 2, 2), dtype=bool))
    weights = np.array([[[[1.0, 0.0], [0.5, 0.5]]]], dtype=np.float32)
    assert row_entropy(weights, mask)[0, 0] == pytest.approx(math.log(2))
    assert np.isnan(row_entropy(weights[:, :, :1, :1], mask[:, :1, :1])).all()


def test_the_largest_jump_is_the_largest_fall_while_the_step_doubles():
    steps = [16, 19, 32, 64, 300]
    scores = np.full((5, 2, 2), 2.0)
    scores[:, 1, 0] = [2.0, 1.9, 0.5, 0.5, 0.5]
    scores[:, 0, 1] = [2.0, 2.0, 2.0, 2.0, 0.0]  # larger, but over far more than a doubling
    jump = largest_jump(scores, steps, falling=True)
    assert jump is not None
    assert (jump.layer, jump.head, steps[jump.first], steps[jump.last]) == (1, 0, 16, 32)
    assert (jump.before, jump.after) == (2.0, 0.5)
    rise = largest_jump(-scores, steps, falling=False)
    assert rise is not None and (rise.first, rise.last) == (0, 2)


def test_heads_that_do_not_move_have_no_jump():
    assert largest_jump(np.ones((3, 1, 2)), [1, 2, 4], falling=True) is None
    with pytest.raises(ValueError, match="2 snapshots' scores do not fit 3 steps"):
        largest_jump(np.ones((2, 1, 2)), [1, 2, 4], falling=True)


def test_a_change_within_what_heads_usually_move_is_not_called_sudden():
    steps = [1, 2, 4, 8, 16]
    rng = np.random.default_rng(0)
    restless = 1.53 + 0.2 * rng.standard_normal((5, 2, 2))
    still = np.full((5, 2, 2), 1.53)
    still[3:, 0, 0] = 1.52
    assert largest_jump(restless, steps, falling=True) is None
    assert largest_jump(still, steps, falling=True) is None
    still[3:, 0, 0] = 1.0
    assert largest_jump(still, steps, falling=True) is not None


def computed(run_id: str, text: str = TEXT) -> Timeline:
    run, frames_ = run_folder.get_run(run_id), Timeline(run=run_id, text=text)
    advance(frames_, run, snapshots_of(run), budget_s=1e9)
    return frames_


def test_every_frame_is_what_its_snapshot_does(film_run):
    frames = computed(film_run).shown(snapshots_of(run_folder.get_run(film_run)))
    assert [frame.step for frame in frames] == STEPS
    for frame in frames[1:-1:2]:
        seen = lab_at(film_run, frame.step).inspect(TEXT)
        assert (frame.own.translation, frame.own.ids) == (seen.translation, seen.target_ids)
        shown = frame.own.attention["cross"]
        assert np.array_equal(shown.weights, seen.cross.weights[:, :, : len(shown.queries)])
        assert frame.own.attention["encoder_self"].queries == seen.encoder_self.queries


def test_forced_frames_all_write_the_newest_output(film_run):
    frames = computed(film_run).shown(snapshots_of(run_folder.get_run(film_run)))
    goal = frames[-1].own.ids
    assert frames[-1].forced is frames[-1].own
    for frame in frames:
        assert frame.forced is not None and frame.forced.ids == goal
    seen = lab_at(film_run, 8).inspect(TEXT, forced=dict(enumerate(goal)))
    forced = next(frame.forced for frame in frames if frame.step == 8)
    assert forced is not None
    assert forced.loss == pytest.approx(float(-np.log(seen.probabilities).mean()), rel=1e-5)


def test_computing_stops_when_its_time_is_over_and_goes_on_later(film_run):
    run = run_folder.get_run(film_run)
    found, frames_ = snapshots_of(run), Timeline(run=film_run, text=TEXT)
    advance(frames_, run, found, budget_s=0.0)
    assert [frame.step for frame in frames_.shown(found)] == [20]
    assert len(frames_.missing(found)) == 2 * len(STEPS) - 1 and frames_.left_s(found) > 0
    advance(frames_, run, found, budget_s=1e9)
    assert not frames_.missing(found) and frames_.left_s(found) == 0


def test_a_timeline_is_computed_from_its_ends_inwards(tmp_path):
    snapshots = [Snapshot(step, tmp_path, (0, 0), False) for step in range(9)]
    assert [snapshot.step for snapshot in halving(snapshots)] == [8, 0, 4, 2, 6, 1, 3, 5, 7]


def test_a_damaged_snapshot_is_left_out(own_film_run):
    run_folder.snapshots(own_film_run)[4].write_bytes(b"nothing")
    frames_ = computed(own_film_run)
    assert [frame.step for frame in frames_.shown(snapshots_of(run_folder.get_run(own_film_run)))] == [
        0,
        1,
        2,
        8,
        16,
        19,
        20,
    ]
    assert "1 of its snapshots cannot be read" in texts(opened(own_film_run))


def test_a_resumed_run_shows_nothing_of_steps_that_it_has_not_reached_again(own_film_run):
    at_work(own_film_run, step=9)
    assert [snapshot.step for snapshot in snapshots_of(run_folder.get_run(own_film_run))] == [0, 1, 2, 4, 8]
    put_status(own_film_run, state="paused", phase="")
    assert [snapshot.step for snapshot in snapshots_of(run_folder.get_run(own_film_run))] == STEPS


def test_the_step_of_the_newest_weights_is_read_from_them(own_film_run):
    run = run_folder.get_run(own_film_run)
    assert newest_step(run) == 20
    run_folder.snapshots(own_film_run)[8].replace(run.folder / "weights.safetensors")
    assert newest_step(run) == 8


def test_rows_that_are_done_again_take_back_those_after_them():
    def row(split, step, loss):
        return {"split": split, "step": step, "loss": loss}

    before = [row("train", 1, 5), row("train", 2, 4), row("validation", 2, 4), row("train", 3, 3)]
    assert current_rows(before) == before
    again = current_rows([*before, row("train", 2, 4.5)])
    assert again == [row("train", 1, 5), row("train", 2, 4.5)]


def test_sentences_that_are_done_again_take_back_later_ones(tmp_path):
    rows = [{"step": step, "source": "a", "translation": text} for step, text in ((10, "x"), (20, "y"), (10, "z"))]
    (tmp_path / "samples.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert [(sample.step, sample.translation) for sample in samples_of(tmp_path)["a"]] == [(10, "z")]
