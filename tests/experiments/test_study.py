"""The paired study: equal but for the positions, conducted to the end, stopped and taken up, and its verdict."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_models import random_model
from tiny_runs import MODEL, settings

from transformer.analysis.positions.lengths import LengthScore, scores_by_length, wilson
from transformer.data.recipes import Recipe
from transformer.data.tasks import pairs_of_length, symbol_task
from transformer.experiments import plan, study
from transformer.experiments.plan import KINDS, Study, StudyPlan, StudyRun
from transformer.experiments.runner import run_study
from transformer.experiments.study import StudyError, create_study, load_study
from transformer.experiments.verdict import length_curves, verdicts
from transformer.figures.positions.study import ByLength, Learning, learning_figure, lengths_figure
from transformer.runs import run_folder
from transformer.runs.status import Status, status, write_status
from transformer.runs.status import run_folder as folder_of
from transformer.text.pairs import words
from transformer.text.tokenizer import train_tokenizer

TINY = StudyPlan(
    corpora=("reverse",), positions=("sinusoidal", "learned"), seeds=(0,), steps=3, trained_to=4, tested_to=6, pairs=4
)


@pytest.fixture(scope="module", autouse=True)
def tiny_recipe():
    """Runs of a study that take a second."""
    tiny = Recipe(preset="tiny", model=MODEL, train=settings(threads=1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "recipe_for", lambda corpus: tiny)
        yield


@pytest.fixture(scope="module")
def conducted(tmp_path_factory):
    """The folder of runs of a tiny study, conducted to its end."""
    root = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENTION_LAB_RUNS", str(root))
        name = create_study(TINY, name="tiny", command="the command")
        heard = []
        assert run_study(name, heard.append)
        assert heard[-1].message == "done" and heard[-1].number == heard[-1].n_runs == 2
    return root


@pytest.fixture
def own_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    return tmp_path


def done(positions, seed=0, right=3, **changes):
    """A row with a result: `right` of 10 at each length, whatever was done past the table."""
    lengths = {how: tuple((n, right, 10) for n in range(1, 7)) for how in ("", "noise", "clamp", "interpolate")}
    kept = {how: lengths[how] for how in (("noise", "clamp", "interpolate") if positions == "learned" else ("",))}
    row = StudyRun(
        corpus="reverse", positions=positions, seed=seed, state="done", parameters=100, steps=3, exact_match=0.5,
        count=20, tokens_per_s=1_000.0, lengths=kept,
    )  # fmt: skip
    return replace(row, **changes)


def test_runs_of_a_study_differ_in_positions_and_seed_alone():
    plan = StudyPlan()
    for corpus in plan.corpora:
        first = plan.configs(corpus, "sinusoidal", 0)
        for kind in plan.positions:
            for seed in plan.seeds:
                model, train, data = plan.configs(corpus, kind, seed)
                assert replace(model, positions="sinusoidal") == first[0] and model.positions == kind
                assert replace(train, seed=0) == first[1] and train.seed == seed
                assert data == first[2]
    assert first[0].max_length == 41 and first[2].longest == 16
    assert first[1].target_exact_match is None and first[1].max_seconds is None and first[1].patience is None


def test_the_usual_study_is_what_was_promised():
    plan = StudyPlan()
    assert set(plan.corpora) == {"reverse", "copy"} and len(plan.seeds) >= 3
    assert set(plan.positions) == {"sinusoidal", "learned", "none", "rotary", "alibi"}
    assert (plan.trained_to, plan.tested_to, plan.n_runs) == (16, 40, 30)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"corpora": ()}, "must name at least one"),
        ({"seeds": (1, 1)}, r"seeds \(1, 1\) must name at least one, and each only once"),
        ({"corpora": ("poems",)}, r"corpora \(poems\) must be among: .*reverse"),
        ({"trained_to": 50}, r"trained_to \(50\) <= tested_to \(40\)"),
        ({"steps": 0}, r"steps \(0\) must lie between"),
    ],
)
def test_a_plan_that_cannot_be_is_refused_in_a_sentence(changes, said):
    with pytest.raises(ValueError, match=said):
        StudyPlan(**changes)


def test_a_study_leaves_ordinary_runs_and_a_row_for_each(conducted, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(conducted))
    found = load_study("tiny")
    assert found.plan == TINY and found.command == "the command" and not study.is_active("tiny")
    assert [run.positions for run in found.done] == ["sinusoidal", "learned"]
    for run in found.done:
        assert status(run.id).state == "finished"
        settings = run_folder.get_run(run.id).settings
        assert settings.model.positions == run.positions and settings.model.max_length == 7
        assert run.steps == 3 and run.steps_to_target is None and run.trained_positions == 5
        row = next(row for row in run_folder.metrics(run.id) if row["split"] == "random")
        assert (run.exact_match, run.count) == (row["exact_match"], row["count"])
        assert [point[0] for point in run.curve] == [3]
    sinusoidal, learned = found.done
    assert learned.parameters == sinusoidal.parameters + 2 * 7 * MODEL.d_model
    assert set(sinusoidal.lengths) == {""} and set(learned.lengths) == {"noise", "clamp", "interpolate"}
    for scores in (*sinusoidal.lengths.values(), *learned.lengths.values()):
        assert [n for n, _, _ in scores] == [1, 2, 3, 4, 5, 6]
        assert all(0 <= right <= count == len(pairs_of_length("reverse", n, 4)) for n, right, count in scores)


def test_a_finished_study_is_read_again_as_it_was_written_and_listed(conducted, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(conducted))
    assert "tiny" in study.list_studies()
    again = create_study(TINY, name="tiny")
    assert again == "tiny-2"
    assert run_study("tiny")  # nothing is left to do
    assert all(run.state == "waiting" for run in load_study(again).runs)


def test_a_study_that_is_asked_to_stop_goes_on_where_it_stood(own_runs):
    name = create_study(replace(TINY, positions=("none", "alibi")), name="halted")

    def stop_once(progress):
        if progress.run.positions == "none" and progress.message == "done":
            study.stop_study(name)

    assert not run_study(name, stop_once)
    assert [run.state for run in load_study(name).runs] == ["done", "running"]
    first = load_study(name).runs[0]
    assert run_study(name)
    assert [run.state for run in load_study(name).runs] == ["done", "done"]
    assert load_study(name).runs[0] == first


def test_a_run_that_was_deleted_is_told_and_left_out_also_while_it_is_tested(own_runs):
    name = create_study(TINY, name="loss")
    first = load_study(name).runs[0]
    study.save_study(load_study(name).with_run(replace(first, id="gone", state="running")))

    def delete(progress):
        if progress.message.startswith("testing") and run_folder.list_runs():  # finished by then, and in memory
            write_status(folder_of(progress.run.id), Status(state="finished"))
            run_folder.delete(progress.run.id)

    run_study(name, delete)
    assert [run.state for run in load_study(name).runs] == ["deleted", "done"]
    assert [run.positions for run in load_study(name).done] == ["learned"]


@pytest.mark.parametrize("content", ["", "[]", '{"name": "x"}', '{"plan": {"steps": "many"}, "runs": []}'])
def test_a_study_that_cannot_be_read_says_so(own_runs, content):
    (own_runs / "broken").mkdir()
    (own_runs / "broken" / study.STUDY_FILE).write_text(content)
    with pytest.raises(StudyError, match=r"study"):
        load_study("broken")
    with pytest.raises(StudyError, match="there is no study 'none-such'; there are: "):
        load_study("none-such")
    with pytest.raises(StudyError, match="cannot be named"):
        create_study(TINY, name="../x")


def a_study(*rows):
    return Study(name="s", plan=replace(TINY, positions=("sinusoidal", "learned"), seeds=(0, 1, 2)), runs=rows)


def test_the_verdict_gives_the_middle_and_the_spread_of_the_seeds():
    rows = [
        done("sinusoidal", seed, right, steps_to_target=steps, exact_match=exact, tokens_per_s=speed)
        for seed, right, steps, exact, speed in ((0, 2, 50, 0.9, 10.0), (1, 4, None, 0.6, 30.0), (2, 9, 100, 0.9, 11.0))
    ]
    (verdict,) = verdicts(a_study(*rows, StudyRun(corpus="reverse", positions="learned", seed=0)), "reverse")
    assert verdict.n_runs == 3 and verdict.steps_to_target == (50, None, 100)
    assert verdict.exact_match == pytest.approx((0.8, 0.6, 0.9))
    assert verdict.tokens_per_s == (11.0, 10.0, 30.0)
    assert verdict.beyond is not None and verdict.beyond_of_seeds is not None
    assert (verdict.beyond.right, verdict.beyond.count) == (2 * 15, 60)  # lengths 5 and 6
    assert (verdict.beyond.low, verdict.beyond.high) == wilson(30, 60)
    assert verdict.beyond_of_seeds == pytest.approx((0.5, 0.2, 0.9))
    for said in ("steps to 0.99: 50, never, 100", "0.800 (0.600 to 0.900)", "30 of 60"):
        assert said in verdict.line()


def test_a_refused_length_is_no_answer_and_no_zero():
    found = a_study(done("learned"))
    (curve,) = length_curves(found, "reverse", "refuse")
    assert curve.scores == tuple(LengthScore(n, *((3, 10) if n <= 4 else (0, 0))) for n in range(1, 7))
    (verdict,) = verdicts(found, "reverse", "refuse")
    assert verdict.beyond is not None and verdict.beyond.count == 0 and "refused" in verdict.line()
    assert length_curves(found, "reverse", "clamp")[0].scores[5] == LengthScore(6, 3, 10)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_share_and_solves_its_equation(pair):
    right, count = pair
    low, high = wilson(right, count)
    share = right / count
    assert 0 <= low <= share <= high <= 1 and low < high
    for edge in (low, high):
        if 0 < edge < 1:  # (share - p)^2 = z^2 p (1 - p) / n at both ends: the score test's own definition
            assert (share - edge) ** 2 == pytest.approx(1.959964**2 * edge * (1 - edge) / count, rel=1e-4)


def test_wilson_on_nothing_and_on_nonsense():
    assert wilson(0, 0) == (0.0, 1.0)
    assert wilson(0, 10)[0] == 0.0 and wilson(10, 10)[1] == 1.0
    with pytest.raises(ValueError, match=r"right \(3\) must lie between 0 and count \(2\)"):
        wilson(3, 2)


def test_pairs_of_a_length_are_different_held_out_and_right():
    for name, answer in (("copy", list), ("reverse", lambda s: s[::-1]), ("sort", sorted)):
        pairs = pairs_of_length(name, 30, 20)
        assert len({pair.source for pair in pairs}) == 20
        assert all(words(p.target) == list(answer(words(p.source))) and len(words(p.source)) == 30 for p in pairs)
    long, task = {p.source for p in pairs_of_length("copy", 3, 50)}, symbol_task("copy", 16)
    from transformer.data.tasks import GeneratedPairs

    train = GeneratedPairs(task, 0, "train", 3_000)[:3_000]
    lengths = {len(words(pair.source)) for pair in train}
    assert lengths == set(range(1, 17)) and not long & {pair.source for pair in train}
    assert 0 < len(pairs_of_length("copy", 1, 100)) < 5


def test_scores_count_what_the_model_really_writes(monkeypatch):
    tokenizer = train_tokenizer("words", ["a b c d e f g h i j k l m n o p q r s t"])
    model = random_model(vocab_size=tokenizer.vocab_size, max_length=6, positions="learned")
    pairs = {n: pairs_of_length("copy", n, 5) for n in (2, 5, 8)}
    told = []
    found = scores_by_length(model, tokenizer, pairs, "refuse", trained=6, progress=told.append)
    assert told == [2, 5, 8] and [score.count for score in found] == [5, 5, 0]
    answers = {n: [tokenizer.encode(pair.target) for pair in pairs[n]] for n in pairs}
    monkeypatch.setattr(
        "transformer.analysis.positions.lengths.translate_ids",
        lambda model, source, mask, max_length: [
            ids if i else ids[:-1] for i, ids in enumerate(answers[source.size(1) - 1])
        ],
    )
    assert [s.right for s in scores_by_length(model, tokenizer, pairs, "clamp", trained=6)] == [4, 4, 4]


def test_the_figures_hold_every_count_and_leave_out_what_was_refused():
    scores = [np.array(values) for values in ([1, 2, 3], [10, 5, 0], [10, 10, 0])]
    low, high = np.array([wilson(int(r), int(c)) for r, c in zip(scores[1], scores[2], strict=True)]).T
    fig = lengths_figure([ByLength("learned", *scores, low, high)], ["sinusoidal", "learned"], trained_to=2)
    band, line = fig.data
    assert line.x.tolist() == [1, 2] and line.y.tolist() == [100, 50]
    assert line.customdata[1].tolist() == [5, 10, 100 * low[1], 100 * high[1]]
    assert len(band.x) == 4 and fig.layout.shapes[0].x1 == 2.5
    curve = Learning("rotary", 0, np.array([50, 100]), np.array([0.5, 1.0]))
    both = learning_figure(
        [curve, replace(curve, seed=1)], ["sinusoidal", "rotary"], budget=100, target=0.99, dark=True
    )
    assert [trace.showlegend for trace in both.data] == [True, False]
    assert both.data[0].line.color == both.data[1].line.color and both.data[0].y.tolist() == [50, 100]


@pytest.mark.skipif(not (study.SHIPPED_FOLDER / study.SHIPPED_STUDY).exists(), reason="the shipped study is not there")
def test_the_shipped_study_is_whole():
    found = study.read_study(study.SHIPPED_FOLDER / study.SHIPPED_STUDY)
    plan = found.plan
    assert len(plan.seeds) >= 3 and {"reverse", "copy"} <= set(plan.corpora) and set(plan.positions) == set(KINDS)
    assert (plan.trained_to, plan.tested_to) == (16, 40)
    assert len(found.done) == len(found.runs) == plan.n_runs
    assert found.command.startswith("python -m transformer study positions")
    for run in found.runs:
        assert run.steps == plan.steps
        for scores in run.lengths.values():
            assert [n for n, _, _ in scores] == list(range(1, 41))
            assert all(0 <= right <= count for _, right, count in scores) and scores[20][2] == plan.pairs
    for corpus in plan.corpora:
        rows = {verdict.positions: verdict for verdict in verdicts(found, corpus)}
        assert rows.pop("none").exact_match.high < 0.1, "a bag of words has no order to copy or reverse"
        assert all(verdict.exact_match.low > 0.9 for verdict in rows.values())


def test_the_command_trains_tests_and_says_the_verdict(own_runs, capsys, monkeypatch):
    from transformer.__main__ import main

    arguments = "study positions --corpora copy --positions none --seeds 0 --steps 2 --trained-to 4 --tested-to 5"
    monkeypatch.setattr("sys.argv", ["transformer", *arguments.split()])
    assert main([*arguments.split(), "--pairs", "2", "--name", "quick"]) == 0
    printed = capsys.readouterr().out
    assert "quick: done" in printed and "copy\n  none" in printed and "parameters" in printed
    assert json.loads((own_runs / "quick" / study.STUDY_FILE).read_text())["command"].startswith(
        "python -m transformer study positions --corpora copy"
    )
    assert main(["study", "positions", "--go-on"]) == 2
    assert "which study goes on?" in capsys.readouterr().err
    assert main(["study", "positions", "--name", "quick", "--go-on"]) == 0
    assert main(["study", "positions", "--name", "missing", "--go-on"]) == 2
    assert "there is no study 'missing'" in capsys.readouterr().err
