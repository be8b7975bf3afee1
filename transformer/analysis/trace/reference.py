"""The mathematics of a forward pass written a second time, in float64, with none of the model's code (sections 3.1 to
3.5). The model's parameters are read; its functions and forward methods are not called.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

_BASE = 10_000.0
"""The longest wavelength of sinusoids and rotations, divided by 2π."""


def linear(layer: nn.Linear, x: Tensor) -> Tensor:
    """Computes x Wᵀ + b."""
    product = x.double() @ layer.weight.detach().double().T
    return product if layer.bias is None else product + layer.bias.detach().double()


def layer_norm(norm: nn.Module | None, x: Tensor) -> Tensor:
    """Brings mean 0 and variance 1 into each row, then the learned gain and shift."""
    assert isinstance(norm, nn.LayerNorm)
    centred = x.double() - x.double().mean(dim=-1, keepdim=True)
    spread = (centred.square().mean(dim=-1, keepdim=True) + norm.eps).sqrt()
    return centred / spread * norm.weight.detach().double() + norm.bias.detach().double()


def activation(name: str, x: Tensor) -> Tensor:
    """Applies the named non-linearity of the feed-forward network."""
    match name:
        case "relu":
            return x.clamp(min=0)
        case "gelu":
            return x * (1 + torch.erf(x / math.sqrt(2))) / 2
        case "swish":
            return x / (1 + (-x).exp())
    raise ValueError(f"there is no activation {name!r} here")


def softmax(scores: Tensor, allowed: Tensor | None = None) -> Tensor:
    """Returns the shares of each row over its allowed entries; a row without any is 0."""
    scores = scores.double()
    allowed = torch.ones_like(scores, dtype=torch.bool) if allowed is None else allowed.expand_as(scores)
    hidden = scores.where(allowed, -torch.inf)
    top = hidden.amax(dim=-1, keepdim=True).clamp(min=torch.finfo(torch.float64).min)
    powers = (hidden - top).exp()
    return powers / powers.sum(dim=-1, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny)


def sinusoids(length: int, width: int) -> Tensor:
    """Returns sin and cos of pos / 10000^(2i/width), interleaved (section 3.5)."""
    table = [[pos / _BASE ** (2 * (j // 2) / width) for j in range(width)] for pos in range(length)]
    angles = torch.tensor(table, dtype=torch.float64)
    return torch.where(torch.arange(width) % 2 == 0, angles.sin(), angles.cos())


def rotated(x: Tensor) -> Tensor:
    """Turns queries or keys [head row d_head], as complex numbers, by an angle that grows with the row (Su et al. 2021,
    eq. 34)."""
    _, length, width = x.shape
    frequencies = _BASE ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = torch.outer(torch.arange(length, dtype=torch.float64), frequencies)
    turned = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous()) * torch.exp(1j * angles)
    return torch.view_as_real(turned).flatten(-2)


def distance_penalty(n_heads: int, n_queries: int, n_keys: int) -> Tensor:
    """Returns −m |t − j| for each head [head query key], with the published slopes m (Press et al. 2022)."""
    distance = torch.tensor([[abs(t - j) for j in range(n_keys)] for t in range(n_queries)], dtype=torch.float64)
    return -torch.tensor(_slopes(n_heads), dtype=torch.float64)[:, None, None] * distance


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """Splits [row d_model] -> [head row d_head]."""
    return torch.stack(x.chunk(n_heads, dim=-1))


def join_heads(heads: Tensor) -> Tensor:
    """Joins [head row d_head] -> [row d_model]."""
    return torch.cat(tuple(heads), dim=-1)


def _slopes(n_heads: int) -> list[Any]:
    """Returns a geometric sequence from 2^(-8/n) where n is a power of two.

    Else it is that of the power below, filled up with every second slope of the power above, as in the authors' code.
    """
    if math.log2(n_heads).is_integer():
        start = 2 ** (-(2 ** -(math.log2(n_heads) - 3)))
        return [start ** (i + 1) for i in range(n_heads)]
    below = 2 ** math.floor(math.log2(n_heads))
    return _slopes(below) + _slopes(2 * below)[0::2][: n_heads - below]
