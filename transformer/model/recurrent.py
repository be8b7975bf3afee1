"""Recurrent encoder-decoders, which came before: one fixed vector (Cho et al. 2014, Sutskever et al. 2014), or
attention over the source (additive: Bahdanau et al. 2015; dot and general: Luong et al. 2015).

The LSTM and GRU are torch's. Read the source in both directions, a state at each token; the states at the two ends make
one vector, from which the decoder's state starts. Without attention that vector is all that the decoder ever has.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer.config import RecurrentConfig
from transformer.model.attention import explicit_attention
from transformer.model.carrying import CarryingModel
from transformer.model.layers import Dropout
from transformer.model.masks import key_mask, padding_mask
from transformer.model.scores import Additive, DotProduct
from transformer.model.seq2seq import check_length
from transformer.model.taps import ATTENTION_TENSORS, Address, Site, Tap

CROSS = Address("decoder", 0, "cross")
"""The one block of attention, wherever it stands among the layers."""
VECTOR = Address("encoder", sublayer="final").site("vector")
"""What is left of the whole source in one vector."""

States = Float[Tensor, "row d_model"]
Hidden = Float[Tensor, "batch length d_model"]
Inputs = Float[Tensor, "batch length n_inputs"]
LayerState = list[Tensor]
"""Hidden state, and an LSTM's cell state: [row d_model] each."""


@dataclass(frozen=True)
class DecoderState:
    """What a decoder carries from one target token to the next."""

    layers: list[LayerState]
    fed: States
    """What is fed into the next step beside its token: with input feeding the last output, else zeros."""

    def rows(self, kept: Int[Tensor, " row"]) -> "DecoderState":
        """The state of these rows."""
        return DecoderState([[part[kept] for part in layer] for layer in self.layers], self.fed[kept])


class RecurrentLayer(nn.Module):
    """One LSTM or GRU; in an encoder that reads both ways two of half the width, side by side."""

    def __init__(self, config: RecurrentConfig, n_inputs: int, address: Address, *, both_ways: bool = False) -> None:
        super().__init__()
        kind = nn.LSTM if config.cell == "lstm" else nn.GRU
        width = config.d_model // (2 if both_ways else 1)
        self.address = address
        self.forwards = kind(n_inputs, width, batch_first=True)
        self.backwards = kind(n_inputs, width, batch_first=True) if both_ways else None

    def read(self, x: Inputs, lengths: Int[Tensor, " batch"]) -> Hidden:
        """Returns the state at each source position; past a row's length they mean nothing."""
        found = self.forwards(x)[0]
        if self.backwards is None:
            return found
        turned = _turned(lengths, x.size(1))
        back = self.backwards(x.gather(1, turned[..., None].expand_as(x)))[0]
        return torch.cat((found, back.gather(1, turned[..., None].expand_as(back))), dim=-1)

    def ends(self, states: Hidden, lengths: Int[Tensor, " batch"]) -> States:
        """The last state of each direction: forwards at the last token, backwards at the first."""
        last = states[torch.arange(len(states), device=states.device), lengths - 1]
        if self.backwards is None:
            return last
        half = states.size(-1) // 2
        return torch.cat((last[:, :half], states[:, 0, half:]), dim=-1)

    def write(self, x: Inputs, state: LayerState) -> tuple[Hidden, LayerState]:
        """Returns the states at target positions that follow on `state`, and the last one whole."""
        begin = [part.contiguous()[None] for part in state]  # torch wants [layer row d_model], cuDNN whole in memory
        found, end = self.forwards(x, tuple(begin) if len(begin) > 1 else begin[0])
        return found, [part[0] for part in (end if isinstance(end, tuple) else (end,))]


class RecurrentAttention(nn.Module):
    """One head of attention from decoder states over encoder states, which are themselves what is gathered.

    additive: v · tanh(W s + U h) (Bahdanau et al. 2015, appendix A.1.2). dot: s · h. general: s · W h (Luong et al.
    2015, eq. 8). None of them is scaled.
    """

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        d, kind = config.d_model, config.attention
        self.query = nn.Identity() if kind == "dot" else nn.Linear(d, d, bias=kind == "additive")
        self.key = nn.Linear(d, d, bias=False) if kind == "additive" else nn.Identity()
        self.score = Additive(1, d) if kind == "additive" else DotProduct(scaled=False)

    def keys(self, states: Hidden) -> Float[Tensor, "batch 1 length d_model"]:
        return self.key(states)[:, None]

    def forward(
        self,
        asked: Hidden,
        keys: Float[Tensor, "batch 1 source d_model"],
        values: Float[Tensor, "batch 1 source d_model"],
        mask: Bool[Tensor, "batch 1 1 source"],
        tap: Tap | None = None,
    ) -> Hidden:
        """Returns what each decoder state gathered."""
        q = self.query(asked)[:, None]
        heads = explicit_attention(q, keys, values, mask, score=self.score, address=CROSS, tap=tap)
        return CROSS.offer(tap, "output", heads[:, 0])


class RecurrentModel(CarryingModel):
    """An encoder-decoder of LSTMs or GRUs, built from one RecurrentConfig; a `Seq2Seq`."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.config = config
        d = config.d_model
        self.source_tokens = nn.Embedding(config.vocab_size, d)
        self.target_tokens = self.source_tokens if config.tie_embeddings else nn.Embedding(config.vocab_size, d)
        self.encoder = nn.ModuleList(
            RecurrentLayer(config, d, _recurrent("encoder", i), both_ways=config.bidirectional)
            for i in range(config.n_encoder_layers)
        )
        self.start = nn.Linear(d, len(_PARTS[config.cell]) * config.n_decoder_layers * d)
        fed = d * (config.input_feeding or config.attention == "additive")
        self.decoder = nn.ModuleList(
            RecurrentLayer(config, d if i else d + fed, _recurrent("decoder", i))
            for i in range(config.n_decoder_layers)
        )
        self.attention = None if config.attention == "none" else RecurrentAttention(config)
        self.combine = None if self.attention is None else nn.Linear(d * (2 + self._asks_before), d)
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
    ) -> Float[Tensor, "batch read d_model"]:
        """All that the decoder may read: the fixed vector, and after it, with attention, the state at each token."""
        check_length(self.config, source.size(1), "source")
        real = padding_mask(source, self.config.pad_id) if source_mask is None else source_mask
        lengths = real.sum(dim=1).clamp(min=1)
        x = self._embedded(self.source_tokens, source, Address("encoder"), tap)
        ends = x[:, 0]
        for layer in self._layers(self.encoder):
            x = layer.address.offer(tap, "output", layer.read(x, lengths))
            ends = layer.ends(x, lengths)
            x = self.dropout(x)
        vector = ends[:, None] if tap is None else tap(VECTOR, ends[:, None])
        return vector if self.attention is None else torch.cat((vector, x), dim=1)

    def decode(
        self,
        target: Int[Tensor, "batch target"],
        memory: Float[Tensor, "batch read d_model"],
        source_mask: Bool[Tensor, "batch source"],
        target_mask: Bool[Tensor, "batch target"] | None = None,
        *,
        tap: Tap | None = None,
    ) -> Float[Tensor, "batch target d_model"]:
        """The decoder's state at each target position; what follows padding is never looked at."""
        check_length(self.config, target.size(1), "target")
        x = self._embedded(self.target_tokens, target, Address("decoder"), tap)
        source, state = Source(self, memory, source_mask), self.first_state(memory)
        if not self.config.is_sequential:
            return self._in_parallel(x, source, state, tap)
        seen = _SeenWhole(self, source, tap)
        written = []
        for t in range(target.size(1)):
            out, state = self.step(x[:, t], state, seen)
            written.append(out)
        return torch.stack(written, dim=1)

    def begin(
        self, memory: Float[Tensor, "batch read d_model"], source_mask: Bool[Tensor, "batch source"]
    ) -> "Writing":
        """The decoder before its first token."""
        return Writing(self, memory, source_mask)

    def first_state(self, memory: Float[Tensor, "batch read d_model"]) -> DecoderState:
        """The decoder's state before its first token: tanh(W vector + b), an LSTM's cell without the tanh."""
        vector = memory[:, 0]
        parts = self.start(vector).unflatten(-1, (self.config.n_decoder_layers, len(_PARTS[self.config.cell]), -1))
        layers = [
            [part.tanh() if i == 0 else part for i, part in enumerate(layer.unbind(1))] for layer in parts.unbind(1)
        ]
        return DecoderState(layers, torch.zeros_like(vector))

    def vectors(self, tokens: Int[Tensor, " row"], tap: Tap | None = None) -> States:
        """What the decoder reads of one target token a row."""
        return self._embedded(self.target_tokens, tokens[:, None], Address("decoder"), tap)[:, 0]

    def step(self, x: States, state: DecoderState, seen: "Seen") -> tuple[States, DecoderState]:
        """The output at one target position, of which `x` is the token's vector, and the state after it."""
        gathered = seen.attend(state.layers[-1][0]) if self._asks_before else None
        fed = gathered if gathered is not None else state.fed if self.config.input_feeding else None
        found = (x if fed is None else torch.cat((x, fed), dim=-1))[:, None]
        layers = []
        for i, layer in enumerate(self._layers(self.decoder)):
            found, after = layer.write(found, state.layers[i])
            layers.append(after)
            found = self.dropout(seen.output(i, found[:, 0]))[:, None]
        top = found[:, 0]
        out = self._combined(top, gathered if self._asks_before else seen.attend(top), x)
        return out, DecoderState(layers, out)

    def sites(self) -> tuple[Site, ...]:
        """Returns every address of a pass, in the order in which the pass reaches them."""
        return _sites(self.config)

    @property
    def _asks_before(self) -> bool:
        """True where the state before a token asks, and what it gathers is read with the token (Bahdanau's order)."""
        return self.config.attention == "additive"

    def _in_parallel(self, x: Hidden, source: "Source", state: DecoderState, tap: Tap | None) -> Hidden:
        """All target positions at once: nothing that attention gathers enters the recurrence."""
        read = x
        for layer, begin in zip(self._layers(self.decoder), state.layers, strict=True):
            found, _ = layer.write(read, begin)
            read = self.dropout(layer.address.offer(tap, "output", found))
        return self._combined(read, source.attend(read, tap), x)

    def _combined(self, top: Tensor, gathered: Tensor | None, x: Tensor) -> Tensor:
        """The vector that is projected: the top state itself, or tanh(W [state; gathered]) (Luong et al. 2015, eq. 5);
        in Bahdanau's order the token's vector is part of it too (their maxout is a tanh here)."""
        if self.combine is None or gathered is None:
            return top
        parts = (top, gathered, x) if self._asks_before else (top, gathered)
        return self.dropout(torch.tanh(self.combine(torch.cat(parts, dim=-1))))

    @staticmethod
    def _layers(layers: nn.ModuleList) -> Iterable[RecurrentLayer]:
        return layers  # type: ignore[return-value]


class Source:
    """The encoder states that a decoder asks, with their keys; without attention there are none."""

    def __init__(self, model: RecurrentModel, memory: Tensor, source_mask: Bool[Tensor, "batch source"]) -> None:
        self._attention, self._mask = model.attention, key_mask(source_mask)
        self._values = memory[:, None, 1:]
        self._keys = None if model.attention is None else model.attention.keys(memory[:, 1:])

    def attend(self, asked: Hidden, tap: Tap | None) -> Hidden | None:
        """Returns what these decoder states gather; None without attention."""
        if self._attention is None or self._keys is None:
            return None
        return self._attention(asked, self._keys, self._values, self._mask, tap)

    def rows(self, kept: Int[Tensor, " row"]) -> None:
        """Goes on with these rows."""
        self._values, self._mask = self._values[kept], self._mask[kept]
        self._keys = None if self._keys is None else self._keys[kept]


class SeenStep:
    """One target position as a tap sees it: one query, one state."""

    def __init__(self, model: RecurrentModel, source: Source, tap: Tap | None) -> None:
        self._addresses = [_recurrent("decoder", i) for i in range(model.config.n_decoder_layers)]
        self._source, self._tap = source, tap

    def attend(self, state: States) -> States | None:
        """What the state gathers from the source; None without attention."""
        found = self._source.attend(state[:, None], self._tap)
        return None if found is None else found[:, 0]

    def output(self, layer: int, state: States) -> States:
        """The state of a layer as the tap leaves it to what reads it; the recurrence keeps its own."""
        return state if self._tap is None else self._addresses[layer].offer(self._tap, "output", state[:, None])[:, 0]


class Writing:
    """A decoder one token at a time."""

    def __init__(self, model: RecurrentModel, memory: Tensor, source_mask: Bool[Tensor, "batch source"]) -> None:
        self._model, self._source = model, Source(model, memory, source_mask)
        self._state = model.first_state(memory)

    def advance(self, tokens: Int[Tensor, " row"], tap: Tap | None = None) -> States:
        """The output at the next position, at which these tokens stand."""
        seen = SeenStep(self._model, self._source, tap)
        out, self._state = self._model.step(self._model.vectors(tokens, tap), self._state, seen)
        return out

    def rows(self, kept: Int[Tensor, " row"], *, same_sources: bool = False) -> None:
        """Goes on with these rows. `same_sources`: each stands where another of the same source stood."""
        self._state = self._state.rows(kept)
        if not same_sources:
            self._source.rows(kept)


class _SeenWhole(SeenStep):
    """The target positions so far as a tap sees them: all of them again at each step, so that positions keep their
    numbers and what is kept at the end is whole."""

    def __init__(self, model: RecurrentModel, source: Source, tap: Tap | None) -> None:
        super().__init__(model, source, tap)
        self._asked: list[Tensor] = []
        self._outputs: list[list[Tensor]] = [[] for _ in self._addresses]

    def attend(self, state: States) -> States | None:
        if self._tap is None:
            return super().attend(state)
        self._asked.append(state)
        found = self._source.attend(torch.stack(self._asked, dim=1), self._tap)
        return None if found is None else found[:, -1]

    def output(self, layer: int, state: States) -> States:
        if self._tap is None:
            return state
        self._outputs[layer].append(state)
        return self._addresses[layer].offer(self._tap, "output", torch.stack(self._outputs[layer], dim=1))[:, -1]


Seen = SeenStep
"""What a step shows of itself, one position at a time or all so far."""
_PARTS = {"lstm": ("hidden", "cell"), "gru": ("hidden",)}


def recurrent_parameters(config: RecurrentConfig) -> int:
    """Returns what `RecurrentModel(config).n_parameters()` would be, without building it."""
    c, d = config, config.d_model
    gates = 4 if c.cell == "lstm" else 3

    def layer(n_inputs: int, width: int) -> int:
        return gates * width * (n_inputs + width + 2)  # torch's have two biases

    ways = 2 if c.bidirectional else 1
    encoder = c.n_encoder_layers * ways * layer(d, d // ways)
    fed = d * (c.input_feeding or c.attention == "additive")
    decoder = layer(d + fed, d) + (c.n_decoder_layers - 1) * layer(d, d)
    start = (d + 1) * len(_PARTS[c.cell]) * c.n_decoder_layers * d
    attention = {"none": 0, "dot": 0, "general": d * d, "additive": 2 * d * d + 2 * d}[c.attention]
    combine = {"none": 0, "additive": 3 * d * d + d}.get(c.attention, 2 * d * d + d)
    matrices = 1 + (not c.tie_embeddings) + (not c.tie_output)  # of the vocabulary
    return encoder + decoder + start + attention + combine + matrices * c.vocab_size * d


def recurrent_hidden(config: RecurrentConfig) -> int:
    """Returns how many of these lie in the matrices outside of LSTM or GRU and vocabulary."""
    d, kind = config.d_model, config.attention
    start = len(_PARTS[config.cell]) * config.n_decoder_layers
    return d * d * (start + {"none": 0, "dot": 2, "general": 3, "additive": 5}[kind])


def _recurrent(stack: str, layer: int) -> Address:
    return Address("encoder" if stack == "encoder" else "decoder", layer, "recurrent")


def _turned(lengths: Int[Tensor, " batch"], width: int) -> Int[Tensor, "batch width"]:
    """For each position the one that stands there when a row's real tokens are read backwards; padding stays."""
    places = torch.arange(width, device=lengths.device)
    backwards = lengths[:, None] - 1 - places
    return torch.where(backwards >= 0, backwards, places)


def _initialise(module: nn.Module) -> None:
    """Xavier-uniform matrices, gate by gate, and zero biases, but 1 for an LSTM's forget gate (Jozefowicz et al. 2015);
    embeddings of variance 1 / d_model."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
    elif isinstance(module, nn.LSTM | nn.GRU):
        for name, parameter in module.named_parameters():
            if parameter.dim() == 1:
                nn.init.zeros_(parameter)
                if isinstance(module, nn.LSTM) and name.startswith("bias_ih"):
                    nn.init.ones_(parameter.chunk(4)[1])
            else:
                for gate in parameter.chunk(4 if isinstance(module, nn.LSTM) else 3):
                    nn.init.xavier_uniform_(gate)


@lru_cache
def _sites(c: RecurrentConfig) -> tuple[Site, ...]:
    encoder = [_recurrent("encoder", i).site("output") for i in range(c.n_encoder_layers)]
    cross = [] if c.attention == "none" else [CROSS.site(name) for name in (*ATTENTION_TENSORS, "output")]
    decoder = [_recurrent("decoder", i).site("output") for i in range(c.n_decoder_layers)]
    within = [*cross, *decoder] if c.attention == "additive" else [*decoder, *cross]
    first, last = Address("encoder").site("embedding"), Address("decoder").site("logits")
    return (first, *encoder, VECTOR, Address("decoder").site("embedding"), *within, last)
