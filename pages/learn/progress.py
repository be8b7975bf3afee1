"""A learner's progress: the answer given to each step of each lesson, as it travels in a link and lies in a browser.

`why-attention.62.n.0_masks.3` reads: of lesson why-attention, step 1 was answered with 62, step 2 not yet, step 3 with
option 0; of lesson masks, step 1 with 3.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pages.learn.lesson import Lesson

_LESSON = re.compile(r"([a-z-]+)((?:\.(?:\d{1,9}|n))+)", re.ASCII)
_NONE = "n"
LONGEST = 600
"""Characters of a text that is looked at."""


@dataclass(frozen=True)
class Progress:
    """The answers given so far, as numbers, by lesson and step; None where there is none."""

    answers: Mapping[str, tuple[int | None, ...]] = field(default_factory=dict)

    def answer(self, lesson: Lesson, step: int) -> int | None:
        """Returns the answer to a step, None before it was given."""
        given = self.answers.get(lesson.slug, ())
        return given[step] if step < len(given) else None

    def done(self, lesson: Lesson) -> int:
        """Returns the number of the lesson's steps that were answered."""
        return sum(answer is not None for answer in self.answers.get(lesson.slug, ()))

    def next_step(self, lesson: Lesson) -> int:
        """Returns the first step without an answer; the first of all if every one has one."""
        open_ = [i for i in range(len(lesson.steps)) if self.answer(lesson, i) is None]
        return open_[0] if open_ else 0

    def answered(self, lesson: Lesson, step: int, answer: int) -> "Progress":
        """Returns the progress with one more answer."""
        given = [self.answer(lesson, i) for i in range(len(lesson.steps))]
        given[step] = answer
        return replace(self, answers={**self.answers, lesson.slug: tuple(given)})

    def without(self, lesson: Lesson) -> "Progress":
        """Returns the progress without any answer to a lesson."""
        return replace(self, answers={slug: given for slug, given in self.answers.items() if slug != lesson.slug})

    def joined(self, other: "Progress") -> "Progress":
        """Returns both together; where both answer a step, this one counts."""
        found = dict(other.answers)
        for slug, given in self.answers.items():
            theirs = found.get(slug, ())
            longer = max(len(given), len(theirs))
            pairs = zip(_padded(given, longer), _padded(theirs, longer), strict=True)
            found[slug] = tuple(theirs if own is None else own for own, theirs in pairs)
        return Progress(found)

    def __str__(self) -> str:
        said = (
            f"{slug}.{'.'.join(_NONE if answer is None else str(answer) for answer in given)}"
            for slug, given in self.answers.items()
            if any(answer is not None for answer in given)
        )
        return "_".join(said)


def read_progress(text: str, lessons: Sequence[Lesson]) -> tuple[Progress, bool]:
    """Returns the progress that a text says, as far as it makes sense, and whether all of it did."""
    found: dict[str, tuple[int | None, ...]] = {}
    by_slug = {lesson.slug: lesson for lesson in lessons}
    whole = len(text) <= LONGEST
    for part in filter(None, text[:LONGEST].split("_")):
        match = _LESSON.fullmatch(part)
        lesson = by_slug.get(match[1]) if match else None
        said = match[2].split(".")[1:] if match else []
        if lesson is None or len(said) > len(lesson.steps):
            whole = False
            continue
        read = [lesson.steps[i].answer.read(one) for i, one in enumerate(said)]
        whole &= all(one == _NONE or answer is not None for one, answer in zip(said, read, strict=True))
        found[lesson.slug] = tuple(read)
    return Progress(found), whole


def _padded(given: Sequence[int | None], length: int) -> tuple[int | None, ...]:
    return (*given, *[None] * (length - len(given)))
