"""The answers to the steps of lessons, remembered, and compared with what was predicted."""

from pages.learn.lesson import Lesson, Step, Truth
from pages.shared.bench.shared_bench import BENCH
from pages.shared.cache import cached


@cached(max_entries=64, shared=True)
def get_truth(slug: str, step: int, _lesson: Lesson) -> Truth:
    """Returns the answer to a step of a lesson as the model gives it."""
    return _lesson.steps[step].truth(BENCH)


def compared(step: Step, answer: float, truth: Truth) -> tuple[bool, str]:
    """Tells whether a prediction is right, and says it beside the answer, in Markdown."""
    scale = step.answer
    if scale.is_right(answer, truth.value):
        return True, f"You said **{scale.write(answer)}**, and that is right. {truth.told}"
    return False, f"You said **{scale.write(answer)}**. The answer is **{scale.write(truth.value)}**. {truth.told}"
