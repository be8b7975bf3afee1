"""What tests of trainings share: none leaves a trainer at work, which would hold the next one up."""

from collections.abc import Iterator
from contextlib import suppress

import pytest
from app_server import Server

from transformer.runs import run_folder
from transformer.runs.status import RunError


@pytest.fixture(autouse=True)
def no_trainer_left(server: Server) -> Iterator[None]:
    """Stops what is still at work after a test that failed."""
    yield
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENTION_LAB_RUNS", str(server.runs))
        for run in run_folder.list_runs():
            if run.status.active:
                with suppress(RunError):  # it has just ended by itself
                    run_folder.stop(run.id)
