"""One run in training: its parts in memory, its files, and the loop that writes down what happens."""

import json
import math
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import torch

from transformer.checkpoints.cards import card
from transformer.checkpoints.position_history import write_history
from transformer.checkpoints.settings import (
    CARD_FILE,
    SAMPLES_FILE,
    START_FILE,
    WEIGHTS_FILE,
    CheckpointError,
    Resolved,
    Settings,
    read_settings,
    write_settings,
)
from transformer.checkpoints.store import history, load_tensors, save_tensors
from transformer.data.batches import encode_sources
from transformer.data.corpora import Corpus
from transformer.data.corpus_snapshot import load_own
from transformer.data.statistics import left_out
from transformer.decoding.greedy import translate_ids
from transformer.files import append_rows, remove_leftovers, write_text
from transformer.runs.live import watched
from transformer.runs.live.outputs import LiveOutputs
from transformer.runs.live.pace import Pace, set_pace
from transformer.runs.status import REQUEST_FILE, SNAPSHOTS, STATE_FILE, RunLog, forget_request
from transformer.text.tokenizer import Tokenizer, load_tokenizer
from transformer.training.devices import resolve_device
from transformer.training.distributed import ALONE, Team
from transformer.training.evaluation import evaluate, fitting
from transformer.training.events import Evaluated, Event, Finished, Reason, StepDone, as_event, not_finite
from transformer.training.loop import measured_precision, train_steps, use_final_weights
from transformer.training.state import TrainState, Weights, new_state, restored_state, weights_of

SAVE_S = 10.0
"""The state is saved at evaluations, and when it is this old; less often where saving takes long."""
SAVE_SHARE = 0.05
"""The largest share of the time, about, that goes into saving the state."""
SNAPSHOT_LIMIT = 20_000_000
"""Models with more parameters than this keep no snapshots: a dozen copies would fill the disk."""
SNAPSHOTS_AN_OCTAVE = (4, 2, 1)
"""Snapshots to each doubling of the step, past DENSE_FROM; the most that stay within SNAPSHOT_BYTES are taken."""
DENSE_FROM = 16
"""Up to this step, where no head has formed yet, powers of two are enough."""
SNAPSHOT_BYTES = 128_000_000

Outcome = Literal["pause", "stop"] | Reason


def train(
    folder: Path,
    threads: int,
    run_log: RunLog,
    progress: Callable[[Event], None],
    team: Team = ALONE,
    begun: Callable[[TrainState], object] = lambda state: None,
) -> None:
    """Trains the run in the folder from where it stands until it ends or is asked to; its status then says how.

    In a team, only rank 0 calls this; the other ranks call `follow`. `begun` is given what is trained.
    """
    torch.set_num_threads(threads)
    remove_leftovers(folder)
    ready = False
    try:
        run = _prepare(folder, threads)
        ready = True
    finally:
        team.told(ready)
    begun(run.state)
    run_log.say(phase="training", step=run.state.step, elapsed_s=run.state.elapsed_s)
    try:
        outcome = _loop(run, run_log, progress, team)
        run_log.flush()
        if outcome in ("pause", "stop"):
            run.save_state()
        if outcome == "pause":
            run.save_weights()
            run_log.say(state="paused", phase="")
        else:
            set_pace(folder, None)
            _finish(run, run_log, outcome)
    finally:
        watched.forget(folder)
        forget_request(folder)


def follow(folder: Path, threads: int, team: Team) -> None:
    """Runs a non-zero rank until rank 0 stops; rank 0 alone evaluates and writes."""
    torch.set_num_threads(threads)
    if not team.told(0):  # rank 0 could not begin, and reports the reason
        return
    settings = read_settings(folder)
    corpus, tokenizer = load_own(settings.corpus, folder), load_tokenizer(folder)
    assert settings.resolved is not None, "rank 0 resolves the settings before it reports that it is ready"
    device = resolve_device(team.device(settings.resolved.device))
    state = _last_state(folder, settings, device)
    for _ in train_steps(state, settings.train, corpus, tokenizer, precision=settings.resolved.precision, team=team):
        pass


@dataclass
class LiveRun:
    """A run in training: its parts in memory, and its files."""

    folder: Path
    settings: Settings
    corpus: Corpus
    tokenizer: Tokenizer
    state: TrainState
    saved_at: float = 0.0
    saving_s: float = 0.0

    def save_weights(self) -> None:
        """Offers the weights of now as those to look into."""
        self._save(self.folder / WEIGHTS_FILE)

    def save_snapshot(self) -> None:
        """Keeps the weights of now for the timeline, and offers them as `save_weights`."""
        self.save_weights()
        if self.state.model.n_parameters() <= SNAPSHOT_LIMIT:
            self._save(self.folder / SNAPSHOTS / f"{self.state.step}.safetensors")

    @cached_property
    def snapshots_an_octave(self) -> int:
        """Returns how many snapshots an octave of steps the timeline of this run keeps."""
        return snapshots_an_octave(self.state.model.n_parameters(), self.settings.train.max_steps)

    def save_state_if_due(self, run_log: RunLog, *, at_evaluation: bool) -> None:
        """Saves the state at evaluations and every SAVE_S, unless that would take more than SAVE_SHARE of the time."""
        age = time.monotonic() - self.saved_at
        if (at_evaluation or age > SAVE_S) and age > self.saving_s / SAVE_SHARE:
            run_log.flush()
            self.save_state()

    def save_state(self) -> None:
        """Replaces the resumable state. TrainingError where it is not finite: the one before then stays."""
        start = time.monotonic()
        path = self.folder / STATE_FILE
        path.parent.mkdir(exist_ok=True)
        save_tensors(path, _finite(self.state.tensors(), self.state.step), {"facts": json.dumps(self.state.facts())})
        self.saved_at = time.monotonic()
        self.saving_s = self.saved_at - start

    def write_samples(self, elapsed_s: float) -> None:
        """Appends the pinned sentences as the model translates them now."""
        pinned, model, device = self.settings.pinned, self.state.model, self.state.device
        if not pinned:
            return
        source, mask = encode_sources(pinned, self.tokenizer, max_length=model.config.max_length)
        # An untrained model never ends a sentence; twice the source is enough to see that.
        limit = min(model.config.max_length, 2 * source.size(1) + 10)
        model.eval()
        outputs = translate_ids(model, source.to(device), mask.to(device), max_length=limit)
        model.train()
        translations = [self.tokenizer.decode(ids) for ids in outputs]
        rows = [
            {"step": self.state.step, "source": text, "translation": translation, "elapsed_s": elapsed_s}
            for text, translation in zip(pinned, translations, strict=True)
        ]
        append_rows(self.folder / SAMPLES_FILE, rows)

    def _save(self, path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        save_tensors(path, _finite(weights_of(self.state.model), self.state.step), {"step": str(self.state.step)})


def _finite(tensors: Weights, step: int) -> Weights:
    """Returns the tensors; raises TrainingError if one holds a number that is not finite."""
    for name, value in tensors.items():
        if value.is_floating_point() and not value.isfinite().all():
            raise not_finite(name, step)
    return tensors


def snapshots_an_octave(n_parameters: int, max_steps: int) -> int:
    """The most of SNAPSHOTS_AN_OCTAVE with which a run of this length (10,000 steps at most) keeps to the limit."""
    octaves = max(0.0, math.log2(min(max_steps, 10_000) / DENSE_FROM))
    most = SNAPSHOT_BYTES / (4 * n_parameters)  # float32
    first = DENSE_FROM.bit_length() + 1
    return next((n for n in SNAPSHOTS_AN_OCTAVE if first + n * octaves <= most), SNAPSHOTS_AN_OCTAVE[-1])


def is_snapshot_step(step: int, an_octave: int) -> bool:
    """Tells whether the timeline keeps this step: the powers of two, and past DENSE_FROM steps between them.

    These are evenly spaced on a logarithmic scale, as many as make `an_octave`.
    """
    if step < 1:
        return step == 0
    power = 1 << (step.bit_length() - 1)
    parts = an_octave if power >= DENSE_FROM else 1
    return any(step == round(power * 2 ** (part / parts)) for part in range(parts))


def _prepare(folder: Path, threads: int) -> LiveRun:
    settings = read_settings(folder)
    corpus, tokenizer = load_own(settings.corpus, folder), load_tokenizer(folder)
    if settings.resolved is not None:
        device = resolve_device(settings.resolved.device)
        return LiveRun(folder, settings, corpus, tokenizer, _last_state(folder, settings, device))
    for split, pairs in corpus.held_out.items():  # told now rather than at the end of a long training
        fitting(pairs, tokenizer, settings.model.max_length, 1, name=_held_out(split))
    device = resolve_device(settings.train.device)
    state = _first_state(folder, settings, device)
    precision = measured_precision(state, settings.train, corpus, tokenizer)
    resolved = Resolved(device=str(device), precision=precision, threads=threads)
    settings = replace(settings, resolved=resolved)
    write_settings(folder, settings)
    return LiveRun(folder, settings, corpus, tokenizer, state)


def _last_state(folder: Path, settings: Settings, device: torch.device) -> TrainState:
    """The saved state, or the beginning where the trainer ended before it saved one."""
    path = folder / STATE_FILE
    if not path.is_file():
        return _first_state(folder, settings, device)
    tensors, notes = load_tensors(path)
    try:
        return restored_state(settings.model, settings.train, device, tensors, json.loads(notes["facts"]))
    except (KeyError, ValueError, TypeError) as error:
        raise CheckpointError(f"{path} does not belong to this run: {error}") from error


def _first_state(folder: Path, settings: Settings, device: torch.device) -> TrainState:
    """The state before the first step, with the weights of the run that this one continues, if it does."""
    if settings.parent is None:
        return new_state(settings.model, settings.train, device)
    weights, _ = load_tensors(folder / START_FILE)
    try:
        return new_state(settings.model, settings.train, device, weights)
    except ValueError as error:
        raise CheckpointError(f"the weights of {settings.parent.run} do not fit this run's model: {error}") from error


def _loop(run: LiveRun, run_log: RunLog, progress: Callable[[Event], None], team: Team) -> Outcome:
    settings, state = run.settings, run.state
    assert settings.resolved is not None, "_prepare resolves"
    began = state.step
    if state.step == 0:
        run.save_snapshot()
    events = train_steps(
        state, settings.train, run.corpus, run.tokenizer, precision=settings.resolved.precision, team=team
    )
    live, pace = LiveOutputs(run.folder, run.tokenizer), Pace(run.folder)
    with closing(events):  # also tells the followers, where a request or an error ends the loop
        for event in events:
            _write(event, run, run_log)
            progress(event)
            run_log.beat(step=event.step, elapsed_s=event.elapsed_s)
            if isinstance(event, Finished):
                return event.reason
            if event.step == state.step:
                live.write_if_due(state.model, state.step)
                run.save_state_if_due(run_log, at_evaluation=isinstance(event, Evaluated))
                # After an evaluation that the last pause put off, a step is still due: a run goes on by one at least.
                if state.step > began and (request := run_log.request()) is not None:
                    return request
                pace.wait((run.folder / REQUEST_FILE).exists)
    raise AssertionError("train_steps ends with Finished")


def _write(event: Event, run: LiveRun, run_log: RunLog) -> None:
    match event:
        case StepDone(step=step):
            run_log.add("train", asdict(event))
            if step == run.state.step and is_snapshot_step(step, run.snapshots_an_octave):
                run.save_snapshot()
        case Evaluated():
            run_log.add("validation", asdict(event))
            run.save_weights()
            run.write_samples(event.elapsed_s)


def _finish(run: LiveRun, run_log: RunLog, outcome: Outcome) -> None:
    """Leaves the final weights and the card. A run that was asked to stop ends now: held-out pairs are not scored."""
    state, asked = run.state, outcome == "stop"
    if asked:
        use_final_weights(state, run.settings.train)
    run.save_weights()
    if not asked:
        run_log.say(phase="scoring held-out pairs")
        _score_held_out(run, run_log)
    write_history(run.folder, run.folder / SNAPSHOTS)
    rows = history(run.folder)
    lost = left_out(run.corpus, run.tokenizer, state.model.config.max_length)
    write_text(run.folder / CARD_FILE, card(run.settings, run.corpus, rows, state.model.n_parameters(), lost))
    run_log.say(state="stopped" if asked else "finished", phase="", reason="asked" if asked else outcome)


def _held_out(split: str) -> str:
    """Returns the name of these held-out pairs."""
    return f'held-out pairs of "{split}"'


def _score_held_out(run: LiveRun, run_log: RunLog) -> None:
    state = run.state
    for split, pairs in run.corpus.held_out.items():
        most, count = state.model.config.max_length, run.settings.train.test_pairs
        chosen = fitting(pairs, run.tokenizer, most, count, name=_held_out(split))
        overlap = run.corpus.primary_metric != "exact_match"
        found = evaluate(state.model, chosen, run.tokenizer, overlap_scores=overlap)
        row = asdict(as_event(found, state.step, state.elapsed_s))
        run_log.add(split, row)
