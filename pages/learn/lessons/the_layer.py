"""Lesson 7: what else is in a layer: sublayers, the residual around them, and the norm."""

import numpy as np

from pages.learn.lesson import TEXTS, Control, Estimate, Lesson, Options, Part, Scene, Settings, Step, Truth
from pages.shared.bench.bench import Bench
from pages.shared.bench.strings import backwards, held_out, letters, marked, percent
from transformer.views.before_after import TokenProbabilities
from transformer.views.subjects import Compared, Traced
from transformer.views.trace import StepNumbers

MODEL, TEXT = "reverse", letters(6)
_SUBLAYERS = ("encoder.0.self", "decoder.1.ffn", "decoder.1.cross")
_AWAY = Control(name="away", values=(*reversed(_SUBLAYERS), "encoder.0.ffn", "decoder.0.self"))
_AROUND = "residual:off:encoder.0.self"
_LENGTH = 6
ADD_AND_NORM = "encoder.ffn.add"


def _share(bench: Bench, *switches: str) -> float:
    return percent(bench.right(MODEL, held_out(_LENGTH), *switches))


def _sublayer_truth(bench: Bench) -> Truth:
    shares = [_share(bench, f"block:{place}") for place in _SUBLAYERS]
    parts = [_AWAY.options[place] for place in _SUBLAYERS]
    told = "; ".join(TEXTS("without_part", part=part, share=share) for part, share in zip(parts, shares, strict=True))
    return Truth(
        int(np.argmin(shares)), TEXTS("the-layer.away.told", n=len(held_out(_LENGTH)), told=told, whole=_share(bench))
    )


def _away_scene(bench: Bench, settings: Settings) -> Scene:
    return _switched(bench, f"block:{settings['away']}")


def _switched(bench: Bench, *switches: str) -> Scene:
    effect = bench.compared(MODEL, TEXT, *switches)
    lines = (
        f"`{TEXT}` → {marked(effect.after.translation, backwards(TEXT))}",
        TEXTS("the-layer.away.right", share=_share(bench, *switches), n=len(held_out(_LENGTH))),
    )
    return Scene(lines, (Part(Compared(bench.lab(MODEL), effect), TokenProbabilities()),))


def _residual_truth(bench: Bench) -> Truth:
    without, sublayer = _share(bench, _AROUND), _share(bench, "block:encoder.0.self")
    return Truth(without, TEXTS("the-layer.around.told", without=without, sublayer=sublayer))


def _residual_scene(bench: Bench, settings: Settings) -> Scene:
    return _switched(bench, *([] if settings["cut"] == "none" else [settings["cut"]]))


def _traced(bench: Bench) -> Traced:
    lab, seen = bench.lab(MODEL), bench.seen(MODEL, TEXT)
    return Traced(lab, seen, lab.trace(seen))


def _lengths(bench: Bench) -> tuple[np.ndarray, np.ndarray]:
    """Returns the lengths of the vectors before and after the norm."""
    subject = _traced(bench)
    opened = StepNumbers(step=ADD_AND_NORM).data(*vars(subject).values()).opened
    arrays = {value.name: value.values for value in (*opened.comes_in, *opened.comes_out)}
    before, after = (np.linalg.norm(arrays[name].astype(np.float64), axis=-1) for name in ("sum", "normed"))
    return before, after


def _norm_truth(bench: Bench) -> Truth:
    before, after = _lengths(bench)
    spread = [float(each.max() / each.min()) for each in (before, after)]
    return Truth(
        0 if spread[1] > spread[0] + 0.05 else 1 if spread[1] < spread[0] - 0.05 else 2,
        TEXTS(
            "the-layer.norm.told",
            n=len(before),
            spread=spread[0],
            least=before.min(),
            most=before.max(),
            spread_after=spread[1],
            least_after=after.min(),
            most_after=after.max(),
        ),
    )


def _norm_scene(bench: Bench, settings: Settings) -> Scene:
    return Scene(parts=(Part(_traced(bench), StepNumbers(step=ADD_AND_NORM, side=settings["side"])),))  # type: ignore[arg-type]


THE_LAYER = Lesson(
    slug="the-layer",
    minutes=7,
    page="walkthrough",
    view={"model": MODEL, "text": TEXT},
    steps=(
        Step(
            name="the-layer.away",
            answer=Options("the-layer.away"),
            truth=_sublayer_truth,
            expects=(2, 2),
            controls=(_AWAY,),
            scene=_away_scene,
        ),
        Step(
            name="the-layer.around",
            answer=Estimate(least=0, most=100, unit=" %", close=10),
            truth=_residual_truth,
            expects=(0, 5),
            controls=(
                Control(
                    name="cut",
                    values=(_AROUND, "residual:off:encoder.1.ffn", "residual:off:decoder.0.self", "none"),
                ),
            ),
            scene=_residual_scene,
        ),
        Step(
            name="the-layer.norm",
            answer=Options("the-layer.norm"),
            truth=_norm_truth,
            expects=(1, 1),
            controls=(Control(name="side", values=("out", "in")),),
            scene=_norm_scene,
        ),
    ),
)
