"""How results that are remembered tell apart what they were made of."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pages.common.loading import age_of
from transformer.analysis.leaks import Leak
from transformer.inspection import Comparison, Inspection
from transformer.lab import Lab
from transformer.run_status import STATUS_FILE
from transformer.settings import METRICS_FILE, WEIGHTS_FILE


def _inspection(seen: Inspection) -> tuple[object, ...]:
    return seen.model_name, seen.text, tuple(map(str, seen.interventions)), seen.forced, seen.target_ids


def _comparison(comparison: Comparison) -> tuple[object, ...]:
    return _inspection(comparison.before), _inspection(comparison.after)


def _leak(leak: Leak) -> tuple[object, ...]:
    return leak.texts, tuple(map(str, leak.off))


def _folder(folder: Path) -> tuple[object, ...]:
    """A run's folder and the age of what a run at work writes on."""
    paths = (folder / name for name in (METRICS_FILE, STATUS_FILE, WEIGHTS_FILE))
    return str(folder), tuple(path.stat().st_mtime_ns if path.is_file() else 0 for path in paths)


HASHES: dict[str | type, Callable[[Any], object]] = {
    Lab: lambda lab: (lab.name, age_of(lab)),
    Inspection: _inspection,
    Comparison: _comparison,
    Leak: _leak,
    type(Path()): _folder,
}
"""For `hash_funcs`: what tells these apart, far smaller than their contents. A model is its name and the age of its
weights; a decoding its sentence, its switches and what was forced."""
