"""Lesson 5: positions, and what is left without them."""

from collections import Counter

import numpy as np

from pages.learn.lesson import TEXTS, Control, Estimate, Lesson, Options, Part, Scene, Settings, Step, Truth
from pages.shared import wording
from pages.shared.bench.bench import Bench
from pages.shared.bench.strings import backwards, held_out, letters, long_strings, marked, percent
from transformer.views.attention.matrices import HeadMatrix
from transformer.views.positions import PositionTables
from transformer.views.subjects import Decoding, LearnedPositions

MODEL, LEARNED = "reverse", "reverse-learned"
TEXT = letters(6)
GONE = "positions:encoder:remove"
_POSITIONS = Control(name="positions", values=("no", "yes"))
_SHARE_LENGTH, _TRAINED, _BEYOND, _FAR = 6, 10, 11, 12
_TURNED = ("a b c d", "d c b a")
_SHOWN = 5
"""The number of strings that are shown of those that a share is measured on."""
_CROSS = HeadMatrix(kind="cross", layer=1, heads=(2,))
"""The head that looks at the letter to be written: see the lesson of a real head."""


def _switches(settings: Settings) -> tuple[str, ...]:
    return (GONE,) if settings["positions"] == "no" else ()


def _output_truth(bench: Bench) -> Truth:
    seen = bench.seen(MODEL, TEXT, GONE)
    got, right = seen.translation.split(), backwards(TEXT).split()
    kept = len(set(got) & set(right))
    option = 0 if got == right else 1 if set(got) <= set(right) and kept > len(right) / 2 else 2
    return Truth(
        option,
        TEXTS(
            "positions.away.told", written=marked(seen.translation, backwards(TEXT)), n_letters=len(right), kept=kept
        ),
    )


def _output_scene(bench: Bench, settings: Settings) -> Scene:
    switches, lab = _switches(settings), bench.lab(MODEL)
    seen = bench.seen(MODEL, TEXT, *switches)
    lines = (TEXTS("input", text=TEXT), TEXTS("writes", model=MODEL, written=marked(seen.translation, backwards(TEXT))))
    return Scene(lines, (Part(Decoding(lab, seen), _CROSS),))


def _share_scene(bench: Bench, settings: Settings) -> Scene:
    switches, pairs = _switches(settings), held_out(_SHARE_LENGTH)[:_SHOWN]
    lines = tuple(
        f"`{source}` → {marked(written, target)}"
        for (source, target), written in zip(pairs, bench.written(MODEL, pairs, *switches), strict=True)
    )
    seen = bench.seen(MODEL, pairs[0][0], *switches)
    return Scene(lines, (Part(Decoding(bench.lab(MODEL), seen), _CROSS, TEXTS("positions.often.first")),))


def _share_truth(bench: Bench) -> Truth:
    pairs = held_out(_SHARE_LENGTH)
    without, with_ = (percent(bench.right(MODEL, pairs, *switches)) for switches in ((GONE,), ()))
    missing = sum(
        (Counter(target.split()) - Counter(written.split())).total()
        for (_, target), written in zip(pairs, bench.written(MODEL, pairs, GONE), strict=True)
    )
    return Truth(
        without,
        TEXTS(
            "positions.often.told",
            n=len(pairs),
            length=_SHARE_LENGTH,
            without=without,
            whole=with_,
            missing=100 * missing / (len(pairs) * _SHARE_LENGTH),
        ),
    )


def _order_truth(bench: Bench) -> Truth:
    apart, apart_with = _turned_apart(bench, GONE), _turned_apart(bench)
    return Truth(
        1 if apart < 1e-4 else 0,
        TEXTS("positions.order.told", apart=wording.number(apart, digits=1), apart_with=apart_with),
    )


def _turned_apart(bench: Bench, *switches: str) -> float:
    """Returns how far the head's weights are from those on the string turned around, turned back."""
    given, turned = (bench.seen(MODEL, text, *switches).encoder_self.weights[0, 0, :4, :4] for text in _TURNED)
    return float(np.abs(given - turned[::-1, ::-1]).max())


def _order_scene(bench: Bench, settings: Settings) -> Scene:
    parts = []
    for text in _TURNED:
        seen = bench.seen(MODEL, text, *_switches(settings))
        view = HeadMatrix(kind="encoder_self", layer=0, heads=(0,))
        parts.append(Part(Decoding(bench.lab(MODEL), seen), view, TEXTS("positions.order.input", text=text)))
    return Scene(parts=tuple(parts), beside=True)


def _beyond_truth(bench: Bench) -> Truth:
    pairs = long_strings(_BEYOND)
    shares = [percent(bench.right(name, pairs)) for name in (MODEL, LEARNED)]
    best = 0 if shares[0] > shares[1] + 5 else 1 if shares[1] > shares[0] + 5 else 2
    trained = [percent(bench.right(name, held_out(_TRAINED))) for name in (MODEL, LEARNED)]
    far = [percent(bench.right(name, long_strings(_FAR))) for name in (MODEL, LEARNED)]
    return Truth(
        best,
        TEXTS(
            "positions.beyond.told",
            n=len(pairs),
            length=_BEYOND,
            sinusoids=shares[0],
            learned=shares[1],
            trained=_TRAINED,
            sinusoids_trained=trained[0],
            learned_trained=trained[1],
            far=_FAR,
            sinusoids_far=far[0],
            learned_far=far[1],
        ),
    )


def _beyond_scene(bench: Bench, settings: Settings) -> Scene:
    text = letters(int(settings["length"]))
    lines = tuple(
        TEXTS(
            f"positions.beyond.{kind}", model=name, written=marked(bench.seen(name, text).translation, backwards(text))
        )
        for name, kind in ((MODEL, "sinusoids"), (LEARNED, "vectors"))
    )
    figure = Part(LearnedPositions(bench.lab(MODEL), None), PositionTables(d_model=64, length=16))
    return Scene((TEXTS("input", text=text), *lines), (figure,))


POSITIONS = Lesson(
    slug="positions",
    minutes=7,
    page="positions",
    view={"model": MODEL},
    steps=(
        Step(
            name="positions.away",
            answer=Options("positions.away"),
            truth=_output_truth,
            expects=(1, 1),
            controls=(_POSITIONS,),
            scene=_output_scene,
        ),
        Step(
            name="positions.often",
            answer=Estimate(least=0, most=100, unit=" %", close=10),
            truth=_share_truth,
            expects=(0, 10),
            controls=(_POSITIONS,),
            scene=_share_scene,
        ),
        Step(
            name="positions.order",
            answer=Options("positions.order"),
            truth=_order_truth,
            expects=(1, 1),
            controls=(_POSITIONS,),
            scene=_order_scene,
        ),
        Step(
            name="positions.beyond",
            answer=Options("positions.beyond"),
            truth=_beyond_truth,
            expects=(0, 0),
            controls=(Control(name="length", values=("10", "11", "12"), default="11"),),
            scene=_beyond_scene,
        ),
    ),
)
