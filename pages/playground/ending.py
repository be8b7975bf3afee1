"""What a finished run of the Playground came to, in a sentence of its own measurements, and what to try next."""

from dataclasses import dataclass
from typing import Any

from pages.playground.choices import TASKS, Knobs, Part
from transformer.analysis.training.progress import Progress, progress_of
from transformer.runs.run_folder import Run

LEARNED, FAILED = 0.95, 0.5
"""The shares of right answers from which on it has learned the task, and below which it has not."""
_WHY: dict[Part, str] = {
    "positions": "Without positions the encoder sees which symbols there are, but not their order.",
    "causal_mask": "Without the causal mask it could see each answer while it trained, and learned to read it off.",
    "residual": "Without residual connections each sublayer replaces its input instead of adding to it.",
    "scale_scores": "Without the division by √d_k scores are larger, and the softmax closer to all or nothing.",
    "warmup_steps": "Without warm-up the first steps are the largest, when the optimizer knows least of the gradients.",
}


@dataclass(frozen=True)
class Next:
    """The next experiment: a button, and the knobs that it turns."""

    label: str
    knobs: dict[str, Any]


def ending(run: Run, knobs: Knobs) -> tuple[str, Next | None]:
    """Returns what happened, and what to try next."""
    progress = progress_of(run.folder)
    exact, loss = progress.last("validation", "exact_match"), progress.last("validation", "loss")
    if exact is None or loss is None:
        return "It was stopped before it was tested once.", None
    return _told(run, knobs, progress, exact, loss), _next(knobs, exact)


def _told(run: Run, knobs: Knobs, progress: Progress, exact: float, loss: float) -> str:
    tested, steps = run.settings.train.evaluate_pairs, run.status.step
    share = f"{100 * exact:.3g} % of {tested:,} new examples"
    if exact >= LEARNED:
        first = progress.first_right(LEARNED)
        said = f"**It learned to {TASKS[knobs.task]}.** It gets {share} right"
        said += (
            f"; at step {first:,} of {steps:,} it passed {100 * LEARNED:.0f} % for the first time." if first else "."
        )
        if knobs.without:
            said += f" It did without {_names(knobs)}: not every part is needed for every task."
        return said
    said = "**It did not learn it.**" if exact < FAILED else "**It learned it in part.**"
    said += f" After {steps:,} steps it gets {share} right, with a loss of {loss:.2g} nats per token."
    if len(knobs.without) == 1:
        said += f" {_WHY[knobs.without[0]]}"
    elif knobs.without:
        said += f" It had to do without {_names(knobs)}."
    return said


def _names(knobs: Knobs) -> str:
    return " and ".join(_SHORT[part] for part in knobs.without)


_SHORT: dict[Part, str] = {
    "positions": "positions",
    "causal_mask": "the causal mask",
    "residual": "residual connections",
    "scale_scores": "scaling",
    "warmup_steps": "warm-up",
}
_TOUR: tuple[Part, ...] = ("positions", "causal_mask", "residual", "scale_scores", "warmup_steps")


def _next(knobs: Knobs, exact: float) -> Next | None:
    """Returns the next part to take away, in turn, or a larger change once all were tried."""
    if len(knobs.without) > 1:
        return Next("Give all parts back", {"without": ()})
    if not knobs.without:
        if exact < LEARNED:
            return Next("Try another seed", {"seed": (knobs.seed + 1) % 1000})
        return Next("Now take the positions away", {"without": ("positions",)})
    after = _TOUR.index(knobs.without[0]) + 1
    if after < len(_TOUR):
        part = _TOUR[after]
        return Next(f"Now take {_SHORT[part]} away instead", {"without": (part,)})
    if knobs.task == "reverse":
        return Next("Give it back, and learn to sort", {"without": (), "task": "sort"})
    return Next("Give it back", {"without": ()})
