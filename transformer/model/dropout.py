"""Dropout (Srivastava et al. 2014; section 5.4) whose random numbers cost little on a CPU.

torch draws a 53-bit number for each element there, one after the other, which was a tenth of a training step. Sixteen
bits decide as well: one 64-bit draw serves four elements.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_LEVELS = 1 << 16


class Dropout(nn.Module):
    """Dropout: in training each element is 0 with probability `rate`, and all others are divided by 1 - rate.

    Drawn from torch's generator of the device. On a CPU the rate is met to 1 part in 2^16.
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
