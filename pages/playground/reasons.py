"""Why a run of the Playground that lacks a part failed, measured with its own weights on the visitor's own input."""

import math
from collections.abc import Callable, Mapping, Sequence

from pages.playground.choices import Knobs
from pages.playground.trials import trial_of
from pages.shared import wording
from pages.shared.texts.catalogue import Texts
from pages.training.live.clearest import clearest_head
from pages.training.live.settings import TEXTS as KNOBS
from pages.training.timeline.frames import decoded_with
from transformer.analysis.attention.divided_scores import with_scores_divided
from transformer.checkpoints.settings import CheckpointError
from transformer.config import ModelConfig
from transformer.model.kinds import AttentionKind
from transformer.runs.kept_weights import Snapshot, snapshots_of
from transformer.runs.live.watched import LiveOutput
from transformer.runs.run_folder import Run

TEXTS = Texts("playground.reasons")


def reason(run: Run, knobs: Knobs, output: LiveOutput | None) -> str:
    """Returns why the run failed, as measured on its output for the visitor's input where the missing part has a
    measurement; empty where nothing is missing."""
    missing = knobs.without[0] if len(knobs.without) == 1 else ""
    if output is not None and (said := _measured(missing, run, output)):
        return said
    if missing:
        return KNOBS(f"why.{missing}")
    if knobs.without:
        return TEXTS("several", parts=wording.listed([KNOBS(f"short.{part}") for part in knobs.without]))
    trial = trial_of(knobs)
    return "" if trial is None else trial.why


def _measured(part: str, run: Run, output: LiveOutput) -> str:
    found = snapshots_of(run)
    if part not in _MEASURED or not found:
        return ""
    try:
        return _MEASURED[part](run, found, output)
    except (CheckpointError, OSError, ValueError):  # its weights are gone, or replaced by newer ones a moment ago
        return ""


def _positions(run: Run, found: Sequence[Snapshot], output: LiveOutput) -> str:
    """Returns that the letters in the opposite order give the same output; empty where they do not, or are the same."""
    letters, backwards = output.text.split(), output.text.split()[::-1]
    if letters == backwards or len(letters) != len(output.source) - 1 or not output.weights.size:
        return ""
    if decoded_with(run, found[-1], " ".join(backwards)).tokens != output.tokens:
        return ""
    said = TEXTS("positions", letters=wording.plain(" ".join(backwards)))
    column = _column(output)
    return said if column is None else f"{said} {TEXTS('column', letter=wording.plain(column))}"


def _column(output: LiveOutput) -> str | None:
    """Returns the letter that the clearest head looks at most whatever it writes, its end mark aside; None if there is
    no such letter."""
    found = clearest_head(output)
    rows = output.weights[found.layer, found.head, : len(output.tokens) - output.ended]
    columns = set(rows.argmax(axis=-1).tolist())
    return output.source[columns.pop()] if len(rows) > 1 and len(columns) == 1 else None


def _scale_scores(run: Run, found: Sequence[Snapshot], output: LiveOutput) -> str:
    """Returns how large the encoder's largest weights were before it had learned anything, and would have been."""
    model, first = run.settings.model, found[0]
    if first.step > 0 or not isinstance(model, ModelConfig) or model.scale_scores:
        return ""
    weights = decoded_with(run, first, output.text).attention[AttentionKind.ENCODER_SELF].weights
    root = math.sqrt(model.d_head)
    largest, divided = (float(w.max(axis=-1).mean()) for w in (weights, with_scores_divided(weights, root)))
    return TEXTS("scale_scores", largest=largest, divided=divided, root=root)


_MEASURED: Mapping[str, Callable[[Run, Sequence[Snapshot], LiveOutput], str]] = {
    "positions": _positions,
    "scale_scores": _scale_scores,
}
"""The parts whose lack can be measured: with which function, which returns "" where the measurement says nothing."""
