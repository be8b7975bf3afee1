"""Lesson 1: a vector that forgets, and the attention that made up for it."""

import numpy as np

from pages.learn.lesson import TEXTS, Control, Estimate, Lesson, Options, Part, Scene, Settings, Step, Truth
from pages.shared.bench.bench import Bench
from pages.shared.bench.strings import backwards, held_out, letters, marked, percent
from transformer.analysis.reach.vector_probe import LengthProbe
from transformer.experiments.results import Results
from transformer.views.attention.matrices import HeadMatrix
from transformer.views.experiments import ExperimentCurves, Measured
from transformer.views.reach.bottleneck import Bottleneck
from transformer.views.reach.subjects import Probed
from transformer.views.subjects import Decoding

VECTOR, ATTENTION = "reverse-rnn", "reverse-rnn-attention"
LONGEST, _SHORT = 10, 5
"""The length of the longest strings that both models trained on, and one that the vector still holds."""
_BEYOND = 20
"""A length beyond those that the models of the experiment trained on."""
_LENGTH = Control(name="length", values=("3", "6", "8", "10"))


def _probed(bench: Bench, length: int) -> LengthProbe:
    return next(each for each in bench.probe(VECTOR).lengths if each.length == length)


def _exact_truth(bench: Bench) -> Truth:
    pairs = held_out(LONGEST)
    share, short = percent(bench.right(VECTOR, pairs)), percent(bench.right(VECTOR, held_out(4)))
    return Truth(share, TEXTS("why-attention.vector.told", share=share, n=len(pairs), length=LONGEST, short=short))


def _written(bench: Bench, settings: Settings, *names: str) -> tuple[str, ...]:
    text = letters(int(settings["length"]))
    return (
        TEXTS("input", text=text),
        *(
            TEXTS("writes", model=name, written=marked(bench.seen(name, text).translation, backwards(text)))
            for name in names
        ),
    )


def _exact_scene(bench: Bench, settings: Settings) -> Scene:
    figure = Part(Probed(bench.lab(VECTOR), bench.probe(VECTOR)), Bottleneck(shows="written"))
    return Scene(_written(bench, settings, VECTOR), (figure,))


def _place_truth(bench: Bench) -> Truth:
    long, short = (_probed(bench, length) for length in (LONGEST, _SHORT))
    share = long.right / len(long.tested)
    parts = (share[0], float(share[1:-1].min()), share[-1])
    worst = int(np.argmin(parts))
    return Truth(
        worst,
        TEXTS(
            "why-attention.forgets.told",
            length=LONGEST,
            first=100 * share[0],
            last=100 * share[-1],
            middle=100 * parts[1],
            guess=100 / len(long.labels[int(share.argmin())]),
            short=_SHORT,
            short_middle=100 * float((short.right / len(short.tested))[1:-1].min()),
            short_right=percent(bench.right(VECTOR, held_out(_SHORT))),
        ),
    )


def _place_scene(bench: Bench, settings: Settings) -> Scene:
    return Scene(parts=(Part(Probed(bench.lab(VECTOR), bench.probe(VECTOR)), Bottleneck(shows="positions")),))


def _look_truth(bench: Bench) -> Truth:
    text = letters(8)
    seen = bench.seen(ATTENTION, text)
    weights = seen.cross.weights[0, 0, 2]
    most = int(weights.argmax())
    letter, written = (
        text.split()[most] if most < 8 else TEXTS("why-attention.look-back.end"),
        seen.translation.split()[2],
    )
    option = {2: 0, 5: 1}.get(most, 2)
    return Truth(
        option,
        TEXTS(
            "why-attention.look-back.told", written=written, share=100 * weights[most], place=most + 1, letter=letter
        ),
    )


def _look_scene(bench: Bench, settings: Settings) -> Scene:
    seen = bench.seen(ATTENTION, letters(int(settings["length"])))
    figure = Part(Decoding(bench.lab(ATTENTION), seen), HeadMatrix(kind="cross", layer=0, heads=(0,)))
    return Scene(_written(bench, settings, ATTENTION), (figure,))


def _longest_training(results: Results) -> int:
    return max(map(int, results.levels("steps")))


def _gain_truth(bench: Bench) -> Truth:
    pairs = held_out(LONGEST)
    with_, without = (percent(bench.right(name, pairs)) for name in (ATTENTION, VECTOR))
    results = bench.results("why-attention")
    steps = _longest_training(results)
    beyond = {
        kind: 100 * results.mean("exact_match", task="reverse", model=kind, steps=steps, length=_BEYOND)
        for kind in ("LSTM with attention", "Transformer")
    }
    return Truth(
        with_,
        TEXTS(
            "why-attention.gain.told",
            attention=with_,
            n=len(pairs),
            length=LONGEST,
            vector=without,
            length_beyond=_BEYOND,
            beyond=beyond["LSTM with attention"],
            beyond_transformer=beyond["Transformer"],
        ),
    )


def _gain_scene(bench: Bench, settings: Settings) -> Scene:
    results = bench.results("why-attention")
    where = (("task", "reverse"), ("steps", _longest_training(results)))
    view = ExperimentCurves(metric="exact_match", x="length", by="model", where=where)
    figure = Part(Measured(results), view, TEXTS("why-attention.gain.figure"))
    return Scene(_written(bench, settings, VECTOR, ATTENTION), (figure,))


WHY_ATTENTION = Lesson(
    slug="why-attention",
    minutes=6,
    page="before",
    view={"model": VECTOR},
    steps=(
        Step(
            name="why-attention.vector",
            answer=Estimate(least=0, most=100, unit=" %", close=15),
            truth=_exact_truth,
            expects=(0, 30),
            controls=(_LENGTH,),
            scene=_exact_scene,
        ),
        Step(
            name="why-attention.forgets",
            answer=Options("why-attention.forgets"),
            truth=_place_truth,
            expects=(1, 1),
            scene=_place_scene,
        ),
        Step(
            name="why-attention.look-back",
            answer=Options("why-attention.look-back"),
            truth=_look_truth,
            expects=(1, 1),
            controls=(Control(name="length", values=_LENGTH.values, default="8"),),
            scene=_look_scene,
        ),
        Step(
            name="why-attention.gain",
            answer=Estimate(least=0, most=100, unit=" %", close=10),
            truth=_gain_truth,
            expects=(90, 100),
            controls=(Control(name="length", values=_LENGTH.values, default="10"),),
            scene=_gain_scene,
        ),
    ),
)
