"""A decoder that carries a state from token to token, so that no earlier token is passed again."""

from contextlib import nullcontext

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer.model.seq2seq import CarriesState
from transformer.model.taps import Tap


class CarriedSteps:
    """The logits after one target token after another, for sources that are encoded already.

    For a model in evaluation, whose weights stay as they are meanwhile.
    """

    def __init__(
        self,
        model: CarriesState,
        memory: Float[Tensor, "row read wide"],
        source_mask: Bool[Tensor, "row source"],
        *,
        capacity: int,
    ) -> None:
        """ValueError for more than the model's `max_length` tokens."""
        if capacity > (longest := model.config.max_length):
            raise ValueError(f"this model takes at most {longest} tokens (max_length), not {capacity}")
        self._model = model
        self._carried = model.begin(memory, source_mask)
        self.length = 0
        """Target positions behind the state."""

    @torch.no_grad()
    def logits(self, tokens: Int[Tensor, " row"], tap: Tap | None = None) -> Float[Tensor, "row vocab"]:
        """Logits of the token after these, which follow those given before.

        The tap is offered every tensor of the decoder, with 1 as the number of queries.
        """
        with torch.inference_mode() if tap is None else nullcontext():
            found = self._carried.advance(tokens, tap)
            self.length += 1
            return self._model.project(found, tap=tap)

    @torch.no_grad()
    def rows(self, kept: Int[Tensor, " row"], *, same_sources: bool = False) -> None:
        """Goes on with these rows. `same_sources`: each stands where another of the same source stood."""
        self._carried.rows(kept, same_sources=same_sources)
