"""Lesson 4: several heads, what each does, and how many of them are needed."""

from collections import Counter

import numpy as np

from pages.learn.lesson import Control, Estimate, Lesson, Options, Part, Scene, Settings, Step, Truth
from pages.shared.bench.bench import Bench
from pages.shared.bench.strings import letters
from transformer.views.attention.heads import AllHeads
from transformer.views.attention.matrices import HeadMatrix
from transformer.views.before_after import BothOutputs
from transformer.views.subjects import Compared, Decoding

MODEL, TEXT = "pronouns-en-fr", "The animal did not cross the street because it was too tired."
SYMBOLS, STRING = "reverse", letters(6)
LAYERS, HEADS = 2, 4
PLACES = {
    "encoder.{}.self": "encoder, layer {}",
    "decoder.{}.self": "decoder's own words, layer {}",
    "decoder.{}.cross": "decoder to source, layer {}",
}
_SUBLAYERS = {place.format(i): label.format(i) for place, label in PLACES.items() for i in range(LAYERS)}
_WHOLE = "off:decoder.1.cross:0,1,2,3"
_PLACE = Control(name="place", label="Where", options={key: _SUBLAYERS[key] for key in reversed(_SUBLAYERS)})
_HEAD = Control(name="head", label="Head", options={str(head): str(head) for head in range(HEADS)}, default="2")


def _alone_truth(bench: Bench) -> Truth:
    switches = [f"off:{place}:{head}" for place in _SUBLAYERS for head in range(HEADS)]
    before = bench.seen(MODEL, TEXT).target_ids
    changing = [switch for switch in switches if bench.seen(MODEL, TEXT, switch).target_ids != before]
    cross = sum(".cross" in switch for switch in changing)
    return Truth(
        len(changing),
        f"We switched off each of the {len(switches)} heads alone and decoded again: {len(changing)} of them change "
        f"the translation, {cross} of those in the attention from decoder to source. For the others, the rest of the "
        "model makes up.",
    )


def _alone_scene(bench: Bench, settings: Settings) -> Scene:
    return _compared_scene(bench, f"off:{settings['place']}:{settings['head']}")


def _compared_scene(bench: Bench, *switches: str) -> Scene:
    effect = bench.compared(MODEL, TEXT, *switches)
    said = f"*{effect.before.translation}* becomes *{effect.after.translation}*"
    if effect.after.target_ids == effect.before.target_ids:
        said = f"*{effect.after.translation}* stays, its least sure word at {effect.forced_after.min():.2f}"
    return Scene((said,), (Part(Compared(bench.lab(MODEL), effect), BothOutputs()),))


def _all_truth(bench: Bench) -> Truth:
    before, after = (bench.seen(MODEL, TEXT, *switches) for switches in ((), (_WHOLE,)))
    kept = Counter(before.target_tokens) & Counter(after.target_tokens)
    share = sum(kept.values()) / len(before.target_tokens)
    return Truth(
        0 if after.target_ids == before.target_ids else 1 if share > 0.8 else 2,
        f"It writes *{after.translation}* Only {share:.0%} of the right tokens are still there, end mark included. "
        "What one head lacks, its neighbours supply; without all four, nobody does.",
    )


def _all_scene(bench: Bench, settings: Settings) -> Scene:
    return _compared_scene(bench, f"off:{settings['place']}:0,1,2,3")


def _alike_truth(bench: Bench) -> Truth:
    weights = bench.seen(SYMBOLS, STRING).cross.weights[1, :, :6]
    wanted = np.arange(5, -1, -1)
    right = (weights.argmax(-1) == wanted).sum(-1)
    alike = int((right == len(wanted)).sum())
    largest = ", ".join(f"{value:.2f}" for value in weights[:, 1].max(-1))
    return Truth(
        alike,
        f"In {alike} of {HEADS} heads, all {len(wanted)} rows have their largest weight on the letter that has to be "
        f"written. For the second letter these weights are {largest}. Training gives heads random starts and no orders "
        "to differ.",
    )


def _alike_scene(bench: Bench, settings: Settings) -> Scene:
    subject = Decoding(bench.lab(SYMBOLS), bench.seen(SYMBOLS, STRING))
    one = HeadMatrix(kind="cross", layer=1, heads=(int(settings["head"]),))
    return Scene(parts=(Part(subject, one), Part(subject, AllHeads(kind="cross"), "All heads of both layers")))


MANY_HEADS = Lesson(
    slug="many-heads",
    title="Many heads",
    question="Why several heads, and does each of them matter?",
    minutes=6,
    page="heads",
    onwards="See what each head does over hundreds of sentences on *Heads*",
    view={"model": MODEL},
    steps=(
        Step(
            title="One head fewer",
            text="A **head** is one attention of its own, with its own queries, keys and values. The paper runs eight "
            f"side by side in each layer and joins what they found (section 3.2.2). *{MODEL}* has 24 heads: four in "
            f"each of six places. It translates “{TEXT}”. We switch off one head at a time, so that it adds nothing.",
            question="For how many of the 24 heads does the translation change?",
            answer=Estimate(least=0, most=24, close=3),
            truth=_alone_truth,
            expects=(1, 6),
            do="Choose a place and a head to switch off.",
            controls=(_PLACE, _HEAD),
            scene=_alone_scene,
            keep="Most heads can be spared alone: others carry the same information.",
        ),
        Step(
            title="All four at once",
            text="Now we switch off all four heads of one place together: the attention from decoder to source in the "
            "last layer, layer 1. The same attention in layer 0 stays on.",
            question="What happens to the translation?",
            answer=Options(("nothing", "a word or two change", "it becomes about something else")),
            truth=_all_truth,
            expects=(2, 2),
            do="Try the other places. Which can be missed altogether?",
            controls=(_PLACE,),
            scene=_all_scene,
            keep="That each head can be spared does not mean that all can. Test heads together, too.",
        ),
        Step(
            title="Do heads divide the work?",
            text=f"Back to *{SYMBOLS}*, which writes letters backwards, and its four heads from decoder to source in "
            f"layer 1. It reads `{STRING}`. Each head could look for something different.",
            question="How many of the four look, in every row, most at the letter that has to be written?",
            answer=Estimate(least=0, most=4, close=0),
            truth=_alike_truth,
            expects=(4, 4),
            do="Step through the heads of layer 1, then look at all of them.",
            controls=(Control(name="head", label="Head", options=_HEAD.options),),
            scene=_alike_scene,
            keep="Several heads make different patterns possible; on an easy task they may all learn the same one.",
        ),
    ),
)
