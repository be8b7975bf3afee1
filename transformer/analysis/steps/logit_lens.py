"""One decoding step from inside: each layer's prediction if it were the last, and the parts that chose one token over
another.

Everything is read in float64 from the recording of the very pass that wrote the token. Logit lens: nostalgebraist
2020; contributions to a logit difference: Elhage et al. 2021, here through post-norm's layer norms as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor, nn

from transformer.decoding.greedy import Constraints, greedy
from transformer.interventions import Intervention, compile_interventions
from transformer.model.attention import MultiHeadAttention
from transformer.model.layers import AddNorm, DecoderLayer
from transformer.model.taps import Recorder, Recording, Site, Sublayer, chain
from transformer.model.transformer import Transformer

PartKind = Literal["embedding", "positions", "head", "ffn", "biases", "switches"]


@dataclass(frozen=True)
class Part:
    """Something that wrote to the decoder's stream. `biases` are all biases together, those of the norms and of values
    included; `switches` is what a switch added or put in the place of a sublayer's output."""

    kind: PartKind
    layer: int | None = None
    sublayer: Sublayer | None = None
    head: int | None = None

    @property
    def title(self) -> str:
        """The label of its bar."""
        match self.kind:
            case "head":
                return f"layer {self.layer} · {self.sublayer} · head {self.head}"
            case "ffn":
                return f"layer {self.layer} · feed-forward"
            case "biases":
                return "all biases"
            case kind:
                return kind


@dataclass(frozen=True)
class LogitLens:
    """One decoding step, read from its pass."""

    log_probs: Float[ndarray, "depth vocab"]
    """Read off the stream before the first decoder layer, then after each layer; the last are the
    model's own."""
    parts: tuple[Part, ...]
    """The parts in the order of the pass, biases and switches at the end."""
    written: Float[ndarray, "part d_model"]
    """The remainder of each part at the projection, every layer norm held at the scale measured in this pass. Their sum
    is the projected state."""
    on_logits: Float[ndarray, "part vocab"] | None
    """The amount that biases and switches add to the logits themselves; None where that is nothing."""
    logits: Float[ndarray, " vocab"]
    """The logits as the pass computed them."""

    def difference(self, token: int, other: int) -> float:
        """Returns the logit of `token` minus that of `other`, as the pass computed them."""
        return float(self.logits[token] - self.logits[other])

    def contributions(self, model: Transformer, token: int, other: int) -> tuple[tuple[Part, float], ...]:
        """Returns how much each part raised the logit of `token` above that of `other`; their sum is the difference."""
        weight = model.projection.weight.detach()
        direction = (weight[token].double() - weight[other].double()).numpy()
        values = self.written @ direction
        if self.on_logits is not None:
            values = values + self.on_logits[:, token] - self.on_logits[:, other]
        return tuple(zip(self.parts, values.tolist(), strict=True))


@torch.no_grad()
def logit_lens(
    model: Transformer, source: Sequence[int], target: Sequence[int], step: int, switches: Sequence[Intervention] = ()
) -> LogitLens:
    """Decodes one step of the decoding that wrote `target` (no bos) again, with everything recorded."""
    untouched = Recorder(_in_decoder)
    steps = greedy(
        model,
        torch.tensor([source]),
        max_length=model.config.max_length,
        constraints=Constraints(forced=dict(enumerate(target[:step]))),
        tap=chain(untouched, compile_interventions(switches, model)),
        record=_in_decoder,
    )
    *_, seen = islice(steps, step + 1)
    assert seen.recording is not None, "recording was asked for"
    return _Pass(model, untouched.recording, seen.recording).lens()


def _in_decoder(site: Site) -> bool:
    return site.stack == "decoder"


class _Pass:
    """The newest position of a recorded pass, walked from the embedding to the logits."""

    def __init__(self, model: Transformer, before: Recording, after: Recording) -> None:
        self._model, self._before, self._after = model, before, after
        self._parts: list[Part] = []
        self._written: list[Tensor] = []
        self._biases = torch.zeros(model.config.d_model, dtype=torch.float64)
        self._switches = torch.zeros_like(self._biases)

    def lens(self) -> LogitLens:
        """Walks the pass and returns the result."""
        self._add([(Part("embedding"), self._seen("embedding"))])
        if self._is_there("positions"):
            self._add([(Part("positions"), self._seen("positions"))])
        for layer in range(len(self._model.decoder.layers)):
            for sublayer in ("self", "cross", "ffn"):
                self._go_through(layer, sublayer)
        if self._final_norm is not None:
            self._norm(self._final_norm, self._output_of(len(self._model.decoder.layers) - 1), "final.normed")
        parts, written = [*self._parts, Part("biases")], [*self._written, self._biases]
        changed = self._edit("logits")
        if self._switches.any() or changed is not None:
            parts, written = [*parts, Part("switches")], [*written, self._switches]
        return LogitLens(
            log_probs=self._log_probs().numpy(),
            parts=tuple(parts),
            written=torch.stack(written).numpy(),
            on_logits=self._on_logits(parts, changed),
            logits=self._seen("logits").numpy(),
        )

    def _go_through(self, layer: int, sublayer: Sublayer) -> None:
        """Goes through one sublayer with its residual sum and, in post-norm, the norm after it."""
        name, around = f"{layer}.{sublayer}", _add_norm(self._layer(layer), sublayer)
        if not around.residual:
            self._written = [torch.zeros_like(row) for row in self._written]
            self._biases, self._switches = torch.zeros_like(self._biases), torch.zeros_like(self._switches)
        else:
            self._note_edit(f"{name}.input")
            self._note_edit(f"{name}.residual")
        parts, constant = self._feed_forward(layer) if sublayer == "ffn" else self._heads(layer, sublayer)
        if self._edit(f"{name}.output") is not None:  # overwritten: what was computed went nowhere
            self._switches = self._switches + self._seen(f"{name}.output")
            parts, constant = [(part, torch.zeros_like(row)) for part, row in parts], torch.zeros_like(constant)
        self._add(parts)
        self._biases = self._biases + constant
        if around.placement == "post":
            assert around.norm is not None, "post-norm has a norm"
            self._norm(around.norm, self._sum(layer, sublayer), f"{name}.normed")

    def _heads(self, layer: int, sublayer: Sublayer) -> tuple[list[tuple[Part, Tensor]], Tensor]:
        """Returns what each head added to the stream without biases, and the biases of values and output."""
        attention = getattr(self._layer(layer), f"{sublayer}_attention")
        assert isinstance(attention, MultiHeadAttention)
        output = _double(attention.output.weight).unflatten(1, (attention.n_heads, -1))  # -> [d_model head d_head]
        context, weights = self._seen(f"{layer}.{sublayer}.heads"), self._seen(f"{layer}.{sublayer}.weights")
        gathered = (weights[:, None] @ self._after[f"decoder.{layer}.{sublayer}.v"][0].double())[:, 0]
        untouched = torch.isclose(gathered, context, rtol=1e-4, atol=1e-4).all(dim=-1)  # neither off nor replaced
        value_bias = _double(attention.value.bias).unflatten(0, (attention.n_heads, -1))
        shared = (untouched * weights.sum(dim=-1))[:, None] * value_bias
        added = torch.einsum("mhd,hd->hm", output, context - shared)
        parts = [(Part("head", layer, sublayer, head), row) for head, row in enumerate(added)]
        return parts, torch.einsum("mhd,hd->m", output, shared) + _double(attention.output.bias)

    def _feed_forward(self, layer: int) -> tuple[list[tuple[Part, Tensor]], Tensor]:
        """Returns what the feed-forward added without its outer bias, and that bias; the inner one acts before a
        non-linearity."""
        bias = _double(self._layer(layer).feed_forward.outer.bias)
        return [(Part("ffn", layer, "ffn"), self._seen(f"{layer}.ffn.output") - bias)], bias

    def _norm(self, norm: nn.LayerNorm, x: Tensor, name: str) -> None:
        """Takes every part through a layer norm that keeps dividing by the deviation which it measured on `x`."""
        gain = _double(norm.weight) / (x.var(correction=0) + norm.eps).sqrt()

        def through(row: Tensor) -> Tensor:
            return (row - row.mean()) * gain

        self._written = list(map(through, self._written))
        self._biases, self._switches = through(self._biases) + _double(norm.bias), through(self._switches)
        self._note_edit(name)

    def _log_probs(self) -> Float[Tensor, "depth vocab"]:
        """Returns the log-probabilities of the projection, after pre-norm's final norm, at each depth."""
        embedded = self._seen("embedding")
        embedded = embedded + self._seen("positions") if self._is_there("positions") else embedded
        stream = torch.stack([embedded, *map(self._output_of, range(len(self._model.decoder.layers)))])
        norm, projection = self._final_norm, self._model.projection
        if norm is not None:
            stream = nn.functional.layer_norm(
                stream, norm.normalized_shape, _double(norm.weight), _double(norm.bias), norm.eps
            )
        logits = stream.to(projection.weight.dtype) @ projection.weight.T
        logits = logits if projection.bias is None else logits + projection.bias
        return logits.double().log_softmax(dim=-1)

    def _on_logits(self, parts: list[Part], changed: Tensor | None) -> ndarray | None:
        bias = self._model.projection.bias
        if bias is None and changed is None:
            return None
        found = torch.zeros(len(parts), self._model.config.vocab_size, dtype=torch.float64)
        if bias is not None:
            found[parts.index(Part("biases"))] = _double(bias)
        if changed is not None:
            found[parts.index(Part("switches"))] = changed
        return found.numpy()

    def _output_of(self, layer: int) -> Tensor:
        around = self._layer(layer).add_norm_ffn
        return self._seen(f"{layer}.ffn.normed") if around.placement == "post" else self._sum(layer, "ffn")

    def _sum(self, layer: int, sublayer: Sublayer) -> Tensor:
        """Adds up the residual sum around a sublayer."""
        output = self._seen(f"{layer}.{sublayer}.output")
        if not _add_norm(self._layer(layer), sublayer).residual:
            return output
        return self._seen(f"{layer}.{sublayer}.residual") + output

    def _add(self, parts: Sequence[tuple[Part, Tensor]]) -> None:
        self._parts += [part for part, _ in parts]
        self._written += [row for _, row in parts]

    def _note_edit(self, name: str) -> None:
        edit = self._edit(name)
        if edit is not None:
            self._switches = self._switches + edit

    def _edit(self, name: str) -> Tensor | None:
        """Returns what a switch added at a site; None where it left it alone."""
        if not self._is_there(name) or torch.equal(self._before[f"decoder.{name}"], self._after[f"decoder.{name}"]):
            return None
        return self._seen(name) - _newest(self._before, name)

    def _seen(self, name: str) -> Tensor:
        """Returns what the pass went on with at the newest position, in float64."""
        return _newest(self._after, name)

    def _is_there(self, name: str) -> bool:
        return Site.parse(f"decoder.{name}") in self._after

    @property
    def _final_norm(self) -> nn.LayerNorm | None:
        found = self._model.decoder.norm
        assert found is None or isinstance(found, nn.LayerNorm)
        return found

    def _layer(self, layer: int) -> DecoderLayer:
        found = self._model.decoder.layers[layer]
        assert isinstance(found, DecoderLayer)
        return found


def _newest(recording: Recording, name: str) -> Tensor:
    found = recording[f"decoder.{name}"][0].double()
    match name.split(".")[-1]:
        case "logits":
            return found
        case "heads" | "weights":
            return found[:, -1]  # [head query ...]
        case _:
            return found[-1]


def _add_norm(layer: DecoderLayer, sublayer: Sublayer) -> AddNorm:
    return getattr(layer, f"add_norm_{sublayer}")


def _double(parameter: Tensor) -> Tensor:
    return parameter.detach().double()
