"""The Transformer: embeddings, encoder, decoder, output projection (section 3), built from one ModelConfig."""

import math
from functools import lru_cache

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer.config import ModelConfig
from transformer.model.attention import MultiHeadAttention
from transformer.model.kinds import AttentionKind
from transformer.model.layers import AddNorm, DecoderLayer, Dropout, EncoderLayer, FeedForward
from transformer.model.masks import AttentionMask, combine, key_mask, open_to, padding_mask
from transformer.model.positions import build_positions, build_relative_positions
from transformer.model.scores import build_score, score_parameters
from transformer.model.seq2seq import check_length
from transformer.model.taps import (
    ATTENTION_TENSORS,
    Address,
    Site,
    Stack,
    Sublayer,
    Tap,
    needs_recomputation,
    touches_attention,
)

Ids = Int[Tensor, "batch length"]
Real = Bool[Tensor, "batch length"]


class Embedding(nn.Module):
    """Token vectors times sqrt(d_model), plus positions, then dropout (sections 3.4 and 3.5)."""

    def __init__(self, tokens: nn.Embedding, positions: nn.Module | None, *, dropout: float, address: Address) -> None:
        super().__init__()
        self.tokens = tokens
        self.positions = positions
        self.dropout = Dropout(dropout)
        self.address = address
        self.scale = math.sqrt(tokens.embedding_dim)

    def forward(self, ids: Ids, *, tap: Tap | None = None) -> Float[Tensor, "batch length d_model"]:
        x = self.address.offer(tap, "embedding", self.tokens(ids) * self.scale)
        if self.positions is not None:
            rows = self.positions(ids.size(1))
            x = x + self.address.offer(tap, "positions", rows.expand_as(x))
        return self.dropout(x)


class Encoder(nn.Module):
    """A stack of encoder layers; in pre-norm it ends in a norm of its own."""

    def __init__(self, embedding: Embedding, layers: list[EncoderLayer], norm: nn.Module | None) -> None:
        super().__init__()
        self.embedding = embedding
        self.layers = nn.ModuleList(layers)
        self.norm = norm

    def forward(
        self, source: Int[Tensor, "batch source"], mask: AttentionMask, tap: Tap | None = None
    ) -> Float[Tensor, "batch source d_model"]:
        x = self.embedding(source, tap=tap)
        for layer in self.layers:
            x = layer(x, mask, tap)
        return _final(self.norm, x, "encoder", tap)


class Decoder(nn.Module):
    """A stack of decoder layers; in pre-norm it ends in a norm of its own."""

    def __init__(self, embedding: Embedding, layers: list[DecoderLayer], norm: nn.Module | None) -> None:
        super().__init__()
        self.embedding = embedding
        self.layers = nn.ModuleList(layers)
        self.norm = norm

    def forward(
        self,
        target: Int[Tensor, "batch target"],
        memory: Float[Tensor, "batch source d_model"],
        self_mask: AttentionMask,
        cross_mask: AttentionMask,
        *,
        tap: Tap | None = None,
    ) -> Float[Tensor, "batch target d_model"]:
        x = self.embedding(target, tap=tap)
        for layer in self.layers:
            x = layer(x, memory, self_mask, cross_mask, tap=tap)
        return _final(self.norm, x, "decoder", tap)


class Transformer(nn.Module):
    """The encoder-decoder of "Attention Is All You Need"; the only module that reads a ModelConfig."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        source = nn.Embedding(config.vocab_size, config.d_model)
        target = source if config.tie_embeddings else nn.Embedding(config.vocab_size, config.d_model)
        self.encoder = Encoder(
            _embedding(config, source, "encoder"),
            [_encoder_layer(config, i) for i in range(config.n_encoder_layers)],
            _final_norm(config),
        )
        self.decoder = Decoder(
            _embedding(config, target, "decoder"),
            [_decoder_layer(config, i) for i in range(config.n_decoder_layers)],
            _final_norm(config),
        )
        self.projection = nn.Linear(config.d_model, config.vocab_size, bias=config.output_bias)
        self.apply(_initialise)
        if config.tie_output:
            self.projection.weight = target.weight
        if config.tie_output and config.residual:
            _quieten_copying(self.decoder.norm)

    def forward(
        self,
        source: Int[Tensor, "batch source"],
        target: Int[Tensor, "batch target"],
        source_mask: Bool[Tensor, "batch source"] | None = None,
        target_mask: Bool[Tensor, "batch target"] | None = None,
        *,
        tap: Tap | None = None,
    ) -> Float[Tensor, "batch target vocab"]:
        """Logits of the token after each target position; `target` begins with bos. A mask of None: all but pad_id."""
        source_mask = self._real(source, source_mask)
        memory = self.encode(source, source_mask, tap=tap)
        states = self.decode(target, memory, source_mask, target_mask, tap=tap)
        return self.project(states, tap=tap)

    def encode(
        self,
        source: Int[Tensor, "batch source"],
        source_mask: Bool[Tensor, "batch source"] | None = None,
        *,
        tap: Tap | None = None,
    ) -> Float[Tensor, "batch source d_model"]:
        """The encoder's memory of a source."""
        check_length(self.config, source.size(1), "source")
        mask = self._self_mask(self._real(source, source_mask), AttentionKind.ENCODER_SELF)
        return self.encoder(source, self._attention_mask(mask, tap), tap)

    def decode(
        self,
        target: Int[Tensor, "batch target"],
        memory: Float[Tensor, "batch source d_model"],
        source_mask: Bool[Tensor, "batch source"],
        target_mask: Bool[Tensor, "batch target"] | None = None,
        *,
        tap: Tap | None = None,
    ) -> Float[Tensor, "batch target d_model"]:
        """The decoder's state at each target position."""
        check_length(self.config, target.size(1), "target")
        return self.decoder(
            target,
            memory,
            self._attention_mask(self._self_mask(self._real(target, target_mask), AttentionKind.DECODER_SELF), tap),
            self._attention_mask(key_mask(source_mask), tap),
            tap=tap,
        )

    def project(
        self, states: Float[Tensor, "*positions d_model"], *, tap: Tap | None = None
    ) -> Float[Tensor, "*positions vocab"]:
        """Logits over the vocabulary."""
        return Address("decoder").offer(tap, "logits", self.projection(states))

    def needs_recomputation(self, tap: Tap | None = None) -> bool:
        """True where earlier target states depend on later tokens, so that a key/value cache would be stale: without a
        causal mask, or under a tap that says so."""
        return not self.config.causal_mask or needs_recomputation(tap)

    def sites(self) -> tuple[Site, ...]:
        """Returns every address of a pass, in the order in which the pass reaches them."""
        return _sites(self.config)

    def n_parameters(self) -> int:
        """Trained numbers, shared ones counted once."""
        return sum(p.numel() for p in self.parameters())

    def _real(self, ids: Ids, mask: Real | None) -> Real:
        return padding_mask(ids, self.config.pad_id) if mask is None else mask

    def _self_mask(self, real: Bool[Tensor, "batch key"], kind: AttentionKind) -> Bool[Tensor, "batch 1 #query key"]:
        rules = open_to(self.config, kind, real.size(1), real.size(1), device=real.device)
        return key_mask(real) if rules is None else combine(key_mask(real), rules)

    def _attention_mask(self, allowed: Bool[Tensor, "batch 1 #query key"], tap: Tap | None) -> AttentionMask:
        if touches_attention(tap):  # the explicit path asks for no more than what is allowed
            return AttentionMask(allowed, None, None)
        return AttentionMask.of(allowed, self.projection.weight.dtype)


def parameter_count(config: ModelConfig) -> int:
    """Returns what `Transformer(config).n_parameters()` would be, without building it."""
    c, d = config, config.d_model
    attention = 4 * (d * d + d) + score_parameters(c)
    feed_forward = 2 * d * c.d_ff + c.d_ff + d
    norm = 0 if c.norm == "none" else 2 * d
    encoder = c.n_encoder_layers * (attention + feed_forward + 2 * norm)
    decoder = c.n_decoder_layers * (2 * attention + feed_forward + 3 * norm)
    final_norms = 2 * norm * (c.norm == "pre")
    positions = 2 * c.max_length * d * (c.positions == "learned")
    matrices = 1 + (not c.tie_embeddings) + (not c.tie_output)  # of the vocabulary
    return encoder + decoder + final_norms + positions + matrices * c.vocab_size * d + c.vocab_size * c.output_bias


def hidden_count(config: ModelConfig) -> int:
    """Returns how many of these parameters lie in the matrices of the layers: those that Muon steps."""
    c, d = config, config.d_model
    attention, feed_forward = 4 * d * d, 2 * d * c.d_ff
    return c.n_encoder_layers * (attention + feed_forward) + c.n_decoder_layers * (2 * attention + feed_forward)


def _final(norm: nn.Module | None, x: Tensor, stack: Stack, tap: Tap | None) -> Tensor:
    return x if norm is None else Address(stack, sublayer="final").offer(tap, "normed", norm(x))


def _embedding(config: ModelConfig, tokens: nn.Embedding, stack: Stack) -> Embedding:
    positions = build_positions(config.positions, config.max_length, config.d_model)
    return Embedding(tokens, positions, dropout=config.embedding_dropout, address=Address(stack))


def _encoder_layer(config: ModelConfig, layer: int) -> EncoderLayer:
    return EncoderLayer(
        _attention(config, Address("encoder", layer, "self")),
        _feed_forward(config),
        add_norm_self=_add_norm(config, Address("encoder", layer, "self")),
        add_norm_ffn=_add_norm(config, Address("encoder", layer, "ffn")),
    )


def _decoder_layer(config: ModelConfig, layer: int) -> DecoderLayer:
    return DecoderLayer(
        _attention(config, Address("decoder", layer, "self")),
        _attention(config, Address("decoder", layer, "cross")),
        _feed_forward(config),
        add_norm_self=_add_norm(config, Address("decoder", layer, "self")),
        add_norm_cross=_add_norm(config, Address("decoder", layer, "cross")),
        add_norm_ffn=_add_norm(config, Address("decoder", layer, "ffn")),
    )


def _attention(config: ModelConfig, address: Address) -> MultiHeadAttention:
    # Source and target have no common ruler: cross-attention carries no positions of its own.
    positions = config.positions if address.sublayer == "self" else "none"
    return MultiHeadAttention(
        config.d_model,
        config.n_heads,
        dropout=config.attention_dropout,
        address=address,
        score=build_score(config),
        relative=build_relative_positions(positions, config.max_length, config.n_heads, config.d_head),
    )


def _feed_forward(config: ModelConfig) -> FeedForward:
    return FeedForward(config.d_model, config.d_ff, activation=config.activation, dropout=config.activation_dropout)


def _add_norm(config: ModelConfig, address: Address) -> AddNorm:
    return AddNorm(
        config.d_model,
        norm=config.norm,
        residual=config.residual,
        dropout=config.dropout,
        epsilon=config.norm_epsilon,
        address=address,
    )


def _final_norm(config: ModelConfig) -> nn.Module | None:
    return nn.LayerNorm(config.d_model, eps=config.norm_epsilon) if config.norm == "pre" else None


def _initialise(module: nn.Module) -> None:
    """Xavier-uniform matrices and zero biases (as in the authors' tensor2tensor); embeddings of variance 1 / d_model.

    The embedding's scale makes embedding * sqrt(d_model) of unit variance, and the tied logits of order 1, so that
    the first loss is near ln(vocab).
    """
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)


def _quieten_copying(norm: nn.Module | None) -> None:
    """Lowers the gain of a pre-norm decoder's final norm to 4 / sqrt(d_model) to begin with.

    The pre-norm stream still holds the embedding of the token just read, so that tied weights give this very token a
    logit near sqrt(d_model), and the first loss is up to 3 above ln(vocab). Post-norm stays as the paper has it.
    """
    if isinstance(norm, nn.LayerNorm):
        nn.init.constant_(norm.weight, min(1.0, 4 / math.sqrt(norm.normalized_shape[0])))


@lru_cache
def _sites(c: ModelConfig) -> tuple[Site, ...]:
    sites = _embedding_sites("encoder", c)
    for layer in range(c.n_encoder_layers):
        sites += _sublayer_sites("encoder", layer, "self", c) + _sublayer_sites("encoder", layer, "ffn", c)
    sites += _final_sites("encoder", c) + _embedding_sites("decoder", c)
    for layer in range(c.n_decoder_layers):
        for sublayer in ("self", "cross", "ffn"):
            sites += _sublayer_sites("decoder", layer, sublayer, c)
    return tuple(sites + _final_sites("decoder", c) + [Site("decoder", None, None, "logits")])


def _embedding_sites(stack: Stack, config: ModelConfig) -> list[Site]:
    names = ["embedding", "positions"] if config.positions in ("sinusoidal", "learned") else ["embedding"]
    return [Site(stack, None, None, name) for name in names]


def _sublayer_sites(stack: Stack, layer: int, sublayer: Sublayer, config: ModelConfig) -> list[Site]:
    inner = [] if sublayer == "ffn" else list(ATTENTION_TENSORS)
    order = ["input", "residual"] if config.residual else ["input"]
    if config.norm == "pre":
        order += ["normed"]
    order += [*inner, "output"]
    if config.norm == "post":
        order += ["normed"]
    return [Site(stack, layer, sublayer, name) for name in order]


def _final_sites(stack: Stack, config: ModelConfig) -> list[Site]:
    return [Site(stack, None, "final", "normed")] if config.norm == "pre" else []
