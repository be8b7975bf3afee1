"""Positions, taken away: every figure's files hold its numbers, and its lines of Python make the same figure."""

import json

import numpy as np
import pytest
from page_models import CLASSIC, PRONOUNS, REVERSE, checked, open_page, texts

from pages.shared.components.packed_arrays import unpacked_arrays

pytestmark = [pytest.mark.slow_variants, pytest.mark.usefixtures("untrained_models")]


def positions(**parameters):
    return open_page("positions", **{"model": PRONOUNS, "text": CLASSIC, "table": "reverse-learned", **parameters})


def opened(at, key):
    at.session_state[key] = True
    return checked(at.run())


def figure_of(at) -> dict:
    """The figure in the opened popover: the one that is papered."""
    specs = [json.loads(chart.proto.spec) for chart in at.get("plotly_chart")]
    (found,) = (spec for spec in specs if spec["layout"].get("paper_bgcolor", "").startswith("#"))
    return found


def run_lines(at) -> dict:
    """What the page's lines of Python make."""
    (code,) = (sublayer.value for sublayer in at.code if "figure = " in sublayer.value)
    names: dict = {}
    exec(compile(code, "lines", "exec"), names)
    return names


def same(at) -> dict:
    """What the lines make, after asserting that every trace of its figure is that of the page's."""
    shown, made = figure_of(at), run_lines(at)
    own = json.loads(made["figure"].to_json())
    assert len(own["data"]) == len(shown["data"]) > 0
    for mine, theirs in zip(own["data"], shown["data"], strict=True):
        for name in ("type", "name", "x", "y", "z", "customdata"):
            assert mine.get(name) == theirs.get(name), name
    return made


SMALL = {"d_model": "16", "length": "20", "base": "100"}


@pytest.mark.parametrize(
    ("key", "parameters"),
    [
        ("take-tables", {"layout": "concatenated"}),
        ("take-tables", {"moment": "start", "stack": "decoder"}),
        ("take-tables", {"moment": "100"}),
        ("take-dimensions", {"frequency": "3"}),
        ("take-distances", {"section": "distances", "likeness": "dot"}),
        ("take-offsets", {"section": "distances", "moment": "start"}),
        ("take-maps", {"section": "shifts", "k": "2"}),
        ("take-errors", {"section": "shifts", "k": "2"}),
    ],
    ids=str,
)
def test_the_lines_of_python_make_the_pictures_of_tables(key, parameters):
    at = opened(positions(**SMALL, **parameters), key)
    made = same(at)
    drawn = [arrays for header, arrays in map(unpacked_arrays, canvases(at)) if ("panels" in header) == is_table(key)]
    first = made["numbers"][0] if isinstance(made["numbers"], list) else made["numbers"]
    if key == "take-offsets":
        assert np.array_equal(np.asarray(first.mean, np.float32), drawn[0][1])
    else:
        assert np.array_equal(np.asarray(first, np.float32), drawn[0][0 if is_table(key) else 1])


def canvases(at):
    return [element.proto.bytes for element in at.get("bidi_component") if element.proto.bytes]


def is_table(key):
    return key in ("take-tables", "take-distances", "take-maps")


def test_a_model_without_a_learned_one_beside_it_is_taken_away_too(monkeypatch):
    monkeypatch.setattr("pages.positions.tables.learned_models", lambda: ())
    made = same(opened(positions(**SMALL), "take-tables"))
    assert len(made["values"]) == 1
    same(opened(positions(**SMALL, section="shifts"), "take-errors"))


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_the_lines_of_python_make_the_parts_of_the_scores(stack):
    at = opened(positions(section="scores", stack=stack, head="2", switch="positions:encoder:shift:1"), "take-parts")
    made = same(at)
    assert np.nanmax(np.abs(sum(made["numbers"][:4]) - made["numbers"][4])) < 1e-4
    assert all(np.array_equal(np.isnan(part), ~made["split"].mask) for part in made["numbers"])


@pytest.mark.parametrize("key", ["take-compared", "take-shift"])
def test_the_lines_of_python_make_what_breaking_the_positions_did(key):
    same(opened(positions(section="break", switch="positions:encoder:remove"), key))


def test_the_lines_of_python_make_the_curves_of_the_shipped_study():
    at = opened(positions(section="study", task="copy"), "take-learning")
    made = same(at)
    assert len(made["numbers"]) == 15 and max(map(len, made["numbers"])) == 20


@pytest.mark.parametrize("past", ["noise", "refuse"])
def test_the_lines_of_python_make_the_lengths_of_the_study(past):
    made = same(opened(positions(section="beyond", task="reverse", past=past), "take-study-lengths"))
    assert [curve.name for curve in made["curves"]] == ["sinusoidal", "learned", "none", "rotary", "alibi"]


def test_the_lines_of_python_test_the_model_in_hand_again(monkeypatch):
    monkeypatch.setattr("pages.positions.beyond_length._LIVE_PAIRS", 2)
    monkeypatch.setattr("pages.positions.beyond_length._LONGEST_LIVE", 12)
    at = checked(positions(section="beyond", model=REVERSE, text="a b c").button(key="measure-lengths").click().run())
    made = same(opened(at, "take-own-lengths"))
    assert made["numbers"][0].shape == (12,)


CHECKS = [
    ("table", "proof-tables", {}),
    ("table", "proof-dimensions", {}),
    ("distances", "proof-alike", {"likeness": "cosine"}),
    ("distances", "proof-alike", {"likeness": "dot"}),
    ("distances", "proof-offsets", {}),
    ("shifts", "proof-maps", {"k": "2"}),
    ("shifts", "proof-shifts", {"k": "2"}),
    ("scores", "proof-parts", {"stack": "decoder"}),
    ("break", "proof-compared", {"switch": "positions:encoder:remove"}),
    ("break", "proof-difference", {"switch": "positions:encoder:remove"}),
    ("study", "proof-curves", {"task": "reverse"}),
    ("beyond", "proof-intervals", {"task": "copy", "past": "clamp"}),
]


@pytest.mark.parametrize(("section", "key", "parameters"), CHECKS, ids=str)
def test_every_figures_badge_proves_it(section, key, parameters):
    at = opened(positions(section=section, **parameters), key)
    said = texts(at)
    assert "run just now" in said and "checks fail" not in said


def test_the_badge_of_the_model_in_hand_translates_again(monkeypatch):
    monkeypatch.setattr("pages.positions.beyond_length._LIVE_PAIRS", 2)
    monkeypatch.setattr("pages.positions.beyond_length._LONGEST_LIVE", 12)
    at = checked(positions(section="beyond", model=REVERSE, text="a b c").button(key="measure-lengths").click().run())
    said = texts(opened(at, "proof-lengths"))
    assert "lengths 2, 10 translated again, one string at a time" in said.replace("Lengths", "lengths")
    assert "it holds" in said


def test_a_wrong_number_turns_the_badges_red(monkeypatch):
    monkeypatch.setattr("pages.positions.checks._Z", 1.0)
    monkeypatch.setattr("pages.positions.checks._errors", lambda table, matrix, k: [1.0] * (len(table) - k))
    said = texts(opened(positions(section="beyond", task="copy"), "proof-intervals"))
    assert "1 of 2 checks fail" in said
    assert "checks fail" in texts(opened(positions(section="shifts", k="2"), "proof-shifts"))
