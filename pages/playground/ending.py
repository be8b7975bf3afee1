"""What a finished run of the Playground came to, in a sentence of its own measurements, and what to try next."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pages.playground.choices import Expected, Knobs
from pages.playground.guess import is_asked, said_of
from pages.playground.reasons import reason
from pages.playground.trials import TRIALS, WHOLE, Trial, after, is_whole, trial_of
from pages.shared.texts.catalogue import Texts
from pages.shared.wording import listed
from pages.training.live.results import FAILED, LEARNED, Result, result_of
from pages.training.live.settings import OF_LETTERS, Task
from pages.training.live.settings import TEXTS as KNOBS
from transformer.figures.labels import SPECIAL_TOKENS
from transformer.runs.live.watched import LiveOutput
from transformer.runs.run_folder import Run

TEXTS = Texts("playground.ending")
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
        return TEXTS("untested"), Next("", {})
    said = _learned(result, knobs, output) if result.has_learned else _failed(run, result, knobs, output)
    return said, _next(knobs, result)


def _learned(result: Result, knobs: Knobs, output: LiveOutput | None) -> str:
    first = result.first_right
    task = KNOBS(f"tasks.{knobs.task}")
    said = TEXTS("learned", task=task, share=result.share)
    if first:
        said = TEXTS("learned_at", task=task, share=result.share, least=100 * LEARNED, step=first)
    said += _expectation(knobs.expected, result)
    if (trial := trial_of(knobs)) is not None and trial.enough:
        return f"{said} {trial.enough}"
    if knobs.without:
        return f"{said} {TEXTS('did_without', parts=listed([KNOBS(f'short.{part}') for part in knobs.without]))}"
    if output is not None and output.weights.size and is_asked(knobs):
        return f"{said} {said_of(output, knobs.guess)}".strip()
    return said


def _failed(run: Run, result: Result, knobs: Knobs, output: LiveOutput | None) -> str:
    kind = "in_part" if result.exact >= FAILED else "cheated" if result.loss < _TOO_LOW else "plain"
    expected = _expectation(knobs.expected, result)
    said = TEXTS(f"failed.{kind}", steps=result.steps, share=result.share, loss=result.loss, expected=expected)
    if output is not None and knobs.task in OF_LETTERS:
        said += f" {_own(knobs.task, output)}"
    return f"{said} {reason(run, knobs, output)}".strip()


def _own(task: Task, output: LiveOutput) -> str:
    """Returns what it made of the visitor's own letters."""
    given, written = _letters(output.source), _letters(output.tokens)
    right = {"reverse": given[::-1], "copy": given}.get(task, sorted(given))
    if written == right:
        return TEXTS("own.right")
    if sorted(written) == sorted(given):
        return TEXTS("own.shuffled")
    kept = sum(min(written.count(letter), given.count(letter)) for letter in set(given))
    placed = sum(one == other for one, other in zip(written, right, strict=False))
    where = "none" if not kept else "placed" if kept == placed else "some"
    return TEXTS(f"own.{where}", kept=kept, n=len(given), placed=placed)


def _letters(tokens: Sequence[str]) -> list[str]:
    return [token for token in tokens if token not in SPECIAL_TOKENS]


def _expectation(expected: Expected | Literal[""], result: Result) -> str:
    if not expected:
        return ""
    as_expected = (expected == "learns") == result.has_learned
    return f" {TEXTS('expected') if as_expected else TEXTS('opposite')}"


def _next(knobs: Knobs, result: Result) -> Next:
    """Returns the experiment after this one; before the first, what leads to a success."""
    trial = trial_of(knobs)
    if trial is not None:
        following = after(trial)
        return _only(TEXTS("sort"), WHOLE | {"task": "sort"}) if following is None else _asked(following)
    if not is_whole(knobs):
        return _only(TEXTS("put_back"), WHOLE)
    if not result.has_learned:
        return _only(TEXTS("other_seed"), {"seed": (knobs.seed + 1) % 1000})
    return _asked(TRIALS[0])


def _asked(trial: Trial) -> Next:
    answers: dict[str, Expected] = {TEXTS("will"): "learns", TEXTS("will_not"): "fails"}
    buttons = {label: trial.knobs | {"expected": expected} for label, expected in answers.items()}
    return Next(TEXTS("will_it", offer=trial.offer), buttons)


def _only(label: str, knobs: dict[str, Any]) -> Next:
    return Next("", {label: knobs})
