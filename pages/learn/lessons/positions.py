"""Lesson 5: positions, and what is left without them."""

import numpy as np

from pages.learn.lesson import Control, Estimate, Lesson, Options, Part, Scene, Settings, Step, Truth
from pages.shared.bench.bench import Bench
from pages.shared.bench.strings import backwards, held_out, letters, long_strings, marked, percent
from transformer.views.attention.matrices import HeadMatrix
from transformer.views.before_after import BothOutputs
from transformer.views.positions import PositionTables
from transformer.views.subjects import Compared, Decoding, LearnedPositions

MODEL, LEARNED = "reverse", "reverse-learned"
TEXT = letters(6)
GONE = "positions:encoder:remove"
_POSITIONS = Control(name="positions", label="Positions of the input", options={"no": "removed", "yes": "as trained"})
_SHARE_LENGTH, _BEYOND = 6, 12


def _switches(settings: Settings) -> tuple[str, ...]:
    return (GONE,) if settings["positions"] == "no" else ()


def _output_truth(bench: Bench) -> Truth:
    seen = bench.seen(MODEL, TEXT, GONE)
    got, right = seen.translation.split(), backwards(TEXT).split()
    option = 0 if got == right else 1 if sorted(got) == sorted(right) else 2
    kept = len(set(got) & set(right))
    return Truth(
        option,
        f"It writes {marked(seen.translation, backwards(TEXT))}. Of the {len(right)} letters of the input, {kept} "
        "still occur in the output. It knows which letters there are, and no longer where they stand.",
    )


def _output_scene(bench: Bench, settings: Settings) -> Scene:
    switches, lab = _switches(settings), bench.lab(MODEL)
    seen = bench.seen(MODEL, TEXT, *switches)
    lines = (f"Input: `{TEXT}`", f"*{MODEL}* writes {marked(seen.translation, backwards(TEXT))}")
    figure = Part(Compared(lab, bench.compared(MODEL, TEXT, *switches)), BothOutputs())
    return Scene(lines, (figure,) if switches else ())


def _share_truth(bench: Bench) -> Truth:
    pairs = held_out(_SHARE_LENGTH)
    without, with_ = (percent(bench.right(MODEL, pairs, *switches)) for switches in ((GONE,), ()))
    return Truth(
        without,
        f"Of {len(pairs)} strings of {_SHARE_LENGTH} letters it writes {without:.0f} % right without positions and "
        f"{with_:.0f} % with them.",
    )


def _order_truth(bench: Bench) -> Truth:
    first, second = (bench.seen(MODEL, text, GONE) for text in ("a b c d", "d c b a"))
    rows = [seen.encoder_self.weights[0, :, :4, :4] for seen in (first, second)]
    apart = float(np.abs(rows[0] - rows[1][:, ::-1, ::-1]).max())
    with_ = [bench.seen(MODEL, text).encoder_self.weights[0, :, :4, :4] for text in ("a b c d", "d c b a")]
    apart_with = float(np.abs(with_[0] - with_[1][:, ::-1, ::-1]).max())
    return Truth(
        1 if apart < 1e-4 else 0,
        f"In the first layer, *a* attends to *b*, *c* and *d* with the same weights in both strings: the largest "
        f"difference is {apart:.1e}. With positions it is {apart_with:.2f}. Attention compares contents, and contents "
        "do not say where they stand.",
    )


def _order_scene(bench: Bench, settings: Settings) -> Scene:
    parts = []
    for text in ("a b c d", "d c b a"):
        seen = bench.seen(MODEL, text, *_switches(settings))
        view = HeadMatrix(kind="encoder_self", layer=0, heads=(0,))
        parts.append(Part(Decoding(bench.lab(MODEL), seen), view, f"Input: {text}"))
    return Scene(parts=tuple(parts))


def _beyond_truth(bench: Bench) -> Truth:
    pairs = long_strings(_BEYOND)
    shares = [percent(bench.right(name, pairs)) for name in (MODEL, LEARNED)]
    best = 0 if shares[0] > shares[1] + 5 else 1 if shares[1] > shares[0] + 5 else 2
    return Truth(
        best,
        f"Of {len(pairs)} strings of {_BEYOND} letters, sinusoids get {shares[0]:.0f} % right and learned vectors "
        f"{shares[1]:.0f} %. A learned vector for place 11 has never been trained; a sinusoid continues its wave. But "
        "a wave that goes on is no guarantee that the model can use it: compare the two shares with the trained "
        "lengths, where both are nearly perfect.",
    )


def _beyond_scene(bench: Bench, settings: Settings) -> Scene:
    text = letters(int(settings["length"]))
    lines = tuple(
        f"*{name}* ({kind}) writes {marked(bench.seen(name, text).translation, backwards(text))}"
        for name, kind in ((MODEL, "sinusoids"), (LEARNED, "learned vectors"))
    )
    figure = Part(LearnedPositions(bench.lab(MODEL), None), PositionTables(d_model=64, length=16))
    return Scene((f"Input: `{text}`", *lines), (figure,))


POSITIONS = Lesson(
    slug="positions",
    title="Positions",
    question="How does a model without any order in its wiring know who comes first?",
    minutes=7,
    page="positions",
    onwards="Break positions in other ways on *Positions*",
    view={"model": MODEL},
    steps=(
        Step(
            title="Take the positions away",
            text="A Transformer has no first and no next: attention treats the input as a bag of words. So before the "
            "first layer, a vector that depends only on the **place** is added to each word's vector. "
            f"*{MODEL}* writes letters backwards and is right nearly always. We take the position vectors of the input "
            f"away and give it `{TEXT}`.",
            question="What does it write?",
            answer=Options(
                (
                    "the right answer: it has learned how to reverse",
                    "all the right letters, in a wrong order",
                    "something else",
                )
            ),
            truth=_output_truth,
            expects=(2, 2),
            do="Give the positions back, and take them away again.",
            controls=(_POSITIONS,),
            scene=_output_scene,
            keep="Without positions, attention sees which words there are, but not in which order.",
        ),
        Step(
            title="How often is it still right?",
            text="One string may be luck. We take many strings of 6 letters that the model never saw.",
            question="How many of them are still written right without positions?",
            answer=Estimate(least=0, most=100, unit=" %", close=10),
            truth=_share_truth,
            expects=(0, 10),
            do="Watch the string of the step before again: which letters does it repeat?",
            controls=(_POSITIONS,),
            scene=_output_scene,
            keep="One example shows what can happen; a share over many shows how often it does.",
        ),
        Step(
            title="Why attention cannot see order",
            text="Two strings with the same letters: `a b c d` and `d c b a`. Again the positions are removed. Think "
            "of lesson 2: a score compares one query with one key.",
            question="Does the letter *a* look at the other letters differently in the two strings?",
            answer=Options(
                ("yes, it attends to different letters", "no, its weights on b, c and d are the same in both")
            ),
            truth=_order_truth,
            expects=(1, 1),
            do="Compare the two matrices row by row: one is the other, turned around. Then put the positions back.",
            controls=(_POSITIONS,),
            scene=_order_scene,
            keep="Reorder the input, and self-attention only reorders its output. Positions break that symmetry.",
        ),
        Step(
            title="Longer than anything it has seen",
            text="The paper adds **sinusoids**: waves of different length, which go on for ever. One can also "
            f"**learn** a vector for each place, as *{LEARNED}* did. Both models trained on strings of at most 10 "
            f"letters. The paper hopes that sinusoids let a model go on to longer ones (3.5). We try {_BEYOND}.",
            question="Which one gets more strings of 12 letters right?",
            answer=Options(("sinusoids", "learned vectors", "about the same")),
            truth=_beyond_truth,
            expects=(2, 2),
            do="Go from 10 letters to 11 and 12. The figure shows the sinusoids themselves.",
            controls=(Control(name="length", label="Letters", options={str(n): str(n) for n in (10, 11, 12)}),),
            scene=_beyond_scene,
            keep="A model knows the places it has seen. How well it copes with others is to be measured, not assumed.",
        ),
    ),
)
