"""A model's token embeddings: the plane in which they spread the most, and the nearest neighbours of one token."""

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray

from transformer.model.families import AnyModel
from transformer.model.taps import Recorder
from transformer.model.transformer import Transformer
from transformer.text.token_ids import SPECIALS
from transformer.text.tokenizer import Tokenizer

Side = Literal["source", "target"]
Group = Literal["word", "character", "begins a word", "goes on", "byte", "special"]
GROUPS: tuple[Group, ...] = ("word", "character", "begins a word", "goes on", "byte", "special")
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")
_ROWS = 16
"""Rows of tokens in one pass."""


@dataclass(frozen=True)
class Plane:
    """Vectors projected on their first two principal components."""

    places: Float[ndarray, "token 2"]
    shares: Float[ndarray, "2"]
    """The shares of the whole variance."""


@dataclass(frozen=True)
class Neighbours:
    """The tokens whose vectors point most nearly the same way as one token's, the nearest first."""

    ids: Int[ndarray, " neighbour"]
    cosines: Float[ndarray, " neighbour"]


def embeddings(model: AnyModel, side: Side) -> Float[ndarray, "token d_model"]:
    """Returns the embedding matrix of a side, as it is trained: a pass multiplies it by the root of d_model."""
    if isinstance(model, Transformer):
        tokens = (model.encoder if side == "source" else model.decoder).embedding.tokens
    else:
        tokens = model.source_tokens if side == "source" else model.target_tokens
    return tokens.weight.detach().double().numpy()


@torch.no_grad()
def embeddings_in_passes(model: AnyModel, side: Side) -> Float[ndarray, "token d_model"]:
    """Returns the same as passes over the whole vocabulary show it, and divided by the root of d_model."""
    config = model.config
    width = min(config.max_length, config.vocab_size)
    n_rows = -(-config.vocab_size // width)
    ids = torch.arange(n_rows * width).clamp(max=config.vocab_size - 1).reshape(n_rows, width)
    stack = "encoder" if side == "source" else "decoder"
    found = []
    for rows in ids.split(_ROWS):
        seen, mask = Recorder(lambda site: str(site) == f"{stack}.embedding"), torch.ones_like(rows, dtype=torch.bool)
        memory = model.encode(rows, mask, tap=seen)
        if side == "target":
            model.decode(rows, memory, mask, mask, tap=seen)
        found.append(seen.recording[f"{stack}.embedding"].double().flatten(0, 1))
    return torch.cat(found)[: config.vocab_size].numpy() / np.sqrt(config.d_model)


def is_shared(model: AnyModel) -> bool:
    """Tells whether source and target have one embedding matrix."""
    return bool(model.config.tie_embeddings)


def principal_plane(vectors: Float[ndarray, "token d_model"]) -> Plane:
    """Returns the projection on the two eigenvectors of the covariance with the largest eigenvalues.

    Of the two directions that an eigenvector has, the one in which its largest entry is positive.
    """
    centred = vectors - vectors.mean(axis=0)
    values, directions = np.linalg.eigh(centred.T @ centred)
    first = directions[:, [-1, -2]]
    first = first * np.sign(first[np.abs(first).argmax(axis=0), [0, 1]])
    return Plane(centred @ first, values[[-1, -2]] / values.sum())


def neighbours(vectors: Float[ndarray, "token d_model"], token: int, n: int) -> Neighbours:
    """Returns the n tokens with the largest cosines to this one, without itself; a vector of zeros has cosine 0."""
    lengths = np.linalg.norm(vectors, axis=1)
    units = vectors / np.where(lengths > 0, lengths, 1.0)[:, None]
    cosines = units @ units[token]
    cosines[token] = -np.inf
    ids = np.argsort(-cosines, kind="stable")[: min(n, len(vectors) - 1)]
    return Neighbours(ids, cosines[ids])


def group_of(tokenizer: Tokenizer, piece: str) -> Group:
    """Returns what sort of vocabulary entry a piece is."""
    if piece in SPECIALS:
        return "special"
    if tokenizer.kind == "words":
        return "word"
    if tokenizer.kind == "char":
        return "character"
    if _BYTE.fullmatch(piece):
        return "byte"
    return "begins a word" if piece.startswith("▁") else "goes on"
