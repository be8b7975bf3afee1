"""The experiments that follow a success, one after the other: each takes something away and asks what will happen."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pages.playground.choices import Knobs
from pages.shared.texts.catalogue import Texts
from pages.training.live.settings import TEXTS as KNOBS

TEXTS = Texts("playground.trials")
WHOLE: dict[str, Any] = {"without": (), "heads": 4, "model": "transformer"}
"""The knobs of the success that a trial changes."""


@dataclass(frozen=True)
class Trial:
    """An experiment: the knobs that it turns, and its texts."""

    name: str
    """The name of its texts in the catalogue."""
    changes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def offer(self) -> str:
        """Returns what is announced, and asked."""
        return TEXTS(f"offer.{self.name}")

    @property
    def why(self) -> str:
        """Returns why it fails, or what its success shows."""
        return KNOBS(f"why.{self.name}")

    @property
    def enough(self) -> str:
        """Returns the sentence for a run that learns the task all the same; empty where none is written."""
        return TEXTS.table("enough").get(self.name, "")

    @property
    def knobs(self) -> dict[str, Any]:
        """Returns all the knobs that it sets."""
        return WHOLE | dict(self.changes)

    def is_set(self, knobs: Knobs) -> bool:
        """Tells whether these knobs make this experiment."""
        return _are(knobs, self.knobs)


TRIALS = (
    Trial("positions", {"without": ("positions",)}),
    Trial("causal_mask", {"without": ("causal_mask",)}),
    Trial("one_head", {"heads": 1}),
    Trial("scale_scores", {"heads": 1, "without": ("scale_scores",)}),
    Trial("rnn", {"model": "rnn"}),
)


def is_whole(knobs: Knobs) -> bool:
    """Tells whether nothing that a trial changes is changed."""
    return _are(knobs, WHOLE)


def trial_of(knobs: Knobs) -> Trial | None:
    """Returns the experiment that these knobs make, if they make one."""
    return next((trial for trial in TRIALS if trial.is_set(knobs)), None)


def after(trial: Trial) -> Trial | None:
    """Returns the experiment that follows; None after the last."""
    return next(iter(TRIALS[TRIALS.index(trial) + 1 :]), None)


def _are(knobs: Knobs, values: Mapping[str, Any]) -> bool:
    return all(getattr(knobs, name) == value for name, value in values.items())
