"""Lesson 4: several heads, what each does, and how many of them are needed."""

from collections import Counter

import numpy as np

from pages.learn.lesson import TEXTS, Control, Estimate, Lesson, Options, Part, Scene, Settings, Step, Truth
from pages.shared.bench.bench import Bench
from pages.shared.bench.strings import letters
from transformer.views.attention.heads import AllHeads
from transformer.views.attention.matrices import HeadMatrix
from transformer.views.before_after import BothOutputs
from transformer.views.subjects import Compared, Decoding

MODEL, TEXT = "pronouns-en-fr", "The animal did not cross the street because it was too tired."
SYMBOLS, STRING = "reverse", letters(6)
LAYERS, HEADS = 2, 4
_SUBLAYERS = tuple(
    place.format(layer)
    for place in ("encoder.{}.self", "decoder.{}.self", "decoder.{}.cross")
    for layer in range(LAYERS)
)
_WHOLE = "off:decoder.1.cross:0,1,2,3"
_PLACE = Control(name="place", values=_SUBLAYERS[::-1])
_HEAD = Control(name="head", values=tuple(map(str, range(HEADS))), default="2")


def _alone_truth(bench: Bench) -> Truth:
    switches = [f"off:{place}:{head}" for place in _SUBLAYERS for head in range(HEADS)]
    before = bench.seen(MODEL, TEXT).target_ids
    changing = [switch for switch in switches if bench.seen(MODEL, TEXT, switch).target_ids != before]
    cross = sum(".cross" in switch for switch in changing)
    return Truth(
        len(changing), TEXTS("many-heads.alone.told", n_heads=len(switches), changing=len(changing), cross=cross)
    )


def _alone_scene(bench: Bench, settings: Settings) -> Scene:
    return _compared_scene(bench, f"off:{settings['place']}:{settings['head']}")


def _compared_scene(bench: Bench, *switches: str) -> Scene:
    effect = bench.compared(MODEL, TEXT, *switches)
    said = TEXTS("many-heads.alone.becomes", before=effect.before.translation, after=effect.after.translation)
    if effect.after.target_ids == effect.before.target_ids:
        said = TEXTS("many-heads.alone.stays", after=effect.after.translation, p=effect.forced_after.min())
    return Scene((said,), (Part(Compared(bench.lab(MODEL), effect), BothOutputs()),))


def _all_truth(bench: Bench) -> Truth:
    before, after = (bench.seen(MODEL, TEXT, *switches) for switches in ((), (_WHOLE,)))
    kept = Counter(before.target_tokens) & Counter(after.target_tokens)
    share = sum(kept.values()) / len(before.target_tokens)
    return Truth(
        0 if after.target_ids == before.target_ids else 1 if share > 0.8 else 2,
        TEXTS("many-heads.together.told", written=after.translation, share=100 * share),
    )


def _all_scene(bench: Bench, settings: Settings) -> Scene:
    return _compared_scene(bench, f"off:{settings['place']}:0,1,2,3")


def _alike_truth(bench: Bench) -> Truth:
    weights = bench.seen(SYMBOLS, STRING).cross.weights[1, :, :6]
    wanted = np.arange(5, -1, -1)
    right = (weights.argmax(-1) == wanted).sum(-1)
    alike = int((right == len(wanted)).sum())
    largest = ", ".join(f"{value:.2f}" for value in weights[:, 1].max(-1))
    return Truth(alike, TEXTS("many-heads.alike.told", alike=alike, n_heads=HEADS, n_rows=len(wanted), largest=largest))


def _alike_scene(bench: Bench, settings: Settings) -> Scene:
    subject = Decoding(bench.lab(SYMBOLS), bench.seen(SYMBOLS, STRING))
    one = HeadMatrix(kind="cross", layer=1, heads=(int(settings["head"]),))
    return Scene(parts=(Part(subject, one), Part(subject, AllHeads(kind="cross"), TEXTS("many-heads.alike.all"))))


MANY_HEADS = Lesson(
    slug="many-heads",
    minutes=6,
    page="heads",
    view={"model": MODEL},
    steps=(
        Step(
            name="many-heads.alone",
            answer=Estimate(least=0, most=24, close=3),
            truth=_alone_truth,
            expects=(1, 6),
            controls=(_PLACE, _HEAD),
            scene=_alone_scene,
        ),
        Step(
            name="many-heads.together",
            answer=Options("many-heads.together"),
            truth=_all_truth,
            expects=(2, 2),
            controls=(_PLACE,),
            scene=_all_scene,
        ),
        Step(
            name="many-heads.alike",
            answer=Estimate(least=0, most=4, close=0),
            truth=_alike_truth,
            expects=(4, 4),
            controls=(Control(name="head", values=_HEAD.values),),
            scene=_alike_scene,
        ),
    ),
)
