"""The parts of a lesson, as plain data: a lesson has steps, and each step asks, shows, compares and concludes.

No Streamlit here: a test takes every lesson with models that it loads itself, and finds each answer again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pages.shared.bench.bench import Bench
from pages.shared.texts.catalogue import Texts
from transformer.views.view import Subject, View

TEXTS = Texts("lessons")
Settings = Mapping[str, str]
"""The option or value of each control of a step, by the control's name."""


@dataclass(frozen=True)
class Options:
    """A question with a few answers."""

    step: str
    """The name of its step, under which the catalogue has the answers."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Returns the answers to choose from."""
        return TEXTS.several(f"{self.step}.answers")

    def read(self, text: str) -> int | None:
        """Returns the index that a link or a browser says; None if there is no such answer."""
        return int(text) if text.isdecimal() and int(text) < len(self.texts) else None

    def write(self, guess: float) -> str:
        """Returns the text of an answer."""
        return self.texts[int(guess)]

    def is_right(self, guess: float, truth: float) -> bool:
        """Tells whether an answer is the right one."""
        return guess == truth


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A question answered by a number on a scale of whole numbers."""

    least: int
    most: int
    unit: str = ""
    close: float
    """A guess at most this far away counts as right."""
    step: int = 1

    def read(self, text: str) -> int | None:
        """Returns the number that a link or a browser says; None if it is not on the scale."""
        return int(text) if text.isdecimal() and self.least <= int(text) <= self.most else None

    def write(self, guess: float) -> str:
        """Returns a number with its unit."""
        return f"{guess:.3g}{self.unit}"

    def is_right(self, guess: float, truth: float) -> bool:
        """Tells whether a guess is close enough."""
        return abs(guess - truth) <= self.close


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A question answered in an empty matrix: one place in each row. An answer has a digit for each row, the place
    counted from 1, so that it is a number as all answers are."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    """At most nine."""
    close: int = 0
    """A guess with at most so many rows wrong counts as right."""

    def read(self, text: str) -> int | None:
        """Returns the number that a link or a browser says; None if it is no such drawing."""
        places = [int(digit) for digit in text] if text.isascii() and text.isdecimal() else []
        fits = len(places) == len(self.rows) and all(1 <= place <= len(self.columns) for place in places)
        return int(text) if fits else None

    def number(self, places: Sequence[int]) -> int:
        """Returns the answer that marks these columns, counted from 0."""
        return int("".join(str(place + 1) for place in places))

    def places(self, guess: float) -> tuple[int, ...]:
        """Returns the column that an answer marks in each row, counted from 0."""
        return tuple(int(digit) - 1 for digit in f"{guess:.0f}")

    def write(self, guess: float) -> str:
        """Returns the columns of an answer by their names."""
        return "\u00a0".join(self.columns[place] for place in self.places(guess))

    def is_right(self, guess: float, truth: float) -> bool:
        """Tells whether a drawing is the right one but for a few rows."""
        pairs = zip(self.places(guess), self.places(truth), strict=True)
        return sum(one != other for one, other in pairs) <= self.close


Answer = Options | Estimate | Drawing


@dataclass(frozen=True)
class Truth:
    """The answer to a question as a model gives it."""

    value: float
    """The index of the right option, the number, or that of the drawing."""
    told: str
    """The measurement, in a sentence or two of Markdown."""


@dataclass(frozen=True, kw_only=True)
class Control:
    """Something to change in a live figure; its first value is how the figure opens."""

    name: str
    values: tuple[str, ...] = ()
    """The values to choose from; none where the figure itself is dragged."""
    default: str = ""
    """The value chosen at first, if that is not the first one."""
    texts: str = ""
    """The name of its texts in the catalogue, if that is not its own."""
    takes: Callable[[str], bool] = bool
    """Tells whether a text makes sense, where there are no values to choose from."""

    @property
    def label(self) -> str:
        """Returns what stands above it."""
        return self._texts["label"]

    @property
    def options(self) -> dict[str, str]:
        """Returns each value with the words for it; a value without words stands for itself."""
        return {value: self._texts.get(value, value) for value in self.values}

    @property
    def first(self) -> str:
        """Returns what the control says at first."""
        return self.default or next(iter(self.values), "")

    @property
    def _texts(self) -> Mapping[str, str]:
        return TEXTS.table(f"controls.{self.texts or self.name}")


@dataclass(frozen=True)
class Part:
    """One figure of a scene: a view of a subject."""

    subject: Subject
    view: View
    title: str = ""


@dataclass(frozen=True)
class Scene:
    """The sentences and figures of a step under its settings."""

    lines: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    beside: bool = False
    """True if the figures are small and stand side by side, to be compared."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step: read, predict, do, compare, keep. Its texts are in the catalogue."""

    name: str
    """The lesson's slug and a name of its own, as the catalogue has them: "masks.lifted"."""
    answer: Answer
    truth: Callable[[Bench], Truth]
    """Finds the answer with the model, there and then."""
    expects: tuple[float, float]
    """The answers, from the least to the most, for which the step's sentences are true: a test asks the model."""
    scene: Callable[[Bench, Settings], Scene]
    controls: tuple[Control, ...] = ()

    @property
    def title(self) -> str:
        """Returns its heading."""
        return TEXTS(f"{self.name}.title")

    @property
    def text(self) -> str:
        """Returns the knowledge that the prediction needs, in Markdown."""
        return TEXTS(f"{self.name}.text")

    @property
    def question(self) -> str:
        """Returns what is to be predicted."""
        return TEXTS(f"{self.name}.question")

    @property
    def do(self) -> str:
        """Returns a suggestion for the live figure."""
        return TEXTS(f"{self.name}.do")

    @property
    def keep(self) -> str:
        """Returns one sentence to keep."""
        return TEXTS(f"{self.name}.keep")

    def settled(self, given: Settings) -> dict[str, str]:
        """Returns the settings with the first option where none, or one that does not exist, is given."""
        return {control.name: _settled(control, given.get(control.name, "")) for control in self.controls}


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """A lesson: some steps that answer one question. Its texts are in the catalogue."""

    slug: str
    """Its name in links and in the catalogue."""
    minutes: int
    steps: tuple[Step, ...]
    page: str = ""
    """The folder of the page on which to go on."""
    view: Mapping[str, str] | None = None
    """Query parameters for that page."""

    @property
    def title(self) -> str:
        """Returns its heading."""
        return TEXTS(f"{self.slug}.title")

    @property
    def question(self) -> str:
        """Returns the question that it answers."""
        return TEXTS(f"{self.slug}.question")

    @property
    def onwards(self) -> str:
        """Returns what to do on the page where one goes on."""
        return TEXTS(f"{self.slug}.onwards")


def _settled(control: Control, text: str) -> str:
    known = text in control.values if control.values else control.takes(text)
    return text if known else control.first
