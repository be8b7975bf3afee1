"""Lesson 2: query, key and value as points in a plane that one can drag."""

import re

import numpy as np

from pages.learn.lesson import Control, Estimate, Lesson, Options, Part, Scene, Settings, Step, Truth
from pages.shared.bench.bench import Bench
from transformer.figures.attention.plane import REACH
from transformer.views.attention.plane import AttentionInPlane, PlaneData, Point, Points, names_of

POINTS = "points"
"""The name of the control that says where the points lie."""
_POINT = re.compile(r"-?\d(?:\.\d)?,-?\d(?:\.\d)?", re.ASCII)
N_TOKENS = 3
KEYS, VALUES = ((2.0, 0.5), (-0.5, 2.0), (-1.5, -1.5)), ((2.5, 0.0), (-1.0, 2.5), (-2.0, -2.0))
_SCALED = Control(name="scaled", label="Scores", options={"yes": "÷ √d_k", "no": "not divided"})


def written(query: Point, keys: tuple[Point, ...] = KEYS, values: tuple[Point, ...] = VALUES) -> str:
    """Returns the points as a link holds them: the query, then keys, then values."""
    return ";".join(f"{x:g},{y:g}" for x, y in (query, *keys, *values))


def read_points(text: str) -> Points | None:
    """Returns the points that a link says; None if they make no sense or lie outside the plane."""
    parts = text.split(";")
    if len(parts) != 1 + 2 * N_TOKENS or not all(_POINT.fullmatch(part) for part in parts):
        return None
    points = [(float(x), float(y)) for x, y in (part.split(",") for part in parts)]
    if any(abs(value) > REACH for point in points for value in point):
        return None
    return Points(points[0], tuple(points[1 : 1 + N_TOKENS]), tuple(points[1 + N_TOKENS :]))


def _attend(query: Point, *, keys: tuple[Point, ...] = KEYS, scaled: bool = True) -> PlaneData:
    return AttentionInPlane(scaled=scaled).data(query, keys, VALUES)


def _drag(query: Point) -> Control:
    return Control(name=POINTS, label="Points", options={}, default=written(query))


def _scene(default: Point) -> object:
    def scene(bench: Bench, settings: Settings) -> Scene:
        points = read_points(settings[POINTS]) or Points(default, KEYS, VALUES)
        return Scene(parts=(Part(points, AttentionInPlane(scaled=settings.get("scaled", "yes") == "yes")),))

    return scene


AIM, FAR, NONE = (1.5, -1.0), (0.8, 0.6), (0.0, 0.0)


def _aim_truth(bench: Bench) -> Truth:
    found = _attend(AIM)
    names, most = names_of(N_TOKENS), int(found.weights.argmax())
    weights = ", ".join(f"{name} {weight:.2f}" for name, weight in zip(names, found.weights, strict=True))
    return Truth(
        most,
        f"The weights are {weights}. Key {names[most]} points most nearly the same way as the query, so that "
        "multiplying the two coordinate by coordinate and adding gives the largest score.",
    )


def _length_truth(bench: Bench) -> Truth:
    once, twice = (_attend((FAR[0] * factor, FAR[1] * factor)) for factor in (1, 2))
    before, after = float(once.weights.max()), float(twice.weights.max())
    moved = after - before
    return Truth(
        0 if moved > 0.01 else 2 if moved < -0.01 else 1,
        f"The largest weight goes from {before:.2f} to {after:.2f}. Every score doubles, so the gaps between scores "
        "double, and softmax turns gaps into ratios: a gap of 1 is a factor of 2.7, a gap of 2 a factor of 7.4. That "
        "is why the paper divides scores by √d_k: otherwise long vectors make the softmax all or nothing.",
    )


def _zero_truth(bench: Bench) -> Truth:
    found = _attend(NONE)
    share = 100 * float(found.weights.min())
    return Truth(
        share,
        f"All three weights are {found.weights[0]:.3f}: a query of length 0 gives every key the score 0, and softmax "
        "turns equal scores into equal weights. The weights always add up to 1; attention cannot look at nothing.",
    )


def _output_truth(bench: Bench) -> Truth:
    rng = np.random.default_rng(0)
    outside = 0
    for _ in range(200):
        found = _attend(tuple(rng.uniform(-REACH, REACH, 2).tolist()))
        outside += not _inside(found.output, np.array(VALUES))
    return Truth(
        0 if outside == 0 else 1,
        f"We tried 200 random queries, and {outside or 'none'} of their outputs lay outside the triangle of the three "
        "values. The output is a weighted mean: it lies between the values and can never go beyond them.",
    )


def _inside(point: np.ndarray, corners: np.ndarray) -> bool:
    """Tells whether a point lies in a triangle, by its barycentric coordinates."""
    shares = np.linalg.solve(np.vstack((corners.T, np.ones(3))), np.append(point, 1.0))
    return bool((shares >= -1e-6).all())


QUERY_KEY_VALUE = Lesson(
    slug="query-key-value",
    title="Query, key and value",
    question="What is a key, and what does a query do with it?",
    minutes=7,
    page="attention",
    onwards="See queries and keys of a real head on *Attention*",
    view={"model": "reverse"},
    steps=(
        Step(
            title="Which key does the query match?",
            text="Attention works like a search. A word that looks for something sends out a **query**. Every word "
            "has a **key**, which says what can be found there, and a **value**, which is what one gets. All three are "
            "lists of numbers. Here they have only two each, so that we can draw them as arrows and points.\n\n"
            "How well a key matches is its **score**: multiply query and key coordinate by coordinate and add. Three "
            "words have the keys A (2, 0.5), B (−0.5, 2) and C (−1.5, −1.5). The query is (1.5, −1); with B it makes "
            "1.5 · (−0.5) + (−1) · 2 = −2.75.",
            question="Which key gets the largest weight?",
            answer=Options(("A", "B", "C")),
            truth=_aim_truth,
            expects=(0, 0),
            do="Drag the query q around, or select it with Tab and press the arrow keys. Turn it until B wins, then C.",
            controls=(_drag(AIM),),
            scene=_scene(AIM),
            keep="A key is what a word offers to be found by. The score is large if query and key point the same way.",
        ),
        Step(
            title="A longer query",
            text="**Softmax** turns scores into weights: it raises e to the power of each score and divides by the "
            "sum. The query is now (0.8, 0.6). We make it twice as long without turning it.",
            question="What happens to the largest weight?",
            answer=Options(("it grows", "it stays the same", "it shrinks")),
            truth=_length_truth,
            expects=(0, 0),
            do="Pull q away from the middle and back. Then take the division by √d_k away and watch the weights.",
            controls=(_drag(FAR), _SCALED),
            scene=_scene(FAR),
            keep="Direction decides which key wins; length decides by how much.",
        ),
        Step(
            title="A query that asks for nothing",
            text="Now the query lies in the middle: (0, 0).",
            question="How much weight does the least important of the three words get?",
            answer=Estimate(least=0, most=100, unit=" %", close=4),
            truth=_zero_truth,
            expects=(33, 34),
            do="Put q into the middle, then move it just a little.",
            controls=(_drag(NONE),),
            scene=_scene(NONE),
            keep="Weights always add up to 1. A head with nothing to look for still looks somewhere.",
        ),
        Step(
            title="What comes out",
            text="The keys have done their work: there are weights now. The output multiplies each **value** by its "
            "weight and adds them up. In the right-hand picture, thicker lines are larger weights.",
            question="Where can the output lie, whatever the query says?",
            answer=Options(("only inside the triangle of the three values", "anywhere in the plane")),
            truth=_output_truth,
            expects=(0, 0),
            do="Drag the values themselves, then the query, and try to push the output out of the triangle.",
            controls=(_drag((1.5, 1.0)),),
            scene=_scene((1.5, 1.0)),
            keep="Attention mixes values. Keys decide how much of each; they are not in the mixture themselves.",
        ),
    ),
)
