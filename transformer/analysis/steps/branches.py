"""Several decodings of one sentence, some with forced tokens, as the branches of one tree."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool
from numpy import ndarray

from transformer.analysis.steps.prefix_tree import grow
from transformer.figures.steps.branches import Twig
from transformer.inspection.inspection import Inspection
from transformer.inspection.token_alignment import edit_marks


def road_twigs(roads: Sequence[Inspection], names: Sequence[str], walked: int = 0) -> list[Twig]:
    """The tokens of all roads, what they share once, each with its probability; those of the walked road are marked."""
    if len(roads) != len(names):
        raise ValueError(f"{len(roads)} roads need as many names, not {len(names)}")
    twigs = []
    for branch in grow([road.target_ids for road in roads]):
        road = roads[branch.outputs[0]]
        share = float(road.probabilities[branch.step])
        forced = any(branch.step in dict(roads[index].forced) for index in branch.outputs)
        who = ", ".join(names[index] for index in branch.outputs)
        twigs.append(
            Twig(
                branch.step,
                road.target_tokens[branch.step],
                branch.row,
                branch.parent,
                f"{share:.2f}{' !' * forced}",
                share,
                walked in branch.outputs,
                f"probability {share:.6g}{', forced' * forced}. {who}",
            )
        )
    return twigs


def road_changes(roads: Sequence[Inspection], own: int = 0) -> Bool[ndarray, "road step"]:
    """The tokens of each road that the fewest edits change from the model's `own` way; of that, from the first road.

    Shorter roads end in False.
    """
    changed = np.zeros((len(roads), max(len(road.target_ids) for road in roads)), dtype=bool)
    for index, road in enumerate(roads):
        before = roads[0 if index <= own else own]
        _, new = edit_marks(before.target_tokens, road.target_tokens)
        changed[index, sorted(new)] = True
    return changed
