"""Positions: every section drawn, every control turned, every number the model's own."""

import json
from dataclasses import asdict, replace
from shutil import rmtree

import numpy as np
import pytest
from page_models import CLASSIC, PRONOUNS, REVERSE, checked, open_page, texts
from tiny_runs import MODEL, settings

from pages.common.components.packed_arrays import unpacked_arrays
from pages.common.position_choices import SECTIONS, Choices, read
from pages.common.wording import effect, number, plain
from transformer import runs, study
from transformer.analysis.positions import likeness as likeness_of
from transformer.analysis.positions import model_table, rotation, shift_error, sinusoids
from transformer.config import CorpusConfig
from transformer.files import write_json
from transformer.interventions import parse_intervention
from transformer.lab import load
from transformer.worker import train_run

pytestmark = pytest.mark.usefixtures("untrained_models")


def positions(**parameters):
    return open_page("positions", **{"model": PRONOUNS, "text": CLASSIC, **parameters})


def figure(at, index=0):
    return json.loads(at.get("plotly_chart")[index].proto.spec)


def canvases(at):
    """(header, arrays) of every canvas of tables or curves on the page."""
    return [unpacked_arrays(element.proto.bytes) for element in at.get("bidi_component") if element.proto.bytes]


def tables(at):
    (arrays,) = (arrays for header, arrays in canvases(at) if "panels" in header)
    return arrays


def curves(at):
    ((header, _),) = (found for found in canvases(at) if "series" in found[0])
    return [series["name"] for series in header["series"]]


def shapes(at):
    return [table.shape for table in tables(at)]


def test_both_tables_stand_side_by_side_first():
    at = positions(table="reverse-learned")
    assert shapes(at) == [(64, 64), (64, 64)]
    assert "The learned table has 64 rows and ends there." in texts(at)
    assert "Training reached only positions 0 to 10: from 11 on" in texts(at)
    assert np.array_equal(tables(at)[0], sinusoids(64, 64))
    learned = model_table(load("reverse-learned").model, "encoder")
    assert learned is not None and np.array_equal(tables(at)[1], learned)
    assert canvases(at)[0][0]["panels"][1]["untrained_from"] == 11
    assert curves(at)[2:] == ["learned, dimension 4", "learned, dimension 5"]


def test_size_and_base_are_adjustable_live_and_in_the_url():
    at = positions(table="reverse-learned")
    at = checked(at.slider(key="positions-d_model").set_value(48).run())
    at = checked(at.slider(key="positions-length").set_value(30).run())
    at = checked(at.select_slider(key="positions-base").set_value(100).run())
    assert shapes(at) == [(30, 48), (30, 64)]
    assert {"d_model": "48", "length": "30", "base": "100"}.items() <= dict(at.query_params).items()
    assert "100 × 2π = 628.32" in texts(at)
    again = positions(table="reverse-learned", d_model="48", length="30", base="100")
    assert [(h, [a.tolist() for a in arrays]) for h, arrays in canvases(again)] == [
        (h, [a.tolist() for a in arrays]) for h, arrays in canvases(at)
    ]


def test_a_pair_of_dimensions_is_named_with_its_wavelength():
    at = positions(table="reverse-learned", frequency="0")
    assert "Dimensions 0 and 1 repeat every **6.28** positions" in texts(at)
    at = checked(at.slider(key="positions-frequency").set_value(31).run())
    assert "Dimensions 62 and 63 repeat every **47,117** positions" in texts(at)


def test_layout_stack_moment_and_table_can_be_chosen():
    at = positions(table="reverse-learned")
    before = tables(at)
    at = checked(at.button_group(key="positions-layout").set_value("concatenated").run())
    assert np.array_equal(tables(at)[0][:, :32], before[0][:, ::2]) and np.array_equal(tables(at)[1], before[1])
    at = checked(at.button_group(key="positions-stack").set_value("decoder").run())
    decoder = tables(at)[1]
    assert not np.array_equal(decoder, before[1])
    at = checked(at.selectbox(key="positions-moment").set_value("start").run())
    assert not np.array_equal(tables(at)[1], decoder)
    at = checked(at.selectbox(key="positions-table").set_value("pronouns-en-fr-learned").run())
    assert shapes(at)[1] == (128, 128)


@pytest.mark.parametrize("likeness", ["cosine", "dot"])
def test_distances_are_drawn_for_both_kinds(likeness):
    at = positions(table="reverse-learned", section="distances", likeness=likeness)
    assert shapes(at) == [(64, 64), (64, 64)]
    assert "only the distance counts" in texts(at)
    assert np.array_equal(tables(at)[0], likeness_of(sinusoids(64, 64), likeness).astype(np.float32))
    assert len(curves(at)) == 2


def test_a_shift_is_the_rotation_and_its_error_is_measured():
    at = positions(table="reverse-learned", section="shifts", k="2")
    error = shift_error(sinusoids(64, 64), rotation(64, 2), 2).max()
    assert error < 1e-6
    assert f"to within {number(float(error))} in the float32 table" in texts(at)
    assert shapes(at) == [(64, 64), (64, 64)]
    at = checked(at.slider(key="positions-k").set_value(3).run())
    assert "PE(pos + 3)" in texts(at) and at.query_params["k"] == "3"
    assert at.dataframe[1].value["pairs fitted"].tolist() == [4, 4]


def test_too_short_a_table_for_a_map_is_answered_in_a_sentence():
    at = positions(table="reverse-learned", section="shifts", length="5")
    assert "A map needs at least 8 pairs of positions; the shorter table has 5 rows to use." in texts(at)


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_scores_are_taken_apart_for_each_head(stack):
    at = positions(section="scores", stack=stack)
    at = checked(at.selectbox(key="positions-head").set_value(2).run())
    assert f"Layer 0, head 2 of the {stack}'s self-attention." in texts(at)
    assert len(figure(at)["data"]) == 5
    assert "The parts sum to the recorded score to within" in texts(at)


@pytest.mark.parametrize("kind", ["none", "rotary", "alibi"])
def test_a_model_without_added_positions_is_shown_and_its_scores_explained(own_models, kind):
    path = own_models / PRONOUNS / "config.json"
    path.write_text(path.read_text().replace('"positions": "sinusoidal"', f'"positions": "{kind}"'))
    at = positions(section="scores")
    assert f"{kind} positions are not added to the embeddings" in texts(at)
    said = {"none": "no positions at all", "rotary": "turns queries and keys", "alibi": "which way a sentence runs"}
    assert said[kind] in texts(at)


@pytest.mark.parametrize("kind", ["none", "rotary", "alibi"])
def test_every_section_is_drawn_for_every_kind(own_models, kind):
    path = own_models / REVERSE / "config.json"
    path.write_text(path.read_text().replace('"positions": "sinusoidal"', f'"positions": "{kind}"'))
    at = positions(model=REVERSE, text="a b c")
    for section in SECTIONS:
        at = checked(at.button_group(key="positions-section").set_value(section).run())
        assert at.button_group(key="positions-section").value == section
    at = checked(at.button_group(key="positions-section").set_value("beyond").run())
    key = f"beyond-text-{REVERSE}"
    at = checked(at.text_input(key=key).set_value(" ".join("abcdefghij" * 15)).run())
    assert "151 tokens with the end mark: positions 0 to 150. Training reached 0 to 10." in texts(at)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("", "type at least one symbol"),
        (" \t ", "type at least one symbol"),
        ("a " * 5_000, "up to 200 are read here"),
        ("<script>alert(1)</script> `x` **y** $z$ \\ 🦓 \u202e", "It writes"),
        ("\x00\ud7ff", "It writes"),
    ],
)
def test_whatever_is_typed_as_a_long_string_is_answered_in_a_sentence(typed, said):
    at = positions(section="beyond", model="reverse-learned", text="a b c", past="clamp")
    key = "beyond-text-reverse-learned"
    at = checked(at.text_input(key=key).set_value(typed).run())
    assert said in texts(at).replace("\\", "") and at.text_input(key=key).value == typed


def test_sections_change_and_stay_over_a_page_change():
    at = positions()
    at = checked(at.button_group(key="positions-section").set_value("distances").run())
    assert at.query_params["section"] == "distances"
    at.query_params.clear()
    at = checked(at.switch_page("pages/attention.py").run())
    assert "section" not in at.query_params
    at.query_params.clear()
    at = checked(at.switch_page("pages/positions.py").run())
    assert at.query_params["section"] == "distances"


def test_nonsense_in_a_link_is_left_at_its_default():
    assert read({"section": "x", "d_model": "9999", "length": "-1", "base": "7", "k": "²", "moment": "y"}) == Choices()
    assert read({"d_model": "33"}).d_model == 32
    chosen = Choices(section="shifts", table="m", stack="decoder", moment="start", d_model=16, length=9, base=100, k=4)
    assert read(chosen.parameters()) == chosen
    assert np.array_equal(shapes(positions(d_model="0", length="many")), shapes(positions()))


def removable(at):
    return [b.label for b in at.button if (b.key or "").startswith("remove-positions")]


@pytest.mark.parametrize(
    ("edit", "switch"),
    [
        ("remove", "positions:encoder:remove"),
        ("shuffle", "positions:encoder:shuffle:1"),
        ("shift", "positions:encoder:shift:1"),
        ("scale", "positions:encoder:scale:2"),
        ("same", "positions:encoder:same:0,1"),
    ],
)
def test_positions_are_broken_and_the_output_compared(edit, switch):
    at = positions(section="break")
    assert "Measured on the original output" not in texts(at)
    at = checked(at.button_group(key="break-edit").set_value(edit).run())
    assert at.query_params["switch"] == switch and len(removable(at)) == 1
    for sentence in effect(load(PRONOUNS).compare(CLASSIC, [parse_intervention(switch)])):
        assert sentence in texts(at)
    at = checked(at.button_group(key="break-edit").set_value("").run())
    assert "switch" not in at.query_params and removable(at) == []


def test_how_positions_are_broken_can_be_chosen():
    at = positions(section="break", switch="positions:encoder:shift:2")
    at = checked(at.slider(key="break-shift").set_value(5).run())
    assert at.query_params["switch"] == "positions:encoder:shift:5"
    assert "takes its last row" in texts(at)
    at = checked(at.button_group(key="break-edit").set_value("scale").run())
    at = checked(at.selectbox(key="break-scale").set_value(0.25).run())
    assert at.query_params["switch"] == "positions:encoder:scale:0.25"
    at = checked(at.button_group(key="break-edit").set_value("shuffle").run())
    at = checked(at.button(key="break-again").click().run())
    assert at.query_params["switch"] == "positions:encoder:shuffle:2"
    at = checked(at.button_group(key="break-edit").set_value("same").run())
    at = checked(at.multiselect(key="break-same").set_value([0]).run())
    assert at.query_params["switch"] == "positions:encoder:same:0,1"  # one token alone changes nothing yet
    at = checked(at.multiselect(key="break-same").set_value([0, 1, 4]).run())
    assert at.query_params["switch"] == "positions:encoder:same:1,4"


def test_both_stacks_can_be_broken_and_the_view_travels_to_attention():
    at = positions(section="break", switch="positions:encoder:remove")
    at = checked(at.button_group(key="positions-stack").set_value("decoder").run())
    assert "shuffle" not in at.button_group(key="break-edit").options
    at = checked(at.button_group(key="break-edit").set_value("shift").run())
    assert at.query_params["switch"] == ["positions:encoder:remove", "positions:decoder:shift:1"]
    assert "without the key/value cache" in texts(at)
    at.query_params.clear()
    at = checked(at.switch_page("pages/attention.py").run())
    assert len(removable(at)) == 2
    assert at.query_params["switch"] == ["positions:encoder:remove", "positions:decoder:shift:1"]


@pytest.mark.parametrize(
    ("switch", "said"),
    [
        ("positions:encoder:scale:1", "a scale (1) must lie above 0"),
        ("positions:encoder:same:0,18", "the sentence has tokens 0 to 13"),
        ("positions:encoder:wobble", "The link has a switch “positions:encoder:wobble” that cannot be read"),
    ],
)
def test_nonsense_positions_in_a_link_are_answered_in_a_sentence(switch, said):
    at = positions(section="break", switch=switch)
    assert plain(said) in texts(at) and removable(at) == []


def test_a_sentence_too_short_for_the_two_tokens_drops_the_switch_with_a_sentence():
    at = positions(section="break", switch="positions:encoder:same:0,12")
    at = checked(at.text_input(key="choose-text").set_value("The animal.").run())
    assert "same:0,12 is left out: the sentence has tokens 0 to 3" in texts(at).replace("\\", "")
    assert removable(at) == [] and at.text_input(key="choose-text").value == "The animal."


def test_a_model_without_added_positions_has_nothing_to_break(own_models):
    path = own_models / PRONOUNS / "config.json"
    path.write_text(path.read_text().replace('"positions": "sinusoidal"', '"positions": "rotary"'))
    at = positions(section="break", switch="positions:encoder:remove")
    assert "adds nothing to its embeddings" in texts(at) and removable(at) == []


def a_study(runs, name="mine", positions=("sinusoidal", "learned", "alibi"), *, state="done"):
    """A study with made-up results, to see that pages say what its file says."""
    plan = study.StudyPlan(corpora=("reverse", "copy"), positions=positions, seeds=(0, 1))

    def row(corpus, kind, seed):
        lengths = {
            how: tuple((n, 9 if n <= 16 else (4 if how == "clamp" else 2), 10) for n in range(1, 41))
            for how in (("noise", "clamp", "interpolate") if kind == "learned" else ("",))
        }
        return study.StudyRun(
            corpus=corpus, positions=kind, seed=seed, id=f"{name}-{corpus}-{kind}-{seed}", state=state,
            parameters=235_008, steps=1_000, steps_to_target=None if kind == "alibi" else 450 + 50 * seed,
            exact_match=0.25 if corpus == "copy" else 0.75, count=1_000, tokens_per_s=4_321.0, elapsed_s=40.0,
            trained_positions=17, curve=((500, 1.0, 0.5), (1_000, 0.5, 0.75)), lengths=lengths,
        )  # fmt: skip

    rows = tuple(row(corpus, kind, seed) for seed in plan.seeds for corpus in plan.corpora for kind in positions)
    found = study.Study(name=name, plan=plan, runs=rows, command="python -m transformer study positions", machine="a b")
    (runs / name).mkdir()
    write_json(runs / name / study.STUDY_FILE, asdict(found))
    return found


def cells(at, index=1):
    """A table of the page, by default the first after the vocabulary behind More."""
    return at.dataframe[index].value.astype(str).to_string()


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
    assert "2 + 2 layers, d_model 64" in said and "2 seeds, alike for every kind" in said
    at = checked(at.button_group(key="positions-task").set_value("copy").run())
    assert "25.0 %" in cells(at) and at.query_params["task"] == "copy"
    assert at.code[0].value == "python -m transformer study positions"


def test_one_button_starts_the_study_and_the_page_watches_it(own_models, monkeypatch):
    started = []
    monkeypatch.setattr("transformer.study.start_study", started.append)
    at = positions(section="study")
    assert "10 runs of" not in texts(at) and "5 runs of 1,000 steps" in texts(at)
    at = checked(at.button(key="study-start").click().run())
    (name,) = started
    plan = study.load_study(name).plan
    assert plan.corpora == ("reverse",) and plan.positions == study.KINDS and plan.seeds == (0,)
    assert at.query_params["study"] == name
    assert study.load_study(name).command.startswith("python -m transformer study positions --corpora reverse")
    assert "The verdict stands here as soon as a run has finished" in texts(at)
    at = checked(at.button(key="study-go-on").click().run())
    assert started == [name, name]


def test_a_study_that_cannot_be_started_or_read_is_answered_in_a_sentence(own_models, monkeypatch):
    def refuse(name):
        raise study.StudyError("the disk is full")

    monkeypatch.setattr("transformer.study.start_study", refuse)
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
    assert f"It writes: `{before}`" in texts(at) and "All of them were trained." in texts(at)
    assert load("reverse-learned").inspect("a b c").translation == before


def test_a_model_of_other_sentences_has_no_lengths_to_test():
    assert "cannot be had at any length" in texts(positions(section="beyond"))


def test_the_model_in_hand_is_tested_by_length(monkeypatch):
    monkeypatch.setattr("pages.common.position_beyond._LIVE_PAIRS", 2)
    monkeypatch.setattr("pages.common.position_beyond._LONGEST_LIVE", 12)
    at = positions(section="beyond", model=REVERSE, text="a b c")
    plots = len(at.get("plotly_chart"))
    at = checked(at.button(key="measure-lengths").click().run())
    assert len(at.get("plotly_chart")) == plots + 1
    assert "11 to 12, beyond" in cells(at, -1) and " of 4" in cells(at, -1)


def test_a_shipped_models_table_is_shown_at_each_snapshot(own_models, monkeypatch):
    trained = trained_run_with_learned_positions(own_models)
    at = positions(table=trained, section="distances")
    steps = at.selectbox(key="positions-moment").options
    assert steps[:3] == ["before training", "step 0", "step 1"] and steps[-1] == "trained"
    before = tables(at)[1]
    at = checked(at.selectbox(key="positions-moment").set_value("1").run())
    kept = tables(at)[1]
    assert not np.array_equal(kept, before)
    rmtree(own_models / trained / "snapshots")
    (own_models / trained / "status.json").unlink()  # as a shipped one: the tables alone
    again = positions(table=trained, section="distances", moment="1")
    assert again.selectbox(key="positions-moment").options == steps
    assert np.abs(tables(again)[1] - kept).max() < 1e-3  # they are kept in half precision


def trained_run_with_learned_positions(own_models):
    name = runs.create_run(
        replace(MODEL, positions="learned"), settings(max_steps=4), CorpusConfig(name="reverse"), name="learned"
    )
    assert train_run(name).state == "finished"
    return name
