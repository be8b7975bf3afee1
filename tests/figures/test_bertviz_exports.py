"""Take bertviz's drawings away: the lines of Python make the very document on the page, and its numbers are proved."""

import io

import numpy as np
import pytest
from page_exports import opened, run_lines
from page_models import texts

from transformer.figures.tables import as_npz, head_tables

pytestmark = [pytest.mark.slow_variants, pytest.mark.usefixtures("untrained_models")]
CUT = {"words": "merged", "specials": "renormalised", "threshold": "0.1"}


@pytest.mark.parametrize(
    ("view", "parameters"),
    [
        ("bertviz", CUT),
        ("bertviz-model", {"words": "merged", "switch": "mean:decoder.1.cross:0"}),
        ("bertviz-neuron", {"kind": "decoder_self", "cell": "2,1"}),
        ("bertviz-neuron", {"switch": ["row:decoder.1.cross.0:1:2", "off:decoder.0.cross:0"]}),
    ],
    ids=str,
)
def test_the_document_on_the_page_is_that_of_the_program(view, parameters, monkeypatch, tmp_path):
    at = opened("attention", "bertviz-export", picture=view, **parameters)
    (frame,) = at.get("iframe")
    monkeypatch.chdir(tmp_path)
    made = run_lines(at)
    assert made["view"].document(made["data"]) == frame.proto.srcdoc


def test_a_drawing_of_other_weights_fails_its_check(monkeypatch):
    monkeypatch.setattr(
        "transformer.figures.bertviz.shown.rounded", lambda values: (values + 0.001).astype(float).tolist()
    )
    said = texts(opened("attention", "bertviz-proof", picture="bertviz"))
    assert ":red[:material/error: **1 of " in said and ":red[**bertviz draws these weights" in said


def test_every_head_is_a_table_of_its_own():
    values = np.arange(2 * 3 * 1 * 2, dtype=np.float32).reshape(2, 3, 1, 2)
    tables = head_tables(values, ["a"], ["x", "x"], name=" q")
    assert [table.index.name for table in tables][-2:] == ["layer 1 head 1 q", "layer 1 head 2 q"] and len(tables) == 6
    with np.load(io.BytesIO(as_npz(tables))) as found:
        assert np.array_equal(found["layer 1 head 2 q"], values[1, 2])
        assert found["layer 0 head 0 q columns"].tolist() == ["0 x", "1 x"]
