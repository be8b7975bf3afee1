"""The rows of a block's attention, recorded in a decoding of their own and computed again in double precision.

Inputs go through W_Q, W_K and W_V; then scores, the mask by its rule, softmax, and what each head and key adds to the
output. Nothing here is shared with `entry.py` and `vectors.py`, which are checked against it.
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

from transformer.analysis.attention.mask_reference import may_see
from transformer.analysis.attention.score_reference import reference_divisor, reference_scores, reference_terms
from transformer.decoding.greedy import Constraints, greedy
from transformer.interventions import Intervention, OverwrittenRow, compile_interventions
from transformer.model.attention import MultiHeadAttention
from transformer.model.kinds import AttentionKind
from transformer.model.positions import alibi_slopes
from transformer.model.taps import Address
from transformer.model.transformer import Transformer


@dataclass(frozen=True)
class Row:
    """One query of a block in a decoding, in float64, and the switches that act on it."""

    model: Transformer
    address: Address
    query: int
    switches: Sequence[Intervention]
    """The switches that act in this block."""
    masks_off: frozenset[str]
    keys: Sequence[int]
    """The token at each key."""
    asked_by: Float[ndarray, " d_model"]
    """The input of W_Q."""
    read: Float[ndarray, "key d_model"]
    """The inputs of W_K and W_V."""
    q: Float[ndarray, "head d_head"]
    k: Float[ndarray, "head key d_head"]
    v: Float[ndarray, "head key d_head"]
    weights: Float[ndarray, "head key"]
    heads: Float[ndarray, "head d_head"]
    output: Float[ndarray, " d_model"]

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
        """The ones of q, k and v that a switch replaces."""
        replaced = (spec.replaced for spec in self.switches)
        return tuple(found.tensor for found in replaced if found is not None and found.tensor in ("q", "k", "v"))

    def projected(self, head: int, key: int) -> Float[ndarray, " three_d_head"]:
        """Returns q, k and v made of the block's inputs; copied ones are taken as they were recorded."""
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
        """Tells whether a switch makes all scores of this head's row equal."""
        return any(row.is_even for row in self._rows_set(head))

    def terms(self, head: int, k: Float[ndarray, " d_head"]) -> list[float]:
        """Returns the numbers that add up to the score of this key, times the divisor."""
        return reference_terms(self.model, _sublayer(self.model, self.address), head, self.q[head].tolist(), k.tolist())

    @cached_property
    def scores(self) -> Float[ndarray, "head key"]:
        scores = reference_scores(self.model, _sublayer(self.model, self.address), self.q[:, None], self.k)[:, 0]
        if self.has_slopes:
            slopes = np.array(alibi_slopes(len(self.q)))[:, None]
            scores = scores - slopes * np.abs(self.query - np.arange(scores.shape[1]))
        scores[[self.is_even(head) for head in range(len(scores))]] = 0
        return scores

    @cached_property
    def allowed(self) -> Bool[ndarray, " key"]:
        """False at padding, at keys that a rule of the masks hides, and at forbidden keys."""
        kind = AttentionKind.at(self.address.stack, self.address.sublayer or "")
        padding = ("cross" if kind is AttentionKind.CROSS else "padding") not in self.masks_off
        closed = {key for spec in self.switches for query, key in spec.forbidden if query == self.query}
        pad = self.model.config.pad_id
        return np.array(
            [
                not (padding and token == pad)
                and key not in closed
                and may_see(self.model.config, kind, self.query, key, lifted=self.masks_off)
                for key, token in enumerate(self.keys)
            ]
        )

    def asked(self, head: int) -> Float[ndarray, " key"] | None:
        """Returns the row that a switch overwrites this head's weights with; None where none does."""
        rows = [r.weights for r in self._rows_set(head) if not r.is_even and len(r.weights) <= len(self.keys)]
        return np.pad(rows[-1], (0, len(self.keys) - len(rows[-1]))) if rows else None

    @cached_property
    def softmax(self) -> Float[ndarray, "head key"]:
        """The weights, 0 where nothing is allowed; overwritten rows as a switch asks for them."""
        found = np.zeros(self.scores.shape)
        if self.allowed.any():
            powers = np.exp(self.scores[:, self.allowed] - self.scores[:, self.allowed].max(axis=1, keepdims=True))
            found[:, self.allowed] = powers / powers.sum(axis=1, keepdims=True)
        for head in range(len(found)):
            if (asked := self.asked(head)) is not None:
                found[head] = asked
        return found

    @cached_property
    def reached(self) -> Bool[ndarray, " head"]:
        """False for heads whose context a switch replaced, and for all where it replaced the block's output."""
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
    def put_in_place(self) -> Float[ndarray, " d_model"]:
        """The contexts that switches put in place of heads, through W_O."""
        contexts = zip(self.heads, self._parts, self.reached, strict=True)
        return np.sum([part @ context * (not reached) for context, part, reached in contexts], axis=0)

    @property
    def new_output(self) -> Float[ndarray, " d_model"] | None:
        """The output that a switch put in place of the block's own; None where none did."""
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
    def bias(self) -> Float[ndarray, " d_model"]:
        """W_O's bias, nothing of which is there where the whole output is a switch's."""
        return self._bias * (self.new_output is None)

    @property
    def expected_output(self) -> Float[ndarray, " d_model"]:
        """The sum of all vectors, the bias and the contexts put in place, or the output that a switch put there."""
        whole = self.vectors.sum(axis=(0, 1)) + self.bias + self.put_in_place
        return whole if self.new_output is None else self.new_output

    @property
    def _bias(self) -> Float[ndarray, " d_model"]:
        return _numbers(_sublayer(self.model, self.address).output.bias)

    @property
    def _parts(self) -> list[Float[ndarray, "d_model d_head"]]:
        """The columns of W_O of each head."""
        return np.split(_numbers(_sublayer(self.model, self.address).output.weight), len(self.heads), axis=1)

    @cached_property
    def _factors(self) -> Float[ndarray, " head"]:
        """The factor of each head's context, of all switches multiplied."""
        asked = [[spec.head_factors.get(head, 1.0) for spec in self.switches] for head in range(len(self.heads))]
        return np.array([math.prod(factors) for factors in asked])

    def _rows_set(self, head: int) -> list[OverwrittenRow]:
        rows = (row for spec in self.switches for row in spec.overwritten)
        return [row for row in rows if (row.head, row.query) == (head, self.query)]


def record_rows(
    model: Transformer,
    source: Sequence[int],
    switches: Sequence[Intervention],
    forced: Mapping[int, int],
    addresses: Sequence[Address],
) -> list[list[Row]]:
    """Returns the rows of each of these blocks of one kind of attention, recorded in one decoding."""
    tap, (stack, sublayer) = compile_interventions(switches, model), (addresses[0].stack, addresses[0].sublayer)
    read = "normed" if model.config.norm == "pre" else "input"
    names = (read, "q", "k", "v", "weights", "heads", "output")
    wanted = {address.site(name) for address in addresses for name in names}
    ids, limit = torch.tensor([list(source)]), model.config.max_length
    rules = Constraints(forced=forced)
    decoding = greedy(model, ids, max_length=limit, constraints=rules, tap=tap, record=wanted.__contains__)
    # Without a cache the decoder's self-attention is that of the last pass, which holds all rows.
    last_holds_all = (stack, sublayer) == ("decoder", "self") and model.needs_recomputation(tap)
    steps = list(islice(decoding, 1 if stack == "encoder" else None))
    keys: Sequence[int] = source
    if (stack, sublayer) == ("decoder", "self"):
        keys = [model.config.bos_id, *(int(step.tokens[0]) for step in steps[:-1])]
    with torch.no_grad():
        memory = _numbers(model.encode(ids, tap=tap)[0]) if sublayer == "cross" else None
    passes, in_one_pass = steps[-1:] if last_holds_all else steps, stack == "encoder" or last_holds_all
    found: list[list[Row]] = []
    for address in addresses:
        recorded = [
            {name: _numbers(step.recording[address.site(name)][0]) for name in names}  # type: ignore[index]
            for step in passes
        ]
        queries = range(len(keys)) if in_one_pass else range(len(passes))
        rows = []
        for query in queries:
            at, row = (recorded[0], query) if in_one_pass else (recorded[query], -1)
            inputs = memory
            if inputs is None:
                inputs = at[read] if in_one_pass else np.stack([one[read][-1] for one in recorded[: query + 1]])
            rows.append(
                Row(
                    model=model,
                    address=address,
                    query=query,
                    switches=[spec for spec in switches if spec.address == address],
                    masks_off=frozenset(mask for spec in switches for mask in spec.lifts),
                    keys=keys[: len(inputs)],
                    asked_by=at[read][row],
                    read=inputs,
                    q=at["q"][:, row],
                    k=at["k"],
                    v=at["v"],
                    weights=at["weights"][:, row],
                    heads=at["heads"][:, row],
                    output=at["output"][row],
                )
            )
        found.append(rows)
    return found


def _replaces(spec: Intervention, head: int, query: int) -> bool:
    """Tells whether a switch in this block replaces this head's context."""
    found = spec.replaced
    if found is None or found.tensor != "heads" or not (found.heads is None or head in found.heads):
        return False
    return found.positions is None or query in found.positions


def _sublayer(model: Transformer, address: Address) -> MultiHeadAttention:
    sublayer = model.get_submodule(f"{address.stack}.layers.{address.layer}.{address.sublayer}_attention")
    assert isinstance(sublayer, MultiHeadAttention)
    return sublayer


def _turned(row: Float[ndarray, " d_head"], position: int) -> Float[ndarray, " d_head"]:
    """Turns dimensions 2i and 2i + 1 together by position / 10000^(2i / d): Su et al. (2021), eq. 34."""
    angles = position / 10_000.0 ** (np.arange(0, len(row), 2) / len(row))
    turned = (row[0::2] + 1j * row[1::2]) * np.exp(1j * angles)
    return np.stack((turned.real, turned.imag), axis=-1).ravel()


def _numbers(tensor: torch.Tensor) -> ndarray:
    return tensor.detach().double().numpy()
