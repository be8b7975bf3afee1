"""The answers to the steps of lessons, remembered, and compared with what was predicted."""

from pages.learn.lesson import Drawing, Estimate, Lesson, Step, Truth
from pages.shared.bench.shared_bench import BENCH
from pages.shared.cache import cached
from pages.shared.texts.catalogue import Texts

TEXTS = Texts("learn")


@cached(max_entries=64, shared=True)
def get_truth(slug: str, step: int, _lesson: Lesson) -> Truth:
    """Returns the answer to a step of a lesson as the model gives it."""
    return _lesson.steps[step].truth(BENCH)


def compared(step: Step, answer: float, truth: Truth) -> tuple[bool, str]:
    """Tells whether a prediction is right, and says it with the answer, in Markdown."""
    scale = step.answer
    done = "drawn" if isinstance(scale, Drawing) else "said"
    guess, right = scale.write(answer), scale.write(truth.value)
    if scale.is_right(answer, truth.value):
        if isinstance(scale, Estimate) and answer != round(truth.value):
            return True, TEXTS("answer.said_close", guess=guess, right=right)
        return True, TEXTS(f"answer.{done}_right", guess=guess)
    return False, TEXTS(f"answer.{done}_wrong", guess=guess, right=right)
