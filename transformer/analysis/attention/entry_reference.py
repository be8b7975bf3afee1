"""One query's row of a block, recorded in a decoding of its own and computed again in double precision: inputs through
W_Q, W_K and W_V, scores, mask by its rule, softmax, and what each head and key adds to the output.

Nothing here is shared with `entry.py`, which it is held against.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray

from transformer.analysis.attention.score_reference import reference_divisor, reference_terms
from transformer.decoding.greedy import Constraints, Step, greedy
from transformer.interventions import Intervention, OverwrittenRow, compile_interventions
from transformer.model.attention import MultiHeadAttention
from transformer.model.positions import alibi_slopes
from transformer.model.taps import Address
from transformer.model.transformer import Transformer


@dataclass(frozen=True)
class Row:
    """One query of a block in a decoding, in float64, with what its switches ask."""

    model: Transformer
    address: Address
    query: int
    switches: Sequence[Intervention]
    """Those that act in this block."""
    masks_off: frozenset[str]
    keys: Sequence[int]
    """The token at each key."""
    asked_by: Float[ndarray, "d_model"]
    """What q is made of."""
    read: Float[ndarray, "key d_model"]
    """What k and v are made of."""
    q: Float[ndarray, "head d_head"]
    k: Float[ndarray, "head key d_head"]
    v: Float[ndarray, "head key d_head"]
    weights: Float[ndarray, "head key"]
    heads: Float[ndarray, "head d_head"]
    output: Float[ndarray, "d_model"]

    @property
    def divisor(self) -> float:
        return reference_divisor(self.model)

    @property
    def has_slopes(self) -> bool:
        return self.model.config.positions == "alibi" and self.address.sublayer == "self"

    @property
    def is_turned(self) -> bool:
        return self.model.config.positions == "rotary" and self.address.sublayer == "self"

    @property
    def copied(self) -> tuple[str, ...]:
        """Which of q, k and v a switch puts something else in place of."""
        replaced = (spec.replaced for spec in self.switches)
        return tuple(found.tensor for found in replaced if found is not None and found.tensor in ("q", "k", "v"))

    def projected(self, head: int, key: int) -> Float[ndarray, "three_d_head"]:
        """q, k and v out of the block's inputs; those that are copied as they were recorded."""
        sublayer, size = _sublayer(self.model, self.address), self.q.shape[-1]
        own = slice(head * size, (head + 1) * size)
        made_of = (
            ("q", sublayer.query, self.asked_by, self.query, self.q[head]),
            ("k", sublayer.key, self.read[key], key, self.k[head, key]),
            ("v", sublayer.value, self.read[key], key, self.v[head, key]),
        )
        found = []
        for name, linear, x, position, recorded in made_of:
            row = _numbers(linear.weight)[own] @ x + _numbers(linear.bias)[own]
            turned = _turned(row, position) if self.is_turned and name != "v" else row
            found.append(recorded if name in self.copied else turned)
        return np.concatenate(found)

    def is_even(self, head: int) -> bool:
        """Whether a switch makes all scores of this head's row equal."""
        return any(row.is_even for row in self._rows_set(head))

    def terms(self, head: int, k: Float[ndarray, "d_head"]) -> list[float]:
        """What adds up to the score of this key, times the divisor."""
        return reference_terms(self.model, _sublayer(self.model, self.address), head, self.q[head].tolist(), k.tolist())

    def scores(self, head: int) -> Float[ndarray, "key"]:
        if self.is_even(head):
            return np.zeros(len(self.keys))
        scores = np.array([math.fsum(self.terms(head, k)) / self.divisor for k in self.k[head]])
        if not self.has_slopes:
            return scores
        return scores - alibi_slopes(len(self.q))[head] * np.abs(self.query - np.arange(len(scores)))

    @cached_property
    def allowed(self) -> Bool[ndarray, "key"]:
        """Key by key: no padding, in the decoder's self-attention none that comes later, none that is forbidden."""
        ours = (self.address.stack, self.address.sublayer)
        padding = ("cross" if ours == ("decoder", "cross") else "padding") not in self.masks_off
        causal = ours == ("decoder", "self") and self.model.config.causal_mask and "causal" not in self.masks_off
        closed = {key for spec in self.switches for query, key in spec.forbidden if query == self.query}
        pad = self.model.config.pad_id
        return np.array(
            [
                not ((padding and token == pad) or (causal and key > self.query) or key in closed)
                for key, token in enumerate(self.keys)
            ]
        )

    def asked(self, head: int) -> Float[ndarray, "key"] | None:
        """The row that a switch overwrites this head's weights with."""
        rows = [r.weights for r in self._rows_set(head) if not r.is_even and len(r.weights) <= len(self.keys)]
        return np.pad(rows[-1], (0, len(self.keys) - len(rows[-1]))) if rows else None

    def softmax(self, head: int) -> Float[ndarray, "key"]:
        """The row of weights; 0 where nothing is allowed."""
        if (asked := self.asked(head)) is not None:
            return asked
        scores = self.scores(head)
        top = max((s for s, allowed in zip(scores, self.allowed, strict=True) if allowed), default=0.0)
        powers = [math.exp(s - top) if allowed else 0.0 for s, allowed in zip(scores, self.allowed, strict=True)]
        return np.array(powers) / (math.fsum(powers) or 1.0)

    @cached_property
    def reached(self) -> Bool[ndarray, "head"]:
        """False for heads whose context a switch put something else in place of."""
        context = np.array([weights @ values for weights, values in zip(self.weights, self.v, strict=True)])
        context = context * self._factors[:, None]
        moved = np.abs(context - self.heads).max(axis=-1) > 1e-5 * (1 + np.abs(context).max())
        replaced = [any(_replaces(spec, head, self.query) for spec in self.switches) for head in range(len(moved))]
        return ~(moved & np.array(replaced)) & (self.new_output is None)

    @cached_property
    def vectors(self) -> Float[ndarray, "head key d_model"]:
        """α · v W_O of every head and key, times the head's factor; 0 where it did not reach the output."""
        kept = self._factors * self.reached
        return np.array(
            [
                (weights[:, None] * values) @ part.T * factor
                for weights, values, part, factor in zip(self.weights, self.v, self._parts, kept, strict=True)
            ]
        )

    @cached_property
    def put_in_place(self) -> Float[ndarray, "d_model"]:
        """What switches put in place of heads, through W_O."""
        contexts = zip(self.heads, self._parts, self.reached, strict=True)
        return np.sum([part @ context * (not reached) for context, part, reached in contexts], axis=0)

    @property
    def new_output(self) -> Float[ndarray, "d_model"] | None:
        """What a switch put in place of the whole output."""
        outputs = [r for spec in self.switches if (r := spec.replaced) is not None and r.tensor == "output"]
        if any(replaced.by == "zero" for replaced in outputs):
            return np.zeros_like(self.output)
        found = None
        for replaced in outputs:
            if replaced.rows is not None and replaced.positions is not None and self.query in replaced.positions:
                found = _numbers(replaced.rows[replaced.positions.index(self.query)])
        own = np.concatenate(self._parts, axis=1) @ self.heads.ravel() + self._bias
        is_own = found is not None and np.abs(found - own).max() <= 1e-4 * (1 + np.abs(own).max())
        return None if is_own else found

    @property
    def bias(self) -> Float[ndarray, "d_model"]:
        """W_O's bias, nothing of which is there where the whole output is a switch's."""
        return self._bias * (self.new_output is None)

    @property
    def _bias(self) -> Float[ndarray, "d_model"]:
        return _numbers(_sublayer(self.model, self.address).output.bias)

    @property
    def _parts(self) -> list[Float[ndarray, "d_model d_head"]]:
        """The columns of W_O of each head."""
        return np.split(_numbers(_sublayer(self.model, self.address).output.weight), len(self.heads), axis=1)

    @cached_property
    def _factors(self) -> Float[ndarray, "head"]:
        """The factor of each head's context, of all switches multiplied."""
        asked = [[spec.head_factors.get(head, 1.0) for spec in self.switches] for head in range(len(self.heads))]
        return np.array([math.prod(factors) for factors in asked])

    def _rows_set(self, head: int) -> list[OverwrittenRow]:
        rows = (row for spec in self.switches for row in spec.overwritten)
        return [row for row in rows if (row.head, row.query) == (head, self.query)]


def record_row(
    model: Transformer,
    source: Sequence[int],
    switches: Sequence[Intervention],
    forced: Mapping[int, int],
    address: Address,
    query: int,
) -> Row:
    """The row of this query out of a decoding of its own."""
    tap = compile_interventions(switches, model)
    read = "normed" if model.config.norm == "pre" else "input"
    wanted = {address.site(name) for name in (read, "q", "k", "v", "weights", "heads", "output")}
    ids, limit = torch.tensor([list(source)]), model.config.max_length
    rules = Constraints(forced=forced)
    decoding = greedy(model, ids, max_length=limit, constraints=rules, tap=tap, record=wanted.__contains__)
    last_holds_all = address.stack == "decoder" and address.sublayer == "self" and model.needs_recomputation(tap)
    whole = address.stack == "encoder" or last_holds_all
    steps = list(islice(decoding, None if last_holds_all else 1 if whole else query + 1))

    def at(name: str, step: Step = steps[-1]) -> ndarray:
        assert step.recording is not None, "these steps record"
        return _numbers(step.recording[address.site(name)][0])

    row = query if whole else -1
    inputs, keys = at(read), source
    if address.stack == "decoder" and address.sublayer == "self":
        inputs = inputs if whole else np.stack([at(read, step)[-1] for step in steps])
        keys = [model.config.bos_id, *(int(step.tokens[0]) for step in steps[:-1])]
    with torch.no_grad():
        memory = _numbers(model.encode(ids, tap=tap)[0]) if address.sublayer == "cross" else inputs
    return Row(
        model=model,
        address=address,
        query=query,
        switches=[spec for spec in switches if spec.address == address],
        masks_off=frozenset(mask for spec in switches for mask in spec.lifts),
        keys=keys,
        asked_by=at(read)[row],
        read=memory,
        q=at("q")[:, row],
        k=at("k"),
        v=at("v"),
        weights=at("weights")[:, row],
        heads=at("heads")[:, row],
        output=at("output")[row],
    )


def _replaces(spec: Intervention, head: int, query: int) -> bool:
    """Whether a switch in this block puts something else in place of this head's context."""
    found = spec.replaced
    if found is None or found.tensor != "heads" or not (found.heads is None or head in found.heads):
        return False
    return found.positions is None or query in found.positions


def _sublayer(model: Transformer, address: Address) -> MultiHeadAttention:
    sublayer = model.get_submodule(f"{address.stack}.layers.{address.layer}.{address.sublayer}_attention")
    assert isinstance(sublayer, MultiHeadAttention)
    return sublayer


def _turned(row: Float[ndarray, "d_head"], position: int) -> Float[ndarray, "d_head"]:
    """Su et al. (2021), eq. 34: dimensions 2i and 2i + 1 turned together by position / 10000^(2i / d)."""
    angles = position / 10_000.0 ** (np.arange(0, len(row), 2) / len(row))
    turned = (row[0::2] + 1j * row[1::2]) * np.exp(1j * angles)
    return np.stack((turned.real, turned.imag), axis=-1).ravel()


def _numbers(tensor: torch.Tensor) -> ndarray:
    return tensor.detach().double().numpy()
