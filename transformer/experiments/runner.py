"""Runs a study: trains its runs one after another, tests each by length, and saves every result as it comes.

`python -m transformer.experiments.runner NAME` is the detached process. A study that was stopped, or whose process
died, continues where it was: runs resume as runs do.
"""

import contextlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median

from transformer.analysis.positions.lengths import scores_by_length
from transformer.checkpoints.store import CheckpointError, load_checkpoint
from transformer.config import PositionKind
from transformer.data.tasks import pairs_of_length
from transformer.experiments import study
from transformer.experiments.plan import LENGTH_TASKS, TARGET, StudyPlan, StudyRun
from transformer.model.position_extension import Extension
from transformer.runs import run_folder
from transformer.runs.launch import NICENESS
from transformer.runs.status import RunError, Status, status
from transformer.runs.status import run_folder as folder_of
from transformer.runs.worker import train_run
from transformer.training.loop import Event

LEARNED_EXTENSIONS: tuple[Extension, ...] = ("noise", "clamp", "interpolate")


@dataclass(frozen=True)
class Progress:
    """The progress of a study."""

    number: int
    """The run's number, from 1."""
    n_runs: int
    run: StudyRun
    message: str


def run_study(name: str, on_progress: Callable[[Progress], object] = lambda progress: None) -> bool:
    """Trains and tests the rest of a study in this process; returns False if it was asked to stop before the end.

    StudyError where another process runs it.
    """
    study.claim_study(name)
    try:
        return _run_study(name, on_progress)
    finally:
        study.release_study(name)


def _run_study(name: str, on_progress: Callable[[Progress], object]) -> bool:
    total = len(study.load_study(name).runs)
    for number, waiting in enumerate(study.load_study(name).runs, start=1):
        if waiting.state not in ("waiting", "running"):
            continue
        now = study.load_study(name)
        run = waiting if waiting.id else replace(waiting, id=_create(name, now.plan, waiting, now.command))
        run = replace(run, state="running")
        study.save_study(now.with_run(run))

        def report(message: str, run: StudyRun = run, number: int = number) -> None:
            on_progress(Progress(number, total, run, message))

        ended = _trained(run, report)
        if study.is_asked_to_stop(name) or ended == "paused":
            return False
        finished = _results(run, now.plan, report) if ended == "finished" else replace(run, state=ended)
        study.save_study(study.load_study(name).with_run(finished))
        report(finished.state)
    return True


def _create(name: str, plan: StudyPlan, run: StudyRun, command: str) -> str:
    model, train, corpus = plan.configs(run.corpus, run.positions, run.seed)
    run_id = f"{name}-{run.corpus}-{run.positions}-{run.seed}"
    pinned = None
    if run.corpus in LENGTH_TASKS:  # the corpus' own examples may be too long for a plan of short ones
        pinned = [pair.source for pair in pairs_of_length(run.corpus, plan.trained_to, 2)]
    return run_folder.create_run(model, train, corpus, pinned=pinned, name=run_id, command=command)


def _trained(run: StudyRun, report: Callable[[str], None]) -> str:
    """Trains a run to its end and returns how it ended."""

    def show(event: Event) -> None:
        if event.step % 50 == 0:
            report(f"step {event.step:,}")

    try:
        before = status(run.id)
        ended: Status = before if before.state in ("finished", "stopped") else train_run(run.id, show)
    except RunError:
        return "deleted"
    return ended.state


def _results(run: StudyRun, plan: StudyPlan, report: Callable[[str], None]) -> StudyRun:
    """Returns the result of a finished run, with its lengths tested."""
    try:
        checkpoint = load_checkpoint(folder_of(run.id))
        rows = run_folder.metrics(run.id)
    except (RunError, CheckpointError):
        return replace(run, state="deleted")
    evaluations = [row for row in rows if row["split"] == "validation"]
    held_out = next(row for row in rows if row["split"] == "random")
    reached = [row["step"] for row in evaluations if row["exact_match"] >= TARGET]
    lengths = {}
    trained = None
    if run.corpus in LENGTH_TASKS:
        trained = plan.trained_to + 1  # the end mark, or the start mark, takes a position
        pairs = {n: pairs_of_length(run.corpus, n, plan.pairs) for n in range(1, plan.tested_to + 1)}
        inside: tuple[tuple[int, int, int], ...] = ()
        for name, how in _extensions(run.positions):
            report(f"testing lengths 1 to {plan.tested_to}")
            left = {n: pairs[n] for n in pairs if n > len(inside)}  # inside its training a table is not extended
            found = scores_by_length(checkpoint.model, checkpoint.tokenizer, left, how, trained=trained)
            lengths[name] = (*inside, *((score.length, score.right, score.count) for score in found))
            inside = lengths[name][: plan.trained_to]
    return replace(
        run,
        state="done",
        parameters=checkpoint.model.n_parameters(),
        steps=checkpoint.step,
        steps_to_target=reached[0] if reached else None,
        exact_match=held_out["exact_match"],
        bleu=held_out["bleu"],
        count=held_out["count"],
        tokens_per_s=round(median(row["tokens_per_s"] for row in rows if row["split"] == "train"), 1),
        elapsed_s=round(max(row["elapsed_s"] for row in rows), 1),
        trained_positions=trained,
        curve=tuple((row["step"], round(row["loss"], 4), row["exact_match"]) for row in evaluations),
        lengths=lengths,
    )


def _extensions(positions: PositionKind) -> tuple[tuple[str, Extension], ...]:
    """Returns how positions are extended past the trained ones, each with the name under which its result is saved."""
    return tuple((how, how) for how in LEARNED_EXTENSIONS) if positions == "learned" else (("", "noise"),)


def main(arguments: list[str]) -> int:
    """Runs the detached process."""
    with contextlib.suppress(AttributeError, OSError):
        os.nice(NICENESS)
    run_study(arguments[0])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
