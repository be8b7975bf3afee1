"""Attention masks. True = may attend, everywhere in this project.

A mask has the shape [batch 1 query key] or broadcasts to it. A query row that may attend to nothing is *fully masked*:
its weights and its output are defined as exactly zero, with finite gradients, on both attention paths.
"""

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
