"""The result of a run, by its own measurements."""

from dataclasses import dataclass

from pages.shared.texts.catalogue import Texts
from transformer.analysis.training.progress import progress_of
from transformer.runs.run_folder import Run

TEXTS = Texts("live.result")
LEARNED, FAILED = 0.95, 0.1
"""The shares of right answers from which on it has learned the task, and below which it has not."""


@dataclass(frozen=True)
class Result:
    """The last validation of a run, and when it was first right."""

    exact: float
    """0..1."""
    loss: float
    """In nats per token, not smoothed."""
    steps: int
    n_examples: int
    first_right: int | None
    """The step at which it had first learned the task; None if it never had."""
    seconds: float | None
    """The seconds of training until then."""

    @property
    def has_learned(self) -> bool:
        """Tells whether it can do the task."""
        return self.exact >= LEARNED

    @property
    def share(self) -> str:
        """Returns the share of right answers in words."""
        return TEXTS("share", share=100 * self.exact, total=self.n_examples)


def result_of(run: Run) -> Result | None:
    """Returns what a run came to; None before its first validation."""
    progress = progress_of(run.folder)
    exact, loss = progress.last("validation", "exact_match"), progress.last("validation", "loss")
    if exact is None or loss is None:
        return None
    first = progress.first_right(LEARNED)
    seconds = None if first is None else progress.validation["elapsed_s"][progress.validation["step"] == first][0]
    return Result(
        exact=exact,
        loss=loss,
        steps=run.status.step,
        n_examples=run.settings.train.evaluate_pairs,
        first_right=first,
        seconds=None if seconds is None else float(seconds),
    )
