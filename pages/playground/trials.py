"""The experiments that follow a success, one after the other: each takes something away and asks what will happen."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pages.playground.choices import Knobs
from pages.training.live.settings import WHY, WHY_RNN

WHOLE: dict[str, Any] = {"without": (), "heads": 4, "model": "transformer"}
"""The knobs of the success that a trial changes."""


@dataclass(frozen=True)
class Trial:
    """An experiment: the knobs that it turns, what is announced, and why it fails or what its success shows."""

    offer: str
    why: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    enough: str = ""
    """The sentence for a run that learns the task all the same."""

    @property
    def knobs(self) -> dict[str, Any]:
        """Returns all the knobs that it sets."""
        return WHOLE | dict(self.changes)

    def is_set(self, knobs: Knobs) -> bool:
        """Tells whether these knobs make this experiment."""
        return _are(knobs, self.knobs)


TRIALS = (
    Trial(
        "Now take the positions away",
        WHY["positions"],
        {"without": ("positions",)},
    ),
    Trial(
        "Give them back, and take the causal mask away",
        WHY["causal_mask"],
        {"without": ("causal_mask",)},
    ),
    Trial(
        "Give it back, and use one head instead of four",
        "One head makes one picture of where to look, where four make four.",
        {"heads": 1},
        "One head in each layer is enough for it.",
    ),
    Trial(
        "That head has d_k = 64. Take away its scaling by √d_k",
        WHY["scale_scores"],
        {"heads": 1, "without": ("scale_scores",)},
        "It did without scaling, even at d_k = 64.",
    ),
    Trial(
        "Use an RNN without attention instead",
        WHY_RNN,
        {"model": "rnn"},
        "Its one vector has room for inputs as short as these.",
    ),
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
