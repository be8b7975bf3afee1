"""One forward pass over a sentence and its output, with every tensor kept: as computed, and as the pass went on.

Under a causal mask it is one pass over the whole output: each of its rows is what the step that wrote that token
computed. Without one each step computed all rows again, and it is the pass of one step, over what was written before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from transformer.interventions import DisableMask, Intervention, compile_interventions
from transformer.model.families import AnyModel
from transformer.model.taps import Recorder, Site, chain
from transformer.model.transformer import Transformer

_LOGITS = Site("decoder", None, None, "logits")


@dataclass(frozen=True)
class Trace:
    """The tensors of one pass. Read-only; safe to share."""

    source: tuple[int, ...]
    inputs: tuple[int, ...]
    """The ids that the decoder read: the start mark, then the target but for its last token."""
    target: tuple[int, ...]
    """The ids that the decoder wrote, up to the step whose pass it is."""
    interventions: tuple[Intervention, ...]
    offered: Mapping[Site, Tensor]
    """Each tensor as the model computed it, without the batch axis."""
    taken: Mapping[Site, Tensor]
    """Each tensor as the pass went on with it; another tensor where an intervention acts."""
    log_probs: Float[ndarray, "step vocab"]
    """The log-probabilities of the decoding that wrote the target, recorded at its steps."""
    source_again: tuple[int, ...]
    """The sentence's ids, looked up once more."""
    sees_later: bool
    """True if decoder positions saw later ones. Then it is the last step's own pass, and only the decoder's last row is
    what the decoding computed."""

    @property
    def last(self) -> int:
        """The last step of the decoding in it."""
        return len(self.target) - 1

    @cached_property
    def digest(self) -> bytes:
        """A fingerprint of every recorded number, which tells this pass from every other."""
        found = blake2b(repr((self.source, self.inputs, self.target)).encode())
        for tensors in (self.offered, self.taken):
            for site, tensor in tensors.items():
                found.update(str(site).encode())
                found.update(tensor.contiguous().numpy().tobytes())
        found.update(self.log_probs.tobytes())
        return found.digest()


def record_trace(
    model: AnyModel,
    source: Sequence[int],
    target: Sequence[int],
    interventions: Sequence[Intervention] = (),
    *,
    log_probs: Float[ndarray, "step vocab"],
    source_again: Sequence[int],
    step: int | None = None,
) -> Trace:
    """Records the pass over a source and the output that was decoded from it under these interventions.

    Where decoder positions see later ones it is the pass of one step of the decoding (None: of the last one).
    """
    own = sees_later(model, interventions)
    if own and step is not None:
        if not 0 <= step < len(target):
            raise ValueError(f"step {step} does not exist: there are steps 0 to {len(target) - 1}")
        target, log_probs = target[: step + 1], log_probs[: step + 1]
    offered, taken = Recorder(), Recorder()
    tap = chain(offered, compile_interventions(interventions, model), taken)
    inputs = (model.config.bos_id, *target[:-1])
    with torch.no_grad():
        ids = torch.tensor([source])
        memory = model.encode(ids, tap=tap)
        states = model.decode(torch.tensor([inputs]), memory, ids != model.config.pad_id, tap=tap)
        model.project(states, tap=tap)
        if own:  # as the step did, which wants its newest state's logits alone: another product, rounded otherwise
            for recorder in (offered, taken):
                recorder.recording[_LOGITS][0, -1] = model.project(states[:, -1])[0]
    return Trace(
        source=tuple(source),
        inputs=inputs,
        target=tuple(target),
        interventions=tuple(interventions),
        offered={site: tensor[0] for site, tensor in offered.recording.items()},
        taken={site: tensor[0] for site, tensor in taken.recording.items()},
        log_probs=log_probs,
        source_again=tuple(source_again),
        sees_later=own,
    )


def sees_later(model: AnyModel, interventions: Sequence[Intervention]) -> bool:
    """Tells whether decoder positions see later ones.

    Every other intervention acts on each position by itself, even where a cache would be wrong because a cached step
    does not show its position.
    """
    if not isinstance(model, Transformer):
        return False
    return not model.config.causal_mask or DisableMask("causal") in interventions
