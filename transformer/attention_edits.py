"""Switches on single blocks, cells and rows of attention: frozen, printable specs like those of interventions.py.

Cells and rows are addressed by position: `query` is a source position in the encoder, a step in the decoder.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from transformer.model import Transformer
from transformer.taps import Block, Site, Stack


@dataclass(frozen=True)
class BlockOff:
    """Sets a block's output to zero, bias included, so that only the residual goes on; prints `block:decoder.0.ffn`.

    All heads of an attention block off leave W_O's bias as its output; this leaves nothing.
    """

    stack: Stack
    layer: int
    block: Block

    needs_recomputation = False

    def __str__(self) -> str:
        return f"block:{self.stack}.{self.layer}.{self.block}"

    def sites(self, model: Transformer) -> tuple[Site, ...]:
        """Where the spec acts; ValueError where the model has no such block."""
        return (_existing(model, self.stack, self.layer, self.block, "output"),)

    def apply(self, site: Site, output: Tensor) -> Tensor:
        """Zeros in place of the output [batch query d_model]."""
        return torch.zeros_like(output)


@dataclass(frozen=True)
class CellOff:
    """Forbids one query to see one key, in all heads of a block; prints `forbid:decoder.0.cross:3,5` (query, key)."""

    stack: Stack
    layer: int
    block: Block
    query: int
    key: int

    def __str__(self) -> str:
        return f"forbid:{self.stack}.{self.layer}.{self.block}:{self.query},{self.key}"

    @property
    def needs_recomputation(self) -> bool:
        """True in cross-attention, where a cached step does not show at which position its query stands."""
        return self.block == "cross"

    def sites(self, model: Transformer) -> tuple[Site, ...]:
        """Where the spec acts; ValueError where the model has no such block or takes no such position."""
        _check_positions(model, self.query, self.key)
        return (_existing(model, self.stack, self.layer, self.block, "mask"),)

    def apply(self, site: Site, mask: Tensor) -> Tensor:
        """The mask [batch 1 query key] with the cell closed, where the pass has it."""
        row = _row(self.query, self.block, mask)
        if row is None or self.key >= mask.size(-1):
            return mask
        mask = mask.clone()
        mask[..., row, self.key] = False
        return mask


@dataclass(frozen=True)
class RowSet:
    """Overwrites a row of one head's weights, evenly over the allowed keys or with everything on one key.

    Prints `row:decoder.0.cross.2:3:uniform` or `row:decoder.0.cross.2:3:5` (head 2, query 3, key 5).
    """

    stack: Stack
    layer: int
    block: Block
    head: int
    query: int
    to: int | Literal["uniform"]

    def __str__(self) -> str:
        return f"row:{self.stack}.{self.layer}.{self.block}.{self.head}:{self.query}:{self.to}"

    @property
    def needs_recomputation(self) -> bool:
        """True in cross-attention, as for `CellOff`."""
        return self.block == "cross"

    def sites(self, model: Transformer) -> tuple[Site, ...]:
        """Where the spec acts; ValueError where the model lacks the head or the key comes after the query."""
        tensor = "scores" if self.to == "uniform" else "weights"
        site = _existing(model, self.stack, self.layer, self.block, tensor)
        if self.head >= model.config.n_heads:
            raise ValueError(f"head {self.head} does not exist: this model has heads 0 to {model.config.n_heads - 1}")
        _check_positions(model, self.query, 0 if self.to == "uniform" else self.to)
        looks_back = (self.stack, self.block) == ("decoder", "self") and model.config.causal_mask
        if self.to != "uniform" and looks_back and self.to > self.query:
            raise ValueError(f"key {self.to} comes after row {self.query}: it does not exist yet")
        return (site,)

    def apply(self, site: Site, tensor: Tensor) -> Tensor:
        """The scores or weights [batch head query key] with the row overwritten, where the pass has it."""
        row = _row(self.query, self.block, tensor)
        if row is None or (self.to != "uniform" and self.to >= tensor.size(-1)):
            return tensor
        tensor = tensor.clone()
        tensor[:, self.head, row] = 0.0  # equal scores: softmax is even over what the mask allows
        if self.to != "uniform":
            tensor[:, self.head, row, self.to] = 1.0
        return tensor


AttentionEdit = BlockOff | CellOff | RowSet


def parse_edit(text: str) -> AttentionEdit | None:
    """The spec of this module that prints as `text`; None if none does."""
    match text.split(":"):
        case ["block", address]:
            if (block := _block(f"{address}.output")) is not None:
                return BlockOff(*block)
        case ["forbid", address, cell]:
            numbers = cell.split(",")
            block = _block(f"{address}.mask", attention=True)
            if block is not None and len(numbers) == 2 and all(map(_is_number, numbers)):
                return CellOff(*block, int(numbers[0]), int(numbers[1]))
        case ["row", address, query, to]:
            address, _, head = address.rpartition(".")
            block = _block(f"{address}.weights", attention=True)
            if block is not None and _is_number(head) and _is_number(query) and (to == "uniform" or _is_number(to)):
                return RowSet(*block, int(head), int(query), "uniform" if to == "uniform" else int(to))
    return None


def _block(address: str, *, attention: bool = False) -> tuple[Stack, int, Block] | None:
    try:
        site = Site.parse(address)
    except ValueError:
        return None
    if site.layer is None or site.block is None or (attention and site.block == "ffn"):
        return None
    return site.stack, site.layer, site.block


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 6


def _existing(model: Transformer, stack: Stack, layer: int, block: Block, tensor: str) -> Site:
    site = Site(stack, layer, block, tensor)
    if site not in model.sites():
        raise ValueError(f"this model has no block {stack}.{layer}.{block} with {tensor}")
    return site


def _check_positions(model: Transformer, query: int, key: int) -> None:
    if max(query, key) >= model.config.max_length:
        raise ValueError(
            f"position {max(query, key)} does not exist: this model has positions 0 to {model.config.max_length - 1}"
        )


def _row(query: int, block: Block, tensor: Tensor) -> int | None:
    """The row at which this query stands in a pass, None where it does not: a cached step holds only the newest."""
    earlier = tensor.size(-1) - tensor.size(-2) if block == "self" else 0
    return query - earlier if 0 <= query - earlier < tensor.size(-2) else None
