"""Several decodings of one sentence, some with forced tokens, as the branches of one tree."""

from collections.abc import Sequence

from transformer.analysis.branches import grow
from transformer.figures.branches import Twig
from transformer.inspection import Inspection


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
