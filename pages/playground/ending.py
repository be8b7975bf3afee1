"""What a finished run of the Playground came to, in a sentence of its own measurements, and what to try next."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pages.playground.choices import Expected, Knobs
from pages.playground.guess import is_asked, said_of
from pages.playground.trials import TRIALS, WHOLE, Trial, after, is_whole, trial_of
from pages.shared.wording import listed
from pages.training.live.results import FAILED, LEARNED, Result, result_of
from pages.training.live.settings import OF_LETTERS, SHORT, TASKS, WHY, Task
from transformer.figures.labels import SPECIAL_TOKENS
from transformer.runs.live.watched import LiveOutput
from transformer.runs.run_folder import Run

_TOO_LOW = 0.2
"""Nats per token: a loss at which it would write many of these short strings right, unless it saw the answers."""


@dataclass(frozen=True)
class Next:
    """The next experiment: what is announced, and the buttons with the knobs that they turn."""

    said: str
    buttons: dict[str, dict[str, Any]]


def ending(run: Run, knobs: Knobs, output: LiveOutput | None = None) -> tuple[str, Next]:
    """Returns what happened, and what to try next; `output` is the visitor's string with the last weights."""
    result = result_of(run)
    if result is None:
        return "It was stopped before it was tested once.", Next("", {})
    said = _learned(result, knobs, output) if result.has_learned else _failed(result, knobs, output)
    return said + _expectation(knobs.expected, result), _next(knobs, result)


def _learned(result: Result, knobs: Knobs, output: LiveOutput | None) -> str:
    first = result.first_right
    said = f"**It learned to {TASKS[knobs.task]}**: {result.share} right"
    said += f", over {100 * LEARNED:.0f} % for the first time at step {first:,}." if first else "."
    if (trial := trial_of(knobs)) is not None and trial.enough:
        return f"{said} {trial.enough}"
    if knobs.without:
        return f"{said} It did without {_names(knobs)}: not every part is needed for every task."
    if output is not None and output.weights.size and is_asked(knobs):
        return f"{said} {said_of(output, knobs.guess)}".strip()
    return said


def _failed(result: Result, knobs: Knobs, output: LiveOutput | None) -> str:
    said = "**It did not learn it.**" if result.exact < FAILED else "**It learned it in part.**"
    if result.exact < FAILED and result.loss < _TOO_LOW:
        said = f"**Its loss fell to {result.loss:.2g}, yet it did not learn it.** Writing by itself, after"
        said += f" {result.steps:,} steps, it gets {result.share} right."
    else:
        said += f" After {result.steps:,} steps it gets {result.share} right,"
        said += f" with a loss of {result.loss:.2g} nats per token."
    if output is not None and knobs.task in OF_LETTERS:
        said += f" {_own(knobs.task, output)}"
    if (trial := trial_of(knobs)) is not None:
        return f"{said} {trial.why}"
    if len(knobs.without) == 1:
        return f"{said} {WHY[knobs.without[0]]}"
    return f"{said} It had to do without {_names(knobs)}." if knobs.without else said


def _own(task: Task, output: LiveOutput) -> str:
    """Returns what it made of the visitor's own letters."""
    given, written = _letters(output.source), _letters(output.tokens)
    right = {"reverse": given[::-1], "copy": given}.get(task, sorted(given))
    if written == right:
        return "Your own input comes out right."
    if sorted(written) == sorted(given):
        return "Your own input comes out with the right letters in the wrong order."
    kept = sum(min(written.count(letter), given.count(letter)) for letter in set(given))
    placed = sum(one == other for one, other in zip(written, right, strict=False))
    where = "in the right place" if kept == placed > 0 else f"{placed} of them in the right place"
    return f"It writes {kept} of your {len(given)} letters{f', {where}' if kept else ''}."


def _letters(tokens: Sequence[str]) -> list[str]:
    return [token for token in tokens if token not in SPECIAL_TOKENS]


def _expectation(expected: Expected | Literal[""], result: Result) -> str:
    if not expected:
        return ""
    return " As you expected." if (expected == "learns") == result.has_learned else " You expected the opposite."


def _names(knobs: Knobs) -> str:
    return listed([SHORT[part] for part in knobs.without])


def _next(knobs: Knobs, result: Result) -> Next:
    """Returns the experiment after this one; before the first, what leads to a success."""
    trial = trial_of(knobs)
    if trial is not None:
        following = after(trial)
        return _only("Now learn to sort", WHOLE | {"task": "sort"}) if following is None else _asked(following)
    if not is_whole(knobs):
        return _only("Put everything back", WHOLE)
    if not result.has_learned:
        return _only("Try another seed", {"seed": (knobs.seed + 1) % 1000})
    return _asked(TRIALS[0])


def _asked(trial: Trial) -> Next:
    answers: dict[str, Expected] = {"It will": "learns", "It won't": "fails"}
    buttons = {label: trial.knobs | {"expected": expected} for label, expected in answers.items()}
    return Next(f"{trial.offer}: will it still learn?", buttons)


def _only(label: str, knobs: dict[str, Any]) -> Next:
    return Next("", {label: knobs})
