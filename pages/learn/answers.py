"""The answers to the steps of lessons, remembered, and compared with what was predicted."""

from pages.learn.lesson import Drawing, Lesson, Step, Truth
from pages.shared.bench.shared_bench import BENCH
from pages.shared.cache import cached


@cached(max_entries=64, shared=True)
def get_truth(slug: str, step: int, _lesson: Lesson) -> Truth:
    """Returns the answer to a step of a lesson as the model gives it."""
    return _lesson.steps[step].truth(BENCH)


def compared(step: Step, answer: float, truth: Truth) -> tuple[bool, str]:
    """Tells whether a prediction is right, and says it beside the answer, in Markdown."""
    scale, verb = step.answer, "drew" if isinstance(step.answer, Drawing) else "said"
    if scale.is_right(answer, truth.value):
        return True, f"You {verb} **{scale.write(answer)}**, and that is right. {truth.told}"
    return False, f"You {verb} **{scale.write(answer)}**. The answer is **{scale.write(truth.value)}**. {truth.told}"
