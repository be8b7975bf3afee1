"""Records of one decoded sentence, and of two: labelled NumPy arrays, read from the passes that wrote the output."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray

from transformer.decoding.greedy import Step
from transformer.inspection.token_alignment import Aligned, align
from transformer.interventions import Intervention, compile_interventions
from transformer.model.kinds import AttentionKind, KindName
from transformer.model.seq2seq import Seq2Seq, attention_layers
from transformer.model.taps import Address, Recording, Site
from transformer.text.sentence import Sentence
from transformer.text.tokenizer import EOS, Tokenizer

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


MAX_RECORDED_BYTES = 64_000_000
"""The most that one decoding records, of attention and of probabilities: a longer output is cut off."""


@dataclass(frozen=True)
class Attention:
    """The weights of one kind of attention in every layer and head, with what stands at its rows and columns."""

    kind: AttentionKind
    weights: Float[ndarray, "layer head query key"]
    """After softmax; 0 where a key was masked or did not exist yet."""
    mask: Bool[ndarray, "layer query key"]
    """True where the pass allowed the query to see the key."""
    queries: tuple[str, ...]
    """One label a row: the token at which the query stands. A decoder position reads one token to write the next:
    `decoder_self` names what it reads, as its keys do, and `cross` what it writes, as an alignment does."""
    keys: tuple[str, ...]
    """One label a column."""


@dataclass(frozen=True)
class Inspection:
    """One sentence decoded with every attention recorded on the way. Read-only; safe to share."""

    model_name: str
    sentence: Sentence
    """The source as the encoder read it, its end mark included."""
    translation: str
    target_tokens: tuple[str, ...]
    """The tokens that the decoder wrote, with its end mark if it wrote one."""
    target_ids: tuple[int, ...]
    attentions: Mapping[AttentionKind, Attention]
    """Every kind of attention that the model has."""
    decoder_inputs: tuple[str, ...]
    """The token that the decoder read at each step: the start mark, then what it had just written."""
    log_probs: Float[ndarray, "step vocab"]
    """Natural log-probabilities of every token at each step."""
    interventions: tuple[Intervention, ...]
    cached: bool
    """True if each step reused keys and values. If not, `decoder_self` is the last step's whole pass, not the rows of
    each step: earlier states were computed anew each time."""
    ended: bool
    """False where the output was cut off at the length limit before an end mark."""
    forced: tuple[tuple[int, int], ...] = ()
    """Steps at which a token was forced, each with its id; the model chose at all others."""
    computed: tuple[int, ...] = ()
    """Target positions that went through the decoder at each step."""
    reused: tuple[int, ...] = ()
    """Target positions whose keys and values each step took from the cache."""

    def attention(self, kind: KindName) -> Attention:
        """Returns the attention of this kind; ValueError for one that the model lacks."""
        if kind not in tuple(AttentionKind):
            raise ValueError(f"{kind!r} is not a kind of attention; choose one of: {', '.join(AttentionKind)}")
        if kind not in self.attentions:
            raise ValueError(f"this model has no {AttentionKind(kind).phrase}")
        return self.attentions[AttentionKind(kind)]

    @property
    def text(self) -> str:
        return self.sentence.text

    @property
    def source_tokens(self) -> tuple[str, ...]:
        return self.sentence.tokens

    @property
    def source_ids(self) -> tuple[int, ...]:
        return self.sentence.ids

    @property
    def encoder_self(self) -> Attention:
        return self.attention(AttentionKind.ENCODER_SELF)

    @property
    def decoder_self(self) -> Attention:
        return self.attention(AttentionKind.DECODER_SELF)

    @property
    def cross(self) -> Attention:
        return self.attention(AttentionKind.CROSS)

    @cached_property
    def digest(self) -> bytes:
        """The hash of every probability that came out."""
        return blake2b(self.log_probs.tobytes()).digest()

    @cached_property
    def probabilities(self) -> Float[ndarray, " step"]:
        """The probability that each written token had."""
        return np.exp(self.log_probs[np.arange(len(self.target_ids)), list(self.target_ids)])

    def figure(self, kind: KindName = "cross", layer: int = 0, head: int = 0) -> "Figure":
        """One head as a heatmap; ValueError for a layer or head that the model lacks."""
        from transformer.figures.attention.matrix import head_heatmap

        attention = self.attention(kind)
        n_layers, n_heads = attention.weights.shape[:2]
        if not (0 <= layer < n_layers and 0 <= head < n_heads):
            raise ValueError(
                f"layer {layer}, head {head} does not exist: layers 0 to {n_layers - 1}, heads 0 to {n_heads - 1}"
            )
        return head_heatmap(
            attention.weights[layer, head], attention.queries, attention.keys, kind=kind, mask=attention.mask[layer]
        )


@dataclass(frozen=True)
class Comparison:
    """The same sentence before and after some switches: free-running outputs, and probabilities on equal prefixes."""

    before: Inspection
    after: Inspection
    forced_before: Float[ndarray, " step"]
    """Probability of each token of the original output, given the original output before it (teacher-forced)."""
    forced_after: Float[ndarray, " step"]
    """The same under the switches."""
    kl_divergence: Float[ndarray, " step"]
    """KL(before || after) in nats of the next-token distributions on those same prefixes."""

    @property
    def output_changed(self) -> bool:
        """True if the decoded tokens differ."""
        return self.before.target_ids != self.after.target_ids

    @cached_property
    def alignment(self) -> Aligned:
        """The steps of both outputs side by side, by the fewest edits; None where only the other wrote a token."""
        return align(self.before.target_ids, self.after.target_ids)

    @cached_property
    def marks(self) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
        """Marks of the tokens that are changed, for both outputs, by the fewest edits."""
        a, b = self.before.target_ids, self.after.target_ids
        changed_a, changed_b = [True] * len(a), [True] * len(b)
        for i, j in self.alignment:
            if i is not None and j is not None and a[i] == b[j]:
                changed_a[i] = changed_b[j] = False
        return tuple(changed_a), tuple(changed_b)

    @property
    def largest_shift(self) -> tuple[int, float]:
        """The step whose token's probability moved most, and by how much (after minus before)."""
        shift = self.forced_after - self.forced_before
        step = int(np.abs(shift).argmax())
        return step, float(shift[step])

    def others_at(
        self, kind: AttentionKind, layer: int, head: int, step: int
    ) -> tuple[int, tuple[tuple[float, int, int], ...]]:
        """Returns the key that a head of the decoder looked at most at a step before the switches, and (weight, layer,
        head) of each other head of its kind on that key under them, the largest first. The output must be the same; of
        the encoder, whose rows are no steps, there are none."""
        if kind == AttentionKind.ENCODER_SELF:
            return 0, ()
        key = int(self.before.attention(kind).weights[layer, head, step].argmax())
        there = self.after.attention(kind).weights[:, :, step, key]  # -> [layer head]
        found = [(float(there[place]), *place) for place in np.ndindex(there.shape) if place != (layer, head)]
        return key, tuple(sorted(found, key=lambda entry: -entry[0]))


@dataclass(frozen=True)
class AttentionShift:
    """All attention without and with some switches, both on the prefixes of the original output (teacher-forced)."""

    before: Mapping[AttentionKind, Attention]
    after: Mapping[AttentionKind, Attention]

    def largest(self) -> tuple[tuple[float, AttentionKind, int, int], ...]:
        """(largest change of a weight, kind, layer, head) of every head, the most moved first."""
        found: list[tuple[float, AttentionKind, int, int]] = []
        for kind, before in self.before.items():
            moved = np.abs(self.after[kind].weights - before.weights).max(axis=(-2, -1))  # -> [layer head]
            found.extend((float(moved[layer, head]), kind, layer, head) for layer, head in np.ndindex(moved.shape))
        return tuple(sorted(found, key=lambda entry: -entry[0]))


def is_attention(site: Site) -> bool:
    """Tells whether `read_attention` needs the tensor of a site."""
    return site.tensor in ("weights", "mask")


def most_steps(model: Seq2Seq, n_source: int) -> int:
    """Returns how many tokens can be decoded until the model's limit, or MAX_RECORDED_BYTES of records, is reached."""
    config, layers = model.config, attention_layers(model)
    entry = 4 * config.n_heads + 1  # a weight for each head, and the mask

    def recorded(n_steps: int) -> int:
        n_entries = layers.get(AttentionKind.DECODER_SELF, 0) * n_steps + layers.get(AttentionKind.CROSS, 0) * n_source
        return n_steps * (entry * n_entries + 4 * config.vocab_size)

    return max(1, bisect_right(range(1, config.max_length + 1), MAX_RECORDED_BYTES, key=recorded))


def newest_rows(step: Step) -> Step:
    """Returns a step that another one follows with what `read_steps` needs of it: a step that passed the whole prefix
    recorded every row again."""
    if step.recording is None or step.computed == 1:
        return step
    kept = Recording()
    for site, tensor in step.recording.items():
        kept.keep(site, tensor if site.stack == "encoder" else tensor[..., -1:, :])
    return replace(step, recording=kept)


def read_steps(
    model: Seq2Seq,
    tokenizer: Tokenizer,
    sentence: Sentence,
    steps: Sequence[Step],
    specs: tuple[Intervention, ...],
    forced: Mapping[int, int],
    *,
    model_name: str,
) -> Inspection:
    """Returns the inspection of a sentence's first steps; each recorded the sites of `is_attention`."""
    recordings = [step.recording for step in steps if step.recording is not None]
    target = [int(step.tokens[0]) for step in steps]
    names = tuple(tokenizer.piece(token) for token in target)
    inputs = (tokenizer.piece(model.config.bos_id), *names[:-1])
    cached = steps[-1].reused == steps[-1].index
    cached = cached and not model.needs_recomputation(compile_interventions(specs, model))
    labels = {
        AttentionKind.ENCODER_SELF: (sentence.tokens, sentence.tokens),
        AttentionKind.DECODER_SELF: (inputs, inputs),
        AttentionKind.CROSS: (names, sentence.tokens),
    }
    by_row = {AttentionKind.ENCODER_SELF: False, AttentionKind.DECODER_SELF: cached, AttentionKind.CROSS: True}
    log_probs = torch.cat([step.log_probs for step in steps]).cpu().numpy()
    log_probs.setflags(write=False)
    return Inspection(
        model_name=model_name,
        sentence=sentence,
        translation=tokenizer.decode(target[:-1] if target[-1] == EOS else target),
        target_tokens=names,
        target_ids=tuple(target),
        attentions={
            kind: read_attention(recordings, kind, n_layers, *labels[kind], by_row=by_row[kind])
            for kind, n_layers in attention_layers(model).items()
        },
        decoder_inputs=inputs,
        log_probs=log_probs,
        interventions=specs,
        cached=cached,
        ended=target[-1] == EOS,
        forced=tuple(sorted(forced.items())),
        computed=tuple(step.computed for step in steps),
        reused=tuple(step.reused for step in steps),
    )


def read_attention(
    recordings: Sequence[Recording],
    kind: AttentionKind,
    n_layers: int,
    queries: tuple[str, ...],
    keys: tuple[str, ...],
    *,
    by_row: bool,
) -> Attention:
    """Returns one kind of attention of all layers, read-only.

    With `by_row` row t is the newest query of recording t, and keys that did not exist then stay 0 and disallowed. Else
    one pass has all rows: the first for the encoder, which later ones need not run again, the last for the decoder.
    """
    stack, sublayer = kind.where
    blocks = [Address(stack, layer, sublayer) for layer in range(n_layers)]
    if by_row:
        n_heads = recordings[0][blocks[0].site("weights")].size(1)
        weights = np.zeros((n_layers, n_heads, len(queries), len(keys)), dtype=np.float32)
        mask = np.zeros((n_layers, len(queries), len(keys)), dtype=bool)
        for layer, block in enumerate(blocks):
            for row, recording in enumerate(recordings):
                recorded, allowed = recording[block.site("weights")][0, :, -1], recording[block.site("mask")][0, 0, -1]
                weights[layer, :, row, : recorded.size(-1)] = recorded.cpu().numpy()
                mask[layer, row, : allowed.size(-1)] = allowed.cpu().numpy()
    else:
        recording = recordings[0 if stack == "encoder" else -1]
        weights = torch.stack([recording[block.site("weights")][0] for block in blocks]).cpu().numpy()
        mask = torch.stack([recording[block.site("mask")][0, 0] for block in blocks]).cpu().numpy()
    weights.setflags(write=False)
    mask.setflags(write=False)
    return Attention(kind, weights, mask, queries, keys)


def idle_notes(seen: Inspection, *, causal_mask: bool) -> tuple[str, ...]:
    """Returns why an intervention, or a part of it, does nothing to this output; `causal_mask`: whether the model has
    one."""
    looks_back = causal_mask and not any("causal" in spec.lifts for spec in seen.interventions)
    last = len(seen.target_ids) - 1
    said = ((spec, spec.idle(last, looks_back=looks_back)) for spec in seen.interventions)
    return tuple(f"{spec.label()}: {why}" for spec, why in said if why)
