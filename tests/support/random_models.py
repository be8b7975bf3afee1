"""Tiny models with nothing left at its initial value, and token batches to run them on.

With layer-norm gains of 1 and biases of 0 a wrong mapping of weights passes every comparison, so all are randomised.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations
from typing import Any

import torch
from torch import Tensor, nn

from transformer.config import ConvolutionalConfig, ModelConfig, NormPlacement, RecurrentConfig
from transformer.model.attention import MultiHeadAttention
from transformer.model.convolutional import ConvolutionalModel
from transformer.model.layers import Dropout
from transformer.model.masks import AttentionMask, key_mask
from transformer.model.recurrent import RecurrentModel
from transformer.model.taps import ATTENTION_TENSORS, Address, Site, Tap
from transformer.model.transformer import Transformer

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

RECURRENT_BUILDS: list[dict[str, Any]] = [
    dict(cell=cell, **decoder)
    for cell in ("lstm", "gru")
    for decoder in (
        *(dict(attention=kind) for kind in ("none", "additive", "dot", "general")),
        *(dict(attention=kind, input_feeding=True) for kind in ("dot", "general")),
    )
]
"""Every kind of cell with every way to ask the source."""


CONVOLUTIONAL_BUILDS: list[dict[str, Any]] = [
    dict(),
    dict(separable=True),
    dict(kernel=5, dilated=False),
    dict(separable=True, kernel=5, n_encoder_layers=1, n_decoder_layers=1),
]
"""Every kind of convolution."""


DECODER_BUILDS: list[dict[str, Any]] = [
    *({"positions": kind} for kind in ("sinusoidal", "learned", "none", "rotary", "alibi")),
    *({"norm": norm} for norm in ("pre", "none")),
    *({"activation": name} for name in ("gelu", "swish")),
    {"residual": False},
    {"scale_scores": False},
    {"score": "additive"},
    {"score": "additive", "positions": "alibi"},
    {"score": "multiplicative"},
    {"score": "multiplicative", "positions": "alibi", "scale_scores": False},
    *({"window": 2, "positions": kind} for kind in ("sinusoidal", "rotary", "alibi")),
    {"output_bias": True, "tie_output": False},
]
"""Every setting that changes what a Transformer's decoder computes."""


OTHER_SCORES = ({"score": "additive"}, {"score": "multiplicative"})
"""Settings for each score but the paper's."""


COMBINED_BUILDS: list[dict[str, Any]] = [
    {"positions": "sinusoidal"},
    {"positions": "learned", "norm": "pre", "activation": "gelu", "score": "multiplicative", "window": 2},
    {"positions": "none", "norm": "none", "activation": "swish"},
    {"positions": "rotary", "residual": False, "scale_scores": False, "window": 2},
    {"positions": "alibi", "score": "additive", "output_bias": True, "tie_output": False},
]
"""The same settings, each value once, in as few builds as positions allow: for what takes long on each build."""


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


def random_recurrent(dtype: torch.dtype = torch.float32, **changes: Any) -> RecurrentModel:
    """A tiny recurrent model in eval mode with all biases randomised, with the given settings changed."""
    sizes: dict[str, Any] = {name: TINY[name] for name in ("vocab_size", "d_model", "max_length", "dropout")}
    model = RecurrentModel(RecurrentConfig(**{**sizes, **changes}))
    randomise(model)
    for name, parameter in model.named_parameters():
        if "bias_" in name:  # of an LSTM or GRU
            nn.init.normal_(parameter, std=0.5)
    return model.to(dtype).eval()


def random_convolutional(dtype: torch.dtype = torch.float32, **changes: Any) -> ConvolutionalModel:
    """A tiny convolutional model in eval mode with all biases randomised, with the given settings changed."""
    sizes = {name: TINY[name] for name in ("vocab_size", "d_model", "max_length", "dropout")}
    model = ConvolutionalModel(ConvolutionalConfig(**{**sizes, **changes}))
    randomise(model)
    return model.to(dtype).eval()


Makers = dict[str, Callable[..., Transformer | RecurrentModel | ConvolutionalModel]]


def _makers(family: str, make: Callable[..., Any], builds: Sequence[dict[str, Any]]) -> Makers:
    return {
        " ".join([family, *(f"{n}={value}" for n, value in build.items())]): partial(make, **build) for build in builds
    }


_OTHERS = _makers("recurrent", random_recurrent, RECURRENT_BUILDS) | _makers(
    "convolutional", random_convolutional, CONVOLUTIONAL_BUILDS
)
EVERY_BUILD = _makers("transformer", random_model, DECODER_BUILDS) | _OTHERS
"""Makes a model of every build of every family."""
EVERY_SETTING = _makers("transformer", random_model, COMBINED_BUILDS) | _OTHERS
"""Makes models with every value of every setting, those of Transformers combined."""


@contextmanager
def dropout_factors(model: nn.Module) -> Iterator[list[Tensor]]:
    """The factors by which dropout multiplies within its block, call by call; NaN where it is given a 0."""
    found: list[Tensor] = []

    def note(module: nn.Module, given: tuple[Tensor], output: Tensor) -> None:
        found.append((output / given[0]).detach())

    handles = [module.register_forward_hook(note) for module in model.modules() if isinstance(module, Dropout)]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


def assert_lawful(factors: list[Tensor], rate: float) -> None:
    """Asserts that each factor is 0 or 1 / (1 - rate), in the right proportion, and that each call draws its own."""
    values = torch.cat([factor[~factor.isnan()] for factor in factors]).double()
    # The rate is met to 1 part in 2^16.
    assert ((values == 0) | ((values * (1 - rate) - 1).abs() < 2**-16 / (1 - rate))).all()
    standard_error = math.sqrt(rate * (1 - rate) / len(values))  # of the share of n independent draws
    assert abs((values == 0).double().mean().item() - rate) < 5 * standard_error
    for one, other in combinations(factors, 2):
        known = None if one.shape != other.shape else ~(one + other).isnan()
        assert known is None or not torch.equal(one[known], other[known])


def random_ids(batch: int, length: int, vocab_size: int = TINY["vocab_size"]) -> Tensor:
    """Token ids without special ones."""
    return torch.randint(4, vocab_size, (batch, length))


def staircase(n_query: int, n_key: int) -> Tensor:
    """The causal mask: each query sees its own position and those before it, the last query every key."""
    return torch.ones(n_query, n_key, dtype=torch.bool).tril(n_key - n_query)


def ragged_batch() -> tuple[Tensor, Tensor]:
    """Sources and decoder inputs of several lengths, padded on the right."""
    source, target = random_ids(3, 9), random_ids(3, 7)
    target[:, 0] = 1
    source[1, 5:] = source[2, 2:] = 0
    target[1, 4:] = target[2, 1:] = 0
    return source, target


def hidden_sources() -> tuple[Tensor, Tensor]:
    """Three sources of several lengths, padded; of the last nothing may be seen at all."""
    source = random_ids(3, 9)
    source[1, 4:] = 0
    real = source != 0
    real[2] = False
    return source, real


def half_trained_model(dtype: torch.dtype = torch.float32, norm: NormPlacement = "post") -> Transformer:
    """A model after 60 steps on reversal, in eval mode: its outputs differ from row to row, and most of them end.

    An untrained model mostly repeats one token for ever, which would prove little about decoding.
    """
    return deepcopy(_half_trained(norm)).to(dtype)


@cache
def _half_trained(norm: NormPlacement) -> Transformer:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = random_model(d_model=32, n_decoder_layers=2, vocab_size=12, norm=norm).train()
        optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
        for _ in range(60):
            source, target = reversals(32)
            logits = model(source, target[:, :-1])
            loss = nn.functional.cross_entropy(logits.transpose(1, 2), target[:, 1:], ignore_index=0)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return model.eval()


def reversals(batch: int, longest: int = 7) -> tuple[Tensor, Tensor]:
    """Random symbols with eos, and bos, their reversal, eos; padded on the right."""
    source, target = torch.zeros(batch, longest + 1).long(), torch.zeros(batch, longest + 2).long()
    for row in range(batch):
        symbols = torch.randint(4, 12, (int(torch.randint(1, longest + 1, ())),))
        source[row, : len(symbols) + 1] = torch.cat((symbols, torch.tensor([2])))
        target[row, : len(symbols) + 2] = torch.cat((torch.tensor([1]), symbols.flip(0), torch.tensor([2])))
    return source, target


CROSS = Address("decoder", 0, "cross")


@dataclass(frozen=True)
class AveragingConfig:
    """The settings that every model has, and no others."""

    vocab_size: int = 12
    max_length: int = 16
    n_heads: int = 2
    pad_id: int = 0
    bos_id: int = 1
    eos_id: int = 2


class AveragingModel(nn.Module):
    """A second family: one block of cross-attention, asked by the mean of the target so far; no layers or positions."""

    def __init__(self, config: AveragingConfig, d_model: int = 16) -> None:
        super().__init__()
        self.config = config
        self.source = nn.Embedding(config.vocab_size, d_model)
        self.target = nn.Embedding(config.vocab_size, d_model)
        self.attention = MultiHeadAttention(d_model, config.n_heads, dropout=0.0, address=CROSS)
        self.projection = nn.Linear(d_model, config.vocab_size)

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        source_mask: Tensor | None = None,
        target_mask: Tensor | None = None,
        *,
        tap: Tap | None = None,
    ) -> Tensor:
        source_mask = source != self.config.pad_id if source_mask is None else source_mask
        memory = self.encode(source, source_mask, tap=tap)
        return self.project(self.decode(target, memory, source_mask, target_mask, tap=tap), tap=tap)

    def encode(self, source: Tensor, source_mask: Tensor | None = None, *, tap: Tap | None = None) -> Tensor:
        return Address("encoder").offer(tap, "embedding", self.source(source))

    def decode(
        self,
        target: Tensor,
        memory: Tensor,
        source_mask: Tensor,
        target_mask: Tensor | None = None,
        *,
        tap: Tap | None = None,
    ) -> Tensor:
        vectors = self.target(target)
        counts = torch.arange(1, target.size(1) + 1, device=target.device)
        x = CROSS.offer(tap, "input", vectors.cumsum(dim=1) / counts[:, None])
        mask = AttentionMask.of(key_mask(source_mask), x.dtype)
        return x + CROSS.offer(tap, "output", self.attention(x, memory, mask, tap=tap))

    def project(self, states: Tensor, *, tap: Tap | None = None) -> Tensor:
        return Address("decoder").offer(tap, "logits", self.projection(states))

    def needs_recomputation(self, tap: Tap | None = None) -> bool:
        return bool(getattr(tap, "needs_recomputation", False))

    def sites(self) -> tuple[Site, ...]:
        block = [CROSS.site(name) for name in ("input", *ATTENTION_TENSORS, "output")]
        return (Address("encoder").site("embedding"), *block, Address("decoder").site("logits"))

    def n_parameters(self) -> int:
        return sum(p.numel() for p in self.parameters())


SWITCH_OF_EACH_KIND = (
    "off:decoder.0.cross:1",
    "mean:decoder.1.cross:0",
    "scale:encoder.0.self:1:0.5",
    "block:decoder.0.cross",
    "residual:off:decoder.0.self",
    "mask:causal",
    "forbid:decoder.0.cross:2,1",
    "row:encoder.0.self.1:2:uniform",
    "row:decoder.0.cross.2:1:0",
    "copy:encoder.0.self.output:1>2:d e",
    "copy:encoder.0.self.k:1>2:d e",
    "copy:encoder.0.self.input:0>1:d e",
    "copy:encoder.embedding:0>1:d e",
    "positions:encoder:shift:1",
)
"""At least one of every kind, for the shipped model of symbols and the sentence "a b c d e"."""
