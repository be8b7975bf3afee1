"""Convolutional encoder-decoders, which came between: dilated (ByteNet: Kalchbrenner et al. 2016), with gated linear
units and attention in each layer of the decoder (ConvS2S: Gehring et al. 2017), separable (Kaiser et al. 2017).

A departure from ConvS2S: no positions are added and weights are not normalised. Before each convolution padding is 0,
as everything outside of a sentence is, so that it does not matter how much of it there is. The decoder's convolutions
look back alone; one token later, the inputs within their reach are all that must be known of the past.
"""

import math
from collections.abc import Iterable
from functools import lru_cache

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer.config import ConvolutionalConfig
from transformer.model.attention import explicit_attention
from transformer.model.carrying import CarryingModel
from transformer.model.layers import Dropout
from transformer.model.masks import key_mask, padding_mask
from transformer.model.scores import DotProduct
from transformer.model.seq2seq import check_length
from transformer.model.taps import ATTENTION_TENSORS, Address, Site, Tap

Hidden = Float[Tensor, "batch length d_model"]
Windows = Float[Tensor, "batch length kernel d_model"]
Read = Float[Tensor, "batch 1 source d_model"]
_HALF = math.sqrt(0.5)
"""The factor after each sum of two parts, which keeps its variance (Gehring et al. 2017, section 3.5)."""


class Convolution(nn.Module):
    """A convolution over windows, to twice the width, and the gated linear unit that halves it again.

    The window of a position holds the inputs that it sees, in their order. A whole convolution is one matrix over the
    window; a separable one weighs the window channel by channel, and a matrix then mixes the channels.
    """

    def __init__(self, d_model: int, kernel: int, *, separable: bool) -> None:
        super().__init__()
        self.depthwise = nn.Parameter(torch.empty(kernel, d_model)) if separable else None
        self.mix = nn.Linear(d_model if separable else kernel * d_model, 2 * d_model)
        if self.depthwise is not None:
            nn.init.normal_(self.depthwise, std=kernel**-0.5)

    def forward(self, windows: Windows) -> Hidden:
        """Returns the output at each position."""
        seen = windows.flatten(-2) if self.depthwise is None else (windows * self.depthwise).sum(-2)
        return F.glu(self.mix(seen))


class EncoderLayer(nn.Module):
    """A convolution that sees both sides, and the residual sum around it."""

    def __init__(self, config: ConvolutionalConfig, layer: int) -> None:
        super().__init__()
        self.address = Address("encoder", layer, "conv")
        self.kernel, self.dilation = config.kernel, config.dilation(layer)
        self.convolution = Convolution(config.d_model, config.kernel, separable=config.separable)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Hidden, real: Bool[Tensor, "batch length 1"], tap: Tap | None) -> Hidden:
        side = (self.kernel - 1) // 2 * self.dilation
        windows = windows_of(F.pad(self.dropout(x), (0, 0, side, side)), self.kernel, self.dilation)
        found = self.address.offer(tap, "output", (x + self.convolution(windows)) * _HALF)
        return found * real


class DecoderLayer(nn.Module):
    """A convolution that looks back, what its output gathers from the source, and the residual sum around both."""

    def __init__(self, config: ConvolutionalConfig, layer: int) -> None:
        super().__init__()
        d = config.d_model
        self.address, self.cross = Address("decoder", layer, "conv"), Address("decoder", layer, "cross")
        self.kernel, self.dilation = config.kernel, config.dilation(layer)
        self.convolution = Convolution(d, config.kernel, separable=config.separable)
        self.query = nn.Linear(d, d)
        self.score = DotProduct()
        self.dropout = Dropout(config.dropout)

    @property
    def past(self) -> int:
        """The number of earlier positions that the convolution reaches back over."""
        return (self.kernel - 1) * self.dilation

    def forward(
        self, x: Float[Tensor, "batch reached d_model"], asking: Hidden, source: "Source", tap: Tap | None
    ) -> Hidden:
        """Returns the states of the last positions of `x`, which begins `past` positions before them; `asking` are the
        vectors of their tokens, which take part in the query (Gehring et al. 2017, eq. 1)."""
        h = self.convolution(windows_of(self.dropout(x), self.kernel, self.dilation))
        q = (self.query(h) + asking)[:, None]
        heads = explicit_attention(
            q, source.keys, source.values, source.mask, score=self.score, address=self.cross, tap=tap
        )
        gathered = self.cross.offer(tap, "output", heads[:, 0])
        return self.address.offer(tap, "output", (x[:, self.past :] + (h + gathered) * _HALF) * _HALF)


class Source:
    """What the decoder asks: the encoder's states as keys; these and the tokens' vectors, summed, as values."""

    def __init__(self, memory: Float[Tensor, "batch source both"], mask: Bool[Tensor, "batch source"]) -> None:
        self.keys, self.values = memory[:, None].chunk(2, dim=-1)
        self.mask = key_mask(mask)

    def rows(self, kept: Int[Tensor, " row"]) -> None:
        """Goes on with these rows."""
        self.keys, self.values, self.mask = self.keys[kept], self.values[kept], self.mask[kept]


class ConvolutionalModel(CarryingModel):
    """An encoder-decoder of convolutions, built from one ConvolutionalConfig; a `Seq2Seq` that carries a state."""

    def __init__(self, config: ConvolutionalConfig) -> None:
        super().__init__()
        self.config = config
        d = config.d_model
        self.source_tokens = nn.Embedding(config.vocab_size, d)
        self.target_tokens = self.source_tokens if config.tie_embeddings else nn.Embedding(config.vocab_size, d)
        self.encoder = nn.ModuleList(EncoderLayer(config, layer) for layer in range(config.n_encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(config, layer) for layer in range(config.n_decoder_layers))
        self.combine = nn.Linear(d, d)
        self.projection = nn.Linear(d, config.vocab_size, bias=False)
        self.dropout = Dropout(config.dropout)
        self.apply(_initialise)
        if config.tie_output:
            self.projection.weight = self.target_tokens.weight

    def encode(
        self,
        source: Int[Tensor, "batch source"],
        source_mask: Bool[Tensor, "batch source"] | None = None,
        *,
        tap: Tap | None = None,
    ) -> Float[Tensor, "batch source both"]:
        """All that the decoder may read: side by side the state z at each token, and z plus the token's vector."""
        check_length(self.config, source.size(1), "source")
        real = padding_mask(source, self.config.pad_id) if source_mask is None else source_mask
        embedded = self._embedded(self.source_tokens, source, Address("encoder"), tap) * real[..., None]
        x = embedded
        for layer in self._encoder_layers:
            x = layer(x, real[..., None], tap)
        return torch.cat((x, x + embedded), dim=-1)

    def decode(
        self,
        target: Int[Tensor, "batch target"],
        memory: Float[Tensor, "batch source both"],
        source_mask: Bool[Tensor, "batch source"],
        target_mask: Bool[Tensor, "batch target"] | None = None,
        *,
        tap: Tap | None = None,
    ) -> Float[Tensor, "batch target d_model"]:
        """The decoder's state at each target position; padding comes after the tokens, where nothing looks."""
        check_length(self.config, target.size(1), "target")
        asking = self._embedded(self.target_tokens, target, Address("decoder"), tap)
        x, source = asking, Source(memory, source_mask)
        for layer in self._decoder_layers:
            x = layer(F.pad(x, (0, 0, layer.past, 0)), asking, source, tap)
        return self.combine(x)

    def begin(self, memory: Float[Tensor, "batch source both"], source_mask: Bool[Tensor, "batch source"]) -> "Window":
        """The decoder before its first token."""
        return Window(self, memory, source_mask)

    def sites(self) -> tuple[Site, ...]:
        """Returns every address of a pass, in the order in which the pass reaches them."""
        return _sites(self.config)

    @property
    def _encoder_layers(self) -> Iterable[EncoderLayer]:
        return self.encoder  # type: ignore[return-value]

    @property
    def _decoder_layers(self) -> Iterable[DecoderLayer]:
        return self.decoder  # type: ignore[return-value]


class Window:
    """A decoder one token at a time: of the past it keeps the inputs that its convolutions still reach."""

    def __init__(self, model: ConvolutionalModel, memory: Tensor, source_mask: Bool[Tensor, "batch source"]) -> None:
        self._model, self._source = model, Source(memory, source_mask)
        d = model.config.d_model
        self._past = [memory.new_zeros(len(memory), layer.past, d) for layer in model._decoder_layers]

    def advance(self, tokens: Int[Tensor, " row"], tap: Tap | None = None) -> Float[Tensor, "row d_model"]:
        """The decoder's state at the next position, at which these tokens stand."""
        model = self._model
        asking = model._embedded(model.target_tokens, tokens[:, None], Address("decoder"), tap)
        x = asking
        for i, layer in enumerate(model._decoder_layers):
            reached = torch.cat((self._past[i], x), dim=1)
            self._past[i] = reached[:, 1:]
            x = layer(reached, asking, self._source, tap)
        return model.combine(x[:, 0])

    def rows(self, kept: Int[Tensor, " row"], *, same_sources: bool = False) -> None:
        """Goes on with these rows. `same_sources`: each stands where another of the same source stood."""
        self._past = [past[kept] for past in self._past]
        if not same_sources:
            self._source.rows(kept)


def windows_of(x: Float[Tensor, "batch reached d_model"], kernel: int, dilation: int) -> Windows:
    """Returns for each position that has a whole window the inputs in it, `dilation` apart."""
    length = x.size(1) - (kernel - 1) * dilation
    return torch.stack([x[:, i * dilation : i * dilation + length] for i in range(kernel)], dim=2)


def convolutional_parameters(config: ConvolutionalConfig) -> int:
    """Returns what `ConvolutionalModel(config).n_parameters()` would be, without building it."""
    c, d = config, config.d_model
    layers = c.n_encoder_layers + c.n_decoder_layers
    biases = 2 * d * layers + d * c.n_decoder_layers + d
    matrices = 1 + (not c.tie_embeddings) + (not c.tie_output)  # of the vocabulary
    return convolutional_hidden(c) + biases + c.separable * c.kernel * d * layers + matrices * c.vocab_size * d


def convolutional_hidden(config: ConvolutionalConfig) -> int:
    """Returns how many of these lie in matrices outside of the vocabulary."""
    c, seen = config, 1 if config.separable else config.kernel
    return config.d_model**2 * (2 * seen * (c.n_encoder_layers + c.n_decoder_layers) + c.n_decoder_layers + 1)


def _initialise(module: nn.Module) -> None:
    """Matrices that keep the variance, a convolution's through its gate, which takes away three quarters (Gehring et
    al. 2017, section 3.5); zero biases; embeddings of variance 1 / d_model."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
    elif isinstance(module, Convolution):
        nn.init.normal_(module.mix.weight, std=math.sqrt(4 / module.mix.in_features))


@lru_cache
def _sites(c: ConvolutionalConfig) -> tuple[Site, ...]:
    found = [Address("encoder").site("embedding")]
    found += [Address("encoder", i, "conv").site("output") for i in range(c.n_encoder_layers)]
    found.append(Address("decoder").site("embedding"))
    for i in range(c.n_decoder_layers):
        found += [Address("decoder", i, "cross").site(name) for name in (*ATTENTION_TENSORS, "output")]
        found.append(Address("decoder", i, "conv").site("output"))
    return (*found, Address("decoder").site("logits"))
