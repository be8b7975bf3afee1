"""The timeline: what is shown at a step is what that snapshot does, and what is said of a head is what was measured."""

import base64
import json
import math
import os

import numpy as np
import psutil
import pytest
from page_runs import PINNED, made_run, put_status, trained_run
from streamlit.testing.v1 import AppTest

from pages.common.components.run_film import MASKED, THUMBNAIL, _levels
from pages.common.training import timeline as panel
from pages.common.training.data import current_rows, samples_of
from pages.common.training.run_curves import QUANTITIES
from pages.common.training.timeline_frames import Reel, Snapshot, advance, halving, newest_step, snapshots_of
from pages.common.training.timeline_view import PARAMETERS, TimelineView, fit, read
from pages.common.wording import number, plain
from transformer import corpora, runs
from transformer.analysis.timeline import largest_jump, row_entropy
from transformer.checkpoint import load_checkpoint
from transformer.lab import Attention, Lab
from transformer.trainee import SNAPSHOT_BYTES, SNAPSHOTS_AN_OCTAVE, is_snapshot_step, snapshots_an_octave

STEPS = [0, 1, 2, 4, 8, 16, 19, 20]
TEXT = PINNED[0]


@pytest.fixture(scope="module")
def run_id(tmp_path_factory):
    """A finished run of 20 steps, in a folder of runs of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENTION_LAB_RUNS", str(tmp_path_factory.mktemp("runs")))
        patch.setattr(corpora, "TOKENIZER_PAIRS_OF_TASK", 50)
        yield trained_run()


@pytest.fixture
def own_run(tmp_path, monkeypatch):
    """Another such run, to be damaged."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(corpora, "TOKENIZER_PAIRS_OF_TASK", 50)
    return trained_run()


@pytest.fixture(autouse=True)
def no_budget(monkeypatch):
    """Every frame is computed in the first run, so that a test needs no second."""
    monkeypatch.setattr(panel, "BUDGET_S", 1e9)


def draw(run_id: str) -> None:
    from pages.common.training.timeline import timeline_panel

    timeline_panel(run_id)


def opened(run_id: str, **parameters: str) -> AppTest:
    """The timeline alone, opened by a link with these query parameters, with every frame computed."""
    at = AppTest.from_function(draw, args=(run_id,), default_timeout=120)
    for name, value in parameters.items():
        at.query_params[name] = value
    return whole(at.run())


def whole(at: AppTest) -> AppTest:
    """The same once nothing is left to compute."""
    for _ in range(50):
        assert not at.exception, [element.value for element in at.exception]
        if not any(button.key == "timeline-cancel" for button in at.button):
            return at
        at.run()
    raise AssertionError("the film is never whole")


def film(at: AppTest) -> dict:
    found = [json.loads(element.proto.json) for element in at.get("bidi_component") if element.proto.json]
    return next(data for data in found if "frames" in data)


def large(data: dict, index: int) -> np.ndarray:
    """The chosen head's weights in one frame, as the browser gets them."""
    sizes = [(len(frame["rows"]), len(frame["columns"])) for frame in data["frames"]]
    start = sum(rows * columns for rows, columns in sizes[:index])
    rows, columns = sizes[index]
    numbers = np.frombuffer(base64.b64decode(data["large"]), dtype=np.float32)
    return numbers[start : start + rows * columns].reshape(rows, columns)


def texts(at: AppTest) -> str:
    return "\n".join(element.value for element in (*at.markdown, *at.caption))


def lab_at(run_id: str, step: int) -> Lab:
    """The model as its snapshot has it."""
    return Lab(load_checkpoint(runs.run_folder(run_id), weights=runs.snapshots(run_id)[step]))


def in_url(at: AppTest, name: str) -> str:
    value = at.query_params[name]
    return value[0] if isinstance(value, list) else value


def field(at: AppTest, key: str):
    for kind in (at.text_input, at.selectbox, at.segmented_control, at.pills, at.button):
        for element in kind:
            if element.key == key:
                return element
    raise KeyError(key)


# Which steps are kept


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


# Scores of heads


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


# Frames


def computed(run_id: str, text: str = TEXT) -> Reel:
    run, reel = runs.get_run(run_id), Reel(run=run_id, text=text)
    advance(reel, run, snapshots_of(run), budget_s=1e9)
    return reel


def test_every_frame_is_what_its_snapshot_does(run_id):
    frames = computed(run_id).frames(snapshots_of(runs.get_run(run_id)))
    assert [frame.step for frame in frames] == STEPS
    for frame in frames[1:-1:2]:
        seen = lab_at(run_id, frame.step).inspect(TEXT)
        assert (frame.own.translation, frame.own.ids) == (seen.translation, seen.target_ids)
        shown = frame.own.attention["cross"]
        assert np.array_equal(shown.weights, seen.cross.weights[:, :, : len(shown.queries)])
        assert frame.own.attention["encoder_self"].queries == seen.encoder_self.queries


def test_forced_frames_all_write_the_newest_output(run_id):
    frames = computed(run_id).frames(snapshots_of(runs.get_run(run_id)))
    goal = frames[-1].own.ids
    assert frames[-1].forced is frames[-1].own
    for frame in frames:
        assert frame.forced is not None and frame.forced.ids == goal
    seen = lab_at(run_id, 8).inspect(TEXT, forced=dict(enumerate(goal)))
    forced = next(frame.forced for frame in frames if frame.step == 8)
    assert forced is not None
    assert forced.loss == pytest.approx(float(-np.log(seen.probabilities).mean()), rel=1e-5)


def test_computing_stops_when_its_time_is_over_and_goes_on_later(run_id):
    run = runs.get_run(run_id)
    found, reel = snapshots_of(run), Reel(run=run_id, text=TEXT)
    advance(reel, run, found, budget_s=0.0)
    assert [frame.step for frame in reel.frames(found)] == [20]
    assert len(reel.missing(found)) == 2 * len(STEPS) - 1 and reel.left_s(found) > 0
    advance(reel, run, found, budget_s=1e9)
    assert not reel.missing(found) and reel.left_s(found) == 0


def test_a_film_is_computed_from_its_ends_inwards(tmp_path):
    snapshots = [Snapshot(step, tmp_path, (0, 0), False) for step in range(9)]
    assert [snapshot.step for snapshot in halving(snapshots)] == [8, 0, 4, 2, 6, 1, 3, 5, 7]


def test_a_damaged_snapshot_is_left_out(own_run):
    runs.snapshots(own_run)[4].write_bytes(b"nothing")
    reel = computed(own_run)
    assert [frame.step for frame in reel.frames(snapshots_of(runs.get_run(own_run)))] == [0, 1, 2, 8, 16, 19, 20]
    assert "1 of its snapshots cannot be read" in texts(opened(own_run))


def test_a_resumed_run_shows_nothing_of_steps_that_it_has_not_reached_again(own_run):
    me = psutil.Process(os.getpid())
    put_status(own_run, state="running", phase="training", step=9, pid=me.pid, create_time=me.create_time())
    assert [snapshot.step for snapshot in snapshots_of(runs.get_run(own_run))] == [0, 1, 2, 4, 8]
    put_status(own_run, state="paused", phase="")
    assert [snapshot.step for snapshot in snapshots_of(runs.get_run(own_run))] == STEPS


def test_the_step_of_the_newest_weights_is_read_from_them(own_run):
    run = runs.get_run(own_run)
    assert newest_step(run) == 20
    runs.snapshots(own_run)[8].replace(run.folder / "weights.safetensors")
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


# What the browser gets


def test_the_browser_gets_the_weights_of_each_snapshot_exactly(run_id):
    at = opened(run_id, film_layer="0", film_head="1")
    data = film(at)
    assert [frame["step"] for frame in data["frames"]] == STEPS and data["selected"] == [0, 1]
    index = STEPS.index(8)
    seen = lab_at(run_id, 8).inspect(TEXT)
    shown = large(data, index)
    assert np.array_equal(shown, seen.cross.weights[0, 1, : len(shown)])
    written = [data["tokens"][token]["text"] for token in data["frames"][index]["written"]]
    assert written == [token.strip("▁") for token in seen.target_tokens[: len(written)]]
    assert data["frames"][-1]["stays"] == [1] * len(data["frames"][-1]["written"])


def test_what_a_pass_could_not_see_is_no_weight(run_id):
    data = film(opened(run_id, film_kind="decoder_self", film_rows="forced"))
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


def test_the_heads_scores_are_their_entropies_on_the_same_words(run_id):
    at = opened(run_id)
    data = film(at)
    goal = Lab(load_checkpoint(runs.run_folder(run_id))).inspect(TEXT).target_ids
    expected = []
    for step in STEPS[:-1]:
        seen = lab_at(run_id, step).inspect(TEXT, forced=dict(enumerate(goal))).cross
        expected.append(row_entropy(seen.weights[:, :, :40], seen.mask[:, :40]).ravel())
    values = np.array(data["scores"]["values"]).T  # -> [frame head]
    assert values[:-1] == pytest.approx(np.array(expected), rel=1e-3)
    layer, head, first, last = data["scores"]["jump"]
    before, after = values[first, layer * 2 + head], values[last, layer * 2 + head]
    assert f"decoder {layer} cross head {head}" in texts(at)
    assert f"between step {STEPS[first]:,} and {STEPS[last]:,}" in texts(at)
    assert before > after and number(float(before))[:4] in texts(at)


def test_the_loss_of_the_run_and_of_the_sentence_stand_below_the_slider(run_id):
    training, validation, own = film(opened(run_id))["curves"]
    rows = [row for row in runs.metrics(run_id) if row["split"] == "train"]
    assert training["x"] == [row["step"] for row in rows]
    assert training["y"] == pytest.approx([row["loss"] for row in rows], rel=1e-3)
    assert validation["x"] == [10, 20] and own["x"] == STEPS


# The controls


def test_any_sentence_can_be_typed_and_stands_in_the_url(run_id):
    at = opened(run_id)
    assert field(at, "timeline-text").value == TEXT
    at = whole(field(at, "timeline-text").set_value("s t").run())
    data = film(at)
    assert in_url(at, "film") == "s t"
    columns = [data["tokens"][token]["text"] for token in data["frames"][0]["columns"]]
    assert columns == ["s", "t", "</s>"]


def test_an_example_can_be_taken(run_id):
    at = whole(field(opened(run_id), f"timeline-example-{PINNED[1]}").click().run())
    assert field(at, "timeline-text").value == PINNED[1]


@pytest.mark.parametrize(("typed", "said"), [("a " * 60, "61 tokens with its end mark"), ("   ", "Type a sentence")])
def test_a_sentence_that_cannot_be_read_is_refused_and_not_lost(run_id, typed, said):
    at = whole(field(opened(run_id), "timeline-text").set_value(typed).run())
    assert said in texts(at) and "Below is still the last sentence" in texts(at)
    assert field(at, "timeline-text").value == typed.strip() and len(film(at)["frames"]) == len(STEPS)
    at = whole(field(at, "timeline-text").set_value("a b").run())
    assert "Below is still" not in texts(at) and at.query_params["film"] in ("a b", ["a b"])


def test_a_sentence_in_a_link_that_cannot_be_read_leaves_one_of_the_run(run_id):
    at = opened(run_id, film="a " * 60)
    assert "Below is a sentence of the run" in texts(at) and len(film(at)["frames"]) == len(STEPS)


def test_unseen_words_are_named(run_id):
    assert "zebra" in texts(opened(run_id, film="a zebra"))


@pytest.mark.parametrize("kind", ["encoder_self", "decoder_self", "cross"])
def test_kind_layer_and_head_can_be_chosen(run_id, kind):
    at = opened(run_id)
    at = whole(field(at, "timeline-kind").set_value(kind).run())
    at = whole(field(at, "timeline-head").set_value(1).run())
    at = whole(field(at, "timeline-layer").set_value(0).run())
    data = film(at)
    assert (data["kind"], data["selected"]) == (kind, [0, 1])
    assert in_url(at, "film_head") == "1"


def test_rows_can_be_the_newest_output_at_every_step(run_id):
    at = whole(field(opened(run_id), "timeline-rows").set_value("forced").run())
    rows = {tuple(frame["rows"]) for frame in film(at)["frames"]}
    assert len(rows) == 1 and "teacher-forced" in texts(at) and in_url(at, "film_rows") == "forced"


def test_the_head_that_formed_can_be_shown(run_id):
    at = opened(run_id)
    layer, head, _, last = film(at)["scores"]["jump"]
    at = whole(field(at, "timeline-jump").click().run())
    data = film(at)
    assert data["selected"] == [layer, head] and data["at"] == STEPS[last]
    assert in_url(at, "film_step") == str(STEPS[last])


def test_computing_can_be_stopped_and_taken_up_again(run_id, monkeypatch):
    monkeypatch.setattr(panel, "BUDGET_S", 0.0)
    at = AppTest.from_function(draw, args=(run_id,), default_timeout=120).run()
    assert "Translating with 8 snapshots" in at.get("progress")[0].proto.text
    at = field(at, "timeline-cancel").click().run()
    assert "snapshots translate this sentence" in texts(at) and len(film(at)["frames"]) < len(STEPS)
    monkeypatch.setattr(panel, "BUDGET_S", 1e9)
    at = whole(field(at, "timeline-go-on").click().run())
    assert len(film(at)["frames"]) == len(STEPS)


def test_a_link_opens_the_timeline_at_its_step(run_id):
    view = TimelineView(text="a b", kind="decoder_self", layer=0, head=1, step=8, rows="forced")
    at = opened(run_id, **view.parameters())
    data = film(at)
    assert (data["at"], data["kind"], data["selected"]) == (8, "decoder_self", [0, 1])
    assert field(at, "timeline-text").value == "a b"


def test_a_hand_edited_link_says_what_is_wrong_with_it(run_id):
    at = opened(run_id, film_kind="sideways", film_step="soon", film_layer="7", film_head="9")
    for said in ("sideways", "soon", "Layer 7 does not exist", "Head 9 does not exist"):
        assert plain(said) in texts(at)
    assert film(at)["selected"] == [0, 0]


def test_a_view_survives_the_url():
    view = TimelineView(text="a b", kind="encoder_self", layer=1, head=3, step=128, rows="forced")
    parameters = view.parameters()
    assert set(parameters) == set(PARAMETERS)
    assert read({name: [value] for name, value in parameters.items()}) == (view, ())
    assert TimelineView().parameters() == {} and "film" not in TimelineView(text="x" * 2_000).parameters()


def test_a_view_that_fits_stays(run_id):
    view = TimelineView(layer=0, head=1)
    assert fit(view, runs.get_run(run_id).settings.model, run_id) == (view, ())


# Runs without a film


def test_a_run_that_was_never_started_has_no_timeline(own_run):
    assert "opens with the first snapshot" in texts(opened(made_run()))


def test_a_model_too_large_for_snapshots_says_so_and_shows_its_newest_weights(own_run):
    for path in runs.snapshots(own_run).values():
        path.unlink()
    at = opened(own_run)
    assert "20,000,000 parameters keep no snapshots" in texts(at)
    assert [frame["step"] for frame in film(at)["frames"]] == [20]


def test_a_run_that_is_gone_says_so(run_id):
    assert plain("there is no run 'gone'") in texts(AppTest.from_function(draw, args=("gone",)).run())


# The curves of a run


def draw_chosen_curves(run_id: str) -> None:
    from pages.common.training.data import progress_of
    from pages.common.training.run_curves import draw_curves
    from transformer import runs

    run = runs.get_run(run_id)
    draw_curves(run, progress_of(run.folder))


def panels(at: AppTest) -> list[dict]:
    assert not at.exception
    return json.loads(at.get("bidi_component")[0].proto.json)["panels"]


COLUMNS = {
    "perplexity": "perplexity",
    "gradient norm": "gradient_norm",
    "learning rate": "learning_rate",
    "tokens/s": "tokens_per_s",
}


@pytest.mark.parametrize("name", COLUMNS)
def test_every_quantity_can_be_drawn(run_id, name):
    column = COLUMNS[name]
    at = AppTest.from_function(draw_chosen_curves, args=(run_id,), default_timeout=60).run()
    assert [panel["series"][-1]["name"] for panel in panels(at)] == [
        "validation loss, not smoothed", "validation exact match",
    ]  # fmt: skip
    at = field(at, "run-curves").set_value([name]).run()
    (only,) = panels(at)
    split = "validation" if name == "perplexity" else "train"
    rows = [row for row in runs.metrics(run_id) if row["split"] == split and row[column] > 0]
    assert only["series"][0]["y"][-1] == pytest.approx(rows[-1][column], rel=1e-3)
    assert in_url(at, "curve") == name


def test_scores_that_a_corpus_lacks_are_not_offered(run_id):
    at = AppTest.from_function(draw_chosen_curves, args=(run_id,), default_timeout=60).run()
    assert "BLEU" in QUANTITIES and "BLEU" not in field(at, "run-curves").options
    at = field(at, "run-curves").set_value([]).run()
    assert not at.get("bidi_component") and "Choose what to see" in texts(at)
