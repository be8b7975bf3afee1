"""Positions of tokens: the sinusoidal table, the learned table, or nothing (section 3.5); rotary and ALiBi.

The two tables are added to the embeddings. Rotary and ALiBi, which are later than the paper, act inside self-attention.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer.config import PositionKind


def sinusoidal_table(
    length: int, d_model: int, *, base: float = 10_000.0, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "position d_model"]:
    """PE(pos, 2i) = sin(pos / base^(2i / d_model)), PE(pos, 2i + 1) = cos of the same angle (section 3.5).

    Computed in float64 and rounded once, so that far positions are as exact as near ones.
    """
    if d_model % 2:
        raise ValueError(f"d_model ({d_model}) must be even: each frequency needs a sine and a cosine")
    position = torch.arange(length, dtype=torch.float64)[:, None]
    frequency = torch.exp(torch.arange(0, d_model, 2, dtype=torch.float64) * (-math.log(base) / d_model))
    angle = position * frequency
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1).to(dtype)  # [position d_model/2 2] -> interleaved


class SinusoidalPositions(nn.Module):
    """The first rows of the fixed table. It is no parameter and is not saved: it follows from d_model."""

    table: Tensor

    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        self.register_buffer("table", sinusoidal_table(max_length, d_model), persistent=False)

    def forward(self, length: int) -> Float[Tensor, "length d_model"]:
        return self.table[:length]


class LearnedPositions(nn.Module):
    """The first rows of a trained table, which ends at max_length."""

    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(max_length, d_model))
        nn.init.normal_(self.table, std=d_model**-0.5)

    def forward(self, length: int) -> Float[Tensor, "length d_model"]:
        return self.table[:length]


def build_positions(kind: PositionKind, max_length: int, d_model: int) -> nn.Module | None:
    """The module that gives rows of the position table, or None where nothing is added to the embeddings."""
    match kind:
        case "sinusoidal":
            return SinusoidalPositions(max_length, d_model)
        case "learned":
            return LearnedPositions(max_length, d_model)
        case "none" | "rotary" | "alibi":
            return None


class RotaryPositions(nn.Module):
    """Queries and keys turned by an angle that grows with their position (Su et al. 2021, RoFormer, eq. 34).

    Dimensions 2i and 2i + 1 of a head turn together, by the very angles of the sinusoidal table for d_head. Of place, a
    score then knows the offset of key from query alone. Nothing is trained and nothing saved.
    """

    sines: Tensor
    cosines: Tensor

    def __init__(self, max_length: int, d_head: int) -> None:
        super().__init__()
        table = sinusoidal_table(max_length, d_head)
        self.register_buffer("sines", table[:, 0::2].contiguous(), persistent=False)
        self.register_buffer("cosines", table[:, 1::2].contiguous(), persistent=False)

    def forward(
        self, x: Float[Tensor, "batch head length d_head"], start: int
    ) -> Float[Tensor, "batch head length d_head"]:
        """The given queries or keys, which stand at positions from `start` on, turned."""
        sine, cosine = (table[start : start + x.size(2)] for table in (self.sines, self.cosines))
        even, odd = x[..., 0::2], x[..., 1::2]
        turned = torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), dim=-1)
        return turned.flatten(-2).to(x.dtype)  # autocast hands in bfloat16; the tables are float32


class AlibiPositions(nn.Module):
    """A penalty on each score, a slope of the head's own times the distance of query and key (Press et al. 2022).

    The paper's decoder only looks back; in an encoder the distance counts the same in both directions, so that tokens
    in mirrored order have the same states, mirrored: only an end mark that always stands last tells which way they run.
    """

    slopes: Tensor

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.register_buffer("slopes", torch.tensor(alibi_slopes(n_heads)), persistent=False)

    def forward(self, n_queries: int, n_keys: int) -> Float[Tensor, "1 head query key"]:
        """Returns the term added to the scores; the last query stands at the last key."""
        key = torch.arange(n_keys, device=self.slopes.device)
        distance = (key[n_keys - n_queries :, None] - key).abs()
        return (-self.slopes[:, None, None] * distance)[None]


def alibi_slopes(n_heads: int) -> list[float]:
    """The published slopes: 2^(-8/n), 2^(-16/n), ... for a power of two; else those of the power of two below, then
    every second one of the power of two above."""
    power = 2 ** (n_heads.bit_length() - 1)
    slopes = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    between = [2 ** (-4 * (i + 1) / power) for i in range(0, 2 * power, 2)]
    return slopes + between[: n_heads - power]


def build_relative_positions(
    kind: PositionKind, max_length: int, n_heads: int, d_head: int
) -> RotaryPositions | AlibiPositions | None:
    """Builds the positions that self-attention itself knows; None for the kinds that are added to the embeddings."""
    match kind:
        case "rotary":
            return RotaryPositions(max_length, d_head)
        case "alibi":
            return AlibiPositions(n_heads)
        case "sinusoidal" | "learned" | "none":
            return None
