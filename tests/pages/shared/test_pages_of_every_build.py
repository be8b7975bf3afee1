"""Every page with a model of every build and with runs of no step: what applies is shown, what does not is said."""

import pytest
from page_models import faults_of, save_model, visit
from page_runs import NO_STEP, run_of_no_step
from random_models import EVERY_SETTING
from tiny_runs import settings

from pages.shared.registry import PAGES
from transformer.config import CorpusConfig
from transformer.runs import run_folder

pytestmark = pytest.mark.usefixtures("room")
PLACES = {"train": ({},), "runs": ({}, {"tab": "Sweeps"}), "playground": ({},), "race": ({},)}
"""The pages that show a run, and links to their parts beside the run's."""


def naming(run_id):
    """The parameters by which links name a run."""
    return dict.fromkeys(("run", "left_run", "right_run"), run_id)


@pytest.mark.parametrize("build", list(reversed(EVERY_SETTING)))
def test_every_page_with_a_model_of_every_build(build, room):
    save_model(room / "model", EVERY_SETTING[build])
    config = EVERY_SETTING[build]().config
    run_folder.create_run(config, settings(), CorpusConfig(name="reverse", longest=6), name="begun")
    found = {}
    for page in PAGES:
        given = naming("begun") if page.folder in PLACES else {"model": "model", "text": "a b c", "pairs": "50"}
        at = visit(page.folder, **given)
        if faults := faults_of(at):
            found[page.folder] = faults
        assert not page.shows_a_sentence or at.query_params["model"] in ("model", ["model"]), "no other is shown"
    assert not found


@pytest.mark.parametrize("state", NO_STEP)
def test_pages_of_runs_with_a_run_of_no_step(state):
    run_id = run_of_no_step(state)
    found = {}
    for page, links in PLACES.items():
        for link in links:
            if faults := faults_of(visit(page, show=run_id, **naming(run_id), **link)):
                found[page, *link] = faults
    assert not found
