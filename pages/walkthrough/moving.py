"""The numbers that move along the map's arrows into the chosen step: a few of those of the followed token."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from pages.walkthrough.choices import Place
from transformer.analysis.trace.step import Value
from transformer.analysis.trace.ways import Way, ways_into
from transformer.figures.labels import readable
from transformer.figures.trace.diagram import Drawing
from transformer.views.trace import StepData

_N_NUMBERS, _N_TOKENS = 3, 2
"""The numbers that are shown of a vector, and the tokens of a row that has a number for each token."""


def moving_numbers(drawing: Drawing, place: Place, data: StepData) -> list[dict[str, Any]]:
    """Describes each value that comes into the step: its name, its path on the map, y from the top, and its numbers."""
    return [
        {
            "name": way.value.name,
            "points": [[x, drawing.height - y] for x, y in way.points],
            "text": " ".join(_numbers(way, place, data)),
        }
        for way in ways_into(drawing, place.step, place.layer, data.opened)
    ]


def _numbers(way: Way, place: Place, data: StepData) -> Iterator[str]:
    value = way.value
    row = _row(value, place)
    if value.columns == "id":
        yield str(int(row[0]))
        return
    tokens = data.tokens(value.columns)
    if tokens is None:
        shown = [_text(number) for number in row[:_N_NUMBERS]]
    else:
        order = np.argsort(-_where_allowed(value, row, place), kind="stable")[:_N_TOKENS]
        shown = [f"{readable(tokens[i])} {_text(row[i])}" for i in order]
    yield from shown
    if len(row) > len(shown):
        yield "…"


def _row(value: Value, place: Place) -> np.ndarray:
    matrix = value.values[place.head] if value.values.ndim == 3 else value.values
    return matrix[{"source": place.token, "one": 0}.get(value.rows, place.position)]


def _where_allowed(value: Value, row: np.ndarray, place: Place) -> np.ndarray:
    return row if value.allowed is None else np.where(value.allowed[place.row], row, -np.inf)


def _text(number: object) -> str:
    return f"{number:.2f}".replace("-", "−")
