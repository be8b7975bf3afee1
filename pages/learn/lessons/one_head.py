"""Lesson 3: the same query, key and value in a real head of a trained model."""

import numpy as np

from pages.learn.lesson import TEXTS, Control, Drawing, Estimate, Lesson, Options, Part, Scene, Settings, Step, Truth
from pages.shared.bench.bench import Bench
from pages.shared.bench.strings import backwards, held_out, letters, marked
from transformer.views.attention.entry import EntryProducts
from transformer.views.attention.matrices import HeadMatrix
from transformer.views.before_after import TokenProbabilities
from transformer.views.subjects import Compared, Decoding

MODEL, LAYER, HEAD = "reverse", 1, 2
"""A head of cross-attention in the last layer."""
TEXT, QUERY = letters(6), 1
"""The decoder writes its second letter."""
KEY = len(TEXT.split()) - 1 - QUERY
"""The letter that stands there from the end."""
MATRIX = HeadMatrix(kind="cross", layer=LAYER, heads=(HEAD,))
_CLOSED = {"1": f"forbid:decoder.1.cross:{QUERY},{KEY}", "0": f"forbid:decoder.0.cross:{QUERY},{KEY}"}
_CELL = Control(name="closed", values=("1", "0", "none"))
_EMPTY = Drawing(rows=tuple(reversed(TEXT.split())), columns=tuple(TEXT.split()))
"""The empty matrix: for each letter that is written, the learner marks the input letter that the head looks at most."""
_LETTERS = Control(name="length", values=("6", "4", "9"))


def _rows_truth(bench: Bench) -> Truth:
    rows = bench.seen(MODEL, TEXT).cross.weights[LAYER, HEAD, : len(_EMPTY.rows), : len(_EMPTY.columns)]
    most = rows.argmax(axis=1)
    row = rows[QUERY]
    return Truth(
        _EMPTY.number(most.tolist()),
        TEXTS(
            "one-head.rows.told",
            share=100 * row.max(),
            letter=TEXT.split()[most[QUERY]],
            least=100 * rows.max(axis=1).min(),
        ),
    )


def _matrix_scene(bench: Bench, settings: Settings) -> Scene:
    text = letters(int(settings["length"]))
    seen = bench.seen(MODEL, text)
    said = TEXTS("reads_and_writes", model=MODEL, text=text, written=marked(seen.translation, backwards(text)))
    return Scene((said,), (Part(Decoding(bench.lab(MODEL), seen), MATRIX),))


def _products_truth(bench: Bench) -> Truth:
    entry = bench.lab(MODEL).explain_entry(bench.seen(MODEL, TEXT), "cross", LAYER, HEAD, QUERY, KEY)
    largest = np.sort(entry.products)[::-1]
    needed = int((largest.cumsum() < entry.dot / 2).sum()) + 1
    return Truth(
        0 if needed == 1 else 1 if needed <= 4 else 2,
        TEXTS(
            "one-head.score.told",
            n=len(largest),
            dot=entry.dot,
            largest=largest[0],
            needed=needed,
            scaled=entry.scaled,
            weight=entry.softmax,
        ),
    )


def _products_scene(bench: Bench, settings: Settings) -> Scene:
    view = EntryProducts(kind="cross", layer=LAYER, head=HEAD, query=QUERY, key=int(settings["key"]))
    return Scene(parts=(Part(Decoding(bench.lab(MODEL), bench.seen(MODEL, TEXT)), view),))


def _always_truth(bench: Bench) -> Truth:
    followed = total = 0
    pairs = held_out(6, 50)
    for source, _ in pairs:
        rows = bench.seen(MODEL, source).cross.weights[LAYER, HEAD, :6]
        followed += int((rows.argmax(-1) == np.arange(5, -1, -1)).sum())
        total += 6
    return Truth(
        100 * followed / total, TEXTS("one-head.habit.told", n_strings=len(pairs), followed=followed, total=total)
    )


def _closed_truth(bench: Bench) -> Truth:
    after = bench.compared(MODEL, TEXT, _CLOSED["1"])
    written, before = after.after.translation.split(), after.before.translation.split()
    option = 0 if written[QUERY] == before[QUERY] else 1 if written[QUERY] == before[QUERY - 1] else 2
    return Truth(
        option,
        TEXTS(
            "one-head.closed.told",
            written=marked(after.after.translation, backwards(TEXT)),
            letter=before[QUERY],
            before=after.forced_before[QUERY],
            after=after.forced_after[QUERY],
        ),
    )


def _closed_scene(bench: Bench, settings: Settings) -> Scene:
    switch = _CLOSED.get(settings["closed"])
    effect = bench.compared(MODEL, TEXT, *([switch] if switch else []))
    said = TEXTS("reads_and_writes", model=MODEL, text=TEXT, written=marked(effect.after.translation, backwards(TEXT)))
    return Scene((said,), (Part(Compared(bench.lab(MODEL), effect), TokenProbabilities()),))


ONE_HEAD = Lesson(
    slug="one-head",
    minutes=7,
    page="attention",
    view={"model": MODEL, "text": TEXT, "kind": "cross", "layer": str(LAYER), "head": str(HEAD)},
    steps=(
        Step(
            name="one-head.rows",
            answer=_EMPTY,
            truth=_rows_truth,
            expects=(654_321, 654_321),
            controls=(_LETTERS,),
            scene=_matrix_scene,
        ),
        Step(
            name="one-head.score",
            answer=Options("one-head.score"),
            truth=_products_truth,
            expects=(1, 1),
            controls=(
                Control(name="key", values=tuple(map(str, sorted(range(len(TEXT.split())), key=lambda i: i != KEY)))),
            ),
            scene=_products_scene,
        ),
        Step(
            name="one-head.habit",
            answer=Estimate(least=0, most=100, unit=" %", close=8),
            truth=_always_truth,
            expects=(90, 100),
            controls=(_LETTERS,),
            scene=_matrix_scene,
        ),
        Step(
            name="one-head.closed",
            answer=Options("one-head.closed"),
            truth=_closed_truth,
            expects=(1, 1),
            controls=(_CELL,),
            scene=_closed_scene,
        ),
    ),
)
