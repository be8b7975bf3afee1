"""Lesson 8: the loss, what it can reach, and what training needs."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from pages.learn.lesson import TEXTS, Control, Estimate, Lesson, Options, Part, Scene, Settings, Step, Truth
from pages.shared.bench.bench import Bench
from pages.shared.bench.courses import course_of, first_layer_peak
from pages.shared.bench.strings import backwards, held_out, letters, marked, percent
from pages.shared.texts.phrases import Phrases
from transformer.analysis.training.doctor import diagnose
from transformer.analysis.training.progress import progress_of
from transformer.checkpoints.store import history
from transformer.views.steps.candidates import StepCandidates
from transformer.views.subjects import Decoding, Runs
from transformer.views.training.runs import ComparedRuns, RunCurves

FINDINGS = Phrases("library.findings")
MODEL, TEXT = "reverse", letters(6)
WITHOUT = ("reverse-without-norm", "reverse-without-positions", "reverse-without-residual")
"""Models of the same size and training, each without one part."""
_PART = Control(name="part", values=WITHOUT)
BY_ADAM, AT_ONCE, TOO_FAST = "reverse-adamw", "reverse-without-warmup", "reverse-diverged"
"""Models trained by the paper's optimiser: with warm-up, at the full rate from the first step, at too high a rate."""
_COURSE = Control(name="course", values=("training loss", "learning rate", "gradient norm", "exact match"))


def _folder(bench: Bench, name: str) -> Path:
    return bench.lab(name).checkpoint.folder


def _first_loss_truth(bench: Bench) -> Truth:
    loss = float(progress_of(_folder(bench, MODEL)).train["loss"][0])
    tokens = bench.lab(MODEL).tokenizer.vocab_size
    return Truth(
        0 if loss < 2 else 1 if loss < 6 else 2,
        TEXTS("learning.before.told", loss=loss, tokens=tokens, guess=math.log(tokens)),
    )


def _curves_scene(bench: Bench, settings: Settings) -> Scene:
    return Scene(parts=(Part(Runs((_folder(bench, MODEL),)), RunCurves()),))


def _smoothing_truth(bench: Bench) -> Truth:
    pairs = held_out(6)[:40]
    sure = np.concatenate([bench.seen(MODEL, source).probabilities for source, _ in pairs])
    smoothing = bench.lab(MODEL).checkpoint.settings.train.label_smoothing
    return Truth(
        100 * float(sure.mean()),
        TEXTS(
            "learning.sure.told",
            sure=100 * sure.mean(),
            n=len(sure),
            right=100 * (1 - smoothing),
            smoothing=100 * smoothing,
        ),
    )


def _smoothing_scene(bench: Bench, settings: Settings) -> Scene:
    subject = Decoding(bench.lab(MODEL), bench.seen(MODEL, TEXT))
    return Scene(parts=(Part(subject, StepCandidates(step=int(settings["step"]))),))


def _parts_truth(bench: Bench) -> Truth:
    shares = [percent(bench.right(name, held_out(6))) for name in WITHOUT]
    parts = _PART.options.values()
    told = "; ".join(TEXTS("without_part", part=part, share=share) for part, share in zip(parts, shares, strict=True))
    whole = percent(bench.right(MODEL, held_out(6)))
    return Truth(int(np.argmax(shares)), TEXTS("learning.left-out.told", told=told, whole=whole))


def _parts_scene(bench: Bench, settings: Settings) -> Scene:
    name = settings["part"]
    text = bench.seen(name, TEXT).translation
    folders = (_folder(bench, MODEL), _folder(bench, name))
    said = TEXTS("reads_and_writes", model=name, text=TEXT, written=marked(text, backwards(TEXT)))
    return Scene((said,), (Part(Runs(folders), ComparedRuns(quantity="exact match")),))


def _warm_up_truth(bench: Bench) -> Truth:
    whole, lacking = course_of(BY_ADAM), course_of(AT_ONCE)
    shares = [percent(bench.right(name, held_out(6))) for name in (BY_ADAM, AT_ONCE)]
    told = TEXTS(
        "learning.warm-up.told",
        lacking=shares[1],
        whole=shares[0],
        peak=first_layer_peak(bench, AT_ONCE, TEXT),
        soft=first_layer_peak(bench, BY_ADAM, TEXT),
        gradient=lacking.gradient,
        normal=whole.gradient,
    )
    return Truth(2 if shares[1] < 10 else 1 if shares[1] < shares[0] else 0, told)


def _courses_scene(name: str) -> Callable[[Bench, Settings], Scene]:
    """Returns the scene of two trainings: as it should be, and the one named, with what the Doctor finds in that."""

    def scene(bench: Bench, settings: Settings) -> Scene:
        folder = _folder(bench, name)
        its = bench.lab(name).checkpoint.settings
        found = diagnose(history(folder), its.model, its.train, over=True).findings[0]
        line = TEXTS("learning.doctor", model=name, found=FINDINGS(found.sentence), advice=FINDINGS(found.advice))
        runs = Runs((_folder(bench, BY_ADAM), folder))
        return Scene((line,), (Part(runs, ComparedRuns(quantity=settings["course"])),))

    return scene


def _diverged_truth(bench: Bench) -> Truth:
    course = course_of(TOO_FAST)
    first, low, high = course.first, course.lowest, course.highest
    told = TEXTS(
        "learning.diverged.told",
        first=first.loss,
        low=low.loss,
        low_step=low.step,
        low_rate=low.rate,
        high=high.loss,
        high_step=high.step,
        high_rate=high.rate,
        end=course.end,
        tokens=bench.lab(TOO_FAST).tokenizer.vocab_size,
        guess=math.log(bench.lab(TOO_FAST).tokenizer.vocab_size),
        right=percent(bench.right(TOO_FAST, held_out(6))),
    )
    return Truth(2 if high.loss > 2 * first.loss else 1 if high.loss > 0.9 * first.loss else 0, told)


LEARNING = Lesson(
    slug="learning",
    minutes=9,
    page="playground",
    steps=(
        Step(
            name="learning.before",
            answer=Options("learning.before"),
            truth=_first_loss_truth,
            expects=(1, 1),
            scene=_curves_scene,
        ),
        Step(
            name="learning.sure",
            answer=Estimate(least=0, most=100, unit=" %", close=4),
            truth=_smoothing_truth,
            expects=(85, 95),
            controls=(Control(name="step", values=tuple(map(str, range(6))), texts="letter"),),
            scene=_smoothing_scene,
        ),
        Step(
            name="learning.left-out",
            answer=Options("learning.left-out"),
            truth=_parts_truth,
            expects=(0, 0),
            controls=(_PART,),
            scene=_parts_scene,
        ),
        Step(
            name="learning.warm-up",
            answer=Options("learning.warm-up"),
            truth=_warm_up_truth,
            expects=(2, 2),
            controls=(_COURSE,),
            scene=_courses_scene(AT_ONCE),
        ),
        Step(
            name="learning.diverged",
            answer=Options("learning.diverged"),
            truth=_diverged_truth,
            expects=(2, 2),
            controls=(_COURSE,),
            scene=_courses_scene(TOO_FAST),
        ),
    ),
)
