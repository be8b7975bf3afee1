"""The part that recurrent and convolutional models have in common: the whole pass, and what stands at its two ends."""

import math
from typing import Any

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer.model.layers import Dropout
from transformer.model.masks import padding_mask
from transformer.model.taps import Address, Tap, needs_recomputation


class CarryingModel(nn.Module):
    """A `CarriesState` of which only `encode`, `decode`, `begin` and `sites` are its own."""

    config: Any
    encode: Any
    decode: Any
    projection: nn.Linear
    dropout: Dropout

    def forward(
        self,
        source: Int[Tensor, "batch source"],
        target: Int[Tensor, "batch target"],
        source_mask: Bool[Tensor, "batch source"] | None = None,
        target_mask: Bool[Tensor, "batch target"] | None = None,
        *,
        tap: Tap | None = None,
    ) -> Float[Tensor, "batch target vocab"]:
        """Logits of the token after each target position; `target` begins with bos. A mask of None: all but pad_id."""
        source_mask = padding_mask(source, self.config.pad_id) if source_mask is None else source_mask
        memory = self.encode(source, source_mask, tap=tap)
        return self.project(self.decode(target, memory, source_mask, target_mask, tap=tap), tap=tap)

    def project(
        self, states: Float[Tensor, "*positions d_model"], *, tap: Tap | None = None
    ) -> Float[Tensor, "*positions vocab"]:
        """Logits over the vocabulary."""
        return Address("decoder").offer(tap, "logits", self.projection(states))

    def needs_recomputation(self, tap: Tap | None = None) -> bool:
        """True only under a tap that lets earlier states depend on later tokens."""
        return needs_recomputation(tap)

    def n_parameters(self) -> int:
        """Trained numbers, shared ones counted once."""
        return sum(p.numel() for p in self.parameters())

    def _embedded(
        self, tokens: nn.Embedding, ids: Int[Tensor, "batch length"], address: Address, tap: Tap | None
    ) -> Float[Tensor, "batch length d_model"]:
        """Token vectors times sqrt(d_model): of unit variance, though the output shares them."""
        return self.dropout(address.offer(tap, "embedding", tokens(ids) * math.sqrt(self.config.d_model)))
