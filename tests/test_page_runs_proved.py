"""Every figure of Train and Runs has its badge, which a tampered journal or a wrong number turns red."""

import json

import pytest
from page_models import texts
from page_runs import trained_run
from test_page_proofs import proved, verdicts

from pages.common.training.data import Progress
from transformer import runs
from transformer.figures.curves import Curve
from transformer.settings import METRICS_FILE

pytestmark = pytest.mark.usefixtures("room", "no_shipped")
CURVES = ["loss", "perplexity", "learning rate"]


def tamper(run_id, change, split="validation"):
    """Changes the last row of a split in the journal of a run."""
    path = runs.run_folder(run_id) / METRICS_FILE
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    row = [row for row in rows if row["split"] == split][-1]
    row.update(change(row))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_the_curves_of_a_run_are_those_of_its_journal_and_its_weights():
    at = proved("train", "proof-curve", run=trained_run(), curve=[*CURVES, "exact match"])
    assert verdicts(at) == (5 + 2 + 2, 0), texts(at)
    assert "All 10 pairs read again" in texts(at)


@pytest.mark.parametrize(
    ("split", "change", "count"),
    [
        ("validation", lambda row: {"loss": row["loss"] - 0.1}, 2),
        ("validation", lambda row: {"exact_match": row["exact_match"] + 0.2}, 1),
        ("validation", lambda row: {"perplexity": row["perplexity"] * 0.9}, 1),
        ("train", lambda row: {"learning_rate": row["learning_rate"] * 1.5}, 1),
    ],
)
def test_a_tampered_journal_turns_the_badge_of_its_curves_red(split, change, count):
    run_id = trained_run()
    tamper(run_id, change, split)
    at = proved("train", "proof-curve", run=run_id, curve=CURVES)
    assert verdicts(at)[1] == count, texts(at)


@pytest.mark.parametrize("wrong", [lambda c: Curve(c.name, c.x, c.y * 1.01), lambda c: Curve(c.name, c.x[1:], c.y[1:])])
def test_a_point_that_is_wrong_or_missing_turns_it_red(wrong, monkeypatch):
    honest = Progress.curve
    monkeypatch.setattr(Progress, "curve", lambda *a: wrong(honest(*a)) if a[2] == "loss" else honest(*a))
    at = proved("train", "proof-curve", run=trained_run(), curve=["loss", "gradient norm"])
    assert verdicts(at) == (1 + 2, 2), texts(at)
