"""The checks of the figures of runs: their points against the journal, their last evaluation made again."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from pages.shared.checks import Run, badge
from pages.shared.components.run_curve import drawn_curve
from pages.training.timeline.frames import step_of
from transformer.analysis.checks import Check
from transformer.analysis.training.run_checks import (
    BUDGET_S,
    Drawn,
    check_evaluation,
    check_perplexity,
    check_points,
    check_rates,
    run_log_rows,
)
from transformer.checkpoints.settings import METRICS_FILE, WEIGHTS_FILE, read_settings
from transformer.checkpoints.store import CheckpointError, load_checkpoint
from transformer.data.cleaning import CorpusError
from transformer.data.corpus_snapshot import load_own
from transformer.figures.training.curves import Curve
from transformer.runs.status import SNAPSHOTS, read_status

THINNED = 400
"""Points of a curve that is drawn in place; of a longer one the ends and the extremes."""


def check_curves(lines: Sequence[Drawn], *, key: str, active: bool = False) -> None:
    """Of curves: their points are those of the journals, whose last evaluation is made again with the saved weights."""

    def run() -> Iterable[Check]:
        folders = list(dict.fromkeys(line.folder for line in lines))
        measured, left_out = [], []
        for folder in folders:
            found, why = measured_again(folder, several=len(folders))
            measured += found
            left_out += [why] if why else []
        for index, check in enumerate(check_points(lines)):
            yield check if index else replace(check, how="; ".join([*left_out, check.how]))
        for folder in folders:
            columns = {line.column for line in lines if line.folder == folder}
            if "perplexity" in columns:
                yield check_perplexity(folder)
            if "learning_rate" in columns:
                yield check_rates(folder, read_settings(folder).train)
        yield from measured

    what = tuple((line.folder, line.column, line.against) for line in lines)
    stamps = () if active else tuple(_stamp(line.folder / METRICS_FILE) for line in lines)
    badge(held(run, key, (what, stamps)), key=key)


def held(run: Run, key: str, shown: object) -> Run:
    """The same checks, run once while the badge stays open on what is `shown`: a panel at work redraws each second."""
    place = f"{key}-found"
    if not st.session_state.get(key):
        st.session_state.pop(place, None)

    def again() -> tuple[Check, ...]:
        found = st.session_state.get(place)
        if found is None or found[0] != shown:
            found = shown, tuple(run())
            st.session_state[place] = found
        return found[1]

    return again


def measured_again(folder: Path, *, several: int = 1) -> tuple[list[Check], str]:
    """The newest evaluation of a folder whose weights are kept, made again; else why there is none."""
    rows = {step: row for (split, step), row in run_log_rows(folder).items() if split == "validation"}
    kept = weights_of(folder)
    steps = sorted(rows.keys() & kept.keys())
    if not steps:
        return [], f"no weights of {folder.name} are kept from an evaluation, so none is made again"
    whose = f"of {folder.name} " if several > 1 else ""
    try:
        return list(_evaluated(folder, kept[steps[-1]], rows[steps[-1]], whose, BUDGET_S / several)), ""
    except (CheckpointError, CorpusError, ValueError) as error:
        return [], f"the evaluation of {folder.name} cannot be made again: {str(error).rstrip('.')}"


def _evaluated(folder: Path, weights: Path, row: dict[str, Any], whose: str, budget_s: float) -> Iterator[Check]:
    checkpoint = load_checkpoint(folder, weights=weights)
    validation = load_own(checkpoint.corpus_config, folder).validation
    yield from check_evaluation(
        checkpoint.model,
        checkpoint.tokenizer,
        validation,
        checkpoint.train_config,
        row,
        whose=whose,
        budget_s=budget_s,
    )


def weights_of(folder: Path) -> dict[int, Path]:
    """The files of weights in a folder by step, each of which an evaluation of that step has seen.

    A run that was stopped by hand may end with weights (averaged, best) that were never evaluated.
    """
    found = {int(path.stem): path for path in (folder / SNAPSHOTS).glob("*.safetensors") if path.stem.isdecimal()}
    newest = folder / WEIGHTS_FILE
    stopped = read_status(folder).state == "stopped"
    if newest.is_file() and not (stopped and read_settings(folder).train.final_weights != "latest"):
        found[step_of(newest)] = newest
    return found


def drawn(folder: Path, split: str, column: str, curve: Curve, **options: Any) -> Drawn:
    """A curve as it came to the figure, and where its points should be from."""
    kept = np.isfinite(curve.y)  # gaps are no points
    return Drawn(
        name=curve.name, folder=folder, split=split, column=column, x=curve.x[kept], y=curve.y[kept], **options
    )


def drawn_in_place(folder: Path, split: str, column: str, curve: Curve, *, percent: bool, **options: Any) -> Drawn:
    """A curve as the browser gets it where it is drawn in place."""
    factor = 100 if percent else 1
    return drawn(folder, split, column, drawn_curve(curve, factor), factor=factor, most=THINNED, **options)


def _stamp(path: Path) -> tuple[int, int]:
    return (path.stat().st_mtime_ns, path.stat().st_size) if path.is_file() else (0, 0)
