"""Runs for the page tests: made and trained in this process, in a second or two, with the smallest of settings."""

from dataclasses import replace
from typing import Any

from tiny_runs import MODEL, settings

from transformer import runs
from transformer.config import CorpusConfig
from transformer.runs import Status, write_status
from transformer.worker import train_run

PINNED = ("a b c", "t <b>h</b> e")


def made_run(name: str | None = None, **changes: Any) -> str:
    """The id of a run that waits to be started."""
    return runs.create_run(MODEL, settings(**changes), CorpusConfig(name="reverse"), pinned=PINNED, name=name)


def trained_run(name: str | None = None, **changes: Any) -> str:
    """The id of a run that has finished."""
    run_id = made_run(name, **changes)
    assert train_run(run_id).state == "finished"
    return run_id


def put_status(run_id: str, **changes: Any) -> None:
    """Writes another status, as a trainer would."""
    before: Status = runs.status(run_id)
    write_status(runs.run_folder(run_id), replace(before, **changes))
