"""Splits the first layer's attention scores into words meeting words, words meeting places, and places meeting places.

The input of the first layer is a sum, content + position, and a score is bilinear in it, so it is a sum of four parts.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from torch import Tensor

from transformer.model.attention import MultiHeadAttention
from transformer.model.score_forms import SCORE_FORMS
from transformer.model.taps import Recorder, Site, Stack, Tap, chain
from transformer.model.transformer import Transformer

PARTS = ("content-content", "content-position", "position-content", "position-position")
"""The query's half, then the key's half."""


@dataclass(frozen=True)
class ScoreDecomposition:
    """The recorded scores of a stack's first self-attention, and the four parts that sum to them."""

    parts: Float[ndarray, "part head query key"]
    """The parts in the order of PARTS. Biases count as content."""
    scores: Float[ndarray, "head query key"]
    """The scores of the pass, before the mask."""
    mask: Bool[ndarray, "query key"]
    """True where the query may attend to the key."""

    @property
    def largest_error(self) -> float:
        """The largest difference between the sum of the parts and the recorded score."""
        return float(abs(self.parts.sum(axis=0) - self.scores).max())


@torch.no_grad()
def decompose_scores(
    model: Transformer,
    source: Int[Tensor, "1 source"],
    target: Int[Tensor, "1 target"],
    stack: Stack,
    *,
    tap: Tap | None = None,
) -> ScoreDecomposition:
    """Splits layer 0's self-attention scores in the pass of a source and a decoder input (with bos).

    Pre-norm divides by a standard deviation in between: the measured one is used for both halves, and the norm's own
    bias is content. ValueError for a model that adds no positions to its embeddings.
    """
    if Site(stack, None, None, "positions") not in model.sites():
        kind = model.config.positions
        why = "no positions are" if kind == "none" else f"{kind} positions are not"
        raise ValueError(f"scores cannot be split: {why} added to the embeddings")
    if not SCORE_FORMS[kind := model.config.score].is_bilinear:
        raise ValueError(f"{kind} scores are not bilinear, so they do not split into parts of content and position")
    names = {f"{stack}.embedding", f"{stack}.positions", f"{stack}.0.self.scores", f"{stack}.0.self.mask"}
    recorder = Recorder(lambda site: str(site) in names)
    model(source, target, tap=chain(tap, recorder))
    seen = recorder.recording
    layer = getattr(model, stack).layers[0]
    content, position = (seen[f"{stack}.{name}"][0].double() for name in ("embedding", "positions"))
    if model.config.norm == "pre":
        content, position = _normed(layer.add_norm_self.norm, content, position)
    attention: MultiHeadAttention = layer.self_attention
    q_content, q_position = _projected(attention.query, content, position, attention.n_heads)
    k_content, k_position = _projected(attention.key, content, position, attention.n_heads)
    parts = [attention.score(q[None], k[None])[0] for q in (q_content, q_position) for k in (k_content, k_position)]
    return ScoreDecomposition(
        parts=torch.stack(parts).numpy(),
        scores=seen[f"{stack}.0.self.scores"][0].double().numpy(),
        mask=seen[f"{stack}.0.self.mask"][0, 0].numpy(),
    )


def _normed(norm: torch.nn.LayerNorm, content: Tensor, position: Tensor) -> tuple[Tensor, Tensor]:
    """Returns both halves of the layer norm of their sum, with the sum's own standard deviation."""
    total = content + position
    deviation = (total.var(dim=-1, correction=0, keepdim=True) + norm.eps).sqrt()
    gain = norm.weight.double() / deviation
    content, position = (gain * (part - part.mean(dim=-1, keepdim=True)) for part in (content, position))
    return content + norm.bias.double(), position


def _projected(projection: torch.nn.Linear, content: Tensor, position: Tensor, n_heads: int) -> tuple[Tensor, Tensor]:
    """Returns both halves as heads [head length d_head]; the bias goes with the content."""
    weight, bias = projection.weight.double(), projection.bias.double()
    return tuple(
        part.unflatten(-1, (n_heads, -1)).transpose(0, 1) for part in (content @ weight.T + bias, position @ weight.T)
    )  # type: ignore[return-value]
