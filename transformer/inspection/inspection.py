"""Records of one decoded sentence, and of two: labelled NumPy arrays, read from the passes that wrote the output.

Not here: how they are recorded (lab.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from transformer.inspection.token_alignment import Aligned, align
from transformer.interventions import Intervention
from transformer.model.kinds import AttentionKind, KindName
from transformer.text.sentence import Sentence

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


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
            raise ValueError(f"this model has no {AttentionKind(kind).label.lower()}")
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
    def probabilities(self) -> Float[ndarray, "step"]:
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
    forced_before: Float[ndarray, "step"]
    """Probability of each token of the original output, given the original output before it (teacher-forced)."""
    forced_after: Float[ndarray, "step"]
    """The same under the switches."""
    kl_divergence: Float[ndarray, "step"]
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


def idle_notes(seen: Inspection, *, causal_mask: bool) -> tuple[str, ...]:
    """Returns why an intervention, or a part of it, does nothing to this output; `causal_mask`: whether the model has
    one."""
    looks_back = causal_mask and not any("causal" in spec.lifts for spec in seen.interventions)
    last = len(seen.target_ids) - 1
    said = ((spec, spec.idle(last, looks_back=looks_back)) for spec in seen.interventions)
    return tuple(f"{spec.label()}: {why}" for spec, why in said if why)
