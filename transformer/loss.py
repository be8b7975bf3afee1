"""Label-smoothed cross-entropy (section 5.4). Not here: which positions are real (training.py selects them)."""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor


def smoothed_cross_entropy(
    logits: Float[Tensor, "position vocab"], targets: Int[Tensor, "position"], smoothing: float = 0.0
) -> Float[Tensor, ""]:
    """The cross-entropy in nats against 1 - smoothing on the target plus smoothing / vocab everywhere, summed.

    The uniform part covers all classes, the target among them (Szegedy et al. 2016, and torch; the authors'
    tensor2tensor spreads it over the others). Only real positions may be given: divide by their number, and across
    accumulated micro-batches by the number in all of them. Computed in float32 whatever the logits' type.
    """
    return F.cross_entropy(logits.float(), targets, label_smoothing=smoothing, reduction="sum")
