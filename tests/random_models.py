"""Tiny models with nothing left at its initial value, and token batches to run them on.

With layer-norm gains of 1 and biases of 0 a wrong mapping of weights passes every comparison, so all are randomised.
"""

from typing import Any

import torch
from torch import Tensor, nn

from transformer.config import ModelConfig
from transformer.model import Transformer

TINY: dict[str, Any] = dict(
    vocab_size=23,
    d_model=16,
    n_heads=4,
    d_ff=24,
    n_encoder_layers=2,
    n_decoder_layers=3,
    max_length=64,
    dropout=0.0,
    embedding_dropout=0.0,
)


def randomise(model: nn.Module) -> None:
    """Draws every layer-norm gain and bias and every linear bias anew."""
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, std=0.5)
        elif isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.normal_(module.bias, std=0.5)


def random_model(dtype: torch.dtype = torch.float32, **changes: Any) -> Transformer:
    """A randomised tiny model in eval mode, with the given settings changed."""
    model = Transformer(ModelConfig(**{**TINY, **changes}))
    randomise(model)
    return model.to(dtype).eval()


def random_ids(batch: int, length: int, vocab_size: int = TINY["vocab_size"]) -> Tensor:
    """Token ids without special ones."""
    return torch.randint(4, vocab_size, (batch, length))


def ragged_batch() -> tuple[Tensor, Tensor]:
    """Sources and decoder inputs of several lengths, padded on the right."""
    source, target = random_ids(3, 9), random_ids(3, 7)
    target[:, 0] = 1
    source[1, 5:] = source[2, 2:] = 0
    target[1, 4:] = target[2, 1:] = 0
    return source, target
