"""Take bertviz's drawings away: the lines of Python make the very document on the page, and its numbers are proved."""

import io

import numpy as np
import pytest
from page_exports import opened, run_lines
from page_models import CLASSIC, PRONOUNS, checked, open_page, texts

from transformer.figures.tables import as_npz, head_tables

pytestmark = [pytest.mark.slow_variants, pytest.mark.usefixtures("untrained_models")]
VIEWS = ["bertviz", "bertviz-model", "bertviz-neuron"]
CUT = {"words": "merged", "specials": "renormalised", "threshold": "0.1"}


@pytest.mark.parametrize(
    ("view", "parameters"),
    [
        *((view, {"kind": "cross", "layer": "0", "head": "2"}) for view in VIEWS),
        *((view, {"kind": "decoder_self", "switch": ["off:decoder.0.self:1", "mask:causal"]}) for view in VIEWS),
        *((view, {"kind": "encoder_self", **CUT}) for view in VIEWS),
        ("bertviz", {"specials": "hidden"}),
        ("bertviz-model", {"words": "merged", "switch": "mean:decoder.1.cross:0"}),
        ("bertviz-neuron", {"kind": "decoder_self", "cell": "2,1"}),
        (
            "bertviz-neuron",
            {"switch": ["row:decoder.1.cross.0:1:2", "mean:decoder.1.cross:1", "off:decoder.0.cross:0"]},
        ),
    ],
    ids=str,
)
def test_the_lines_of_python_make_the_document_on_the_page(view, parameters):
    at = opened("attention", "take-attention", picture=view, **parameters)
    (frame,) = at.get("iframe")
    made = run_lines(at)
    assert made["figure"].html == frame.proto.srcdoc
    numbers = made["numbers"]
    assert numbers.shape == made["shown"].weights.shape and "This drawing" in at.segmented_control[-1].options
    drawn = np.asarray(made["figure"].attention()["attn"])
    np.testing.assert_allclose(drawn, numbers, atol=5.1e-5)


@pytest.mark.parametrize(("view", "count"), [("bertviz", 4), ("bertviz-model", 4), ("bertviz-neuron", 6)])
@pytest.mark.parametrize("parameters", [{}, {"kind": "decoder_self", **CUT, "switch": "off:decoder.0.self:1"}], ids=str)
def test_the_badge_reads_the_drawing_again(view, count, parameters):
    at = open_page("attention", model=PRONOUNS, text=CLASSIC, picture=view, **parameters)
    at.session_state["proof-picture"] = True
    said = texts(checked(at.run()))
    assert f"**{count} checks, run just now: all hold.**" in said and "bertviz draws these weights" in said


def test_a_drawing_of_other_weights_fails_its_check(monkeypatch):
    monkeypatch.setattr(
        "transformer.figures.bertviz.shown.rounded", lambda values: (values + 0.001).astype(float).tolist()
    )
    at = open_page("attention", model=PRONOUNS, text=CLASSIC, picture="bertviz")
    at.session_state["proof-picture"] = True
    assert ":red[:material/error: **1 of 4 checks fail.**]" in texts(checked(at.run()))


def test_every_head_is_a_table_of_its_own():
    values = np.arange(2 * 3 * 1 * 2, dtype=np.float32).reshape(2, 3, 1, 2)
    tables = head_tables(values, ["a"], ["x", "x"], name=" q")
    assert [table.name for table in tables][-2:] == ["layer 1 head 1 q", "layer 1 head 2 q"] and len(tables) == 6
    with np.load(io.BytesIO(as_npz(tables))) as found:
        assert np.array_equal(found["layer 1 head 2 q"], values[1, 2])
        assert found["layer 0 head 0 q columns"].tolist() == ["0 x", "1 x"]
