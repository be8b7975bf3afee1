"""The Doctor's panel beside a run: what is wrong, with the number seen and what to try, or what was checked in vain."""

import threading
import time
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import streamlit as st

from pages.shared.wording import plain
from transformer.analysis.heads.health import HeadHealth, head_health
from transformer.analysis.proportions import Proportions, proportions
from transformer.analysis.training.doctor import Diagnosis, Finding, Severity, diagnose
from transformer.checkpoints.settings import METRICS_FILE, WEIGHTS_FILE
from transformer.checkpoints.store import CheckpointError, history, load_checkpoint
from transformer.data.corpora import CorpusError
from transformer.data.corpus_snapshot import load_own
from transformer.runs import run_folder
from transformer.runs.run_folder import Run, RunError

EVERY_S = 5.0
WHILE_EXAMINING_S = 1.0
AGAIN_S = 30.0
"""Seconds between two examinations of a run at work, which writes new weights all the time."""
_KEPT = 50
_SIGNS: dict[Severity, str] = {
    "serious": ":red[:material/error:]",
    "warning": ":orange[:material/warning:]",
    "note": ":blue[:material/info:]",
}


@dataclass(frozen=True)
class Examination:
    """What costs a forward pass and a look at the corpus; None where it could not be measured."""

    corpus: Proportions | None = None
    heads: tuple[HeadHealth, ...] | None = None


@dataclass
class Examinations:
    """Examinations of this server, one at a time and apart from the pages, each once for the weights of a run."""

    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(max_workers=1))
    lock: threading.Lock = field(default_factory=threading.Lock)
    found: OrderedDict[tuple[str, int], Future[Examination]] = field(default_factory=OrderedDict)
    asked: dict[str, float] = field(default_factory=dict)
    """By run folder: when its last examination was asked for."""

    def of(self, run: Run) -> tuple[Examination | None, bool]:
        """The examination of the run's weights, or of earlier ones while that goes on; and whether it goes on.

        A run at work is examined every AGAIN_S seconds; until then it has the examination it had.
        """
        key, now = (str(run.folder), _stamp(run, WEIGHTS_FILE)), time.monotonic()
        with self.lock:
            if run.status.active and now < self.asked.get(key[0], -AGAIN_S) + AGAIN_S:
                key = next((known for known in reversed(self.found) if known[0] == key[0]), key)
            if key not in self.found:
                self.asked[key[0]] = now
                self.found[key] = self.pool.submit(_examine, run)
                while len(self.found) > _KEPT:
                    self.found.popitem(last=False)
            if self.found[key].done():
                return self.found[key].result(), False
            earlier = (f for (name, _), f in reversed(self.found.items()) if name == key[0] and f.done())
            return next((future.result() for future in earlier), None), True


@st.cache_resource
def examinations() -> Examinations:
    """Those of this server; shared by all visitors."""
    return Examinations()


def doctor_panel(run_id: str) -> None:
    """What the Doctor says of a run, looked at again while it trains or its heads are being examined."""
    try:
        run = run_folder.get_run(run_id)
    except (RunError, CheckpointError):
        return  # the run's own panel says why
    if run.status.state == "queued" and run.status.step == 0:
        return
    busy = examinations().of(run)[1]
    every = WHILE_EXAMINING_S if busy else EVERY_S if run.status.active else None
    st.fragment(_panel, run_every=every)(run_id, busy)


def _panel(run_id: str, was_busy: bool) -> None:
    try:
        run = run_folder.get_run(run_id)
    except (RunError, CheckpointError):
        return
    examination, busy = examinations().of(run)
    if was_busy and not busy and not run.status.active:
        st.rerun()  # how often this is redrawn is settled by a full run alone
    over, error = not run.status.active, run.status.error
    found = _diagnosis(str(run.folder), _stamp(run, METRICS_FILE), over, error, run, examination)
    st.markdown("##### Doctor")
    for finding in found.findings:
        _show(finding)
    if not found.findings:
        st.markdown(":green[:material/check_circle:] **Nothing found.**")
    st.caption(_said(found, busy=busy, examined=examination is not None))


def _show(finding: Finding) -> None:
    st.markdown(
        f"{_SIGNS[finding.severity]} **{plain(finding.sentence)}**  \n:material/lightbulb: {plain(finding.advice)}"
    )


def _said(found: Diagnosis, *, busy: bool, examined: bool) -> str:
    said = f"Checked: {'; '.join(map(plain, found.checked))}."
    if busy and not examined:
        return f"{said} Heads and corpus are being examined."
    if found.unchecked:
        said += f" Not checked: {'; '.join(map(plain, found.unchecked))}."
    return said


@st.cache_data(max_entries=50, show_spinner=False)
def _diagnosis(
    folder: str, stamp: int, over: bool, error: str, _run: Run, examination: Examination | None
) -> Diagnosis:
    examination, settings = examination or Examination(), _run.settings
    return diagnose(
        history(_run.folder),
        settings.model,
        settings.train,
        over=over,
        error=error,
        corpus=examination.corpus,
        heads=examination.heads,
    )


def _examine(run: Run) -> Examination:
    """Heads and corpus of a run as far as they can be read. Never raises: what is missing is said to be unchecked."""
    try:
        corpus = load_own(run.settings.corpus, run.folder)
        checkpoint = load_checkpoint(run.folder)
    except (CorpusError, CheckpointError, OSError, ValueError):
        return Examination()
    longest = run.settings.model.max_length
    found = proportions(corpus.train, checkpoint.tokenizer, longest)
    try:
        return Examination(found, head_health(checkpoint.model, corpus.validation, checkpoint.tokenizer))
    except ValueError:  # no pair fits into the model
        return Examination(found)


def _stamp(run: Run, name: str) -> int:
    try:
        return (run.folder / name).stat().st_mtime_ns
    except OSError:
        return 0
