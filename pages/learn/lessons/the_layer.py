"""Lesson 7: what else is in a layer: sublayers, the residual around them, and the norm."""

import numpy as np

from pages.learn.lesson import Control, Estimate, Lesson, Options, Part, Scene, Settings, Step, Truth
from pages.shared.bench.bench import Bench
from pages.shared.bench.strings import backwards, held_out, letters, marked, percent
from transformer.views.before_after import TokenProbabilities
from transformer.views.subjects import Compared, Traced
from transformer.views.trace import StepNumbers

MODEL, TEXT = "reverse", letters(6)
_SUBLAYERS = {
    "encoder.0.self": "encoder self-attention, layer 0",
    "decoder.1.ffn": "decoder feed-forward, layer 1",
    "decoder.1.cross": "attention to the input, layer 1",
}
_MORE = {"encoder.0.ffn": "encoder feed-forward, layer 0", "decoder.0.self": "decoder self-attention, layer 0"}
_AWAY = Control(name="away", label="Taken away", options=dict(reversed(_SUBLAYERS.items())) | _MORE)
_AROUND = "residual:off:encoder.0.self"
_LENGTH = 6
ADD_AND_NORM = "encoder.ffn.add"


def _share(bench: Bench, *switches: str) -> float:
    return percent(bench.right(MODEL, held_out(_LENGTH), *switches))


def _sublayer_truth(bench: Bench) -> Truth:
    shares = [_share(bench, f"block:{place}") for place in _SUBLAYERS]
    told = "; ".join(f"without {label} {share:.0f} %" for label, share in zip(_SUBLAYERS.values(), shares, strict=True))
    return Truth(
        int(np.argmin(shares)),
        f"Of {len(held_out(_LENGTH))} strings it gets right: {told}. With everything in place it is "
        f"{_share(bench):.0f} %. Reversing is looking things up, and that is what the attention to the input does.",
    )


def _away_scene(bench: Bench, settings: Settings) -> Scene:
    return _switched(bench, f"block:{settings['away']}")


def _switched(bench: Bench, *switches: str) -> Scene:
    effect = bench.compared(MODEL, TEXT, *switches)
    lines = (
        f"`{TEXT}` → {marked(effect.after.translation, backwards(TEXT))}",
        f"Right: {_share(bench, *switches):.0f} % of {len(held_out(_LENGTH))} strings",
    )
    return Scene(lines, (Part(Compared(bench.lab(MODEL), effect), TokenProbabilities()),))


def _residual_truth(bench: Bench) -> Truth:
    without, sublayer = _share(bench, _AROUND), _share(bench, "block:encoder.0.self")
    return Truth(
        without,
        f"{without:.0f} % are right. Without the *sublayer itself* it was {sublayer:.0f} %. What flows around the "
        "sublayer is the letters themselves, with their places; attention only adds to them. Cut the way around, and "
        "nothing else brings them up.",
    )


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
        f"Before the norm the longest of the {len(before)} vectors is {spread[0]:.2f} times as long as the shortest "
        f"({before.min():.1f} to {before.max():.1f}); after it, {spread[1]:.2f} times ({after.min():.1f} to "
        f"{after.max():.1f}). Each vector is shifted to mean 0 and scaled to variance 1; then learned gains stretch "
        "each coordinate, so that the lengths are similar and not quite equal.",
    )


def _norm_scene(bench: Bench, settings: Settings) -> Scene:
    return Scene(parts=(Part(_traced(bench), StepNumbers(step=ADD_AND_NORM, side=settings["side"])),))  # type: ignore[arg-type]


THE_LAYER = Lesson(
    slug="the-layer",
    title="The layer",
    question="What is in a layer besides attention, and what is it good for?",
    minutes=7,
    page="walkthrough",
    onwards="Follow one token through every step on *Walkthrough*",
    view={"model": MODEL, "text": TEXT},
    steps=(
        Step(
            title="Take a sublayer away",
            text="A layer has two or three **sublayers**: attention, and a **feed-forward network**, two matrices with "
            "a threshold between them, which works on each place alone. Each sublayer **adds** its result to what "
            f"passes by. We make one sublayer of *{MODEL}* add nothing and count how many of 100 strings of 6 letters "
            "it still writes backwards.",
            question="Without which of these does it get the fewest right?",
            answer=Options(tuple(_SUBLAYERS.values())),
            truth=_sublayer_truth,
            expects=(2, 2),
            do="Take others away, and compare how sure the model stays of each letter.",
            controls=(_AWAY,),
            scene=_away_scene,
            keep="Sublayers differ in what they are needed for: measure before you call one important.",
        ),
        Step(
            title="The way around",
            text="The sum of a sublayer's input and its output is called the **residual connection** (section 3.1): "
            "the input takes a way around. Now we leave every sublayer in place and cut only the way around the first "
            "one, the encoder's self-attention in layer 0.",
            question="How many of 100 strings are still right?",
            answer=Estimate(least=0, most=100, unit=" %", close=10),
            truth=_residual_truth,
            expects=(0, 5),
            do="Cut the way around other sublayers. Which one hurts, which one hardly?",
            controls=(
                Control(
                    name="cut",
                    label="Way around",
                    options={
                        _AROUND: "encoder self-attention, layer 0",
                        "residual:off:encoder.1.ffn": "encoder feed-forward, layer 1",
                        "residual:off:decoder.0.self": "decoder self-attention, layer 0",
                        "none": "all in place",
                    },
                ),
            ),
            scene=_residual_scene,
            keep="The residual stream carries the information; sublayers read from it and add to it.",
        ),
        Step(
            title="The norm",
            text="After each sum comes **layer norm**. We look behind the encoder's first feed-forward network, where "
            "the vectors of different letters have grown to different lengths.",
            question="What does the norm do to these lengths?",
            answer=Options(("it makes them differ more", "it makes them more alike", "it leaves them as they are")),
            truth=_norm_truth,
            expects=(1, 1),
            do="Compare the numbers that go in with those that come out, for every token.",
            controls=(Control(name="side", label="Numbers", options={"out": "that come out", "in": "that go in"}),),
            scene=_norm_scene,
            keep="The norm keeps all vectors at one scale, so that the next layer always meets numbers it knows.",
        ),
    ),
)
