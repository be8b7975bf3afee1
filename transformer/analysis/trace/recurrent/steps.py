"""The steps of a recurrent model's pass, in the order in which numbers go through them."""

from collections.abc import Iterator

from transformer.analysis.trace.recurrent.asking_steps import ASKING_STEPS
from transformer.analysis.trace.recurrent.end_steps import AllLayers, Combine, Comparison, OneVector, Start, Vectors
from transformer.analysis.trace.recurrent.unit_steps import UNIT_STEPS
from transformer.analysis.trace.stack_steps import Probabilities, SourceIds, TargetIds
from transformer.analysis.trace.step import Step, Sublayer, sublayers_of
from transformer.model.recurrent import RecurrentModel
from transformer.model.taps import Stack

_FIRST: dict[Stack, tuple[type[Step], ...]] = {
    "encoder": (SourceIds, Vectors),
    "decoder": (Start, TargetIds, Vectors),
}
_LAST: dict[Stack, tuple[type[Step], ...]] = {
    "encoder": (OneVector,),
    "decoder": (Combine, Comparison, Probabilities),
}


def recurrent_steps(model: RecurrentModel) -> Iterator[Step]:
    """Yields every step from the source's ids to the probabilities, with one layer of each stack."""
    for stack, first in _FIRST.items():
        places: list[tuple[type[Step], Sublayer | None]] = [(kind, None) for kind in first]
        for block in sublayers_of(model, stack):
            inside = UNIT_STEPS if block == "recurrent" else ASKING_STEPS
            places.extend((kind, block) for kind in inside)
            if block == "recurrent":
                places.append((AllLayers, None))
        places.extend((kind, None) for kind in _LAST[stack])
        yield from (kind(model, stack, block) for kind, block in places)
