"""The state of the Lessons page, kept in the URL: the lesson, the step, its controls, and the answers given so far."""

from dataclasses import dataclass

from pages.learn.lesson import Lesson, Step
from pages.learn.lessons import LESSONS
from pages.learn.progress import LONGEST, Progress, read_progress
from pages.shared.url.page_state import UrlPart
from pages.shared.url.url_state import TEXTS, Form, Refused, UrlState, flag, param, text, whole, words

SUMMARY = "summary"
"""Stands in the place of a lesson: all that was found."""
BY_SLUG = {lesson.slug: lesson for lesson in LESSONS}
MAX_STEPS = max(len(lesson.steps) for lesson in LESSONS)
_LONGEST_SETTING = 120


def _read(said: str) -> Progress:
    progress, whole_ = read_progress(said, LESSONS)
    if not whole_:
        raise Refused(TEXTS("expected.answers"), progress)
    return progress


def _steps(choices: "Choices") -> range:
    shown = BY_SLUG.get(choices.lesson)
    return range(1, (len(shown.steps) if shown else MAX_STEPS) + 1)


def _settings(choices: "Choices") -> list[str]:
    """Returns those settings of the link that the step has."""
    if choices.shown is None:
        return []
    lesson, index = choices.shown
    found = []
    for setting in choices.settings:
        name, _, value = setting.partition("=")
        if lesson.steps[index].settled({name: value}).get(name) == value:
            found.append(setting)
    return found


@dataclass(frozen=True, kw_only=True)
class Choices(UrlState):
    """The learner's place and answers."""

    lesson: str = param("", words("", *BY_SLUG, SUMMARY))
    step: int = param(1, whole(1, 9_999), among=_steps, nearest=True, resets=("lesson",))
    """Counted from 1, as it is shown."""
    settings: tuple[str, ...] = param(
        (),
        text(_LONGEST_SETTING),
        name="set",
        many=tuple,
        resets=("lesson", "step"),
        among=_settings,
        absent="settings",
    )
    """The choices of the step's controls, as "name=value"."""
    locked: bool = param(False, flag("yes"), resets=("lesson", "step"))
    """True if the controls stay as the link says: a teacher chose them."""
    progress: Progress = param(Progress(), Form(_read, lambda progress: str(progress)[:LONGEST]), name="answers")

    @property
    def shown(self) -> tuple[Lesson, int] | None:
        """Returns the lesson and the index of its step; None for the list of lessons and the summary."""
        lesson = BY_SLUG.get(self.lesson)
        return None if lesson is None else (lesson, self.step - 1)

    def settled(self, step: Step) -> dict[str, str]:
        """Returns what each control of a step says."""
        given = dict(setting.partition("=")[::2] for setting in self.settings)
        return step.settled(given)


PAGE = UrlPart(Choices, key="learn-page")


def set_control(name: str, value: str) -> None:
    """Takes over what a control says; for callbacks."""
    others = tuple(setting for setting in PAGE.now.settings if setting.partition("=")[0] != name)
    PAGE.change(settings=(*others, f"{name}={value}"))


def open_step(lesson: Lesson, step: int) -> None:
    """Opens a step of a lesson, counted from 0; for callbacks."""
    if PAGE.now.lesson != lesson.slug:
        PAGE.change(lesson=lesson.slug)
    PAGE.change(step=step + 1)


def open_list() -> None:
    """Opens the list of lessons; for callbacks."""
    PAGE.change(lesson="")


def open_summary() -> None:
    """Opens the summary of what was found; for callbacks."""
    PAGE.change(lesson=SUMMARY)


def give_answer(lesson: Lesson, step: int, answer: int) -> None:
    """Takes down the learner's answer to a step; for callbacks."""
    PAGE.change(progress=PAGE.now.progress.answered(lesson, step, answer))


def start_again(lesson: Lesson) -> None:
    """Forgets the answers to a lesson and opens its first step; for callbacks."""
    PAGE.change(progress=PAGE.now.progress.without(lesson))
    open_step(lesson, 0)
