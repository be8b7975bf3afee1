"""The knobs of the Playground, kept in the URL: the task, the size, the parts, the seed, the string, and the run."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

from pages.shared.url.page_state import UrlPart
from pages.shared.url.url_state import Form, Refused, UrlState, flag, param, several, text, whole, words
from pages.training.plans import Plan, recommended
from transformer.analysis.attention.shapes import Shape
from transformer.checkpoints.settings import is_name

Task = Literal["reverse", "copy", "sort", "addition", "dates"]
Part = Literal["causal_mask", "positions", "scale_scores", "residual", "warmup_steps"]
Model = Literal["transformer", "rnn"]
Expected = Literal["learns", "fails"]
TASKS: dict[Task, str] = {
    "reverse": "reverse letters",
    "copy": "copy letters",
    "sort": "sort letters",
    "addition": "add numbers",
    "dates": "rewrite dates",
}
OF_LETTERS: tuple[Task, ...] = ("reverse", "copy", "sort")
"""The tasks that write the letters which they read."""
MODELS: dict[Model, str] = {"transformer": "Transformer", "rnn": "RNN"}
LAYERS, HEADS = (1, 2, 3), (1, 2, 4, 8)
POSITIONS = {"sinusoidal": "sinusoids", "learned": "learned", "rotary": "rotary", "alibi": "ALiBi"}
PARTS: dict[Part, str] = {
    "causal_mask": "Causal mask",
    "positions": "Positions",
    "scale_scores": "Scaling by √d_k",
    "residual": "Residual",
    "warmup_steps": "Warm-up",
}
"""The parts that can be switched off."""
STRINGS: dict[Task, str] = {
    "reverse": "a b c d e f",
    "copy": "a b c d e f",
    "sort": "f b d a e c",
    "addition": "47+85",
    "dates": "March 5, 1987",
}
SLOW = 10.0
"""Steps a second of slow motion."""
LONGEST = 60
"""Characters of one's own string."""
_OF_RUN = ("task", "model", "layers", "heads", "positions", "without")
"""The knobs that make another experiment, of which nothing was expected yet."""


def _read_run(said: str) -> str:
    if not is_name(said):
        raise Refused("cannot be a run's name")
    return said


@dataclass(frozen=True, kw_only=True)
class Knobs(UrlState):
    """Everything that can be turned, and the run that was made of it."""

    task: Task = param("reverse", words(*TASKS))
    model: Model = param("transformer", words(*MODELS))
    """A Transformer, or a recurrent encoder-decoder without attention, which none of the other knobs but the seed
    concerns."""
    layers: int = param(2, whole(LAYERS[0], LAYERS[-1], clamp=True))
    heads: int = param(4, words(*HEADS))
    positions: str = param("sinusoidal", words(*POSITIONS))
    without: tuple[Part, ...] = param((), several(words(*PARTS)))
    """The parts that are switched off."""
    slow: bool = param(False, flag("on"))
    """True for SLOW steps a second, which eyes can follow, instead of as many as it can."""
    seed: int = param(0, whole(0, 999, clamp=True))
    text: str = param("", text(LONGEST), resets=("task",))
    """The visitor's own string; empty for the task's."""
    guess: Shape | Literal[""] = param("", words("", *get_args(Shape)), resets=_OF_RUN)
    """The picture that the visitor thinks the attention will turn into; empty without a guess."""
    expected: Expected | Literal[""] = param("", words("", *get_args(Expected)), resets=_OF_RUN)
    """The end that the visitor expects of the run; empty where it was not asked."""
    run: str = param("", Form(_read_run), nonsense="The link asks for the run “{text}”, which {expected}.")

    @property
    def string(self) -> str:
        """Returns the string that is followed."""
        return self.text or STRINGS[self.task]

    @property
    def plan(self) -> Plan:
        """Returns the plan that the Train page would have for the same settings."""
        if self.model == "rnn":
            return replace(recommended(self.task, self.model), seed=self.seed, sentences=(self.string,))
        changed = {"n_encoder_layers": self.layers, "n_decoder_layers": self.layers, "n_heads": self.heads}
        plan = replace(recommended(self.task), **changed, positions=self.positions, seed=self.seed)
        for part in self.without:
            plan = plan.with_part(part, present=False)
        return replace(plan, sentences=(self.string,))


PAGE = UrlPart(Knobs, key="playground-page")
