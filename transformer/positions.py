"""Where a token stands: the sinusoidal table, the learned table, or nothing (section 3.5)."""

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
    """Rows of the fixed table. It is no parameter and is not saved: it follows from d_model."""

    table: Tensor

    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        self.register_buffer("table", sinusoidal_table(max_length, d_model), persistent=False)

    def forward(self, start: int, length: int) -> Float[Tensor, "length d_model"]:
        return self.table[start : start + length]


class LearnedPositions(nn.Module):
    """Rows of a trained table, which ends at max_length."""

    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(max_length, d_model))
        nn.init.normal_(self.table, std=d_model**-0.5)

    def forward(self, start: int, length: int) -> Float[Tensor, "length d_model"]:
        return self.table[start : start + length]


def build_positions(kind: PositionKind, max_length: int, d_model: int) -> nn.Module | None:
    """The module that gives rows of the position table, or None for no positions."""
    match kind:
        case "sinusoidal":
            return SinusoidalPositions(max_length, d_model)
        case "learned":
            return LearnedPositions(max_length, d_model)
        case "none":
            return None
