"""The numbers that lines of Python make are those of the files, also where two outputs differ in length."""

import io

import numpy as np
import pytest
from page_exports import opened, run_lines
from page_models import CLASSIC, checked

from transformer.checkpoints.settings import SHIPPED_FOLDER
from transformer.figures.tables import as_npz

pytestmark = pytest.mark.skipif(
    not (SHIPPED_FOLDER / "pronouns-en-fr").exists(), reason="the shipped model is not there"
)


@pytest.mark.parametrize(
    ("page", "key", "which", "parameters"),
    [
        ("compare", "take-two-outputs", "", {"two": "sentences", "other_text": "The cat slept."}),
    ],
)
def test_outputs_of_two_lengths(monkeypatch, page, key, which, parameters):
    taken = []
    monkeypatch.setattr("pages.shared.exports.offer_files", lambda away, *_: taken.append(away))
    at = opened(page, key, **{"model": "pronouns-en-fr", "text": CLASSIC, **parameters})
    if which:
        at = checked(at.segmented_control(key=f"{key}-which").set_value(which).run())
    made, tables = run_lines(at)["numbers"], taken[-1].tables
    assert len({len(numbers) for numbers in made}) == len(made) == len(tables) == 2
    with np.load(io.BytesIO(as_npz(tables))) as found:
        for numbers, table in zip(made, tables, strict=True):
            np.testing.assert_array_equal(found[table.name][:, 0], numbers)
