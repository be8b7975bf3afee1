"""Attention in two dimensions: one query, a few keys and values that can be drawn as points, and what comes out."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import plotly.graph_objects as go
import torch
from jaxtyping import Float
from numpy import ndarray
from pandas import DataFrame
from torch import Tensor

from transformer.analysis.checks import Check, agree
from transformer.figures.attention.plane import plane_figure
from transformer.figures.tables import matrix_table
from transformer.model.attention import explicit_attention
from transformer.model.scores import DotProduct
from transformer.views.view import OF_FIGURE, Origin

Point = tuple[float, float]
_TOLERANCE = 1e-6
"""Rounding of float32."""


@dataclass(frozen=True)
class Points:
    """One query, with the keys and the values of some tokens, as points of a plane."""

    query: Point
    keys: tuple[Point, ...]
    values: tuple[Point, ...]

    @property
    def origin(self) -> Origin:
        """Writes the points."""
        lines = tuple(f"{name} = {value!r}" for name, value in vars(self).items())
        return Origin("plane", f"query {self.query}", (), lines)


@dataclass(frozen=True)
class PlaneData:
    """The points, and what attention makes of them."""

    query: Float[ndarray, "2"]
    keys: Float[ndarray, "key 2"]
    values: Float[ndarray, "key 2"]
    scores: Float[ndarray, " key"]
    weights: Float[ndarray, " key"]
    output: Float[ndarray, "2"]


@dataclass(frozen=True, kw_only=True)
class AttentionInPlane:
    """Dot-product attention of one query with d_k = 2 (section 3.2.1, eq. 1), by the library's own function."""

    scaled: bool = True
    """Divides scores by sqrt(d_k), as the paper does."""
    hull: bool = field(default=False, metadata=OF_FIGURE)
    """Draws the triangle of the values, in which the output lies."""

    name = "plane"
    explained = (
        "Attention with vectors of two numbers, so that they can be drawn: on the left the query and the keys, on the "
        "right the values. The better a key points along the query, and the longer it is, the larger its score; "
        "softmax turns the scores into weights, and the output is the mean of the values with these weights."
    )

    def data(self, query: Point, keys: tuple[Point, ...], values: tuple[Point, ...]) -> PlaneData:
        """Computes scores, weights and output; ValueError where there are not as many keys as values."""
        if not keys or len(keys) != len(values):
            raise ValueError(f"every token has a key and a value, but there are {len(keys)} and {len(values)}")
        q, k, v = _heads([query]), _heads(keys), _heads(values)
        score, mask = DotProduct(scaled=self.scaled), torch.ones(1, 1, 1, len(keys), dtype=torch.bool)
        # The weights are those that the function gives to values which are one at one token and zero elsewhere.
        weights = explicit_attention(q, k, torch.eye(len(keys))[None, None], mask, score=score)
        output = explicit_attention(q, k, v, mask, score=score)
        found = (q[0, 0, 0], k[0, 0], v[0, 0], score(q, k)[0, 0, 0], weights[0, 0, 0], output[0, 0, 0])
        return PlaneData(*(tensor.numpy() for tensor in found))

    def figure(self, data: PlaneData, *, dark: bool = False) -> go.Figure:
        """Draws the query with the keys, and beside them the values with the output."""
        points = data.query, data.keys, data.values
        return plane_figure(*points, data.weights, data.output, hull=self.hull, dark=dark)

    def tables(self, data: PlaneData) -> tuple[DataFrame, ...]:
        """Returns a row for each token, and the query with the output."""
        rows = [f"token {name}" for name in names_of(len(data.keys))]
        columns = ["key x", "key y", "value x", "value y", "score", "weight"]
        values = np.column_stack((data.keys, data.values, data.scores, data.weights))
        ends = np.stack((data.query, data.output))
        tokens = matrix_table("tokens", values, rows, columns)
        return tokens, matrix_table("query and output", ends, ["query", "output"], ["x", "y"])

    def checks(
        self, query: Point, keys: tuple[Point, ...], values: tuple[Point, ...], data: PlaneData
    ) -> Iterator[Check]:
        """Computes each number again from its definition, in Python's double precision."""
        shown = (data.query, data.keys, data.values)
        for name, points, given in zip(
            ("query is", "keys are", "values are"), shown, (query, keys, values), strict=True
        ):
            yield agree(f"The {name} what was set", points, given, _TOLERANCE, "the points as they were given")
        divisor = math.sqrt(2) if self.scaled else 1.0
        scores = [(query[0] * x + query[1] * y) / divisor for x, y in keys]
        yield agree("Each score is the dot product", data.scores, scores, _TOLERANCE, "multiplied and added one by one")
        powers = [math.exp(score - max(scores)) for score in scores]
        weights = [power / sum(powers) for power in powers]
        yield agree("The weights are their softmax", data.weights, weights, _TOLERANCE, "exponentials over their sum")
        output = [sum(w * value[axis] for w, value in zip(weights, values, strict=True)) for axis in (0, 1)]
        yield agree("The output is the weighted mean", data.output, output, _TOLERANCE, "weights times values, added")


def names_of(n_tokens: int) -> list[str]:
    """Returns the names of tokens: A, B, C and so on."""
    return [chr(ord("A") + i) for i in range(n_tokens)]


def _heads(points: object) -> Float[Tensor, "1 1 token 2"]:
    return torch.tensor(points, dtype=torch.float32)[None, None]
