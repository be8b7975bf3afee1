"""Positions, measured: the paired study, and what lies beyond the trained length."""

from dataclasses import asdict

import pytest
from page_models import REVERSE, checked, texts
from page_positions import cells, figure, positions

from pages.shared.wording import plain
from transformer.experiments import study
from transformer.experiments.plan import KINDS, Study, StudyPlan, StudyRun
from transformer.files import write_json
from transformer.lab import load

pytestmark = pytest.mark.usefixtures("untrained_models")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("", "type at least one symbol"),
        (" \t ", "type at least one symbol"),
        ("a " * 5_000, "at most 200 are read here"),
        ("<script>alert(1)</script> `x` **y** $z$ \\ 🦓 \u202e", "It writes"),
        ("\x00\ud7ff", "It writes"),
    ],
)
def test_whatever_is_typed_as_a_long_string_is_answered_in_a_sentence(typed, said):
    at = positions(section="beyond", model="reverse-learned", text="a b c", past="clamp")
    key = "beyond-text-reverse-learned"
    at = checked(at.text_input(key=key).set_value(typed).run())
    assert said in texts(at).replace("\\", "") and at.text_input(key=key).value == typed


def a_study(runs, name="mine", positions=("sinusoidal", "learned", "alibi"), *, state="done"):
    """A study with made-up results, to see that pages say what its file says."""
    plan = StudyPlan(corpora=("reverse", "copy"), positions=positions, seeds=(0, 1))

    def row(corpus, kind, seed):
        lengths = {
            how: tuple((n, 9 if n <= 16 else (4 if how == "clamp" else 2), 10) for n in range(1, 41))
            for how in (("noise", "clamp", "interpolate") if kind == "learned" else ("",))
        }
        return StudyRun(
            corpus=corpus, positions=kind, seed=seed, id=f"{name}-{corpus}-{kind}-{seed}", state=state,
            parameters=235_008, steps=1_000, steps_to_target=None if kind == "alibi" else 450 + 50 * seed,
            exact_match=0.25 if corpus == "copy" else 0.75, count=1_000, tokens_per_s=4_321.0, elapsed_s=40.0,
            trained_positions=17, curve=((500, 1.0, 0.5), (1_000, 0.5, 0.75)), lengths=lengths,
        )  # fmt: skip

    rows = tuple(row(corpus, kind, seed) for seed in plan.seeds for corpus in plan.corpora for kind in positions)
    found = Study(name=name, plan=plan, runs=rows, command="python -m transformer study positions", machine="a b")
    (runs / name).mkdir()
    write_json(runs / name / study.STUDY_FILE, asdict(found))
    return found


def test_the_study_says_its_verdict_beside_the_papers(own_models):
    a_study(own_models)
    at = positions(section="study", study="mine", task="reverse")
    lines = figure(at)["data"]
    assert [line["name"] for line in lines] == ["sinusoidal", "learned", "alibi"] * 2
    said, table = texts(at), cells(at)
    for wanted in ("25.7 BLEU against 25.8", "newstest2013", "self-attention alone", "symmetric in |i − j|"):
        assert wanted in said
    for wanted in ("450 (450–500)", "never", "75.0 %", "235,008", "4,321", "20.0 %"):
        assert wanted in table, wanted
    assert "2 + 2 layers, d_model 64" in said and "2 seeds, the same for every kind" in said
    at = checked(at.button_group(key="positions-task").set_value("copy").run())
    assert "25.0 %" in cells(at) and at.query_params["task"] == "copy"
    assert at.code[0].value == "python -m transformer study positions"


def test_one_button_starts_the_study_and_the_page_watches_it(own_models, monkeypatch):
    started = []
    monkeypatch.setattr("transformer.experiments.study.start_study", started.append)
    at = positions(section="study")
    assert "10 runs of" not in texts(at) and "5 runs of 1,000 steps" in texts(at)
    at = checked(at.button(key="study-start").click().run())
    (name,) = started
    plan = study.load_study(name).plan
    assert plan.corpora == ("reverse",) and plan.positions == KINDS and plan.seeds == (0,)
    assert at.query_params["study"] == name
    assert study.load_study(name).command.startswith("python -m transformer study positions --corpora reverse")
    assert "The results appear here as soon as a run has finished" in texts(at)
    at = checked(at.button(key="study-go-on").click().run())
    assert started == [name, name]


def test_a_study_that_cannot_be_started_or_read_is_answered_in_a_sentence(own_models, monkeypatch):
    def refuse(name):
        raise study.StudyError("the disk is full")

    monkeypatch.setattr("transformer.experiments.study.start_study", refuse)
    at = checked(positions(section="study").button(key="study-start").click().run())
    assert "The study was not started: the disk is full" in texts(at).replace("\\", "")
    (own_models / "bad").mkdir()
    (own_models / "bad" / study.STUDY_FILE).write_text('{"plan": {}, "runs": 7}')
    assert "cannot be read" in texts(positions(section="study", study="bad")).replace("\\", "")
    assert "There is no study nowhere here" in texts(positions(section="study", study="nowhere")).replace("\\", "")


def test_beyond_the_trained_length_says_where_the_table_ends_and_what_was_done(own_models):
    a_study(own_models)
    at = positions(section="beyond", study="mine", task="reverse", model="reverse-learned", text="a b")
    said = texts(at)
    assert "positions 0 to 16" in said and "the learned table ends at position 40" in said
    assert "rows 17 to 40 exist without ever having been trained" in said and "used **as they are**" in said
    assert "20.0 % (16.7–23.8), 96 of 480" in cells(at)  # 24 lengths, 2 seeds, 2 of 10
    at = checked(at.button_group(key="positions-past").set_value("clamp").run())
    assert "reads row 16, the last trained one" in texts(at) and "40.0 % " in cells(at)
    at = checked(at.button_group(key="positions-past").set_value("refuse").run())
    assert at.query_params["past"] == "refuse"
    assert "**refused**: it gets no answer" in texts(at) and "refused" in cells(at)
    by_name = {line["name"]: line for line in figure(at)["data"] if line.get("name")}
    assert by_name["learned"]["x"]["bdata"] != by_name["alibi"]["x"]["bdata"]


def test_a_long_string_of_ones_own_is_answered_or_refused_and_the_model_stays_as_it_is():
    before = load("reverse-learned").inspect("a b c").translation
    at = positions(section="beyond", model="reverse-learned", text="a b c", past="clamp")
    assert "positions 0 to 10" in texts(at) and "rows 11 to 63 exist and were never trained" in texts(at)
    assert "Positions 11 to 14 read row 10." in texts(at)
    key = "beyond-text-reverse-learned"
    at = checked(at.text_input(key=key).set_value(" ".join("abcdefghij" * 7)).run())
    assert "Positions 11 to 70 read row 10." in texts(at)
    at = checked(at.button_group(key="positions-past").set_value("noise").run())
    assert "71 tokens need positions 0 to 70; the table ends at 63" in texts(at).replace("\\", "")
    at = checked(at.button_group(key="positions-past").set_value("refuse").run())
    assert "training reached 0 to 10" in texts(at)
    at = checked(at.text_input(key=key).set_value("a b c").run())
    assert f"It writes: {plain(before)}" in texts(at) and "All of them were trained." in texts(at)
    assert load("reverse-learned").inspect("a b c").translation == before


def test_a_model_of_other_sentences_has_no_lengths_to_test():
    assert "cannot be generated at a given length" in texts(positions(section="beyond"))


def test_the_selected_model_is_tested_by_length(monkeypatch):
    monkeypatch.setattr("pages.positions.beyond_length._PAIRS", 2)
    monkeypatch.setattr("pages.positions.beyond_length._LONGEST", 12)
    at = positions(section="beyond", model=REVERSE, text="a b c")
    plots = len(at.get("plotly_chart"))
    at = checked(at.button(key="measure-lengths").click().run())
    assert len(at.get("plotly_chart")) == plots + 1
    assert "beyond: 11 to 12 symbols" in cells(at, -1) and " of 4" in cells(at, -1)
