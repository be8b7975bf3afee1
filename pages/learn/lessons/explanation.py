"""Lesson 10: when attention weights explain an output, and when they do not."""

from functools import cache

import numpy as np

from pages.learn.lesson import TEXTS, Control, Estimate, Lesson, Options, Part, Scene, Settings, Step, Truth
from pages.shared import wording
from pages.shared.bench.bench import Bench
from pages.shared.bench.strings import held_out, letters, percent
from transformer.analysis.heads.leave_one_out import leave_one_out, spearman
from transformer.data.corpora import load_corpus
from transformer.text.pairs import words
from transformer.views.attention.matrices import HeadMatrix
from transformer.views.heads.leave_one_out import TokenDependence, WeightAgainstEffect
from transformer.views.heads.subjects import Hidden
from transformer.views.subjects import Decoding

MODEL = "pronouns-en-fr"
SENTENCES = {last: f"The animal did not cross the street because it was too {last}." for last in ("wide", "tired")}
"""Two sentences that differ in their last word, which says what *it* means."""
TEXT = SENTENCES["wide"]
_PRONOUNS = "il", "elle"
SYMBOLS = "reverse"
_WORDS = ("street", "it", "wide")
"""The words to choose from: the right one, and two that get much attention."""
_HALF = 0.5
"""The weight of a word that some head mostly looks at."""
_MATTERS, _IDLE = 1.0, 0.1
"""The log-probability, in nats, that hiding a word costs where the word matters, and where next to nothing does."""
_NO_SELF = ("block:encoder.0.self", "block:encoder.1.self")
_LAST = Control(name="last", values=tuple(SENTENCES))
_LAST_LAYER = Control(name="layer", values=("0", "1"), default="1")
_HEAD = Control(name="head", values=("0", "1", "2", "3"))
_LINKING_HEAD = Control(name="head", values=_HEAD.values, default="2")


def _effect(bench: Bench, text: str = TEXT) -> np.ndarray:
    seen = bench.seen(MODEL, text)
    return leave_one_out(bench.lab(MODEL).model, seen.source_ids, seen.target_ids, "hidden", seen.interventions)


def _subject(bench: Bench, text: str = TEXT) -> Hidden:
    return Hidden(bench.lab(MODEL), bench.seen(MODEL, text), "hidden", _effect(bench, text))


def _pronoun(bench: Bench, text: str) -> TokenDependence:
    """Returns the figure of the pronoun that stands for *it*."""
    tokens = bench.seen(MODEL, text).target_tokens
    return TokenDependence(step=next(i for i, token in enumerate(tokens) if token in _PRONOUNS))


def _weight_truth(bench: Bench) -> Truth:
    wide, tired = (_pronoun(bench, text).data(*vars(_subject(bench, text)).values()) for text in SENTENCES.values())
    least, second, third = np.argsort(wide.left)[:3].tolist()
    layer, second_layer = (int(wide.weights[:, place].argmax()) for place in (least, second))
    twin = tired.sources.index("tired")
    return Truth(
        _WORDS.index(wide.sources[least]),
        TEXTS(
            "explanation.effect.told",
            written=wide.written,
            needed=wide.sources[least],
            before=wide.whole,
            after=wide.left[least],
            second=wide.sources[second],
            second_after=wide.left[second],
            guess=_share_with(wide.written, wide.sources[least]),
            rest=wide.left[third],
            layer=layer,
            share=wide.weights[layer, least],
            second_layer=second_layer,
            second_share=wide.weights[second_layer, second],
            twin=tired.written,
            instead=_other_without(bench, tired.written, least),
            twin_share=tired.weights[layer, twin],
            twin_before=tired.whole,
            twin_after=tired.left[twin],
            twin_needed=tired.sources[int(tired.left.argmin())],
            twin_least=tired.left.min(),
        ),
    )


@cache
def _share_with(pronoun: str, word: str) -> float:
    """Returns the share of the validation set's sentences with this word whose translations have this pronoun, in
    percent."""
    pairs = [pair for pair in load_corpus(MODEL).validation if word in words(pair.source)]
    return percent(tuple(pronoun in words(pair.target) for pair in pairs))


def _other_without(bench: Bench, token: str, hidden: int) -> float:
    """Returns the probability that another token would get in the pronoun's place, with a source token hidden."""
    lab, seen, step = bench.lab(MODEL), bench.seen(MODEL, TEXT), _pronoun(bench, TEXT).step
    (other,) = (i for i in range(lab.tokenizer.vocab_size) if lab.tokenizer.piece(i) == token)
    target = [*seen.target_ids[:step], other]
    lost = leave_one_out(lab.model, seen.source_ids, target, "hidden", seen.interventions)[step, hidden]
    return float(np.exp(seen.log_probs[step, other] - lost))


def _effect_scene(bench: Bench, settings: Settings) -> Scene:
    text = SENTENCES[settings["last"]]
    lines = (TEXTS("explanation.effect.writes", text=text, written=bench.seen(MODEL, text).translation),)
    return Scene(lines, (Part(_subject(bench, text), _pronoun(bench, text)),))


def _rank_truth(bench: Bench) -> Truth:
    seen, effect = bench.seen(MODEL, TEXT), _effect(bench)
    found = np.array(
        [
            [[spearman(row, lost) for row, lost in zip(head, effect, strict=True)] for head in layer]
            for layer in seen.cross.weights
        ]
    )  # -> [layer head step]
    mean = float(np.nanmean(found))
    heavy, matters = seen.cross.weights.max((0, 1)) > _HALF, effect > _MATTERS
    layers = wording.listed(
        [TEXTS("explanation.all.layer", layer=i, mean=float(np.nanmean(found[i]))) for i in range(len(found))]
    )
    return Truth(
        0 if mean > 0.7 else 1 if mean > 0.3 else 2,
        TEXTS(
            "explanation.all.told",
            n_heads=found.shape[0] * found.shape[1],
            n_tokens=len(effect),
            mean=mean,
            layers=layers,
            matter=matters.sum(),
            seen=(matters & heavy).sum(),
            heavy=heavy.sum(),
            idle=(heavy & (effect < _IDLE)).sum(),
        ),
    )


def _rank_scene(bench: Bench, settings: Settings) -> Scene:
    view = WeightAgainstEffect(head=f"decoder.{settings['layer']}.cross.{settings['head']}")
    subject = _subject(bench)
    agreement = view.data(*vars(subject).values()).faithfulness.per_token
    return Scene((TEXTS("explanation.all.head", mean=agreement),), (Part(subject, view),))


def _idle_truth(bench: Bench) -> Truth:
    pairs = held_out(6)
    whole, without = (percent(bench.right(SYMBOLS, pairs, *switches)) for switches in ((), _NO_SELF))
    return Truth(without, TEXTS("explanation.patterns.told", without=without, n=len(pairs), whole=whole))


def _idle_scene(bench: Bench, settings: Settings) -> Scene:
    text = letters(6)
    seen = bench.seen(SYMBOLS, text)
    view = HeadMatrix(kind="encoder_self", layer=int(settings["layer"]), heads=(int(settings["head"]),))
    looked_at = seen.encoder_self.weights[view.layer, view.heads[0], :5].argmax(axis=1)
    following = int((looked_at == np.arange(1, 6)).sum())
    lines = (TEXTS("explanation.patterns.next", n=TEXTS("how_many", n=following)),)
    return Scene(lines, (Part(Decoding(bench.lab(SYMBOLS), seen), view),))


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
            expects=(2, 2),
            controls=(_LAST,),
            scene=_effect_scene,
        ),
        Step(
            name="explanation.all",
            answer=Options("explanation.all"),
            truth=_rank_truth,
            expects=(2, 2),
            controls=(_LAST_LAYER, _HEAD),
            scene=_rank_scene,
        ),
        Step(
            name="explanation.patterns",
            answer=Estimate(least=0, most=100, unit=" %", close=15),
            truth=_idle_truth,
            expects=(60, 100),
            controls=(_LAST_LAYER, _LINKING_HEAD),
            scene=_idle_scene,
        ),
    ),
)
