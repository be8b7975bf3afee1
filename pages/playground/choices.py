"""The knobs of the Playground, kept in the URL: the task, the size, the parts, the seed, the string, and the run."""

from dataclasses import dataclass
from typing import Literal, get_args

from pages.shared.url.page_state import UrlPart
from pages.shared.url.url_state import flag, param, text, whole, words
from pages.training.live.settings import LONGEST, RUN_NAME, STRINGS, TASKS, Setting, Task
from pages.training.plans import Plan
from transformer.analysis.attention.shapes import Shape
from transformer.text.pairs import clean_text

Expected = Literal["learns", "fails"]
SLOW = 10.0
"""Steps a second of slow motion."""
_OF_RUN = ("task", "model", "layers", "heads", "positions", "without")
"""The knobs that make another experiment, of which nothing was expected yet."""


@dataclass(frozen=True, kw_only=True)
class Knobs(Setting):
    """Everything that can be turned, and the run that was made of it."""

    task: Task = param("reverse", words(*TASKS))
    slow: bool = param(False, flag("on"))
    """True for SLOW steps a second, which eyes can follow, instead of as many as it can."""
    seed: int = param(0, whole(0, 999, clamp=True))
    text: str = param("", text(LONGEST), resets=("task",))
    """The visitor's own string; empty for the task's, blank where the field was emptied."""
    guess: Shape | Literal[""] = param("", words("", *get_args(Shape)), resets=_OF_RUN)
    """The picture that the visitor thinks the attention will turn into; empty without a guess."""
    expected: Expected | Literal[""] = param("", words("", *get_args(Expected)), resets=_OF_RUN)
    """The end that the visitor expects of the run; empty where it was not asked."""
    run: str = param("", RUN_NAME, nonsense="run")

    @property
    def string(self) -> str:
        """Returns the string that is followed: the task's where the visitor has none."""
        return clean_text(self.text) or STRINGS[self.task]

    @property
    def plan(self) -> Plan:
        """Returns the plan that the Train page would have for the same settings."""
        return self.plan_for(self.task, self.seed, self.string)


PAGE = UrlPart(Knobs, key="playground-page")
