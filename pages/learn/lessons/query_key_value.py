"""Lesson 2: query, key and value as points in a plane that one can drag."""

import re

import numpy as np

from pages.learn.lesson import TEXTS, Control, Estimate, Lesson, Options, Part, Scene, Settings, Step, Truth
from pages.shared.bench.bench import Bench
from transformer.figures.attention.plane import REACH
from transformer.views.attention.plane import AttentionInPlane, PlaneData, Point, Points, names_of

POINTS = "points"
"""The name of the control that says where the points lie."""
_POINT = re.compile(r"-?\d(?:\.\d)?,-?\d(?:\.\d)?", re.ASCII)
N_TOKENS = 3
KEYS, VALUES = ((2.0, 0.5), (-0.5, 2.0), (-1.5, -1.5)), ((2.5, 0.0), (-1.0, 2.5), (-2.0, -2.0))
_SCALED = Control(name="scaled", values=("yes", "no"))


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
    return Control(name=POINTS, default=written(query), takes=lambda text: read_points(text) is not None)


def _scene(*, hull: bool = False) -> object:
    def scene(bench: Bench, settings: Settings) -> Scene:
        points = read_points(settings[POINTS])
        assert points is not None  # the control takes no others
        view = AttentionInPlane(scaled=settings.get("scaled", "yes") == "yes", hull=hull)
        return Scene(parts=(Part(points, view),))

    return scene


AIM, FAR, NONE = (1.5, -1.0), (0.8, 0.6), (0.0, 0.0)


def _aim_truth(bench: Bench) -> Truth:
    found = _attend(AIM)
    names, most = names_of(N_TOKENS), int(found.weights.argmax())
    weights = ", ".join(f"{name} {weight:.2f}" for name, weight in zip(names, found.weights, strict=True))
    return Truth(most, TEXTS("query-key-value.match.told", weights=weights, key=names[most]))


def _length_truth(bench: Bench) -> Truth:
    once, twice = (_attend((FAR[0] * factor, FAR[1] * factor)) for factor in (1, 2))
    before, after = float(once.weights.max()), float(twice.weights.max())
    moved = after - before
    return Truth(
        0 if moved > 0.01 else 2 if moved < -0.01 else 1,
        TEXTS("query-key-value.longer.told", before=before, after=after),
    )


def _zero_truth(bench: Bench) -> Truth:
    found = _attend(NONE)
    share = 100 * float(found.weights.min())
    return Truth(share, TEXTS("query-key-value.nothing.told", weight=found.weights[0]))


def _output_truth(bench: Bench) -> Truth:
    rng = np.random.default_rng(0)
    outside = 0
    for _ in range(200):
        found = _attend(tuple(rng.uniform(-REACH, REACH, 2).tolist()))
        outside += not _inside(found.output, np.array(VALUES))
    return Truth(0 if outside == 0 else 1, TEXTS("query-key-value.output.told", outside=TEXTS("how_many", n=outside)))


def _inside(point: np.ndarray, corners: np.ndarray) -> bool:
    """Tells whether a point lies in a triangle, by its barycentric coordinates."""
    shares = np.linalg.solve(np.vstack((corners.T, np.ones(3))), np.append(point, 1.0))
    return bool((shares >= -1e-6).all())


QUERY_KEY_VALUE = Lesson(
    slug="query-key-value",
    minutes=7,
    page="attention",
    view={"model": "reverse"},
    steps=(
        Step(
            name="query-key-value.match",
            answer=Options("query-key-value.match"),
            truth=_aim_truth,
            expects=(0, 0),
            controls=(_drag(AIM),),
            scene=_scene(),
        ),
        Step(
            name="query-key-value.longer",
            answer=Options("query-key-value.longer"),
            truth=_length_truth,
            expects=(0, 0),
            controls=(_drag(FAR), _SCALED),
            scene=_scene(),
        ),
        Step(
            name="query-key-value.nothing",
            answer=Estimate(least=0, most=100, unit=" %", close=4),
            truth=_zero_truth,
            expects=(33, 34),
            controls=(_drag(NONE),),
            scene=_scene(),
        ),
        Step(
            name="query-key-value.output",
            answer=Options("query-key-value.output"),
            truth=_output_truth,
            expects=(0, 0),
            controls=(_drag((1.5, 1.0)),),
            scene=_scene(hull=True),
        ),
    ),
)
