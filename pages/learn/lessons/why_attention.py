"""Lesson 1: a vector that forgets, and the attention that made up for it."""

import numpy as np

from pages.learn.lesson import Control, Estimate, Lesson, Options, Part, Scene, Settings, Step, Truth
from pages.shared.bench.bench import Bench
from pages.shared.bench.strings import backwards, held_out, letters, marked, percent
from transformer.analysis.reach.vector_probe import LengthProbe
from transformer.views.attention.matrices import HeadMatrix
from transformer.views.experiments import ExperimentCurves, Measured
from transformer.views.reach.bottleneck import Bottleneck
from transformer.views.reach.subjects import Probed
from transformer.views.subjects import Decoding

VECTOR, ATTENTION = "reverse-rnn", "reverse-rnn-attention"
LONGEST = 10
"""The length of the longest strings that both models trained on."""
_LENGTH = Control(name="length", label="Letters", options={str(n): str(n) for n in (3, 6, 8, 10)})


def _longest(bench: Bench) -> LengthProbe:
    return max(bench.probe(VECTOR).lengths, key=lambda each: each.length)


def _exact_truth(bench: Bench) -> Truth:
    pairs = held_out(LONGEST)
    share, short = percent(bench.right(VECTOR, pairs)), percent(bench.right(VECTOR, held_out(4)))
    return Truth(
        share,
        f"It wrote {share:.0f} % of {len(pairs)} strings of {LONGEST} letters without a mistake, and {short:.0f} % of "
        "those of 4 letters. It trained on both. The vector has the same size for every string, so a long one does "
        "not fit as well.",
    )


def _written(bench: Bench, settings: Settings, *names: str) -> tuple[str, ...]:
    text = letters(int(settings["length"]))
    return (
        f"Input: `{text}`",
        *(f"*{name}* writes {marked(bench.seen(name, text).translation, backwards(text))}" for name in names),
    )


def _exact_scene(bench: Bench, settings: Settings) -> Scene:
    figure = Part(Probed(bench.lab(VECTOR), bench.probe(VECTOR)), Bottleneck(shows="written"))
    return Scene(_written(bench, settings, VECTOR), (figure,))


def _place_truth(bench: Bench) -> Truth:
    found = _longest(bench)
    share = found.right / len(found.tested)
    parts = (share[0], float(share[1:-1].min()), share[-1])
    worst = int(np.argmin(parts))
    return Truth(
        worst,
        f"Of strings of {found.length} letters, a small classifier that sees nothing but the vector reads the first "
        f"letter back {share[0]:.0%} of the time, the last {share[-1]:.0%}, and the worst one in the middle "
        f"{parts[1]:.0%}. This encoder reads in both directions, and each direction remembers best what it read last.",
    )


def _place_scene(bench: Bench, settings: Settings) -> Scene:
    return Scene(parts=(Part(Probed(bench.lab(VECTOR), bench.probe(VECTOR)), Bottleneck(shows="positions")),))


def _look_truth(bench: Bench) -> Truth:
    text = letters(8)
    seen = bench.seen(ATTENTION, text)
    weights = seen.cross.weights[0, 0, 2]
    most = int(weights.argmax())
    letter, written = text.split()[most] if most < 8 else "the end mark", seen.translation.split()[2]
    option = {2: 0, 5: 1}.get(most, 2)
    return Truth(
        option,
        f"While it writes its third letter, *{written}*, {weights[most]:.0%} of the attention lies on input letter "
        f"{most + 1}, *{letter}*: the third from the end. Nobody told it where to look. It learned that from pairs of "
        "strings alone.",
    )


def _look_scene(bench: Bench, settings: Settings) -> Scene:
    seen = bench.seen(ATTENTION, letters(int(settings["length"])))
    figure = Part(Decoding(bench.lab(ATTENTION), seen), HeadMatrix(kind="cross", layer=0, heads=(0,)))
    return Scene(_written(bench, settings, ATTENTION), (figure,))


def _gain_truth(bench: Bench) -> Truth:
    pairs = held_out(LONGEST)
    with_, without = (percent(bench.right(name, pairs)) for name in (ATTENTION, VECTOR))
    return Truth(
        with_,
        f"With attention {with_:.0f} % of {len(pairs)} strings of {LONGEST} letters are right; with one vector it was "
        f"{without:.0f} %. Attention also brings more parameters. The experiment below has other models, with equally "
        "many of each kind, and so other numbers: is the gap still there?",
    )


def _gain_scene(bench: Bench, settings: Settings) -> Scene:
    results = bench.results("why-attention")
    view = ExperimentCurves(metric="exact_match", x="length", by="model", where=(("task", "reverse"),))
    figure = Part(Measured(results), view, "Five trainings of each kind")
    return Scene(_written(bench, settings, VECTOR, ATTENTION), (figure,))


WHY_ATTENTION = Lesson(
    slug="why-attention",
    title="Why attention?",
    question="Why is one vector not enough to remember a sentence?",
    minutes=6,
    page="before",
    onwards="Look into the vector of other models on *Before attention*",
    view={"model": VECTOR},
    steps=(
        Step(
            title="One vector for everything",
            text="Before 2015, a neural translator read a sentence word by word and packed it into **one vector**: a "
            "list of numbers of fixed length. A second network then wrote the translation from that vector alone. "
            f"*{VECTOR}* does the same with a simpler task: it reads letters and writes them backwards. It trained on "
            "strings of 1 to 10 letters.",
            question="Of 100 new strings of 10 letters, how many does it write backwards without a single mistake?",
            answer=Estimate(least=0, most=100, unit=" %", close=15),
            truth=_exact_truth,
            expects=(0, 30),
            do="Give it longer and longer strings. The figure shows, over many strings, how many of each length "
            "come out without a mistake.",
            controls=(_LENGTH,),
            scene=_exact_scene,
            keep="A vector of fixed size holds less of each word the longer the sentence is.",
        ),
        Step(
            title="What does the vector forget?",
            text="We can ask the vector what it remembers. For each place in the string we fit a small classifier, a "
            "*linear probe*, which sees only the vector and guesses the letter that stood there. That is a "
            "lower bound: the decoder, which takes the vector apart step by step, can read more. This encoder reads "
            "the string from left to right and from right to left.",
            question="Which letters of a string of 10 are hardest to read back?",
            answer=Options(("the first ones", "those in the middle", "the last ones")),
            truth=_place_truth,
            expects=(1, 1),
            do="Each row is a length, each cell a place in the string. Point at a cell for its numbers.",
            scene=_place_scene,
            keep="What is read last is remembered best; what lies in between fades.",
        ),
        Step(
            title="Let the decoder look back",
            text="Bahdanau, Cho and Bengio (2015) kept a state for **every** input letter and let the decoder look at "
            "all of them each time it writes. How much it looks at each is a number between 0 and 1, the *attention "
            f"weight*; the weights of one output letter add up to 1. *{ATTENTION}* works like this. It also writes "
            "strings backwards.",
            question="It reads 8 letters. While it writes its **third** letter, where does it look most?",
            answer=Options(("at the third input letter", "at the third letter from the end", "at all letters alike")),
            truth=_look_truth,
            expects=(1, 1),
            do="Each row is an output letter, each column an input letter. Change the length and follow the pattern.",
            controls=(Control(name="length", label="Letters", options=_LENGTH.options, default="8"),),
            scene=_look_scene,
            keep="Attention lets each output look up the inputs it needs, so that nothing has to fit into one vector.",
        ),
        Step(
            title="What did that buy?",
            text="Now the same test for both: strings of 10 letters, none of them seen in training.",
            question=f"How many of them does *{ATTENTION}* write without a mistake?",
            answer=Estimate(least=0, most=100, unit=" %", close=10),
            truth=_gain_truth,
            expects=(90, 100),
            do="Compare both on one string. The figure shows five trainings of each kind, and of a Transformer, at "
            "lengths in and beyond the training range.",
            controls=(Control(name="length", label="Letters", options=_LENGTH.options, default="10"),),
            scene=_gain_scene,
            keep="Attention removes the bottleneck. The Transformer goes further: it keeps nothing but attention.",
        ),
    ),
)
