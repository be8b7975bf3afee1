"""Sublayers and layers: feed-forward, dropout, add and norm, encoder layer, decoder layer (sections 3.1, 3.3, 5.4)."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from transformer.config import Activation, NormPlacement
from transformer.model.attention import MultiHeadAttention
from transformer.model.masks import AttentionMask
from transformer.model.taps import Address, Tap

Hidden = Float[Tensor, "batch length d_model"]
_LEVELS = 1 << 16


def activation_function(name: Activation) -> Callable[[Tensor], Tensor]:
    """The named non-linearity; swish is x * sigmoid(x)."""
    match name:
        case "relu":
            return _relu
        case "gelu":
            return F.gelu
        case "swish":
            return F.silu


def _relu(x: Tensor) -> Tensor:
    """Works in the memory of its input, which nobody else reads, where no gradient is wanted."""
    return F.relu(x, inplace=not torch.is_grad_enabled())


class Dropout(nn.Module):
    """Dropout: in training each element is 0 with probability `rate`, and all others are divided by 1 - rate.

    Drawn from torch's generator of the device (Srivastava et al. 2014; section 5.4). On a CPU the rate is met to 1 part
    in 2^16: torch draws a 53-bit number for each element there, one after the other, which was a tenth of a training
    step. Sixteen bits decide as well: one 64-bit draw serves four elements.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """The same shape; `x` itself where nothing is dropped."""
        if not self.training or round(self.rate * _LEVELS) == 0:
            return x
        return _dropped(x, self.rate) if x.device.type == "cpu" else F.dropout(x, self.rate)

    def extra_repr(self) -> str:
        return f"rate={self.rate}"


def _dropped(x: Tensor, rate: float) -> Tensor:
    dropped_levels = round(rate * _LEVELS)
    kept = _random_int16(x.shape) >= dropped_levels - _LEVELS // 2
    return x * kept.to(x.dtype).mul_(_LEVELS / (_LEVELS - dropped_levels))


def _random_int16(shape: torch.Size) -> Tensor:
    """Uniform on all 2^16 values, four to each draw."""
    n = shape.numel()
    draws = torch.empty(-(-n // 4), dtype=torch.int64).random_(-(2**63), None)
    return draws.view(torch.int16)[:n].view(shape)


def is_autocast(device: str) -> bool:
    """Tells whether products on this type of device run in autocast's precision; never where it knows no autocast."""
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)


class FeedForward(nn.Module):
    """max(0, x W_1 + b_1) W_2 + b_2, the same at every position (section 3.3, eq. 2)."""

    def __init__(self, d_model: int, d_ff: int, *, activation: Activation, dropout: float) -> None:
        super().__init__()
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)
        self.activation = activation_function(activation)
        self.dropout = Dropout(dropout)

    def forward(self, x: Hidden) -> Hidden:
        return self.outer(self.dropout(self.activation(self.inner(x))))


class AddNorm(nn.Module):
    """The residual sum and layer norm around one sublayer.

    Post-norm (the paper, section 3.1): LayerNorm(x + Dropout(Sublayer(x))). Pre-norm:
    x + Dropout(Sublayer(LayerNorm(x))), the later variant that trains without warm-up; its stacks end in one more norm.
    Either part may be missing: without a norm there is no site `normed`, without the residual none of that name.
    """

    def __init__(
        self,
        d_model: int,
        *,
        norm: NormPlacement,
        residual: bool = True,
        dropout: float,
        epsilon: float,
        address: Address,
    ) -> None:
        super().__init__()
        self.placement = norm
        self.residual = residual
        self.address = address
        self.norm = None if norm == "none" else nn.LayerNorm(d_model, eps=epsilon)
        self.dropout = Dropout(dropout)

    def forward(self, x: Hidden, sublayer: Callable[[Tensor], Tensor], tap: Tap | None) -> Hidden:
        x = self.address.offer(tap, "input", x)
        residual = self.address.offer(tap, "residual", x) if self.residual else None
        x = self._normed(x, tap) if self.placement == "pre" else x
        x = self.dropout(self.address.offer(tap, "output", sublayer(x)))
        x = x if residual is None else residual + x
        return self._normed(x, tap) if self.placement == "post" else x

    def _normed(self, x: Hidden, tap: Tap | None) -> Hidden:
        assert self.norm is not None, "only a placement of none has no norm"
        return self.address.offer(tap, "normed", self.norm(x))


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each in its add-and-norm."""

    def __init__(
        self,
        self_attention: MultiHeadAttention,
        feed_forward: FeedForward,
        *,
        add_norm_self: AddNorm,
        add_norm_ffn: AddNorm,
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.feed_forward = feed_forward
        self.add_norm_self = add_norm_self
        self.add_norm_ffn = add_norm_ffn

    def forward(self, x: Hidden, mask: AttentionMask, tap: Tap | None = None) -> Hidden:
        x = self.add_norm_self(x, lambda x: self.self_attention(x, None, mask, tap=tap), tap)
        return self.add_norm_ffn(x, self.feed_forward, tap)


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention onto the encoder's memory, then feed-forward."""

    def __init__(
        self,
        self_attention: MultiHeadAttention,
        cross_attention: MultiHeadAttention,
        feed_forward: FeedForward,
        *,
        add_norm_self: AddNorm,
        add_norm_cross: AddNorm,
        add_norm_ffn: AddNorm,
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.feed_forward = feed_forward
        self.add_norm_self = add_norm_self
        self.add_norm_cross = add_norm_cross
        self.add_norm_ffn = add_norm_ffn

    def forward(
        self,
        x: Hidden,
        memory: Float[Tensor, "batch source d_model"],
        self_mask: AttentionMask,
        cross_mask: AttentionMask,
        *,
        tap: Tap | None = None,
    ) -> Hidden:
        x = self.add_norm_self(x, lambda x: self.self_attention(x, None, self_mask, tap=tap), tap)
        x = self.add_norm_cross(x, lambda x: self.cross_attention(x, memory, cross_mask, tap=tap), tap)
        return self.add_norm_ffn(x, self.feed_forward, tap)
