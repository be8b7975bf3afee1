"""Attention masks. True = may attend, everywhere in this project.

A mask has the shape [batch 1 query key] or broadcasts to it. A query row that may attend to nothing is *fully masked*:
its weights and its output are defined as exactly zero, with finite gradients, on both attention paths.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def padding_mask(ids: Int[Tensor, "batch length"], pad_id: int) -> Bool[Tensor, "batch length"]:
    """True at real tokens, False at padding."""
    return ids != pad_id


def causal_mask(n_query: int, n_key: int, device: torch.device | None = None) -> Bool[Tensor, "query key"]:
    """True where a query may see a key: its own position and all before it (section 3.2.3).

    The last query stands at the last key, so that with a cache (fewer queries than keys) each new query sees all that
    came before.
    """
    everything = torch.ones(n_query, n_key, dtype=torch.bool, device=device)
    return everything.tril(n_key - n_query)


def key_mask(real: Bool[Tensor, "batch key"]) -> Bool[Tensor, "batch 1 1 key"]:
    """The mask under which every query sees the real keys."""
    return real[:, None, None, :]


def combine(*masks: Bool[Tensor, "..."]) -> Bool[Tensor, "..."]:
    """True where every mask is True."""
    combined = masks[0]
    for mask in masks[1:]:
        combined = combined & mask
    return combined


def has_key(mask: Bool[Tensor, "*any query key"]) -> Bool[Tensor, "*any query 1"]:
    """True for the queries that may attend to at least one key; the others are fully masked."""
    return mask.any(dim=-1, keepdim=True)


@dataclass(frozen=True)
class AttentionMask:
    """A mask, and what the fused path is given for it: worked out once, used by every layer of a pass."""

    allowed: Bool[Tensor, "#batch 1 #query #key"]
    fused: Tensor | None
    """The term added to the scores, or True where a query may attend; never -inf or False in all of a row. None: every
    query sees every key."""
    blank: Bool[Tensor, "#batch 1 #query 1"] | None
    """True for fully masked rows. None: there are none."""

    @classmethod
    def of(cls, allowed: Bool[Tensor, "#batch 1 #query #key"], dtype: torch.dtype) -> "AttentionMask":
        """`dtype` is that of the scores. What can be left out is looked up on a CPU alone: a GPU would have to wait."""
        seen = has_key(allowed)
        if allowed.device.type != "cpu":
            return cls(allowed, allowed | ~seen, ~seen)
        if bool(allowed.all()):
            return cls(allowed, None, None)
        blank = None if bool(seen.all()) else ~seen
        hidden = ~allowed if blank is None else ~allowed & seen
        return cls(allowed, torch.zeros(hidden.shape, dtype=dtype).masked_fill_(hidden, -torch.inf), blank)
