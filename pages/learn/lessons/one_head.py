"""Lesson 3: the same query, key and value in a real head of a trained model."""

import numpy as np

from pages.learn.lesson import Control, Drawing, Estimate, Lesson, Options, Part, Scene, Settings, Step, Truth
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
_CELL = Control(
    name="closed", label="The entry is closed in", options={"1": "layer 1", "0": "layer 0", "none": "no layer"}
)
_EMPTY = Drawing(rows=tuple(reversed(TEXT.split())), columns=tuple(TEXT.split()))
"""The empty matrix: for each letter that is written, the learner marks the input letter that the head looks at most."""
_LETTERS = Control(name="length", label="Letters", options={"6": "6", "4": "4", "9": "9"})


def _rows_truth(bench: Bench) -> Truth:
    rows = bench.seen(MODEL, TEXT).cross.weights[LAYER, HEAD, : len(_EMPTY.rows), : len(_EMPTY.columns)]
    most = rows.argmax(axis=1)
    row = rows[QUERY]
    return Truth(
        _EMPTY.number(most.tolist()),
        f"The head looks at the very letter that it is about to write. While it writes the second one, {row.max():.0%} "
        f"of its attention lies on *{TEXT.split()[most[QUERY]]}*: its query says, in effect, “the second letter from "
        f"the end”. Its least certain row has {rows.max(axis=1).min():.0%} in one place.",
    )


def _matrix_scene(bench: Bench, settings: Settings) -> Scene:
    text = letters(int(settings["length"]))
    seen = bench.seen(MODEL, text)
    said = f"*{MODEL}* reads `{text}` and writes {marked(seen.translation, backwards(text))}"
    return Scene((said,), (Part(Decoding(bench.lab(MODEL), seen), MATRIX),))


def _products_truth(bench: Bench) -> Truth:
    entry = bench.lab(MODEL).explain_entry(bench.seen(MODEL, TEXT), "cross", LAYER, HEAD, QUERY, KEY)
    largest = np.sort(entry.products)[::-1]
    needed = int((largest.cumsum() < entry.dot / 2).sum()) + 1
    return Truth(
        0 if needed == 1 else 1 if needed <= 4 else 2,
        f"The {len(largest)} products add up to {entry.dot:.1f}. The largest is {largest[0]:.1f}, and {needed} of them "
        f"make up half of the sum. Divided by √{len(largest)} the score is {entry.scaled:.2f}, and softmax makes "
        f"{entry.softmax:.2f} of it.",
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
        100 * followed / total,
        f"In {len(pairs)} strings that the model never trained on, {followed} of {total} rows have their largest "
        "weight on the letter that has to be written. What looks like a rule here was found by training alone.",
    )


def _closed_truth(bench: Bench) -> Truth:
    after = bench.compared(MODEL, TEXT, _CLOSED["1"])
    written, before = after.after.translation.split(), after.before.translation.split()
    option = 0 if written[QUERY] == before[QUERY] else 1 if written[QUERY] == before[QUERY - 1] else 2
    return Truth(
        option,
        f"It writes {marked(after.after.translation, backwards(TEXT))}. With the entry closed in all heads of layer 1, "
        f"the probability of *{before[QUERY]}* falls from {after.forced_before[QUERY]:.2f} to "
        f"{after.forced_after[QUERY]:.2g}: the value that lies there cannot be fetched in any other way.",
    )


def _closed_scene(bench: Bench, settings: Settings) -> Scene:
    switch = _CLOSED.get(settings["closed"])
    effect = bench.compared(MODEL, TEXT, *([switch] if switch else []))
    said = f"*{MODEL}* reads `{TEXT}` and writes {marked(effect.after.translation, backwards(TEXT))}"
    return Scene((said,), (Part(Compared(bench.lab(MODEL), effect), TokenProbabilities()),))


ONE_HEAD = Lesson(
    slug="one-head",
    title="A real head",
    question="What do query, key and value do in a model that has learned something?",
    minutes=7,
    page="attention",
    onwards="Take any entry of any head apart on *Attention*",
    view={"model": MODEL, "text": TEXT, "kind": "cross", "layer": str(LAYER), "head": str(HEAD)},
    steps=(
        Step(
            title="Where a head looks",
            text=f"*{MODEL}* is a small Transformer that writes letters backwards. Its decoder writes one letter after "
            "another. Before each one, every **head** of *cross-attention* makes a query from what has been written so "
            "far, compares it with the keys of the input letters, and fetches their values. We look at head "
            f"{HEAD} of layer {LAYER} (everything is counted from 0). The input is `{TEXT}`.",
            question="Where does this head look most as each letter is written? Rows are the letters written, columns "
            "the input letters: mark one place in each row.",
            answer=_EMPTY,
            truth=_rows_truth,
            expects=(654_321, 654_321),
            do="Each row is a letter being written, each column an input letter. Change the length of the input.",
            controls=(_LETTERS,),
            scene=_matrix_scene,
            keep="In a trained head, the query describes what is needed now, and the right key answers.",
        ),
        Step(
            title="Where a score comes from",
            text="In this model a head's query and key have 16 numbers each. The score is the sum of 16 products, "
            "divided by √16.",
            question="How many of the 16 products does it take to make up half of the winning score?",
            answer=Options(("one: a single number decides", "two to four", "more than four: all matter alike")),
            truth=_products_truth,
            expects=(1, 1),
            do="Look at the score of the winning letter e, then at those of other letters. Which products change?",
            controls=(
                Control(
                    name="key",
                    label="Input letter",
                    options={
                        str(i): letter for i, letter in sorted(enumerate(TEXT.split()), key=lambda pair: pair[0] != KEY)
                    },
                ),
            ),
            scene=_products_scene,
            keep="A key is a direction in space: several numbers together make it match, none of them has a name.",
        ),
        Step(
            title="A habit or a rule?",
            text="One string proves little. We take 50 strings of 6 letters which the model has never seen, and look "
            "at all six rows of each.",
            question="In how many of these rows does the head look most at the letter that has to be written?",
            answer=Estimate(least=0, most=100, unit=" %", close=8),
            truth=_always_truth,
            expects=(90, 100),
            do="Try other lengths. Does the pattern keep its shape?",
            controls=(_LETTERS,),
            scene=_matrix_scene,
            keep="Training wrote a program into the matrices W_Q and W_K: go to the mirrored place.",
        ),
        Step(
            title="Close the entry",
            text="A weight is only a number in a picture until we change it. We forbid the second row to look at *e*, "
            "in all four heads of layer 1, and let the model write again.",
            question="Which letter does it now write second?",
            answer=Options(("e, as before: it knows it from elsewhere", "f again", "some other letter")),
            truth=_closed_truth,
            expects=(1, 1),
            do="Close the same entry in layer 0 instead: the picture there looks similar. Does it matter as much?",
            controls=(_CELL,),
            scene=_closed_scene,
            keep="To learn whether a weight matters, take it away and measure. The picture alone cannot tell.",
        ),
    ),
)
