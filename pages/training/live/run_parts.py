"""The parts of the Train page that follow a run at work: its state in numbers, its curves, its sentences."""

from dataclasses import dataclass, replace
from typing import Any

from pages.shared.components.run_progress import described_curve, described_readings, described_sentences
from pages.shared.live.watches import LivePart, Look
from pages.shared.wording import number
from pages.training import run_status
from transformer.analysis.training.progress import Progress, progress_of, samples_of
from transformer.figures.training.curves import X_TITLES
from transformer.runs.run_folder import Run
from transformer.views.training.runs import CurvesData, RunCurves

_ROOM_AT_FIRST, _ROOM = 20.0, 1.25
"""The steps that the axis of a run at work has room for at least, and in terms of those that are done."""


@dataclass(frozen=True)
class Curves:
    """The chosen quantities of one run."""

    view: RunCurves

    def __call__(self, look: Look) -> tuple[int, dict[str, Any]] | None:
        """Returns the last step of the curves, and the curves; None before the first."""
        data = self.view.data((look.run.folder,))
        return (step, self.described(look.run, data)) if (step := self.step(data)) else None

    def described(self, run: Run, data: CurvesData) -> dict[str, Any]:
        """Returns the curves as their component draws them."""
        step = max(run.status.step, self.step(data))
        limit = run.settings.train.max_steps if run.settings.train.max_seconds is None else 1
        least = min(limit, max(_ROOM_AT_FIRST, _ROOM * step)) if run.status.active else 1
        return described_curve(self.view.drawn(data), x_title=X_TITLES["step"], x_least=least)

    @staticmethod
    def step(data: CurvesData) -> int:
        """Returns the last step of the curves; 0 before the first."""
        return max((int(curve.x[-1]) for curve in data.curves if len(curve.x)), default=0)


def parts_of(run: Run, view: RunCurves) -> tuple[LivePart, ...]:
    """Returns the parts of the page that follow a run; its sentences are for those alone who may read them."""
    curves = LivePart("curves", ("metrics",), Curves(view))
    return (_STATE, curves, _SENTENCES) if run.settings.pinned else (_STATE, curves)


def described_run(run: Run, progress: Progress) -> dict[str, Any]:
    """Returns a run in numbers as its component draws it."""
    return described_readings(
        state=run_status.state_word(run).capitalize(),
        tone=run.status.state,
        rest=run_status.state_rest(run),
        share=run_status.share_done(run),
        readings=_readings(progress),
    )


def step_of(run: Run, progress: Progress) -> int:
    """Returns the newest step that is known: metrics are written more often than the status."""
    return max(run.status.step, int(progress.last("train", "step") or 0))


def _readings(progress: Progress) -> list[tuple[str, str, str]]:
    exact = progress.last("validation", "exact_match")
    found = [
        ("training loss", progress.last("train", "loss"), "nats"),
        ("validation loss", progress.last("validation", "loss"), "nats"),
        ("exact match", None if exact is None else 100 * exact, "%"),
        ("learning rate", progress.last("train", "learning_rate"), ""),
        ("speed", progress.last("train", "tokens_per_s"), "tokens/s"),
    ]
    bleu, chrf = progress.last("validation", "bleu"), progress.last("validation", "chrf")
    found += [
        ("perplexity", progress.last("validation", "perplexity"), ""),
        ("gradient norm", progress.last("train", "gradient_norm"), ""),
        *(
            (name, value, "")
            for name, value in (("BLEU", bleu), ("chrF", chrf))
            if value is not None and value == value
        ),
    ]
    found += [
        (f"held out, {split}", 100 * row["exact_match"], "%")
        for split, row in progress.held_out.items()
        if row.get("exact_match") is not None
    ]
    return [
        (name, "–" if value is None else _short(value), "" if value is None else unit) for name, value, unit in found
    ]


def _short(value: float) -> str:
    return f"{round(value):,}" if abs(value) >= 1000 else number(value)


def _state(look: Look) -> tuple[int, dict[str, Any]]:
    progress = progress_of(look.run.folder)
    step = step_of(look.run, progress)
    return step, described_run(replace(look.run, status=replace(look.run.status, step=step)), progress)


def _sentences(look: Look) -> tuple[int, dict[str, Any]] | None:
    samples = samples_of(look.run.folder)
    last = max((rows[-1].step for rows in samples.values()), default=-1)
    return (last, described_sentences(look.run.settings.pinned, samples)) if last >= 0 else None


_STATE = LivePart("state", ("status", "metrics"), _state)
_SENTENCES = LivePart("sentences", ("samples",), _sentences)
