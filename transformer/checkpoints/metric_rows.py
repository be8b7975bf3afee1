"""The rows that a trainer wrote, metrics.jsonl and samples.jsonl, as far as they can be used.

A row of another shape, as a damaged or hand-edited file holds, is left out like a line that a crash cut short: what is
left is drawn, and no reader has to expect anything else. No torch here: watching must be quick.
"""

from pathlib import Path
from typing import Any, TypeGuard

from transformer.checkpoints.settings import METRICS_FILE, SAMPLES_FILE
from transformer.files import read_rows

_NUMBERS = frozenset(
    (
        *("elapsed_s", "loss", "learning_rate", "gradient_norm", "tokens", "tokens_per_s"),
        *("perplexity", "exact_match", "bleu", "chrf", "count"),
    )
)
_MAX_NUMBER = 2**53
"""Up to here every whole number is exact as a float."""


def metric_rows(folder: Path) -> list[dict[str, Any]]:
    """The usable rows of a folder's metrics.jsonl, in order: `split` a string, `step` a number, the rest numbers."""
    return [row for row in read_rows(folder / METRICS_FILE) if _is_metrics(row)]


def sample_rows(folder: Path) -> list[dict[str, Any]]:
    """The usable rows of a folder's samples.jsonl, in order: `step` a number, `source` and `translation` strings."""
    return [row for row in read_rows(folder / SAMPLES_FILE) if _is_sample(row)]


def is_count(value: object) -> bool:
    """Tells whether it is a whole number of at least 0, and no boolean."""
    return type(value) is int and 0 <= value <= _MAX_NUMBER


def is_number(value: object) -> TypeGuard[float]:
    """Tells whether it is a number, and no boolean; NaN and the infinities are numbers."""
    return type(value) is float or (type(value) is int and abs(value) <= _MAX_NUMBER)


def _is_metrics(row: dict[str, Any]) -> bool:
    held = (row[name] for name in _NUMBERS & row.keys())
    return (
        isinstance(row.get("split"), str)
        and is_count(row.get("step"))
        and all(value is None or is_number(value) for value in held)
    )


def _is_sample(row: dict[str, Any]) -> bool:
    return is_count(row.get("step")) and all(isinstance(row.get(name), str) for name in ("source", "translation"))
