"""Runs for the page tests: made and trained in this process, in a second or two, with the smallest of settings."""

import json
import os
from dataclasses import replace
from typing import Any

import psutil
from page_models import checked, texts
from tiny_runs import MODEL, settings

from transformer.checkpoints.settings import read_settings, write_settings
from transformer.config import CorpusConfig
from transformer.runs import run_folder
from transformer.runs.status import Status, status, write_status
from transformer.runs.status import run_folder as folder_of
from transformer.runs.worker import train_run

PINNED = ("a b c", "t <b>h</b> e")


def made_run(name: str | None = None, *, corpus: str = "reverse", **changes: Any) -> str:
    """The id of a run that waits to be started."""
    return run_folder.create_run(MODEL, settings(**changes), CorpusConfig(name=corpus), pinned=PINNED, name=name)


def trained_run(name: str | None = None, *, corpus: str = "reverse", **changes: Any) -> str:
    """The id of a run that has finished."""
    run_id = made_run(name, corpus=corpus, **changes)
    assert train_run(run_id).state == "finished"
    return run_id


NO_STEP = ("made", "stopped", "failed")


def run_of_no_step(state: str, **changes: Any) -> str:
    """The id of a run that is not trained a single step: made, stopped before its first, or failed as it began."""
    run_id = made_run(**changes)
    if state == "stopped":
        put_status(run_id, state="stopped", reason="asked")
    if state == "failed":
        settings = read_settings(folder_of(run_id))
        write_settings(folder_of(run_id), replace(settings, corpus=CorpusConfig(name="/gone/pairs.tsv")))
        assert train_run(run_id).state == "failed"
    assert status(run_id).step == 0
    return run_id


def put_status(run_id: str, **changes: Any) -> None:
    """Writes another status, as a trainer would."""
    before: Status = status(run_id)
    write_status(folder_of(run_id), replace(before, **changes))


def table(at):
    """The rows that the table was given: cells by column title."""
    found = [json.loads(element.proto.json) for element in at.get("bidi_component") if element.proto.json]
    data = next(data for data in found if isinstance(data, dict) and "rows" in data)
    titles = [column["title"] for column in data["columns"]]
    return {row["id"]: row | dict(zip(titles, row["cells"], strict=True)) for row in data["rows"]}


def columns(at):
    """The titles between what was reached and when."""
    titles = [
        title for title in next(iter(table(at).values())) if title not in ("id", "cells", "shown", "chosen", "colour")
    ]
    return titles[6 : titles.index("parameters")]


def curves(at):
    return json.loads(at.get("plotly_chart")[0].proto.spec)


def button(at, label):
    return next(button for button in at.button if button.label == label)


def press(at, label):
    return checked(button(at, label).click().run())


def typed(at, label):
    return next(field for field in (*at.text_input, *at.text_area) if field.label == label)


def at_work(run_id: str, **changes: Any) -> None:
    """Lets a run seem to be trained by this process."""
    me = psutil.Process(os.getpid())
    put_status(run_id, state="running", phase="training", pid=me.pid, create_time=me.create_time(), **changes)


_UNKNOWN = "were never seen in training: the model reads <unk> (unknown) instead."
TOO_LONG = (
    " ".join("a" * 70),
    "Your input has 71 tokens with its end mark, and the model takes at most 64: shorten it.",
)
READABLE = [
    ("ZZ 9 ü", f"*ZZ*, *9*, *ü* {_UNKNOWN}"),
    ("abc hello", f"*abc*, *hello* {_UNKNOWN} Put spaces between the letters."),
    ("", "Your input is empty, so the model reads *a b c d e f* instead."),
    (" \ufeff ", "Your input is empty, so the model reads *a b c d e f* instead."),
]
UNREADABLE = [TOO_LONG, ("a" * 201, "Your input has 201 characters, and at most 200 are read here: shorten it.")]
_OPENINGS = ("never seen in training", "has no token", "have no tokens", "Your input has", "Your input is")


def typed_string(at: Any, page: str, text: str) -> Any:
    """The app after a visitor has typed this into the page's field."""
    return checked(at.text_input(key=f"{page}-text").set_value(text).run())


def notes(at: Any) -> list[str]:
    """All that the page says about the typed string, wherever it says it."""
    lines = texts(at).replace("\\", "").splitlines()
    return [
        line.removeprefix(":red[:material/error: ").removesuffix("]")
        for line in lines
        if any(opening in line for opening in _OPENINGS)
    ]
