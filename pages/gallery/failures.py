"""The models that lack a part: what the part is for, and what goes wrong without it, as far as anything does.

No Streamlit here: a test measures every sentence again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pages.gallery.causes import copied, found_by_one_head, growth, guessing, likeness, same_in_any_order, softmax_slope
from pages.shared.bench.bench import Bench, Pairs
from pages.shared.bench.courses import course_of, first_layer_peak
from transformer.analysis.training.progress import progress_of
from transformer.checkpoints.settings import find_checkpoint
from transformer.data.corpora import load_corpus

WHOLE = "reverse"
"""The model that has all parts, trained with the same settings and the same data."""
BY_ADAM = "reverse-adamw"
"""The same, trained by the paper's optimiser: beside it stand those whose fault is in the learning rate. Muon, which
trained the others, forgives that: without warm-up it learned as well."""
MANY = 200
"""The validation strings on which all are tested: those of the evaluations while they trained."""
LEARNED = 0.95
"""The share of right strings from which on a model has learned to reverse."""


@dataclass(frozen=True)
class Failure:
    """A model that was trained without a part."""

    model: str
    title: str
    part: str
    """The purpose of the part, with the paper's section."""
    symptom: Callable[[Bench], str]
    """Measures what goes wrong, and returns it in a sentence."""
    fails: bool
    """False if nothing goes wrong at this size, which the symptom then says; tested."""
    whole: str = WHOLE
    """The model with all parts beside which it stands."""
    curve: str = "exact match"
    """The quantity whose course shows best what goes wrong."""


@cache
def tested() -> Pairs:
    """Returns the strings on which all models are tested, none of which they trained on."""
    return tuple((pair.source, pair.target) for pair in load_corpus(WHOLE).validation[:MANY])


def right(bench: Bench, model: str) -> int:
    """Returns the number of tested strings that a model writes backwards."""
    return sum(bench.right(model, tested()))


def folders(failure: Failure) -> tuple[Path, ...]:
    """Returns the folders of the whole model and of the one that lacks a part."""
    return find_checkpoint(failure.whole), find_checkpoint(failure.model)


def _losses(failure: str) -> tuple[float, float]:
    """Returns the validation loss at the end, teacher-forced: of the whole model, and without the part."""
    whole, lacking = (progress_of(find_checkpoint(name)).last("validation", "loss") for name in (WHOLE, failure))
    if whole is None or lacking is None:
        raise ValueError(f"{failure} was never evaluated")
    return whole, lacking


def _no_mask(bench: Bench) -> str:
    model = "reverse-without-mask"
    whole, lacking = _losses(model)
    written = bench.written(model, tested())
    shown = [100 * copied(bench, name, tested()) for name in (WHOLE, model)]
    return (
        f"**It learned to cheat.** While it trained it could see the letter that it was to write, and read it off: "
        f"shown another string's letters, it predicts {shown[1]:.0f} % of them (the whole model {shown[0]:.0f} %). So "
        f"its loss, {lacking:.3f}, is as low as the whole model's {whole:.3f}. Writing alone there is nothing to read "
        f"off: of {MANY} strings it gets {right(bench, model)} right, and leaves {written.count('')} of them empty."
    )


def _no_positions(bench: Bench) -> str:
    model = "reverse-without-positions"
    written = bench.written(model, tested())
    pairs = zip(written, tested(), strict=True)
    letters = sum(sorted(text.split()) == sorted(target.split()) for text, (_, target) in pairs)
    same = [same_in_any_order(bench, name, tested()) for name in (WHOLE, model)]
    return (
        f"**The right letters in the wrong order.** Of {MANY} outputs {letters} hold exactly the letters of the "
        f"string, but only {right(bench, model)} have them in the right order: without positions the encoder reads a "
        f"set, not a sequence. With the letters in reverse order it writes the same for {same[1]} of {MANY} strings "
        f"(the whole model for {same[0]}: they read the same both ways)."
    )


def _no_scaling(bench: Bench) -> str:
    model = "reverse-without-scaling"
    whole, lacking = (softmax_slope(bench, name, tested()) for name in (WHOLE, model))
    halfway = [progress_of(find_checkpoint(name)).first_right(0.5) for name in (WHOLE, model)]
    larger = bench.lab(model).transformer.config.d_head ** 0.5
    return (
        f"**It learns more slowly, and less.** Before the training its scores are √d_k = {larger:.0f} times "
        f"larger, so the softmax is closer to all or nothing: in the encoder the largest weight of a row is "
        f"{lacking[0]:.2f} on average instead of {whole[0]:.2f}, and the slope of the softmax, the sum of a row's "
        f"w(1 − w), {lacking[1]:.2f} instead of {whole[1]:.2f}. Half of the strings are right after {halfway[1]} steps "
        f"instead of {halfway[0]}, and at the end {right(bench, model)} of {MANY}."
    )


def _no_residual(bench: Bench) -> str:
    model = "reverse-without-residual"
    whole, lacking = _losses(model)
    different = len(set(bench.written(model, tested())))
    alike = {
        fresh: [likeness(bench, name, tested(), fresh=fresh) for name in (WHOLE, model)] for fresh in (True, False)
    }
    return (
        f"**It hardly learns at all.** Each sublayer replaces what comes in instead of adding to it, and attention "
        f"mixes the letters until the encoder's vectors are alike: before the training the cosine of two vectors "
        f"of a string is {alike[True][1]:.2f} on average (whole model: {alike[True][0]:.2f}), after the training "
        f"{alike[False][1]:.2f} (whole model: {alike[False][0]:.2f}). Its loss stays at {lacking:.2f} (whole model: "
        f"{whole:.2f}). For {MANY} different strings it writes only {different} different answers, "
        f"{right(bench, model)} of them right."
    )


def _no_warmup(bench: Bench) -> str:
    model, text = "reverse-without-warmup", "a b c d e f"
    whole, lacking = course_of(BY_ADAM), course_of(model)
    peaks = [first_layer_peak(bench, name, text) for name in (BY_ADAM, model)]
    return (
        f"**It never recovers from its first steps.** Adam's first steps are as long as the rate allows, whatever the "
        f"gradient (Kingma and Ba 2015, section 2.1). Each row of the encoder's first layer has nearly all its weight "
        f"on one letter ({peaks[1]:.2f} on average; with warm-up {peaks[0]:.2f}). Such a softmax lets little gradient "
        f"through: its norm is {lacking.gradient:.2f} in the second half of the training, with warm-up "
        f"{whole.gradient:.2f}. The loss ends at {lacking.end:.2f} instead of {whole.end:.2f}, and "
        f"{right(bench, model)} of {MANY} strings are right, with warm-up {right(bench, BY_ADAM)}."
    )


def _rate_too_high(bench: Bench) -> str:
    model = "reverse-diverged"
    course, empty = course_of(model), bench.written(model, tested()).count("")
    low, high = course.lowest, course.highest
    return (
        f"**Its loss rises instead of falling.** It fell from {course.first.loss:.2f} to {low.loss:.2f} at step "
        f"{low.step}, while the rate was still {low.rate:.2f}, and rose to {high.loss:.0f} at step {high.step}, at a "
        f"rate of {high.rate:.2f}. Only because the rate falls at the end it came back to {course.end:.2f}, about what "
        f"it costs to guess by the letters' frequencies alone ({guessing(tested()):.2f}). {right(bench, model)} of "
        f"{MANY} strings are right, and {empty} of its answers are empty."
    )


def _no_norm(bench: Bench) -> str:
    model = "reverse-without-norm"
    enters, leaves = growth(bench, model, tested())
    layers = bench.lab(model).transformer.config.n_encoder_layers
    return (
        f"Numbers grow on their way through the encoder, but with {layers} layers only from {enters:.2f} to "
        f"{leaves:.2f} (root mean square): so shallow a model does without."
    )


def _one_head(bench: Bench) -> str:
    found = 100 * found_by_one_head(bench, "reverse-with-one-head", tested())
    return (
        f"To reverse, each letter needs to look up only one other: for {found:.1f} % of the letters that it writes, "
        "its last cross-attention has the largest weight on just that letter of the string."
    )


def _nothing_fails(model: str, why: Callable[[Bench], str]) -> Callable[[Bench], str]:
    """Returns the symptom of a model that lacks nothing which this task needs, and why it does not."""

    def told(bench: Bench) -> str:
        steps = [progress_of(find_checkpoint(name)).first_right(LEARNED) for name in (WHOLE, model)]
        when = f"{100 * LEARNED:.0f} % are right after {steps[1]} steps; with it, after {steps[0]}"
        return (
            f"**Nothing goes wrong here.** It gets {right(bench, model)} of {MANY} strings right. {when}. {why(bench)}"
        )

    return told


FAILURES = (
    Failure(
        "reverse-without-mask",
        "No causal mask",
        "The causal mask keeps each position of the decoder from attending to later ones, which do not exist yet when "
        "the model writes (section 3.2.3).",
        _no_mask,
        fails=True,
    ),
    Failure(
        "reverse-without-positions",
        "No positions",
        "Positional encodings tell the model where each token stands; attention itself does not know (section 3.5).",
        _no_positions,
        fails=True,
    ),
    Failure(
        "reverse-without-scaling",
        "No scaling",
        "Scores are divided by √d_k, so that the softmax starts soft and lets gradients through (section 3.2.1).",
        _no_scaling,
        fails=True,
    ),
    Failure(
        "reverse-without-residual",
        "No residual",
        "Residual connections add what came into a sublayer to what comes out of it (section 3.1).",
        _no_residual,
        fails=True,
    ),
    Failure(
        "reverse-without-norm",
        "No layer norm",
        "Layer norm brings every vector to the same scale after each sublayer (section 3.1).",
        _nothing_fails("reverse-without-norm", _no_norm),
        fails=False,
    ),
    Failure(
        "reverse-without-warmup",
        "No warm-up",
        "Warm-up lets the learning rate grow from 0, so that the first steps are short (section 5.3). This model and "
        "the whole one beside it were trained by the paper's optimiser, Adam, for 800 steps at a rate of up to 0.01.",
        _no_warmup,
        fails=True,
        whole=BY_ADAM,
    ),
    Failure(
        "reverse-diverged",
        "Rate too high",
        "The learning rate says how far each step goes (section 5.3). The whole model beside this one learned at up to "
        "0.01; this one's rate grew to 1, and all else was the same.",
        _rate_too_high,
        fails=True,
        whole=BY_ADAM,
        curve="training loss",
    ),
    Failure(
        "reverse-with-one-head",
        "One head",
        "Several heads attend to several things at once (section 3.2.2). This model has a single, wide one.",
        _nothing_fails("reverse-with-one-head", _one_head),
        fails=False,
    ),
)
