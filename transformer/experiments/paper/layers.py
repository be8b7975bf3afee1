"""The layers of Table 1, bare: what the table counts and nothing beside it. They map [n, d] to [n, d].

None is the model's own: the table counts one head without projections, and three kinds that the model does not have.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

KERNEL = 3
"""The table's k: positions that a convolution sees."""
WINDOW = 64
"""The table's r: positions that restricted self-attention sees, half on each side."""
States = Float[Tensor, "n d"]


class SelfAttention(nn.Module):
    """softmax(x xᵀ / √d) x: each position meets each other one (n² d)."""

    def __init__(self, d: int) -> None:
        super().__init__()

    def forward(self, x: States) -> States:
        return torch.softmax(x @ x.T / math.sqrt(x.size(1)), dim=-1) @ x


class ProjectedSelfAttention(nn.Module):
    """Self-attention with the four d × d projections that a real layer has and the table leaves out (n² d + n d²)."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(d, d, bias=False) for _ in range(4))

    def forward(self, x: States) -> States:
        q, k, v = self.q(x), self.k(x), self.v(x)
        return self.o(torch.softmax(q @ k.T / math.sqrt(x.size(1)), dim=-1) @ v)


class RestrictedSelfAttention(nn.Module):
    """Self-attention among the WINDOW nearest positions (r n d): blocks of half a window meet their neighbours."""

    def __init__(self, d: int) -> None:
        super().__init__()

    def forward(self, x: States) -> States:
        n, d = x.shape
        half = WINDOW // 2
        blocks = math.ceil(n / half)
        wide = functional.pad(x, (0, 0, half, blocks * half - n + half))  # a block of nothing on both ends
        near = wide.unfold(0, 3 * half, half)  # -> [block d key]
        queries = wide[half : half + blocks * half].view(blocks, half, d)
        scores = (queries @ near / math.sqrt(d)).masked_fill(~_near(n, blocks, half, x.device), -math.inf)
        return (torch.softmax(scores, dim=-1) @ near.transpose(1, 2)).reshape(-1, d)[:n]


def _near(n: int, blocks: int, half: int, device: torch.device) -> Tensor:
    """Returns True where a query may see a key: at most half a window away, and inside the sequence."""
    query = torch.arange(blocks * half, device=device).view(blocks, half, 1)
    key = torch.arange(blocks, device=device).view(-1, 1, 1) * half + torch.arange(-half, 2 * half, device=device)
    inside = (key >= 0) & (key < n)
    return inside & ((query - key).abs() <= half) | (query >= n)  # padded queries see anything, and are cut off


class Recurrent(nn.Module):
    """tanh(W x + U h), one position after another (n d²)."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.rnn = nn.RNN(d, d, bias=False)

    def forward(self, x: States) -> States:
        return self.rnn(x)[0]


class Convolution(nn.Module):
    """Each position from its KERNEL nearest (k n d²)."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(d, d, KERNEL, padding=KERNEL // 2, bias=False)

    def forward(self, x: States) -> States:
        return self.convolution(x.T[None])[0].T


class SeparableConvolution(nn.Module):
    """Each number from its KERNEL nearest in time, then each position by itself (k n d + n d²)."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.in_time = nn.Conv1d(d, d, KERNEL, padding=KERNEL // 2, groups=d, bias=False)
        self.across = nn.Conv1d(d, d, 1, bias=False)

    def forward(self, x: States) -> States:
        return self.across(self.in_time(x.T[None]))[0].T


LAYERS: dict[str, Callable[[int], nn.Module]] = {
    "self-attention": SelfAttention,
    "restricted": RestrictedSelfAttention,
    "recurrent": Recurrent,
    "convolution": Convolution,
    "separable": SeparableConvolution,
    "with projections": ProjectedSelfAttention,
}
"""The layers by their names in the experiment."""
