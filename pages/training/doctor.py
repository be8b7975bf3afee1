"""The Doctor's panel beside a run: its findings with numbers and advice, or the checks that found nothing."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

import streamlit as st

from pages.shared.background import Background
from pages.shared.cache import cached
from pages.shared.guard import guard, guarded_fragment
from pages.shared.wording import plain
from transformer.analysis.heads.health import HeadHealth, head_health
from transformer.analysis.proportions import Proportions, proportions
from transformer.analysis.training.doctor import Diagnosis, Finding, Severity, diagnose
from transformer.analysis.training.source_use import SourceUse, source_use
from transformer.checkpoints.settings import METRICS_FILE, WEIGHTS_FILE
from transformer.checkpoints.store import CheckpointError, history, load_checkpoint
from transformer.data.corpora import CorpusError
from transformer.data.corpus_snapshot import load_own
from transformer.model.families import kinds_of
from transformer.runs import run_folder
from transformer.runs.run_folder import Run
from transformer.runs.status import RunError

P = ParamSpec("P")
Measured = TypeVar("Measured")

EVERY_S = 5.0
WHILE_EXAMINING_S = 1.0
AGAIN_S = 30.0
"""The seconds between two examinations of a run at work, which writes new weights all the time."""
_SIGNS: dict[Severity, str] = {
    "serious": ":red[:material/error:]",
    "warning": ":orange[:material/warning:]",
    "note": ":blue[:material/info:]",
}
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Examination:
    """Measurements that cost a forward pass and a look at the corpus; None where they could not be made."""

    corpus: Proportions | None = None
    heads: tuple[HeadHealth, ...] | None = None
    source: SourceUse | None = None


@dataclass(frozen=True)
class _Asked:
    """The newest examination of a run that was asked for."""

    when: float
    stamp: int
    """The time of the weights that it is of."""
    before: int | None
    """The time of the weights of the last examination that was over by then."""


_EXAMINATIONS = Background("doctor", kept=50)
_ASKED: dict[str, _Asked] = {}
"""The newest examination of each run, by its folder."""


def examination_of(run: Run) -> tuple[Examination | None, bool]:
    """Returns the examination of the run's weights, or of earlier ones while that goes on; and whether it goes on.

    A run at work is examined every AGAIN_S seconds; until then it has the examination it had. One that has written no
    weights yet has none.
    """
    if not run.loadable:
        return None, False
    folder, stamp, now = str(run.folder), _stamp(run, WEIGHTS_FILE), time.monotonic()
    asked = _ASKED.get(folder)
    if asked is None or (stamp != asked.stamp and not (run.status.active and now < asked.when + AGAIN_S)):
        before = asked and (asked.stamp if _found(folder, asked.stamp) else asked.before)
        _ASKED[folder] = asked = _Asked(now, stamp, before)
    work = _EXAMINATIONS.submit((folder, asked.stamp), lambda _: _examine(run))
    if work.over.is_set():
        return work.result(), False
    return _found(folder, asked.before), True


def _found(folder: str, stamp: int | None) -> Examination | None:
    work = _EXAMINATIONS.find((folder, stamp))
    return work.result() if work is not None and work.over.is_set() else None


@guard("The Doctor's panel")
def doctor_panel(run_id: str) -> None:
    """Renders the Doctor's findings of a run, again and again while it trains or is being examined."""
    try:
        run = run_folder.get_run(run_id)
    except (RunError, CheckpointError):
        return  # the run's own panel says why
    if run.status.state == "queued" and run.status.step == 0:
        return
    busy = examination_of(run)[1]
    every = EVERY_S if run.status.active else WHILE_EXAMINING_S if busy else None
    guarded_fragment("The Doctor's panel", _panel, every=every)(run_id, busy)


def _panel(run_id: str, was_busy: bool) -> None:
    try:
        run = run_folder.get_run(run_id)
    except (RunError, CheckpointError):
        return
    examination, busy = examination_of(run)
    if was_busy and not busy and not run.status.active:
        st.rerun()  # how often this is redrawn is settled by a full run alone
    over, error = not run.status.active, run.status.error
    found = _diagnosis(str(run.folder), _stamp(run, METRICS_FILE), over, error, run, examination)
    st.markdown("## Doctor")
    for finding in found.findings:
        _render_finding(finding)
    if not found.findings:
        st.markdown(":green[:material/check_circle:] **Nothing found.**")
    if run.loadable and not kinds_of(run.settings.model):
        link = {"label": "What the vector keeps", "icon": ":material/arrow_forward:"}
        st.page_link("pages/before/page.py", **link, query_params={"model": run.id})
    st.caption(_checked_text(found, busy=busy, examined=examination is not None))


def _render_finding(finding: Finding) -> None:
    st.markdown(
        f"{_SIGNS[finding.severity]} **{plain(finding.sentence)}**  \n:material/lightbulb: {plain(finding.advice)}"
    )


def _checked_text(found: Diagnosis, *, busy: bool, examined: bool) -> str:
    text = f"Checked: {'; '.join(map(plain, found.checked))}."
    if busy and not examined:
        return f"{text} Heads and corpus are being examined."
    if found.unchecked:
        text += f" Not checked: {'; '.join(map(plain, found.unchecked))}."
    return text


@cached(max_entries=50)
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
        source=examination.source,
    )


def _examine(run: Run) -> Examination:
    """Measures heads and corpus of a run as far as they can be read. Never raises: missing ones are left unchecked."""
    try:
        corpus = load_own(run.settings.corpus, run.folder)
        checkpoint = load_checkpoint(run.folder)
    except (CorpusError, CheckpointError, OSError, ValueError):
        return Examination()
    longest = run.settings.model.max_length
    found = proportions(corpus.train, checkpoint.tokenizer, longest)
    measured = (checkpoint.model, corpus.validation, checkpoint.tokenizer)
    return Examination(found, _measured(head_health, *measured), _measured(source_use, *measured))


def _measured(measure: Callable[P, Measured], *args: P.args, **kwargs: P.kwargs) -> Measured | None:
    try:
        return measure(*args, **kwargs)
    except ValueError:  # no pair fits into the model
        return None
    except Exception:
        _log.exception("%s failed", measure.__name__)
        return None


def _stamp(run: Run, name: str) -> int:
    try:
        return (run.folder / name).stat().st_mtime_ns
    except OSError:
        return 0
