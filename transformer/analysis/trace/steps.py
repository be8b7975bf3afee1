"""The steps of a forward pass, in the order in which numbers go through them (the paper's figures 1 and 2).

Which ones there are depends on the model: a part that a model never had is no step.
"""

from collections.abc import Iterator
from typing import TypeGuard

from transformer.analysis.trace.attention_steps import ATTENTION_STEPS
from transformer.analysis.trace.recurrent.steps import recurrent_steps
from transformer.analysis.trace.stack_steps import FIRST_STEPS, LAST_STEPS
from transformer.analysis.trace.step import SUBLAYERS, Step, Sublayer, TracedModel
from transformer.analysis.trace.sublayer_steps import FEED_FORWARD_STEPS, Add, PreNorm
from transformer.model.recurrent import RecurrentModel
from transformer.model.seq2seq import Seq2Seq
from transformer.model.transformer import Transformer


def is_traced(model: Seq2Seq) -> TypeGuard[TracedModel]:
    """Tells whether the steps of such a model are known here: those of convolutional models are not."""
    return isinstance(model, Transformer | RecurrentModel)


def steps(model: TracedModel) -> tuple[Step, ...]:
    """Returns every step of this model from the source's ids to the probabilities, with one layer of each stack."""
    return tuple(step for step in _all_steps(model) if step.exists)


def missing_steps(model: TracedModel) -> tuple[Step, ...]:
    """Returns the steps of the paper's figures that a Transformer lacks."""
    return tuple(step for step in _all_steps(model) if step.in_paper and not step.exists)


def find_step(model: TracedModel, name: str) -> Step:
    """Returns the step that prints as `name`; ValueError if the model has none."""
    for step in steps(model):
        if str(step) == name:
            return step
    raise ValueError(f"this model has no step {name}")


def _all_steps(model: TracedModel) -> Iterator[Step]:
    if isinstance(model, RecurrentModel):
        yield from recurrent_steps(model)
        return
    for stack, sublayers in SUBLAYERS.items():
        places: list[tuple[type[Step], Sublayer | None]] = [(kind, None) for kind in FIRST_STEPS]
        for sublayer in sublayers:
            inside = FEED_FORWARD_STEPS if sublayer == "ffn" else ATTENTION_STEPS
            places.extend((kind, sublayer) for kind in (PreNorm, *inside, Add))
        places += [(kind, None) for kind in LAST_STEPS]
        yield from (kind(model, stack, sublayer) for kind, sublayer in places if stack in kind.stacks)


def sublayer_name(step: Step, *, masked: bool = True) -> str:
    """Names the box of figure 1 that holds a step; `masked`: later tokens are hidden from the decoder."""
    match step.stack, step.sublayer:
        case _, None:
            return ""
        case _, "ffn":
            return "feed-forward"
        case _, "cross":
            return "cross-attention"
        case _, "recurrent":
            return str(step.model.config.cell).upper()
        case "decoder", _ if masked:
            return "masked self-attention"
    return "self-attention"
