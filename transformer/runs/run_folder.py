"""A run as a folder: create, start, pause, resume, stop, watch, list, delete.

The trainer is a process of its own (worker.py). Everything here only reads its folder and drops requests into it, so a
run outlives the page, the browser and the server that started it. No torch here: watching must be quick.
"""

import datetime
import os
import platform
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from transformer import locks
from transformer.access import audit
from transformer.access.ownership import may_change, may_take, visible
from transformer.access.people import acting
from transformer.checkpoints.metric_rows import metric_rows, sample_rows
from transformer.checkpoints.settings import (
    CONFIG_FILE,
    WEIGHTS_FILE,
    CheckpointError,
    Settings,
    free_names,
    read_settings,
    write_settings,
)
from transformer.config import AnyModelConfig, CorpusConfig, TrainConfig
from transformer.data.corpus_cache import prepared
from transformer.data.corpus_snapshot import keep_corpus
from transformer.files import last_of, new_folder, runs_folder, write_json
from transformer.runs.limits.quota import settle, write_ticket
from transformer.runs.live.pace import set_pace
from transformer.runs.queue import cancel, check_room, enqueue, place, start_waiting
from transformer.runs.status import (
    LOCK_FILE,
    REQUEST_FILE,
    SNAPSHOTS,
    STATUS_FILE,
    Request,
    RunError,
    Status,
    check_runs_folder,
    is_name,
    own_folder,
    request_to,
    run_folder,
    run_ids,
    status,
    write_status,
    writing_to,
)
from transformer.runs.warm_start import Start, check_start, start_of
from transformer.text.pairs import clean_text
from transformer.text.tokenizer import BOS, EOS, PAD, Tokenizer

_PACKAGES = ("torch", "numpy", "safetensors", "sentencepiece", "sacrebleu")


@dataclass(frozen=True)
class Run:
    """One row of the table of runs."""

    id: str
    folder: Path
    settings: Settings
    status: Status
    loadable: bool
    """True if it has weights to look into."""
    resumable: bool
    place: int = 0
    """Its place in the queue, 1 for the next to start; 0 where it does not wait."""
    asked: Request | None = None
    """The request that its trainer has not met yet."""


def create_run(
    model: AnyModelConfig,
    train: TrainConfig,
    corpus: CorpusConfig,
    *,
    pinned: Sequence[str] | None = None,
    name: str | None = None,
    command: str = "",
    credit: str = "",
    start_from: str | Start | None = None,
) -> str:
    """The id of a new run, ready to start. Its tokenizer is trained here and the model takes its vocabulary size.

    A file to learn from is copied into the run's folder. `pinned` sentences are translated at each evaluation; None
    takes the corpus's first examples. `credit` says in the card whom the sentences come from. `start_from` names the
    run or shipped model whose weights it begins with. It belongs to whom the code runs for. Raises RunError,
    CorpusError, TokenizerError or ValueError for what cannot work, and where the quota is used up; nothing is left
    behind then.
    """
    check_room(acting().id)
    begin = start_of(start_from) if isinstance(start_from, str) else start_from
    loaded, tokenizer = prepared(corpus)
    if (ids := (model.pad_id, model.bos_id, model.eos_id)) != (PAD, BOS, EOS):
        raise RunError(f"pad_id, bos_id and eos_id {ids} must be {(PAD, BOS, EOS)}, which every tokenizer here uses")
    model = replace(model, vocab_size=tokenizer.vocab_size)
    pinned = tuple(loaded.examples[:3] if pinned is None else dict.fromkeys(map(clean_text, pinned)))
    _check_pinned(pinned, tokenizer, model.max_length)
    if begin is not None:
        check_start(begin, model, tokenizer)
    root = runs_folder()
    for run_id in free_names(name or Path(corpus.name).stem, numbered=not name):
        settings = Settings(
            name=run_id,
            model=model,
            train=train,
            corpus=corpus,
            pinned=pinned,
            command=command,
            credit=credit,
            created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            versions={"python": platform.python_version()} | {name: metadata.version(name) for name in _PACKAGES},
        )
        try:
            with new_folder(root / run_id) as folder:
                parent = None if begin is None else begin.copy_to(folder)
                write_settings(folder, replace(settings, parent=parent, corpus=keep_corpus(corpus, folder)))
                tokenizer.save(folder)
                write_status(folder, Status(state="queued", heartbeat=time.time()))
                if owner := acting().id:
                    write_ticket(folder, owner, 0.0)
        except OSError as error:
            if (root / run_id).exists():  # another process took the id in this moment
                continue
            raise RunError(f"the run cannot be written to {root}: {error.strerror or error}") from error
        return run_id
    raise AssertionError("ids do not run out")


def start(run_id: str, steps_per_s: float | None = None) -> None:
    """Starts the trainer of a new run in a process of its own, or goes on with one that paused, stopped or failed; at
    most at this pace, or as fast as it can.

    Where as many runs are at work as may be, it waits in the queue: queue.py says when its turn comes. Raises RunError
    for a run that is active, has finished or is somebody else's, and where its owner's quota is used up.
    """
    with writing_to(run_id):
        enqueue(run_id)
        set_pace(own_folder(run_id), steps_per_s)
        start_waiting()


def pause(run_id: str) -> None:
    """Asks the trainer to save where it is and end; `start` goes on from there. RunError where none is at work.

    A run that waits leaves the queue.
    """
    with writing_to(run_id):
        if not cancel(run_id, "paused"):
            _ask(run_id, "pause")
    audit.record("pause", runs_folder() / run_id)


def resume(run_id: str) -> None:
    """Goes on with a run that paused, stopped or failed, from its last saved state; the same as `start`."""
    start(run_id)


def stop(run_id: str) -> None:
    """Asks the trainer to end with the final weights and a card; a run that is paused or waits ends where it is."""
    folder, now = own_folder(run_id), status(run_id)
    with writing_to(run_id):
        if now.state == "paused":
            write_status(folder, replace(now, state="stopped", reason="asked"))
        elif not cancel(run_id, "stopped"):
            _ask(run_id, "stop")
    audit.record("stop", folder)


def hold_to(run_id: str, steps_per_s: float | None) -> None:
    """Holds a run to so many steps a second, from its next step until it pauses or ends; None for as fast as it can.
    RunError for one that is somebody else's."""
    folder = own_folder(run_id)
    with writing_to(run_id):
        set_pace(folder, steps_per_s)


def metrics(run_id: str) -> list[dict[str, Any]]:
    """The rows of metrics.jsonl by step, each (split, step) once: after a resume the later one holds.

    A row has `step`, `split` and `elapsed_s`. Split "train": loss (smoothed), learning_rate, gradient_norm, tokens,
    tokens_per_s. Split "validation", and at the end each held-out split: loss (unsmoothed), perplexity, exact_match
    (0..1), bleu, chrf (0..100, or null), count.
    """
    rows = last_of(metric_rows(run_folder(run_id)), lambda row: (row["split"], row["step"]))
    return sorted(rows, key=lambda row: row["step"])


def samples(run_id: str) -> list[dict[str, Any]]:
    """The pinned sentences as translated at each evaluation: rows with `step`, `source`, `translation`, `elapsed_s`."""
    rows = last_of(sample_rows(own_folder(run_id, "read its sentences")), lambda row: (row["step"], row["source"]))
    return sorted(rows, key=lambda row: row["step"])


def snapshots(run_id: str) -> dict[int, Path]:
    """The weights kept on the way, by step."""
    folder = run_folder(run_id) / SNAPSHOTS
    found = {int(path.stem): path for path in folder.glob("*.safetensors") if path.stem.isdecimal()}
    return dict(sorted(found.items()))


def get_run(run_id: str) -> Run:
    """A run's settings and status; RunError for no such run, CheckpointError for a config.json that cannot be read.

    Who may only look at it gets the settings without the sentences that its owner follows.
    """
    folder = run_folder(run_id)
    found, settings = status(run_id), read_settings(folder)
    if not may_take(folder):
        settings = replace(settings, pinned=())
    resumable = found.state in ("paused", "stopped", "failed")
    loadable = (folder / WEIGHTS_FILE).is_file()
    at = place(run_id) if found.waiting else 0
    asked = request_to(folder) if found.active and not found.waiting else None  # else it is of a trainer that died
    return Run(run_id, folder, settings, found, loadable, resumable, at, asked)


def list_runs() -> list[Run]:
    """All runs that one may look at, the newest first; RunError where the folder of runs is a file."""
    check_runs_folder()
    runs = []
    for folder in visible(runs_folder() / run_id for run_id in run_ids(runs_folder())):
        try:
            runs.append(get_run(folder.name))
        except (RunError, CheckpointError):  # deleted a moment ago, or damaged: loading it by name says how
            continue
    return sorted(runs, key=lambda run: (run.settings.created, run.id), reverse=True)


def delete(run_id: str) -> None:
    """Removes a run with all its files; RunError while a trainer works on it or where it cannot be written to.

    A run that lost its status.json is not listed, but can be deleted by its name.
    """
    folder = runs_folder() / run_id
    if not (is_name(run_id) and (folder / CONFIG_FILE).is_file() and may_change(folder)):
        folder = own_folder(run_id)
    elif (folder / STATUS_FILE).is_file() and (now := status(run_id)).active:
        raise RunError(f"{run_id} is still {'waiting in the queue' if now.waiting else 'training'}; stop it first")
    with writing_to(run_id):
        lock = locks.take(folder / LOCK_FILE)
        if lock is None:  # whatever its status says, a trainer holds it
            raise RunError(f"{run_id} is still training; stop it first")
        try:
            settle(folder)
            audit.record("delete", folder)
            shutil.rmtree(folder)
        finally:
            os.close(lock)


def _ask(run_id: str, request: Request) -> None:
    now = status(run_id)
    if not now.active:
        raise RunError(f"{run_id} cannot {request}: it is {now.state}")
    write_json(own_folder(run_id) / REQUEST_FILE, {"request": request})


def _check_pinned(pinned: Sequence[str], tokenizer: Tokenizer, max_length: int) -> None:
    for text in pinned:
        length = len(tokenizer.encode(text)) + 1
        if length == 1:
            raise RunError("a pinned sentence is empty")
        if length > max_length:
            raise RunError(f"the pinned sentence {text[:40]!r} has {length} tokens; the model takes {max_length}")
