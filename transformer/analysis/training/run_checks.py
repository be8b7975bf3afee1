"""Checks of the curves of a run: its metrics read again from disk, its evaluation repeated on the same pairs."""

import json
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from transformer.analysis.checks import Check
from transformer.checkpoints.settings import METRICS_FILE
from transformer.config import TrainConfig
from transformer.data.batches import pair_batches
from transformer.decoding.greedy import translate_ids
from transformer.figures.training.curves import Against, Curve
from transformer.model.transformer import Transformer
from transformer.text.pairs import Pair
from transformer.text.tokenizer import Tokenizer
from transformer.training.evaluation import fitting

BUDGET_S = 2.0
"""The seconds after which a measurement stops at the pairs that it has reached."""
CHUNK = 32
"""The number of pairs that are measured at a time."""
_ROUNDING = 1e-12
"""The largest relative difference: the very numbers of the file are drawn."""
_UNLIKELY = 1e-6
_BATCH_TOKENS = 1_024

T = TypeVar("T")
Rows = dict[tuple[str, int], dict[str, Any]]


def run_log_rows(folder: Path) -> Rows:
    """Returns the rows of metrics.jsonl that still hold, by split and step.

    Reads from the end of the file: a row falls if a later training row has its step or an earlier one, as after a
    resume.
    """
    path = folder / METRICS_FILE
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    found: Rows = {}
    redone_from = math.inf
    for line in reversed(text.split("\n")[:-1]):
        try:
            row = json.loads(line)
        except ValueError:
            continue
        split, step = row.get("split", ""), row.get("step", 0)
        if step < redone_from:
            found.setdefault((split, step), row)
        if split == "train":
            redone_from = min(redone_from, step)
    return found


def check_points(folder: Path, split: str, column: str, curve: Curve, against: Against) -> Check:
    """Checks that a curve goes through the points of its metrics, and leaves none out."""
    kept = np.isfinite(curve.y)  # gaps are no points
    x, y = curve.x[kept].tolist(), curve.y[kept].tolist()
    points = _points(run_log_rows(folder), split, column, against)
    owed = {place for place in points if x and place <= max(x)}  # a run at work has written on since
    off = [
        min((_apart(shown, written) for written in points.get(place, ())), default=math.inf)
        for place, shown in zip(x, y, strict=True)
    ]
    claim = f"The points of “{curve.name}” are those of the run's metrics"
    how = f"{len(x):,} points against {METRICS_FILE} of {folder.name}, read again from its end"
    if missing := owed - set(x):
        return Check(claim, math.inf, _ROUNDING, f"{how}; {len(missing)} are not drawn")
    return Check(claim, max(off, default=0.0), _ROUNDING, f"{how}; largest relative difference")


def _points(rows: Rows, wanted: str, column: str, against: Against) -> dict[float, list[float]]:
    """Returns the file's values at each place; a GPU's steps may share a second."""
    found: dict[float, list[float]] = {}
    for (split, _), row in sorted(rows.items(), key=lambda item: item[0][1]):
        value = row.get(column)
        if split == wanted and isinstance(value, int | float) and math.isfinite(value):
            found.setdefault(float(row[against]), []).append(value)
    return found


def _apart(shown: float, written: float) -> float:
    return abs(shown - written) / max(abs(written), 1e-12) if shown != written else 0.0


def check_last(name: str, folder: Path, split: str, column: str, shown: float, *, step: int, ended: bool) -> Check:
    """Checks that a value (NaN: none) is a run's last and of this step; of a run at work, that it was this step's."""
    rows = {at: row for (own, at), row in run_log_rows(folder).items() if own == split}
    value = rows.get(step, {}).get(column)
    later = ended and max(rows, default=step) > step
    written = value if isinstance(value, int | float) else math.nan
    is_there = math.isfinite(written)
    apart = math.inf if later or is_there != math.isfinite(shown) else _apart(shown, written) if is_there else 0.0
    which = "its last row" if ended else "its row"
    how = f"{METRICS_FILE} read again, {which} of step {step:,}; relative difference"
    return Check(f"{name} reached this {column.replace('_', ' ')}", apart, 1e-9, how)


def check_perplexity(folder: Path) -> Check:
    """Checks that each perplexity in the metrics is e to the loss beside it."""
    rows = [row for (split, _), row in run_log_rows(folder).items() if split == "validation"]
    off = [abs(math.log(row["perplexity"]) - row["loss"]) for row in rows if row["perplexity"] and row["loss"] < 700]
    how = f"its logarithm taken at {len(off)} evaluations; largest difference, nats"
    return Check("Perplexity is e to the validation loss", max(off, default=0.0), 1e-6, how)


def check_rates(folder: Path, train: TrainConfig) -> Check:
    """Checks that each learning rate in the metrics is the schedule's, written as a minimum of two curves."""
    off = []
    for (split, step), row in run_log_rows(folder).items():
        if split == "train" and row.get("learning_rate") is not None:
            off.append(abs(row["learning_rate"] - train.learning_rate * schedule_share(train, step)))
    how = f"the schedule's formula at {len(off):,} steps; largest difference"
    return Check("The learning rate follows its schedule", max(off, default=0.0), 1e-6 * train.learning_rate, how)


def schedule_share(train: TrainConfig, step: int) -> float:
    """Returns the learning rate over its peak."""
    warm = max(train.warmup_steps, 1)
    rising = step / warm
    if train.schedule == "paper":  # eq. 3
        return min(rising, math.sqrt(warm / step))
    if train.schedule == "constant" or step < train.warmup_steps:
        return min(rising, 1.0)
    if train.schedule == "wsd":
        return min(1.0, max(train.max_steps - step, 0) / max(0.6 * train.max_steps, 1.0))
    share = (step - train.warmup_steps) / max(1, train.max_steps - train.warmup_steps)
    return math.cos(math.pi / 2 * min(share, 1.0)) ** 2  # half a cosine


def check_evaluation(
    model: Transformer,
    tokenizer: Tokenizer,
    validation: Sequence[Pair],
    train: TrainConfig,
    row: dict[str, Any],
    *,
    whose: str = "",
    budget_s: float = BUDGET_S,
) -> Iterator[Check]:
    """Checks that these weights reach the validation loss and exact match of a row of metrics, on the same pairs.

    Loss from plain logits, pair by pair. What takes longer than `budget_s` is measured on a random sample of the pairs,
    and claimed of that alone. ValueError where no pair fits the model.
    """
    pairs = fitting(validation, tokenizer, model.config.max_length, train.evaluate_pairs)
    order = random.Random(0).sample(pairs, len(pairs))
    at = f"{whose}at step {row['step']:,}"
    losses = _measured(order, lambda some: _losses(model, tokenizer, some), budget_s)
    yield _loss_check(losses, order, tokenizer, row["loss"], at)
    right = _measured(order, lambda some: _right(model, tokenizer, some), budget_s)
    yield _match_check(right, len(pairs), row["exact_match"], at)


def _measured(pairs: list[Pair], measure: Callable[[list[Pair]], list[T]], budget_s: float) -> list[T]:
    found: list[T] = []
    end = time.monotonic() + budget_s
    while len(found) < len(pairs) and (not found or time.monotonic() < end):
        found += measure(pairs[len(found) : len(found) + CHUNK])
    return found


@torch.no_grad()
def _losses(model: Transformer, tokenizer: Tokenizer, pairs: list[Pair]) -> list[float]:
    """Returns the nats of each pair, summed over its target tokens."""
    found = [0.0] * len(pairs)
    for rows, batch in pair_batches(pairs, tokenizer, _BATCH_TOKENS, max_length=model.config.max_length):
        logits = model(batch.source, batch.target_in, batch.source_mask, batch.target_mask)
        each = logits.log_softmax(dim=-1).gather(-1, batch.target_out[..., None])[..., 0].double()
        for row, nats in zip(rows, (each * batch.target_mask).sum(dim=-1).tolist(), strict=True):
            found[row] = -nats
    return found


@torch.no_grad()
def _right(model: Transformer, tokenizer: Tokenizer, pairs: list[Pair]) -> list[bool]:
    """Tells of each pair whether it is translated as in its reference."""
    found = [False] * len(pairs)
    for rows, batch in pair_batches(pairs, tokenizer, _BATCH_TOKENS, max_length=model.config.max_length):
        limit = min(batch.target_out.size(1) + 2, model.config.max_length)
        outputs = translate_ids(model, batch.source, batch.source_mask, max_length=limit)
        for row, ids in zip(rows, outputs, strict=True):
            found[row] = tokenizer.decode(ids) == pairs[row].target
    return found


def _loss_check(losses: list[float], pairs: list[Pair], tokenizer: Tokenizer, written: float, at: str) -> Check:
    tokens = sum(len(tokenizer.encode(pair.target)) + 1 for pair in pairs)  # the end mark is one
    total, n = math.fsum(losses), len(losses)
    if n == len(pairs):
        how = f"all {n:,} pairs read again with the weights of that step; nats per token"
        off = abs(total / tokens - written)
        return Check(f"Validation loss {at} is that of its weights", off, 1e-3 * max(1.0, written), how)
    how = f"{n:,} of {len(pairs):,} pairs, drawn at random, read again; nats beyond those of all pairs"
    over = max(0.0, total - written * tokens)
    return Check(f"A sample's loss {at} is no more than the whole's", over, 1e-3 * tokens, how)


def _match_check(right: list[bool], count: int, share: float, at: str) -> Check:
    n, k, written = len(right), sum(right), round(share * count)
    if n == count:
        how = f"all {n:,} pairs translated again with the weights of that step; of which right, against the file"
        off = abs(k - share * count)
        return Check(f"Exact match {at} is that of its weights", off, 1.001 if n >= 100 else 0.001, how)
    low, high = _likely(n, written, count)
    how = (
        f"{n:,} of {count:,} pairs, drawn at random, translated again: {k} right where {low} to {high} are likely "
        "(all but a millionth, hypergeometric); pairs outside that"
    )
    return Check(f"Exact match {at} fits a sample of its pairs", max(low - k, k - high, 0), 0, how)


def _likely(n: int, right: int, count: int) -> tuple[int, int]:
    """Returns the fewest and the most right pairs likely among `n` drawn of `count` with `right` right ones."""
    ways = [math.comb(right, k) * math.comb(count - right, n - k) for k in range(n + 1)]
    least = math.comb(count, n) * _UNLIKELY
    low = next(k for k in range(n + 1) if sum(ways[: k + 1]) >= least)
    high = next(k for k in range(n, -1, -1) if sum(ways[k:]) >= least)
    return low, high
