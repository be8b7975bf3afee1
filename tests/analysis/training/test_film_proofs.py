"""The badge of the film: what it shows at a step is what the weights kept of that step give."""

import os
from dataclasses import replace

import numpy as np
import pytest
from films import STEPS, film, large, opened
from page_checks import verdicts
from page_models import checked, texts
from test_page_runs_away import same_figure

from pages.training.timeline import frames
from transformer.runs import run_folder

pytestmark = pytest.mark.usefixtures("whole_films")
EACH = 5
"""Checks of a frame with a goal."""


def proved(run_id, **parameters):
    at = opened(run_id, **parameters)
    at.session_state["proof-film"] = True
    return checked(at.run())


@pytest.mark.parametrize("kind", ["encoder_self", "decoder_self", "cross"])
@pytest.mark.parametrize("rows", ["own", "forced"])
def test_every_kind_of_attention_is_made_again_at_the_step_on_show_and_the_newest(film_run, kind, rows):
    at = proved(film_run, film_kind=kind, film_rows=rows, film_step="8")
    assert verdicts(at) == (2 * EACH + 2, 0), texts(at)
    assert "Step 8\\:" in texts(at) and "Step 20\\:" in texts(at)


def test_at_the_newest_step_that_one_alone_is_made_again(film_run):
    assert verdicts(proved(film_run)) == (EACH + 2, 0)


def test_attention_that_is_not_of_these_weights_turns_the_badge_red(film_run, monkeypatch):
    honest = frames._take.__wrapped__  # type: ignore[attr-defined]

    def wrong(*arguments):
        take = honest(*arguments)
        cross = take.attention["cross"]
        moved = replace(cross, weights=cross.weights + np.float32(0.001))
        return replace(take, attention={**take.attention, "cross": moved}, probabilities=take.probabilities * 0.9)

    monkeypatch.setattr(frames, "_take", wrong)
    at = proved(film_run)
    assert verdicts(at) == (EACH + 2 - 3, 3), texts(at)


def test_weights_that_were_exchanged_turn_the_badge_red(own_film_run):
    at = opened(own_film_run, film_step="8", film_rows="forced")
    kept = run_folder.snapshots(own_film_run)
    stat = kept[8].stat()
    kept[8].write_bytes(kept[1].read_bytes())
    os.utime(kept[8], ns=(stat.st_atime_ns, stat.st_mtime_ns))
    at.session_state["proof-film"] = True
    at = checked(at.run())
    assert verdicts(at)[1] >= 3, texts(at)


@pytest.mark.parametrize(("kind", "rows"), [("cross", "own"), ("decoder_self", "forced"), ("encoder_self", "own")])
def test_the_lines_of_python_make_the_attention_of_the_step_on_show(film_run, kind, rows):
    at = opened(film_run, film_kind=kind, film_rows=rows, film_step="8", film_head="1")
    at.session_state["take-film"] = True
    made = same_figure(checked(at.run()), "matrix_figure")
    shown = large(film(at), STEPS.index(8))
    assert np.array_equal(np.where(made["attention"].mask[-1, : len(shown)], made["numbers"], 0), shown)
