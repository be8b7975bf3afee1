"""Lesson 10: when attention weights explain an output, and when they do not."""

import numpy as np

from pages.learn.lesson import TEXTS, Control, Estimate, Lesson, Options, Part, Scene, Settings, Step, Truth
from pages.shared import wording
from pages.shared.bench.bench import Bench
from pages.shared.bench.strings import held_out, letters, percent
from transformer.analysis.heads.leave_one_out import leave_one_out, spearman
from transformer.views.attention.matrices import HeadMatrix
from transformer.views.heads.leave_one_out import LeaveOneOut, WeightAgainstEffect
from transformer.views.heads.subjects import Hidden
from transformer.views.subjects import Decoding

MODEL, TEXT, WORD = "pronouns-en-fr", "The animal did not cross the street because it was too tired.", "il"
SYMBOLS = "reverse"
_WORDS = ("animal", "it", "tired")
"""The words to choose from: the right one, and two that draw attention."""
_NO_SELF = ("block:encoder.0.self", "block:encoder.1.self")
_LAYER = Control(name="layer", values=("0", "1"))
_LAST_LAYER = Control(name="layer", values=("0", "1"), default="1")
_HEAD = Control(name="head", values=("0", "1", "2", "3"))


def _effect(bench: Bench) -> np.ndarray:
    seen = bench.seen(MODEL, TEXT)
    return leave_one_out(bench.lab(MODEL).model, seen.source_ids, seen.target_ids, "hidden", seen.interventions)


def _subject(bench: Bench) -> Hidden:
    return Hidden(bench.lab(MODEL), bench.seen(MODEL, TEXT), "hidden", _effect(bench))


def _weight_truth(bench: Bench) -> Truth:
    seen = bench.seen(MODEL, TEXT)
    step, source = seen.target_tokens.index(WORD), seen.source_tokens
    weights = seen.cross.weights[:, :, step].mean(axis=1)  # -> [layer source]
    left = float(seen.probabilities[step]) * np.exp(-_effect(bench)[step])  # of the word, without each source token
    needed = int(left.argmin())
    looked_at = [int(row.argmax()) for row in weights]
    rival = next((place for place in looked_at if place != needed), needed)
    told = [
        TEXTS("explanation.effect.layer", layer=layer, word=source[place], share=weights[layer, place])
        for layer, place in enumerate(looked_at)
    ]
    return Truth(
        _WORDS.index(source[needed]),
        TEXTS(
            "explanation.effect.told",
            word=WORD,
            told=wording.listed(told),
            needed=source[needed],
            before=float(seen.probabilities[step]),
            after=left[needed],
            rival=source[rival],
            rival_after=left[rival],
        ),
    )


def _effect_scene(bench: Bench, settings: Settings) -> Scene:
    seen = bench.seen(MODEL, TEXT)
    matrix = HeadMatrix(kind="cross", layer=int(settings["layer"]), heads=(0, 1, 2, 3))
    return Scene(
        parts=(
            Part(_subject(bench), LeaveOneOut(), TEXTS("explanation.effect.lost")),
            Part(
                Decoding(bench.lab(MODEL), seen),
                matrix,
                TEXTS("explanation.effect.averaged", layer=int(settings["layer"])),
            ),
        )
    )


def _rank_truth(bench: Bench) -> Truth:
    seen, effect = bench.seen(MODEL, TEXT), _effect(bench)
    found = np.array(
        [
            [[spearman(row, lost) for row, lost in zip(head, effect, strict=True)] for head in layer]
            for layer in seen.cross.weights
        ]
    )  # -> [layer head step]
    mean = float(np.nanmean(found))
    layers = wording.listed(
        [TEXTS("explanation.all.layer", layer=i, mean=float(np.nanmean(found[i]))) for i in range(len(found))]
    )
    return Truth(
        0 if mean > 0.8 else 1 if mean > 0.1 else 2,
        TEXTS(
            "explanation.all.told",
            n_heads=found.shape[0] * found.shape[1],
            n_tokens=len(effect),
            mean=mean,
            layers=layers,
        ),
    )


def _rank_scene(bench: Bench, settings: Settings) -> Scene:
    view = WeightAgainstEffect(head=f"decoder.{settings['layer']}.cross.{settings['head']}")
    return Scene(parts=(Part(_subject(bench), view),))


def _idle_truth(bench: Bench) -> Truth:
    pairs = held_out(6)
    without, one = percent(bench.right(SYMBOLS, pairs, *_NO_SELF)), percent(bench.right(SYMBOLS, pairs, _NO_SELF[0]))
    return Truth(without, TEXTS("explanation.patterns.told", without=without, n=len(pairs), one=one))


def _idle_scene(bench: Bench, settings: Settings) -> Scene:
    text = letters(6)
    seen = bench.seen(SYMBOLS, text)
    view = HeadMatrix(kind="encoder_self", layer=int(settings["layer"]), heads=(int(settings["head"]),))
    return Scene(parts=(Part(Decoding(bench.lab(SYMBOLS), seen), view),))


EXPLANATION = Lesson(
    slug="explanation",
    minutes=7,
    page="heads",
    view={"model": MODEL, "text": TEXT},
    steps=(
        Step(
            name="explanation.effect",
            answer=Options("explanation.effect"),
            truth=_weight_truth,
            expects=(0, 0),
            controls=(_LAST_LAYER,),
            scene=_effect_scene,
        ),
        Step(
            name="explanation.all",
            answer=Options("explanation.all"),
            truth=_rank_truth,
            expects=(1, 1),
            controls=(_LAYER, _HEAD),
            scene=_rank_scene,
        ),
        Step(
            name="explanation.patterns",
            answer=Estimate(least=0, most=100, unit=" %", close=15),
            truth=_idle_truth,
            expects=(60, 100),
            controls=(_LAYER, _HEAD),
            scene=_idle_scene,
        ),
    ),
)
