"""Whole blocks switched off, and the way around them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.interventions.protocol import AtBlock, Replaced, parse_sublayer
from transformer.model.seq2seq import Seq2Seq
from transformer.model.taps import Site


@dataclass(frozen=True)
class AblateSublayer(AtBlock):
    """Sets a block's output to zero, bias included, so that only the residual goes on; prints `block:decoder.0.ffn`.

    All heads of an attention block off leave W_O's bias as its output; this leaves nothing.
    """

    prefix = "block"
    usage = "`block:decoder.1.ffn` the output of a block to zero, bias included"
    order = 2

    @classmethod
    def parse(cls, text: str) -> "AblateSublayer | None":
        match text.split(":"):
            case [_, address]:
                return None if (sublayer := parse_sublayer(address)) is None else cls(*sublayer)
        return None

    def __str__(self) -> str:
        return f"block:{self.where}"

    def sites(self, model: Seq2Seq) -> tuple[Site, ...]:
        """Returns the block's output; ValueError if the model lacks the block."""
        return (self.existing(model, "output"),)

    def apply(self, site: Site, output: Tensor, /) -> Tensor:
        """Zeros in place of the output [batch query d_model]."""
        return torch.zeros_like(output)

    @property
    def replaced(self) -> Replaced:
        return Replaced("output", "zero")

    def label(self) -> str:
        return f"{self.where_in_words} · output zero, bias included"


@dataclass(frozen=True)
class AblateResidual(AtBlock):
    """Adds nothing of a block's input to its output; prints `residual:off:decoder.0.ffn`.

    The block's input still goes into the block itself: what is lost is the way around it (section 3.1).
    """

    prefix = "residual"
    usage = "`residual:off:decoder.1.ffn` nothing goes around a block"
    order = 2

    @classmethod
    def parse(cls, text: str) -> "AblateResidual | None":
        match text.split(":"):
            case [_, "off", address]:
                return None if (sublayer := parse_sublayer(address)) is None else cls(*sublayer)
        return None

    def __str__(self) -> str:
        return f"residual:off:{self.where}"

    def sites(self, model: Seq2Seq) -> tuple[Site, ...]:
        """Returns the residual; ValueError if the model lacks the block or has no residual around it."""
        if not any(site.tensor == "residual" for site in model.sites()):
            raise ValueError("this model was trained without residual connections, so there is none to switch off")
        site = self.address.site("residual")
        if site not in model.sites():
            raise ValueError(f"this model has no block {self.where} with a residual")
        return (site,)

    def apply(self, site: Site, residual: Tensor, /) -> Tensor:
        """Zeros in place of what is added to the block's output [batch query d_model]."""
        return torch.zeros_like(residual)

    @property
    def replaced(self) -> Replaced:
        return Replaced("residual", "zero")

    def label(self) -> str:
        return f"{self.where_in_words} · residual off"
