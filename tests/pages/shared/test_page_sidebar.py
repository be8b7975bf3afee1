"""The sidebar shows what is training now, and nothing where nothing is."""

from dataclasses import replace

import pytest
from page_models import PRONOUNS, open_page
from tiny_runs import MODEL, settings

from transformer.config import CorpusConfig
from transformer.runs import run_folder
from transformer.runs.status import Status

pytestmark = pytest.mark.usefixtures("own_models")


def test_a_run_in_progress_has_a_bar_with_its_step(monkeypatch):
    run_id = run_folder.create_run(MODEL, settings(max_steps=200), CorpusConfig(name="reverse"))
    training = replace(run_folder.get_run(run_id), status=Status(state="running", step=50))
    monkeypatch.setattr("pages.training.run_status.list_runs", lambda: [training])
    bars = open_page(model=PRONOUNS).get("progress")
    assert [(bar.proto.text, bar.proto.value) for bar in bars] == [(f"{run_id} · step 50 of 200", 25)]


def test_nothing_is_drawn_where_nothing_trains():
    assert not open_page(model=PRONOUNS).get("progress")
