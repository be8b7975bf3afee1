"""The badges on Train and Runs open on what the page shows, and hold."""

import pytest
from page_exports import proved, verdicts
from page_models import texts
from page_runs import trained_run

pytestmark = pytest.mark.usefixtures("room", "measurements")


@pytest.mark.parametrize(
    ("page", "badge", "parameters"),
    [
        ("train", "sentence-lengths-proof", {"look": "corpus", "corpus": "reverse", "max_length": "8"}),
        ("train", "training-memory-proof", {"look": "costs", "corpus": "reverse", "positions": "learned"}),
        ("train", "learning-rate-in-full-proof", {"look": "costs", "corpus": "reverse"}),
        ("train", "run-curves-shipped-proof", {"corpus": "pronouns-en-fr"}),
        ("runs", "compared-runs-proof", {"show": ["reverse", "reverse-learned"], "against": "seconds"}),
    ],
)
def test_the_badge_of_a_plan_or_of_runs_holds(page, badge, parameters):
    at = proved(page, badge, **parameters)
    assert verdicts(at)[0] > 0 and verdicts(at)[1] == 0, texts(at)


@pytest.mark.usefixtures("no_shipped")
def test_the_badges_of_a_run_and_of_its_timeline_hold():
    at = proved("train", "run-curves-proof", run=trained_run(), curve=["loss", "tokens/s"])
    assert verdicts(at) == (3 + 2, 0), texts(at)
