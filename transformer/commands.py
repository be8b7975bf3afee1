"""What each command of `python -m transformer` does. The only place in the library that prints."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import tyro
from tqdm import tqdm

from transformer import runs as run_folders
from transformer.checkpoint import CheckpointError
from transformer.cleaning import clean_pairs, read_rows
from transformer.config import CorpusConfig, DecodeConfig, ModelConfig, TrainConfig
from transformer.corpora import CorpusError
from transformer.evaluation import evaluate as evaluate_pairs
from transformer.interventions import parse_intervention
from transformer.lab import GREEDY, Lab, load
from transformer.own_copy import AbsentCorpus, load_own
from transformer.pairs import Pair, Split, split_of, words
from transformer.publishing import publish
from transformer.run_archive import load_archive, save_archive
from transformer.run_labels import about, rename, set_note
from transformer.runs import Run, RunError, Status
from transformer.sweeps import Base, Sweep, create_sweep, spelt, start_sweep
from transformer.team import Team, assembled, is_one_of_several
from transformer.tokenizer import TokenizerError
from transformer.training import Evaluated, Event, TrainingError

EXPECTED_ERRORS = (CheckpointError, CorpusError, RunError, TokenizerError, TrainingError, ValueError, OSError)
"""What a wrong argument, file or setting raises; shown as one sentence."""

RunsAction = Literal[
    "list", "show", "pause", "resume", "stop", "delete", "rename", "note", "export", "import", "publish"
]
_USAGE = {action: f"runs {action} RUN" for action in get_args(RunsAction)} | {
    "rename": "runs rename RUN NAME",
    "note": 'runs note RUN "TEXT"',
    "export": "runs export RUN FILE.zip",
    "import": "runs import FILE.zip",
    "publish": "runs publish RUN FOLDER",
}
ModelName = Annotated[str, tyro.conf.arg(help="A shipped checkpoint's name, a run's id, or a folder.")]


def translate(
    text: tyro.conf.Positional[tuple[str, ...]] = (),
    *,
    model: ModelName,
    settings: Annotated[DecodeConfig, tyro.conf.arg(name="")] = GREEDY,
) -> None:
    """Translate each TEXT, one line each; without TEXT, each line of standard input.

    With --n-best above 1, each text gets that many lines: score, tab, translation.
    """
    lab = load(model)
    for line in text or filter(None, map(str.strip, sys.stdin)):
        if unseen := lab.unknown(line):
            print(f"note: {lab.name} never saw {', '.join(unseen)}", file=sys.stderr)
        for found in lab.translations([line], settings)[0]:
            print(found.text if settings.n_best == 1 else f"{found.score:.4f}\t{found.text}", flush=True)


def evaluate(
    *,
    model: ModelName,
    pairs: Path | None = None,
    split: str | None = None,
    longest_words: int | None = None,
    limit: int | None = None,
) -> None:
    """Score a model on sentence pairs and print one JSON object.

    Args:
        pairs: A TSV, CSV or JSONL file of source and target; without it, the model's own held-out pairs.
        split: Which pairs: validation, random (held out; the default), or what else the corpus holds out, such as
            combinations. Of a file all pairs are taken unless train, validation or random is named: those that a run
            on any file would train on or hold out.
        longest_words: Only pairs with at most this many words of source, punctuation not counted.
        limit: Score at most this many pairs, the first ones.
    """
    lab = load(model)
    chosen = _own_split(lab, split or "random") if pairs is None else _of_split(clean_pairs(read_rows(pairs))[0], split)
    if longest_words is not None:
        chosen = [pair for pair in chosen if _n_words(pair.source) <= longest_words]
    chosen = chosen[:limit] if limit is not None else chosen
    with tqdm(total=len(chosen), unit=" pairs", disable=None) as bar:
        found = evaluate_pairs(lab.model, chosen, lab.tokenizer, overlap_scores=True, progress=bar.update)
    assert found.bleu is not None and found.chrf is not None, "overlap scores were asked for"
    _print_json(
        {
            "model": lab.name,
            "pairs": str(pairs) if pairs is not None else None,
            "split": split if pairs is not None else split or "random",
            "longest_words": longest_words,
            "count": found.count,
            "exact_match": found.exact_match,
            "bleu": found.bleu.value,
            "bleu_signature": found.bleu.signature,
            "chrf": found.chrf.value,
            "chrf_signature": found.chrf.signature,
            "perplexity": found.perplexity,
        }
    )


def inspect(
    text: tyro.conf.Positional[str],
    *,
    model: ModelName,
    switch: Annotated[tuple[str, ...], tyro.conf.arg(metavar="SWITCH ...")] = (),
) -> None:
    """Print the attention of every layer and head behind one translation, as JSON.

    Args:
        switch: Parts to switch off first, such as off:decoder.0.cross:1,3 or mask:causal.
    """
    seen = load(model).inspect(text, tuple(parse_intervention(item) for item in switch))
    kinds = (seen.encoder_self, seen.decoder_self, seen.cross)
    _print_json(
        {
            "model": seen.model_name,
            "text": seen.text,
            "translation": seen.translation,
            "source_tokens": seen.source_tokens,
            "target_tokens": seen.target_tokens,
            "probabilities": seen.probabilities.tolist(),
            "switches": [str(spec) for spec in seen.interventions],
            "cached": seen.cached,
            "attention": {
                attention.kind: {
                    "axes": ["layer", "head", "query", "key"],
                    "queries": attention.queries,
                    "keys": attention.keys,
                    "weights": attention.weights.tolist(),
                    "mask": attention.mask.tolist(),
                }
                for attention in kinds
            },
        }
    )


_WITH_VALUE = ("rename", "note", "export", "publish")


def runs(
    action: tyro.conf.Positional[RunsAction] = "list",
    run: tyro.conf.Positional[str | None] = None,
    value: tyro.conf.Positional[str | None] = None,
    *,
    with_corpus: bool = False,
    half: bool = False,
) -> None:
    """List the runs, or show, pause, resume, stop or delete one; rename RUN NAME, note RUN TEXT, export RUN FILE.zip,
    import FILE.zip, publish RUN FOLDER.

    Args:
        run: The run's id; for import, the archive.
        value: The new name, the note (empty takes it away), or the archive to write.
        with_corpus: Add the file that the run learned from to the archive.
        half: Publish the weights in float16.
    """
    if action == "list":
        _print_runs(run_folders.list_runs())
        return
    if run is None:
        raise RunError(f"which {'archive' if action == 'import' else 'run'}? say: {_USAGE[action]}")
    if value is None and action in _WITH_VALUE:
        raise RunError(f"something is missing; say: {_USAGE[action]}")
    if value is not None and action not in _WITH_VALUE:
        raise RunError(f"{value!r} is one word too many; say: {_USAGE[action]}")
    match action:
        case "rename":
            rename(run, value or "")
            run = value or run
        case "note":
            set_note(run, value or "")
        case "export":
            save_archive(run, Path(value or ""), with_corpus=with_corpus)
            print(f"{run} is in {value}")
            return
        case "publish":
            publish(run_folders.run_folder(run), Path(value or ""), half=half)
            print(f"{run} is in {value}")
            return
        case "import":
            with Path(run).open("rb") as file:
                run = load_archive(file)
        case "pause":
            run_folders.pause(run)
        case "resume":
            run_folders.resume(run)
        case "stop":
            run_folders.stop(run)
        case "delete":
            run_folders.delete(run)
            print(f"{run} is deleted")
            return
    print(_described(run, run_folders.status(run)))


def train_command(corpus: CorpusConfig, model: ModelConfig, settings: TrainConfig) -> Callable[..., None]:
    """The train command with these defaults, which depend on the corpus and the preset that are asked for."""

    def train(
        *,
        corpus: CorpusConfig = corpus,
        preset: str | None = None,
        model: ModelConfig = model,
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
            return run_folders.create_run(
                model, train, corpus, pinned=sentence or None, name=name, command=command, credit=credit
            )

        if is_one_of_several():
            if detach:
                raise ValueError("--detach is for a trainer of one process: torchrun keeps its own in the foreground")
            _train_together(create, train)
            return
        run = create()
        if detach:
            run_folders.start(run)
            print(run)
        else:
            _train_here(run, train)

    return train


def sweep_command(corpus: CorpusConfig, model: ModelConfig, settings: TrainConfig) -> Callable[..., None]:
    """The sweep command with these defaults, which depend on the corpus and the preset that are asked for."""

    def sweep(
        *,
        setting: str,
        values: tuple[str, ...],
        corpus: CorpusConfig = corpus,
        preset: str | None = None,
        model: ModelConfig = model,
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
        base = Base(model=model, train=train, corpus=corpus, pinned=sentence or None)
        made = create_sweep(base, setting, values, command="python -m transformer " + shlex.join(sys.argv[1:]))
        if detach:
            start_sweep(made)
            print("\n".join(part.run.id for part in made.parts))
            return
        for part in made.parts:
            _train_here(part.run.id, part.run.settings.train)
            if run_folders.status(part.run.id).state == "paused":
                raise KeyboardInterrupt  # Ctrl-C pauses one run, and is meant for all
        _print_sweep(made)

    return sweep


def _print_sweep(sweep: Sweep) -> None:
    rows = [(sweep.setting, "exact match, %", "validation loss", "step", "seconds", "run")]
    for part in sweep.parts:
        run, now = part.run.id, run_folders.status(part.run.id)
        last = next((row for row in reversed(run_folders.metrics(run)) if row["split"] == "validation"), None)
        exact, loss = ("-", "-") if last is None else (f"{100 * last['exact_match']:.1f}", f"{last['loss']:.4f}")
        rows.append((spelt(part.value), exact, loss, f"{now.step}", f"{now.elapsed_s:.1f}", run))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _train_together(create: Callable[[], str], train: TrainConfig) -> None:
    """One of the processes that torchrun started: the first one makes the run and speaks, the others work with it."""
    from transformer.worker import train_beside

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
    from transformer.worker import train_run

    with tqdm(total=train.max_steps, unit=" steps", disable=None) as bar:

        def show(event: Event) -> None:
            bar.update(event.step - bar.n)
            if isinstance(event, Evaluated):
                bar.set_postfix_str(f"validation loss {event.loss:.3f}, exact match {event.exact_match:.3f}")

        status = train_run(run, show, team)
    if status.state == "failed":
        raise RunError(f"{run} failed at step {status.step}: {status.error}")
    print(_described(run, status))


def _own_split(lab: Lab, split: str) -> Sequence[Pair]:
    try:
        corpus = load_own(lab.checkpoint.corpus_config, lab.checkpoint.folder)
    except AbsentCorpus as error:
        raise AbsentCorpus(f"{error}; name a file of pairs with --pairs") from None
    splits = {"validation": corpus.validation, **corpus.held_out}
    if split not in splits:
        raise ValueError(f"{lab.name} has no split {split!r}; choose one of: {', '.join(splits)}")
    return splits[split]


def _n_words(text: str) -> int:
    """Words without punctuation."""
    return sum(any(map(str.isalnum, word)) for word in words(text))


def _of_split(pairs: Sequence[Pair], split: str | None) -> Sequence[Pair]:
    if split not in (None, *get_args(Split)):
        raise ValueError(f"a file has no split {split!r}; choose one of: {', '.join(get_args(Split))}")
    return [pair for pair in pairs if split is None or split_of(pair.source) == split]


def _described(run: str, status: Status) -> str:
    why = status.error or status.reason
    return f"{run}: {status.state} at step {status.step:,} after {status.elapsed_s:.1f} s{f' ({why})' if why else ''}"


def _print_runs(found: Sequence[Run]) -> None:
    if not found:
        print("No runs yet. Train one: python -m transformer train reverse")
    for run in found:
        note = about(run.folder).note
        print(_described(run.id, run.status) + (f": {' '.join(note.split())}" if note else ""))


def _print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False))
