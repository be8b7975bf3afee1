"""The commands that train: `train` and `sweep`."""

import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from tqdm import tqdm

from transformer.cli.run_commands import described
from transformer.config import AnyModelConfig, CorpusConfig, TrainConfig
from transformer.data.corpus_cache import prepared
from transformer.data.statistics import left_out
from transformer.runs import run_folder as run_folders
from transformer.runs.status import RunError
from transformer.runs.status import status as status_of
from transformer.runs.sweeps import Base, Sweep, create_sweep, spelt, start_sweep
from transformer.training.distributed import Team, assembled, is_one_of_several
from transformer.training.events import Evaluated, Event


class RunsFailed(Exception):
    """Some runs of a sweep failed; all others were trained."""


def train_command(
    corpus: CorpusConfig, model: AnyModelConfig, settings: TrainConfig, why: tuple[str, ...] = ()
) -> Callable[..., None]:
    """The train command with these defaults, which depend on the corpus and the preset that are asked for, and the
    reasons for them."""
    usual = model

    def train(
        *,
        corpus: CorpusConfig = corpus,
        preset: str | None = None,
        model: AnyModelConfig = model,
        train: TrainConfig = settings,
        name: str | None = None,
        sentence: tuple[str, ...] = (),
        credit: str = "",
        detach: bool = False,
    ) -> None:
        """Train a model; `train CORPUS` is short for `train --corpus.name CORPUS`.

        Under torchrun all processes train the one model together.

        Args:
            preset: A named size to start from; without it, what suits the corpus.
            name: The run's id; without it, one is made from the corpus and a number.
            sentence: Sentences whose translation is followed; without them, the corpus's examples.
            credit: Whom the sentences of a file come from and under which licence; it goes into the card.
            detach: Leave the trainer in the background and return at once.
        """
        started_by = f"torchrun --nproc-per-node {os.environ['WORLD_SIZE']}" if is_one_of_several() else "python"
        command = f"{started_by} -m transformer {shlex.join(sys.argv[1:])}"

        def create() -> str:
            _check_vocabulary(model, usual)
            made = run_folders.create_run(
                model, train, corpus, pinned=sentence or None, name=name, command=command, credit=credit
            )
            if name not in (None, made):
                print(f"the name {name} is taken: this run is {made}", file=sys.stderr)
            return made

        if is_one_of_several():
            if detach:
                raise ValueError("--detach is for a trainer of one process: torchrun keeps its own in the foreground")
            _train_together(create, train)
            return
        _print_reading(corpus, model)
        run = create()
        if why:
            print("What suits this file, where your options do not say otherwise:", *why, sep="\n- ", file=sys.stderr)
        if detach:
            run_folders.start(run)
            print(run)
        else:
            _train_here(run, train)

    train.__annotations__["model"] = type(model)  # the options are those of this family
    return train


def sweep_command(corpus: CorpusConfig, model: AnyModelConfig, settings: TrainConfig) -> Callable[..., None]:
    """The sweep command with these defaults, which depend on the corpus and the preset that are asked for."""
    usual = model

    def sweep(
        *,
        setting: str,
        values: tuple[str, ...],
        corpus: CorpusConfig = corpus,
        preset: str | None = None,
        model: AnyModelConfig = model,
        train: TrainConfig = settings,
        sentence: tuple[str, ...] = (),
        detach: bool = False,
    ) -> None:
        """Train a model for each of several values of one setting, all else equal; print what each reached.

        Args:
            setting: What to vary, such as model.n-heads or train.learning-rate.
            values: Its values; each is checked before anything starts.
            preset: A named size to start from; without it, what suits the corpus.
            sentence: Sentences whose translation is followed; without them, the corpus's examples.
            detach: Leave the runs to the queue in the background and return at once.
        """
        _check_vocabulary(model, usual)
        _print_reading(corpus, model)
        base = Base(model=model, train=train, corpus=corpus, pinned=sentence or None)
        made = create_sweep(base, setting, values, command="python -m transformer " + shlex.join(sys.argv[1:]))
        if detach:
            start_sweep(made)
            print("\n".join(part.run.id for part in made.parts))
            return
        failed = 0
        for part in made.parts:
            try:
                _train_here(part.run.id, part.run.settings.train)
            except RunError as error:
                failed += 1
                print(error, file=sys.stderr)
            if status_of(part.run.id).state == "paused":
                raise KeyboardInterrupt  # Ctrl-C pauses one run, and is meant for all
        _print_sweep(made)
        if failed:
            raise RunsFailed(f"{failed} of {len(made.parts)} runs failed")

    sweep.__annotations__["model"] = type(model)
    return sweep


def _check_vocabulary(model: AnyModelConfig, usual: AnyModelConfig) -> None:
    """Raises ValueError where the options ask for a vocabulary of the model that is not its tokenizer's."""
    if (asked := model.vocab_size) != usual.vocab_size:
        raise ValueError(
            f"--model.vocab-size {asked} cannot be: the tokenizer sets it; ask for --corpus.vocab-size {asked}"
        )


def _print_reading(corpus: CorpusConfig, model: AnyModelConfig) -> None:
    """Says how a file of pairs was read, and which of them are too long."""
    loaded, tokenizer = prepared(corpus)
    if loaded.report is not None:
        print(f"{Path(corpus.name).name}: {loaded.report}", file=sys.stderr)
    if lost := left_out(loaded, tokenizer, model.max_length):
        print(lost, file=sys.stderr)


def _print_sweep(sweep: Sweep) -> None:
    rows = [(sweep.setting, "exact match, %", "validation loss", "step", "seconds", "run")]
    for part in sweep.parts:
        run, now = part.run.id, status_of(part.run.id)
        last = next((row for row in reversed(run_folders.metrics(run)) if row["split"] == "validation"), {})
        exact = "-" if last.get("exact_match") is None else f"{100 * last['exact_match']:.1f}"
        exact = "failed" if now.state == "failed" else exact
        loss = "-" if last.get("loss") is None else f"{last['loss']:.4f}"
        rows.append((spelt(part.value), exact, loss, f"{now.step}", f"{now.elapsed_s:.1f}", run))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _train_together(create: Callable[[], str], train: TrainConfig) -> None:
    """One of the processes that torchrun started: the first one makes the run and speaks, the others work with it."""
    from transformer.runs.worker import train_beside

    with assembled() as team:
        run = ""
        try:
            run = create() if team.leads else ""
        finally:
            run = team.told_text(run)
        if team.leads:
            _train_here(run, train, team)
        elif run:
            train_beside(run, team)


def _train_here(run: str, train: TrainConfig, team: Team | None = None) -> None:
    from transformer.runs.worker import train_run

    with tqdm(total=train.max_steps, unit=" steps", disable=None) as bar:

        def show(event: Event) -> None:
            bar.update(event.step - bar.n)
            if isinstance(event, Evaluated):
                bar.set_postfix_str(f"validation loss {event.loss:.3f}, exact match {event.exact_match:.3f}")

        status = train_run(run, show, team)
    if status.state == "failed":
        raise RunError(f"{run} failed at step {status.step}: {status.error}")
    print(described(run, status))
