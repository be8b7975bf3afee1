"""Positions: tables, distances, shifts and scores drawn, every control turned, every number the model's own."""

from dataclasses import replace
from shutil import rmtree

import numpy as np
import pytest
from page_exports import with_menus
from page_models import PRONOUNS, REVERSE, checked, texts
from page_positions import canvases, curves, figure, positions, shapes, tables
from tiny_runs import MODEL, settings

from pages.positions.choices import SECTIONS, Choices
from pages.shared.wording import number, plain
from transformer.analysis.positions.tables import model_table, rotation, shift_error, similarity, sinusoids
from transformer.config import CorpusConfig
from transformer.lab import load
from transformer.runs import run_folder
from transformer.runs.worker import train_run

pytestmark = pytest.mark.usefixtures("untrained_models")


def test_both_tables_stand_side_by_side_first():
    at = positions(table="reverse-learned")
    assert shapes(at) == [(64, 64), (64, 64)]
    assert "The learned table has 64 rows." in texts(at)
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
    at = positions(table="reverse-learned", popovers=["positions-drawer"])
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
    assert "only the distance matters" in texts(at)
    assert np.array_equal(tables(at)[0], similarity(sinusoids(64, 64), likeness).astype(np.float32))
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
    assert "A map needs at least 8 pairs of positions; the shorter table has 5 usable rows." in texts(at)


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
    assert "Scores cannot be split" in texts(at) and "added to the embeddings" in texts(at)
    said = {"none": "no positions at all", "rotary": "rotates queries and keys", "alibi": "which way a sentence runs"}
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
    ("section", "views"),
    [
        ("table", ("position-tables", "position-dimensions")),
        ("distances", ("position-similarity", "similarity-by-offset")),
        ("shifts", ("shift-maps", "shift-errors")),
        ("scores", ("score-parts",)),
        ("study", ("study-learning", "study-verdict")),
        ("beyond", ("study-lengths",)),
    ],
)
def test_every_figure_has_a_badge_that_holds_and_an_export(section, views):
    at = positions(section=section, table="reverse-learned", length="20", d_model="16")
    at = with_menus(at, *(f"{view}-proof" for view in views))
    assert texts(at).count("run just now") == len(views) and "checks fail" not in texts(at)
    at = with_menus(at, *(f"{view}-export" for view in views))
    assert sum("figure.show()" in code.value for code in at.code) == len(views)


def test_without_a_learned_model_the_sinusoids_are_drawn_alone(monkeypatch):
    monkeypatch.setattr("pages.positions.table_choice.learned_models", lambda: ())
    at = positions(d_model="16", length="20")
    assert shapes(at) == [(20, 16)] and "No model here has learned positions" in texts(at)
    assert shapes(positions(section="shifts", d_model="16", length="20")) == [(16, 16)]


def test_sections_change_and_stay_over_a_page_change():
    at = positions()
    at = checked(at.button_group(key="positions-section").set_value("distances").run())
    assert at.query_params["section"] == "distances"
    at.query_params.clear()
    at = checked(at.switch_page("pages/attention/page.py").run())
    assert "section" not in at.query_params
    at.query_params.clear()
    at = checked(at.switch_page("pages/positions/page.py").run())
    assert at.query_params["section"] == "distances"


def test_nonsense_in_a_link_is_left_at_its_default_and_named():
    wrong = {"section": "x", "d_model": "9999", "length": "-1", "base": "7", "k": "²", "moment": "y"}
    state, problems = Choices.read(wrong)
    assert state == Choices() and {problem.place for problem in problems} == set(wrong)
    assert Choices.read({"d_model": "33"})[0].d_model == 32
    chosen = Choices(section="shifts", table="m", stack="decoder", moment="start", d_model=16, length=9, base=100, k=4)
    assert Choices.read(chosen.parameters()) == (chosen, ())
    at = positions(d_model="0", length="many")
    assert np.array_equal(shapes(at), shapes(positions()))
    assert plain("The link says length “many”, which must be a whole number from 2 to 512; it is left out.") in texts(
        at
    )


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
    name = run_folder.create_run(
        replace(MODEL, positions="learned"), settings(max_steps=4), CorpusConfig(name="reverse"), name="learned"
    )
    assert train_run(name).state == "finished"
    return name
