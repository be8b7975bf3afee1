"""Lesson 10: when attention weights explain an output, and when they do not."""

import numpy as np

from pages.learn.lesson import Control, Estimate, Lesson, Options, Part, Scene, Settings, Step, Truth
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
_NO_SELF = ("block:encoder.0.self", "block:encoder.1.self")
_LAYER = Control(name="layer", label="Layer", options={"0": "0", "1": "1"})
_HEAD = Control(name="head", label="Head", options={str(head): str(head) for head in range(4)})


def _effect(bench: Bench) -> np.ndarray:
    seen = bench.seen(MODEL, TEXT)
    return leave_one_out(bench.lab(MODEL).model, seen.source_ids, seen.target_ids, "hidden", seen.interventions)


def _at(bench: Bench) -> tuple[int, list[int]]:
    """Returns the step of the word, and the places of the source words in question."""
    seen = bench.seen(MODEL, TEXT)
    return seen.target_tokens.index(WORD), [seen.source_tokens.index(word) for word in _WORDS]


def _subject(bench: Bench) -> Hidden:
    return Hidden(bench.lab(MODEL), bench.seen(MODEL, TEXT), "hidden", _effect(bench))


def _weight_truth(bench: Bench) -> Truth:
    step, places = _at(bench)
    weights = bench.seen(MODEL, TEXT).cross.weights[:, :, step].mean(axis=(0, 1))
    effects = _effect(bench)[step]
    found = {word: (float(weights[i]), float(effects[i])) for word, i in zip(_WORDS, places, strict=True)}
    needed = max(found, key=lambda word: found[word][1])
    rival = max((word for word in found if word != needed), key=lambda word: found[word][0])
    told = "; ".join(f"*{word}* {weight:.2f}" for word, (weight, _) in found.items())
    return Truth(
        _WORDS.index(needed),
        f"While *{WORD}* is written, the words get these shares of the attention, averaged over all heads: {told}. "
        f"Hiding *{needed}* costs *{WORD}* {found[needed][1]:.3f} nats of its log-probability; hiding *{rival}*, which "
        f"draws {found[rival][0]:.2f} of the attention, costs it {found[rival][1]:.3f}. *{WORD}* is masculine because "
        "*animal* is.",
    )


def _effect_scene(bench: Bench, settings: Settings) -> Scene:
    seen = bench.seen(MODEL, TEXT)
    matrix = HeadMatrix(kind="cross", layer=int(settings["layer"]), heads=(0, 1, 2, 3))
    return Scene(
        parts=(
            Part(_subject(bench), LeaveOneOut(), "What each output token loses when a source token is hidden"),
            Part(Decoding(bench.lab(MODEL), seen), matrix, "The attention of all four heads, averaged"),
        )
    )


def _rank_truth(bench: Bench) -> Truth:
    seen, effect = bench.seen(MODEL, TEXT), _effect(bench)
    rows = [
        spearman(weights[step], effect[step])
        for layer in seen.cross.weights
        for weights in layer
        for step in range(len(effect))
    ]
    mean = float(np.nanmean(rows))
    n_heads = seen.cross.weights.shape[0] * seen.cross.weights.shape[1]
    return Truth(
        0 if mean > 0.8 else 1 if mean > 0.1 else 2,
        f"Over {n_heads} heads and {len(effect)} output tokens the mean rank correlation (Spearman) is {mean:.2f}, "
        "where 1 would be the same order and 0 no relation. There is some truth in the weights, and much noise.",
    )


def _rank_scene(bench: Bench, settings: Settings) -> Scene:
    view = WeightAgainstEffect(head=f"decoder.{settings['layer']}.cross.{settings['head']}")
    return Scene(parts=(Part(_subject(bench), view),))


def _idle_truth(bench: Bench) -> Truth:
    pairs = held_out(6)
    without, one = percent(bench.right(SYMBOLS, pairs, *_NO_SELF)), percent(bench.right(SYMBOLS, pairs, _NO_SELF[0]))
    return Truth(
        without,
        f"Without any self-attention in the encoder {without:.0f} % of {len(pairs)} strings are right; without that of "
        f"layer 0 alone, {one:.0f} %. Its matrices look like patterns, and the model hardly uses them: to reverse, the "
        "decoder only needs letters and places, which reach it around the attention.",
    )


def _idle_scene(bench: Bench, settings: Settings) -> Scene:
    text = letters(6)
    seen = bench.seen(SYMBOLS, text)
    view = HeadMatrix(kind="encoder_self", layer=int(settings["layer"]), heads=(int(settings["head"]),))
    return Scene(parts=(Part(Decoding(bench.lab(SYMBOLS), seen), view),))


EXPLANATION = Lesson(
    slug="explanation",
    title="What attention explains",
    question="A word gets a large weight. Is it the reason for the output?",
    minutes=7,
    page="heads",
    onwards="Weigh every head against its effect on *Heads*",
    view={"model": MODEL, "text": TEXT},
    steps=(
        Step(
            title="Weight or effect?",
            text=f"*{MODEL}* translates “{TEXT}” In French, *animal* is masculine and *rue* (street) feminine, so “it” "
            f"becomes *{WORD}* if the animal is meant. To find out what a word is good for, we **hide** it from all "
            f"attention and measure how much less probable *{WORD}* becomes.",
            question=f"Which word, hidden, makes *{WORD}* least probable?",
            answer=Options(_WORDS),
            truth=_weight_truth,
            expects=(0, 0),
            do=f"Find the row *{WORD}* in both figures. Where do they agree, where not?",
            controls=(_LAYER,),
            scene=_effect_scene,
            keep="A weight says where a head looks. Only hiding the word says whether the output needs it.",
        ),
        Step(
            title="All heads, all words",
            text="Perhaps that was one odd word. For every head and every output token we rank the source words twice: "
            "by weight and by effect, and compare the rankings (Jain and Wallace 2019).",
            question="How well do they agree?",
            answer=Options(("nearly perfectly", "somewhat", "not at all")),
            truth=_rank_truth,
            expects=(1, 1),
            do="Go through the heads. Each point is one source word for one output token.",
            controls=(_LAYER, _HEAD),
            scene=_rank_scene,
            keep="Attention weights are a hint, not a proof. Trust those whose effect was measured.",
        ),
        Step(
            title="Patterns that nobody needs",
            text=f"*{SYMBOLS}* writes letters backwards. Its encoder has eight heads of self-attention, and each has a "
            "pattern that one could tell a story about. We take all of it away, in both layers.",
            question="How many of 100 strings are still right?",
            answer=Estimate(least=0, most=100, unit=" %", close=15),
            truth=_idle_truth,
            expects=(60, 100),
            do="Look at the patterns of the eight heads, knowing what they are worth.",
            controls=(_LAYER, _HEAD),
            scene=_idle_scene,
            keep="A beautiful pattern may have hardly any effect. Before you explain it, switch it off.",
        ),
    ),
)
