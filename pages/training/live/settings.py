"""A model and its training as a few knobs make them, for the tasks that a small model learns in seconds."""

from dataclasses import dataclass, fields, replace
from typing import Literal, get_args

from pages.shared.texts.catalogue import Texts
from pages.shared.url.url_state import TEXTS as LINK
from pages.shared.url.url_state import Form, Refused, UrlState, nested, param, several, whole, words
from pages.training.plans import Plan, recommended
from transformer.checkpoints.settings import is_name

Task = Literal["reverse", "copy", "sort", "addition", "dates"]
Part = Literal["causal_mask", "positions", "scale_scores", "residual", "warmup_steps"]
Model = Literal["transformer", "rnn"]
TEXTS = Texts("knobs")
"""The names of tasks, models and parts, and what each part is for."""
TASKS: tuple[Task, ...] = get_args(Task)
OF_LETTERS: tuple[Task, ...] = ("reverse", "copy", "sort")
"""The tasks that write the letters which they read."""
MODELS: tuple[Model, ...] = get_args(Model)
LAYERS, HEADS = (1, 2, 3), (1, 2, 4, 8)
POSITIONS = ("sinusoidal", "learned", "rotary", "alibi")
PARTS: tuple[Part, ...] = get_args(Part)
"""The parts that can be switched off."""
STRINGS: dict[Task, str] = {
    "reverse": "a b c d e f",
    "copy": "a b c d e f",
    "sort": "f b d a e c",
    "addition": "47+85",
    "dates": "March 5, 1987",
}
LONGEST = 200
"""The most characters of one's own string; the model's own limit of tokens mostly comes first."""


def _read_run(said: str) -> str:
    if not is_name(said):
        raise Refused(LINK("expected.run"))
    return said


RUN_NAME = Form(_read_run)


@dataclass(frozen=True, kw_only=True)
class Setting(UrlState):
    """A model, and the parts that it has to do without."""

    model: Model = param("transformer", words(*MODELS))
    """A Transformer, or a recurrent encoder-decoder without attention, which none of the other knobs concerns."""
    layers: int = param(2, whole(LAYERS[0], LAYERS[-1], clamp=True))
    heads: int = param(4, words(*HEADS))
    positions: str = param("sinusoidal", words(*POSITIONS))
    without: tuple[Part, ...] = param((), several(words(*PARTS)))
    """The parts that are switched off."""

    def plan_for(self, task: Task, seed: int, string: str) -> Plan:
        """Returns the plan that the Train page would have for the same settings, with a string to follow.

        It takes one thread: a second one hardly shortens so small a step, and takes a core from the page and from other
        runs, as that of a race's other side.
        """
        own = {"seed": seed, "sentences": (string,), "threads": 1}
        if self.model == "rnn":
            return replace(recommended(task, self.model), **own)
        changed = {"n_encoder_layers": self.layers, "n_decoder_layers": self.layers, "n_heads": self.heads}
        plan = replace(recommended(task), **changed, positions=self.positions, **own)
        for part in self.without:
            plan = plan.with_part(part, present=False)
        return plan


WHOLE_WORD = "whole"
"""The word in a link for a setting that lacks nothing."""


def race_parameters(setting: Setting) -> dict[str, str]:
    """Returns the query parameters with which the Race page has this setting against one that lacks nothing."""
    own = Setting(**{each.name: getattr(setting, each.name) for each in fields(Setting)})
    return {"right": nested(Setting, WHOLE_WORD).write(own) or WHOLE_WORD}
