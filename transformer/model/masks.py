"""Attention masks. True = may attend, everywhere in this project.

A mask has the shape [batch 1 query key] or broadcasts to it. A query row that may attend to nothing is *fully masked*:
its weights and its output are defined as exactly zero, with finite gradients, on both attention paths.
"""

from collections.abc import Collection
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from transformer.config import ModelConfig
from transformer.model.kinds import AttentionKind
from transformer.model.mask_rules import rules_of


def padding_mask(ids: Int[Tensor, "batch length"], pad_id: int) -> Bool[Tensor, "batch length"]:
    """True at real tokens, False at padding."""
    return ids != pad_id


def ahead(n_query: int, n_key: int, device: torch.device | None = None) -> Int[Tensor, "query key"]:
    """How many positions each key stands ahead of each query; below 0: behind it.

    The last query stands at the last key, so that with a cache (fewer queries than keys) each new query is behind all
    that came before.
    """
    keys = torch.arange(n_key, device=device)
    return keys - keys[n_key - n_query :, None]


def open_to(
    config: object,
    kind: AttentionKind,
    n_query: int,
    n_key: int,
    *,
    but: Collection[str] = (),
    device: torch.device | None = None,
) -> Bool[Tensor, "query key"] | None:
    """True where all rules of this kind of attention let a query see a key (section 3.2.3); None for no rule.

    `but` names rules that are lifted. The last query stands at the last key.
    """
    rules = [rule for rule in rules_of(config, kind) if rule.name not in but]
    if not rules:
        return None
    assert isinstance(config, ModelConfig), "other models have no rules"
    distances = ahead(n_query, n_key, device)
    return combine(*(rule.allows(distances, config) for rule in rules))


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
