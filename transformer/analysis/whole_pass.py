"""One forward pass over a sentence and its whole output, with every tensor kept: as offered, and as the pass went on.

It is the pass of the last decoding step, with every target position in it. Under a causal mask each of its rows is what
the step that wrote that token computed; without one, earlier steps had other numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from transformer.attention_edits import CellOff, RowSet
from transformer.interventions import Intervention, MaskOff, compile_interventions
from transformer.model import Transformer
from transformer.taps import Recorder, Site, chain


@dataclass(frozen=True)
class WholePass:
    """What one pass computed. Read-only; safe to share."""

    source: tuple[int, ...]
    inputs: tuple[int, ...]
    """What the decoder read: the start mark, then the output but for its last token."""
    target: tuple[int, ...]
    """What the decoder wrote."""
    switches: tuple[Intervention, ...]
    offered: Mapping[Site, Tensor]
    """Each tensor as the model computed it, without the batch's axis."""
    taken: Mapping[Site, Tensor]
    """The same as the pass went on with it; another one where a switch acts."""
    log_probs: Float[ndarray, "step vocab"]
    """Of the decoding that wrote the output, recorded at its steps."""
    source_again: tuple[int, ...]
    """The sentence's ids, looked up once more."""
    sees_later: bool
    """Whether decoder positions saw later ones, so that only the last row is what its step computed."""


def record_pass(
    model: Transformer,
    source: Sequence[int],
    target: Sequence[int],
    switches: Sequence[Intervention] = (),
    *,
    log_probs: Float[ndarray, "step vocab"],
    source_again: Sequence[int],
) -> WholePass:
    """The pass over a source and the output that was decoded from it under these switches."""
    offered, taken = Recorder(), Recorder()
    tap = chain(offered, compile_interventions(switches, model), taken)
    inputs = (model.config.bos_id, *target[:-1])
    with torch.no_grad():
        model(torch.tensor([source]), torch.tensor([inputs]), tap=tap)
    return WholePass(
        source=tuple(source),
        inputs=inputs,
        target=tuple(target),
        switches=tuple(switches),
        offered={site: tensor[0] for site, tensor in offered.recording.items()},
        taken={site: tensor[0] for site, tensor in taken.recording.items()},
        log_probs=log_probs,
        source_again=tuple(source_again),
        sees_later=not model.config.causal_mask or MaskOff("causal") in switches or _sees_more(switches),
    )


def _sees_more(switches: Sequence[Intervention]) -> bool:
    """Whether a switch other than a mask's may make earlier rows depend on what is written later."""
    return any(spec.needs_recomputation and not isinstance(spec, CellOff | RowSet) for spec in switches)
