"""Single cells and rows of attention.

Cells and rows are addressed by position: `query` is a source position in the encoder, a step in the decoder.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from transformer.interventions.names import plural
from transformer.interventions.protocol import AtBlock, Intervention, OverwrittenRow, is_number, parse_sublayer
from transformer.model.seq2seq import Seq2Seq
from transformer.model.taps import Site, Stack, Sublayer

_NUMBER = re.compile(r"-?[0-9]{0,20}\.?[0-9]{1,20}(?:e[-+]?[0-9]{1,3})?", re.IGNORECASE)
"""A number of a row as it is typed or printed."""
_WHOLE_PREFIX = (
    "A cached step of cross-attention does not show at which position its query stands, so each step passes "
    "the whole prefix again, without the key/value cache. The decoder self-attention shown is the last pass."
)


@dataclass(frozen=True)
class MaskEntry(AtBlock):
    """Forbids one query to see one key, in all heads of a block; prints `forbid:decoder.0.cross:3,5` (query, key)."""

    query: int
    key: int

    prefix = "forbid"
    usage = "`forbid:decoder.0.cross:3,5` query 3 may not see key 5"
    order = 2
    title = "Cell"
    action = "Forbid this entry"
    hint = "In all heads of the layer. A click on an entry of the matrix offers the same."

    @classmethod
    def parse(cls, text: str) -> "MaskEntry | None":
        match text.split(":"):
            case [_, address, cell]:
                numbers, sublayer = cell.split(","), parse_sublayer(address, attention=True)
                if sublayer is not None and len(numbers) == 2 and all(map(is_number, numbers)):
                    return cls(*sublayer, int(numbers[0]), int(numbers[1]))
        return None

    def __str__(self) -> str:
        return f"forbid:{self.where}:{self.query},{self.key}"

    @property
    def needs_recomputation(self) -> bool:
        """True in cross-attention, where a cached step does not show at which position its query stands."""
        return self.sublayer == "cross"

    def sites(self, model: Seq2Seq) -> tuple[Site, ...]:
        """Returns the site that it changes; ValueError where the model has no such block or takes no such position."""
        _check_positions(model, self.query, self.key)
        return (self.existing(model, "mask"),)

    def check_source(self, n_tokens: int) -> None:
        """ValueError where a source of so many tokens has no such cell; the output's length is not known before."""
        _check_source(self.stack, self.sublayer, self.query, self.key, n_tokens)

    def apply(self, site: Site, mask: Tensor, /) -> Tensor:
        """The mask [batch 1 query key] with the cell closed, where the pass has it."""
        row = _row(self.query, self.sublayer, mask)
        if row is None or self.key >= mask.size(-1):
            return mask
        mask = mask.clone()
        mask[..., row, self.key] = False
        return mask

    @property
    def forbidden(self) -> tuple[tuple[int, int], ...]:
        return ((self.query, self.key),)

    @property
    def steps(self) -> frozenset[int]:
        if self.is_own_output:
            return frozenset({self.query, self.key})
        return frozenset({self.query} if self.stack == "decoder" else ())

    def idle(self, last_step: int, *, looks_back: bool) -> str:
        if looks_back and self.is_own_output and self.query <= last_step and self.key > self.query:
            return "that cell is closed already: the key comes after the query, and the causal mask hides it."
        return super().idle(last_step, looks_back=looks_back)

    def label(self) -> str:
        return f"{self.where_in_words} · query {self.query} may not see key {self.key}"

    @property
    def notes(self) -> tuple[str, ...]:
        return (_WHOLE_PREFIX,) if self.needs_recomputation else ()


@dataclass(frozen=True)
class SetAttentionRow(AtBlock):
    """Overwrites a row of one head's weights: evenly over the allowed keys, all on one key, or with own numbers.

    Prints `row:decoder.0.cross.2:3:uniform` or `row:decoder.0.cross.2:3:5` (head 2, query 3, key 5) or
    `row:decoder.0.cross.2:3:1,0,2.5`: one number for each key, divided by their sum. In the decoder's self-attention
    row t has the keys 0 to t.
    """

    head: int
    query: int
    to: int | Literal["uniform"] | tuple[float, ...]

    prefix = "row"
    usage = "`row:decoder.0.cross.2:3:uniform` head 2, row 3 evenly; `:5` all on key 5; `:1,0,2` own numbers"

    @classmethod
    def parse(cls, text: str) -> "SetAttentionRow | None":
        match text.split(":"):
            case [_, address, query, to]:
                address, _, head = address.rpartition(".")
                sublayer = parse_sublayer(address, attention=True)
                if sublayer is not None and is_number(head) and is_number(query) and (aim := _aim(to)) is not None:
                    return cls(*sublayer, int(head), int(query), aim)
        return None

    def __str__(self) -> str:
        to = ",".join(map(_shortest, self.to)) if isinstance(self.to, tuple) else self.to
        return f"row:{self.where}.{self.head}:{self.query}:{to}"

    @property
    def needs_recomputation(self) -> bool:
        """True in cross-attention, as for `MaskEntry`."""
        return self.sublayer == "cross"

    @property
    def weights(self) -> tuple[float, ...]:
        """Own numbers divided by their sum; the one-hot row up to its key; nothing where the row is spread evenly."""
        match self.to:
            case "uniform":
                return ()
            case int():
                return (*(0.0,) * self.to, 1.0)
            case numbers:
                total = math.fsum(numbers)
                return tuple(number / total for number in numbers)

    def sites(self, model: Seq2Seq) -> tuple[Site, ...]:
        """Returns the site that it changes; ValueError if the model lacks the head, the key comes after the query, or
        own numbers cannot be weights."""
        tensor = "scores" if self.to == "uniform" else "weights"
        site = self.existing(model, tensor)
        if self.head >= model.config.n_heads:
            raise ValueError(f"head {self.head} does not exist: this model has heads 0 to {model.config.n_heads - 1}")
        last = len(self.to) - 1 if isinstance(self.to, tuple) else self.to if isinstance(self.to, int) else 0
        _check_positions(model, self.query, last)
        looks_back = self.is_own_output and not model.needs_recomputation()
        if isinstance(self.to, int) and looks_back and self.to > self.query:
            raise ValueError(f"key {self.to} comes after row {self.query}: it does not exist yet")
        if isinstance(self.to, tuple):
            _check_weights(self.to)
            if self.is_own_output and len(self.to) != self.query + 1:
                raise ValueError(
                    f"row {self.query} of the decoder's self-attention has {self.query + 1} "
                    f"{plural(self.query + 1, 'key')}, and {len(self.to)} numbers are given: it needs one for each"
                )
        return (site,)

    def check_source(self, n_tokens: int) -> None:
        """ValueError where a source of so many tokens has no such row or key, or not as many keys as numbers."""
        _check_source(self.stack, self.sublayer, self.query, self.to if isinstance(self.to, int) else 0, n_tokens)
        if isinstance(self.to, tuple) and (self.stack == "encoder" or self.sublayer == "cross"):
            if len(self.to) != n_tokens:
                raise ValueError(
                    f"the row has {n_tokens} keys, and {len(self.to)} numbers are given: it needs one for each"
                )

    def check_with(self, others: Sequence[Intervention]) -> None:
        """Raises ValueError where another forbids a cell on which this row puts weight."""
        closed = {cell for other in others if other.address == self.address for cell in other.forbidden}
        for key, weight in enumerate(self.weights):
            if weight and (self.query, key) in closed:
                raise ValueError(f"{self} puts weight on key {key}, which another switch forbids to row {self.query}")

    def replaces(self, other: Intervention) -> bool:
        if not isinstance(other, SetAttentionRow) or other.address != self.address:
            return False
        return (other.head, other.query) == (self.head, self.query)

    def apply(self, site: Site, tensor: Tensor, /) -> Tensor:
        """The scores or weights [batch head query key] with the row overwritten, where the pass has it."""
        row, weights, n_keys = _row(self.query, self.sublayer, tensor), self.weights, tensor.size(-1)
        if isinstance(self.to, tuple) and (self.stack == "encoder" or self.sublayer == "cross"):
            self.check_source(n_keys)
        if row is None or len(weights) > n_keys:
            return tensor
        tensor = tensor.clone()
        tensor[:, self.head, row] = 0.0  # equal scores: softmax is even over what the mask allows
        tensor[:, self.head, row, : len(weights)] = torch.tensor(weights, dtype=tensor.dtype, device=tensor.device)
        return tensor

    @property
    def overwritten(self) -> tuple[OverwrittenRow, ...]:
        return (OverwrittenRow(self.head, self.query, self.weights),)

    @property
    def steps(self) -> frozenset[int]:
        key = {self.to} if self.is_own_output and isinstance(self.to, int) else set()
        return frozenset({self.query, *key} if self.stack == "decoder" else ())

    def idle(self, last_step: int, *, looks_back: bool) -> str:
        late = super().idle(last_step, looks_back=looks_back)
        if not late and looks_back and self.is_own_output and self.query == 0:
            return "row 0 has a single key, so its weight is 1 whatever is asked."
        return late

    def label(self) -> str:
        return f"{self.where_in_words} · head {self.head} · row {self.query} {self._aim_in_words}"

    @property
    def _aim_in_words(self) -> str:
        if self.to == "uniform":
            return "spread evenly"
        if isinstance(self.to, int):
            return f"all on key {self.to}"
        total = sum(self.to)
        divided = "" if abs(total - 1) < 1e-9 else f", divided by their sum {total:.4g}"
        return f"with own numbers{divided}"

    @property
    def notes(self) -> tuple[str, ...]:
        return (_WHOLE_PREFIX,) if self.needs_recomputation else ()


def _aim(to: str) -> int | Literal["uniform"] | tuple[float, ...] | None:
    """Returns the new content of a row; None for a text that is neither "uniform" nor a key nor several numbers."""
    if to == "uniform":
        return "uniform"
    if is_number(to):
        return int(to)
    parts = to.split(",")
    return tuple(map(float, parts)) if len(parts) > 1 and all(map(_NUMBER.fullmatch, parts)) else None


def _shortest(number: float) -> str:
    """The shortest text that reads back as this number."""
    return repr(number).removesuffix(".0")


def _check_weights(numbers: tuple[float, ...]) -> None:
    for key, number in enumerate(numbers):
        if not math.isfinite(number):
            raise ValueError(f"the weight of key {key} ({number}) is not a finite number")
        if number < 0:
            raise ValueError(f"the weight of key {key} ({_shortest(number)}) is negative: weights are 0 or more")
    if len(numbers) < 2:
        raise ValueError("a row with a single key has the weight 1 whatever is asked")
    total = sum(numbers)
    if not 0 < total < math.inf:
        raise ValueError(f"the weights sum to {_shortest(float(total))} and cannot be divided by that")


def _check_source(stack: Stack, sublayer: Sublayer, query: int, key: int, n_tokens: int) -> None:
    """ValueError where a source position that a cell names is not there."""
    for name, position, counts in (
        ("query", query, stack == "encoder"),
        ("key", key, (stack, sublayer) != ("decoder", "self")),
    ):
        if counts and position >= n_tokens:
            raise ValueError(f"{name} {position} does not exist: the sentence has tokens 0 to {n_tokens - 1}")


def _check_positions(model: Seq2Seq, query: int, key: int) -> None:
    if max(query, key) >= model.config.max_length:
        raise ValueError(
            f"position {max(query, key)} does not exist: this model has positions 0 to {model.config.max_length - 1}"
        )


def _row(query: int, sublayer: Sublayer, tensor: Tensor) -> int | None:
    """The row at which this query stands in a pass, None where it does not: a cached step holds only the newest."""
    earlier = tensor.size(-1) - tensor.size(-2) if sublayer == "self" else 0
    return query - earlier if 0 <= query - earlier < tensor.size(-2) else None
