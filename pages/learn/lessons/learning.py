"""Lesson 8: the loss, what it can reach, and what training needs."""

import math
from pathlib import Path

import numpy as np

from pages.learn.lesson import Control, Estimate, Lesson, Options, Part, Scene, Settings, Step, Truth
from pages.shared.bench.bench import Bench
from pages.shared.bench.strings import backwards, held_out, letters, marked, percent
from transformer.analysis.training.progress import progress_of
from transformer.views.steps.candidates import StepCandidates
from transformer.views.subjects import Decoding, Runs
from transformer.views.training.runs import ComparedRuns, RunCurves

MODEL, TEXT = "reverse", letters(6)
WITHOUT = {
    "reverse-without-norm": "layer norm",
    "reverse-without-positions": "positions",
    "reverse-without-residual": "residual connections",
}
"""Models of the same size and training, each without one part."""


def _folder(bench: Bench, name: str) -> Path:
    return bench.lab(name).checkpoint.folder


def _first_loss_truth(bench: Bench) -> Truth:
    loss = float(progress_of(_folder(bench, MODEL)).train["loss"][0])
    tokens = bench.lab(MODEL).tokenizer.vocab_size
    return Truth(
        0 if loss < 2 else 1 if loss < 6 else 2,
        f"It was {loss:.2f} nats. A fair guess among all {tokens} tokens costs ln {tokens} = {math.log(tokens):.2f}. "
        "Random weights are a little worse than that: they prefer some tokens for no reason.",
    )


def _curves_scene(bench: Bench, settings: Settings) -> Scene:
    return Scene(parts=(Part(Runs((_folder(bench, MODEL),)), RunCurves()),))


def _smoothing_truth(bench: Bench) -> Truth:
    pairs = held_out(6)[:40]
    sure = np.concatenate([bench.seen(MODEL, source).probabilities for source, _ in pairs])
    smoothing = bench.lab(MODEL).checkpoint.settings.train.label_smoothing
    return Truth(
        100 * float(sure.mean()),
        f"On average it gives the letter that it writes {100 * sure.mean():.0f} %, over {len(sure)} letters and end "
        f"marks. In training the right letter was worth {1 - smoothing:.0%} and all tokens together the other "
        f"{smoothing:.0%}. It learned to be exactly that sure, and no surer.",
    )


def _smoothing_scene(bench: Bench, settings: Settings) -> Scene:
    subject = Decoding(bench.lab(MODEL), bench.seen(MODEL, TEXT))
    return Scene(parts=(Part(subject, StepCandidates(step=int(settings["step"]))),))


def _parts_truth(bench: Bench) -> Truth:
    shares = [percent(bench.right(name, held_out(6))) for name in WITHOUT]
    told = "; ".join(f"without {part} {share:.0f} %" for part, share in zip(WITHOUT.values(), shares, strict=True))
    whole = percent(bench.right(MODEL, held_out(6)))
    return Truth(
        int(np.argmax(shares)),
        f"Strings of 6 letters written right after 400 steps: {told}; with everything {whole:.0f} %. That is no proof "
        "that layer norm is useless: this model has only two layers. Deep models need it to be trained at all.",
    )


def _parts_scene(bench: Bench, settings: Settings) -> Scene:
    name = settings["part"]
    text = bench.seen(name, TEXT).translation
    folders = (_folder(bench, MODEL), _folder(bench, name))
    said = f"*{name}* reads `{TEXT}` and writes {marked(text, backwards(TEXT))}"
    return Scene((said,), (Part(Runs(folders), ComparedRuns(quantity="exact match")),))


LEARNING = Lesson(
    slug="learning",
    title="Learning",
    question="What does the loss measure, and what does a model need to bring it down?",
    minutes=6,
    page="playground",
    onwards="Train one yourself on *Playground*, and take its parts away",
    steps=(
        Step(
            title="Before the first step",
            text="The **loss** is −ln of the probability that the model gives the right token, averaged over tokens: 0 "
            "if it is certain and right, large if it is certain and wrong. Its unit is the *nat*. "
            f"*{MODEL}* knows 24 tokens: 20 letters and four marks. It starts with random weights.",
            question="What was the loss of its first step?",
            answer=Options(("near 0.7, as for the toss of a coin", "between 3 and 4", "more than 20")),
            truth=_first_loss_truth,
            expects=(1, 1),
            do="Point at the first values of the training loss and follow it down. Where do answers begin to be right?",
            scene=_curves_scene,
            keep="A model that knows nothing has a loss of about ln(vocabulary). Check that first when training fails.",
        ),
        Step(
            title="As sure as it may be",
            text="The paper trains with **label smoothing** (section 5.4): the right token should not get a "
            "probability of 1, but 0.9; the other 0.1 is spread over all tokens. After training, nearly every "
            f"string that *{MODEL}* writes is right.",
            question="How much probability does it give the letters that it writes?",
            answer=Estimate(least=0, most=100, unit=" %", close=4),
            truth=_smoothing_truth,
            expects=(85, 95),
            do="Look at the candidates of each letter. How much is left for the second?",
            controls=(Control(name="step", label="Letter", options={str(i): str(i + 1) for i in range(6)}),),
            scene=_smoothing_scene,
            keep="A model can be right all the time and never be certain: it learns the certainty it is asked for.",
        ),
        Step(
            title="What can be left out?",
            text="Three models were trained exactly like this one, each without a part: layer norm, positions, or "
            "residual connections.",
            question="Which one learned to write letters backwards all the same?",
            answer=Options(tuple(f"the one without {part}" for part in WITHOUT.values())),
            truth=_parts_truth,
            expects=(0, 0),
            do="Lay each beside the whole model, curve by curve.",
            controls=(Control(name="part", label="Without", options=WITHOUT),),
            scene=_parts_scene,
            keep="Whether a part is needed depends on the task and the depth. Only a training without it can tell.",
        ),
    ),
)
