"""A model's token embeddings: all of them on a map, and the nearest to one of them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.checks import Check, agree
from transformer.analysis.tokens.embeddings import (
    GROUPS,
    Group,
    Neighbours,
    Plane,
    Side,
    embeddings,
    embeddings_in_passes,
    group_of,
    neighbours,
    principal_plane,
)
from transformer.figures.tables import column_table, matrix_table, numbered
from transformer.figures.tokens.embeddings import cosine_bars, embedding_map
from transformer.lab import Lab

_PASSES = "vectors read from passes over the whole vocabulary"
_TOLERANCE = 1e-5
"""Rounding of float32: a pass multiplies the vectors."""


@dataclass(frozen=True)
class MapData:
    """Every token's place, and the tokens next to one of them."""

    tokens: tuple[str, ...]
    groups: tuple[Group, ...]
    plane: Plane
    picked: int
    nearest: Neighbours


@dataclass(frozen=True, kw_only=True)
class EmbeddingMap:
    """The embeddings of a model's vocabulary on their first two principal components."""

    token: str
    """The vocabulary entry whose neighbours are marked."""
    side: Side = "source"
    n: int = 6
    """The number of neighbours, by cosine in all dimensions."""
    name = "{side}-embedding-map"
    explained = (
        "Every entry of the vocabulary is a vector; here all of them are projected on the two directions in which they "
        "differ most (the first two principal components). Tokens that the model uses alike tend to lie close "
        "together. Much is lost in two dimensions, so neighbours are computed in all of them."
    )

    def data(self, lab: Lab) -> MapData:
        """Projects the embedding matrix and finds the token's neighbours; ValueError for an unknown token."""
        tokens, vectors = tuple(lab.tokenizer.vocabulary()), embeddings(lab.model, self.side)
        picked = id_of(self.token, tokens)
        groups = tuple(group_of(lab.tokenizer, token) for token in tokens)
        return MapData(tokens, groups, principal_plane(vectors), picked, neighbours(vectors, picked, self.n))

    def figure(self, data: MapData, *, dark: bool = False) -> go.Figure:
        """A dot for each token."""
        plane = data.plane
        given = data.tokens, data.groups, GROUPS, plane.places, plane.shares, data.picked, data.nearest.ids
        return embedding_map(*given, dark=dark)

    def tables(self, data: MapData) -> tuple[DataFrame, ...]:
        """The place of each token, the variance of both components, and the neighbours."""
        near = data.nearest
        return (
            matrix_table("places", data.plane.places, numbered(data.tokens), ["component 1", "component 2"]),
            column_table("variance", ["component 1", "component 2"], {"share": data.plane.shares}),
            column_table("neighbours", [data.tokens[token] for token in near.ids], {"cosine": near.cosines}),
        )

    def checks(self, lab: Lab, data: MapData) -> Iterator[Check]:
        """Reads the vectors from passes and decomposes them by their singular values."""
        vectors = embeddings_in_passes(lab.model, self.side)
        shown = embeddings(lab.model, self.side)
        yield agree("The vectors are those that a pass uses", shown, vectors, _TOLERANCE, _PASSES)
        centred = vectors - vectors.mean(axis=0)
        left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
        again = left[:, :2] * sizes[:2]
        again = again * np.sign((again * data.plane.places).sum(axis=0))
        how = f"{_PASSES}, decomposed by singular values"
        scale = max(1.0, float(np.abs(again).max()))
        yield agree("Places on both components", data.plane.places / scale, again / scale, 1e-3, how)
        shares = (sizes**2 / (sizes**2).sum())[:2]
        yield agree("Shares of the variance", data.plane.shares, shares, _TOLERANCE, how)
        yield from _check_neighbours(lab, vectors, self.token, self.n, data.picked, data.nearest)


@dataclass(frozen=True)
class NearestData:
    """A token's neighbours."""

    tokens: tuple[str, ...]
    picked: int
    nearest: Neighbours


@dataclass(frozen=True, kw_only=True)
class NearestTokens:
    """The vocabulary entries whose embeddings point most nearly the same way as one token's."""

    token: str
    side: Side = "source"
    n: int = 12
    name = "{side}-nearest-tokens"
    explained = (
        "The entries whose vectors point most nearly the same way as the chosen one's, in all dimensions: 1 is the "
        "same direction, 0 at right angles (cosine similarity). Nobody told the model which words are alike: it "
        "learned so from how they are used."
    )

    def data(self, lab: Lab) -> NearestData:
        """The largest cosines in all dimensions; ValueError for an unknown token."""
        tokens, vectors = tuple(lab.tokenizer.vocabulary()), embeddings(lab.model, self.side)
        picked = id_of(self.token, tokens)
        nearest = neighbours(vectors, picked, self.n)
        return NearestData(tuple(tokens[token] for token in nearest.ids), picked, nearest)

    def figure(self, data: NearestData, *, dark: bool = False) -> go.Figure:
        """A bar for each."""
        return cosine_bars(data.tokens, data.nearest.cosines, dark=dark)

    def tables(self, data: NearestData) -> tuple[DataFrame, ...]:
        """The cosine of each, by its id."""
        columns = {"id": data.nearest.ids, "cosine": data.nearest.cosines}
        return (column_table("neighbours", numbered(data.tokens), columns),)

    def checks(self, lab: Lab, data: NearestData) -> Iterator[Check]:
        """Reads the vectors from passes and compares the token with every other, one by one."""
        vectors = embeddings_in_passes(lab.model, self.side)
        yield from _check_neighbours(lab, vectors, self.token, self.n, data.picked, data.nearest)


def id_of(token: str, tokens: tuple[str, ...]) -> int:
    """Returns the id of a vocabulary entry; ValueError if there is none."""
    if token not in tokens:
        raise ValueError(f"the vocabulary has no entry {token!r}: choose one of its {len(tokens):,}")
    return tokens.index(token)


def _check_neighbours(
    lab: Lab, vectors: Float[ndarray, "token d_model"], token: str, n: int, picked: int, shown: Neighbours
) -> Iterator[Check]:
    yield agree("The token is the chosen one", picked, lab.tokenizer.vocabulary().index(token), 0, "looked up again")
    own = vectors[picked]
    cosines = np.array([_cosine(own, other) for other in vectors])
    how = f"{_PASSES}, each compared by itself"
    yield agree("Cosines", shown.cosines, cosines[shown.ids], _TOLERANCE, how)
    others = np.delete(cosines, picked)
    largest = np.sort(others)[::-1][:n]
    yield agree("No other token is nearer", shown.cosines, largest, _TOLERANCE, how)
    distinct = len({picked, *shown.ids.tolist()})
    yield agree("Each neighbour is another token", len(shown.ids) + 1, distinct, 0, "ids counted")


def _cosine(a: Float[ndarray, " d_model"], b: Float[ndarray, " d_model"]) -> float:
    size = np.sqrt((a * a).sum() * (b * b).sum())
    return float((a * b).sum() / size) if size else 0.0
