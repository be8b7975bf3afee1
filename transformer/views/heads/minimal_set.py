"""The smallest sets of heads whose removal changes an output, and the output without each."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.checks import Check
from transformer.analysis.heads.ablation_checks import check_minimal_set
from transformer.analysis.heads.minimal_set import MinimalSets, SearchPlan
from transformer.figures.steps.outputs import outputs_figure
from transformer.figures.tables import column_table, matrix_table
from transformer.inspection.inspection import Inspection
from transformer.lab import Lab


@dataclass(frozen=True)
class MinimalSetData:
    """Outputs without sets of heads, the whole model's first; where no set was found, without the nearest."""

    names: tuple[str, ...]
    ids: Int[ndarray, "output step"]
    """-1 past the end of an output."""
    pieces: tuple[tuple[str, ...], ...]
    margins: Float[ndarray, " set"]
    """The nats by which each set misses the goal, below 0 where it reaches it."""
    tried: Int[ndarray, " size"]
    """Sets of each size that were tried, from 1 on."""
    counts: Int[ndarray, "2"]
    """Sets of the size found that reach the goal, and that size."""


@dataclass(frozen=True, kw_only=True)
class MinimalSetOutputs:
    """The outputs without each of the smallest sets of heads that change an output."""

    name = "minimal-sets"

    def data(self, lab: Lab, seen: Inspection, plan: SearchPlan, found: MinimalSets) -> MinimalSetData:
        """The outputs without each set."""
        ablations = found.sets or (found.nearest,)
        written = [ablation.written for ablation in found.sets]
        if not written:
            nearest = [*seen.interventions, *found.nearest.switches]
            written = [lab.inspect(seen.text, nearest).target_ids]
        names = [" ".join(map(str, ablation.heads)) for ablation in ablations]
        names = [name if a.ended else f"{name}, cut off" for name, a in zip(names, ablations, strict=True)]
        if not found.sets:
            names = [f"nearest: {names[0]}"]
        outputs = [seen.target_ids, *written]
        width = max(map(len, outputs))
        return MinimalSetData(
            names=("all heads", *names),
            ids=np.array([[*ids, *[-1] * (width - len(ids))] for ids in outputs]),
            pieces=tuple(tuple(lab.tokenizer.piece(token) for token in ids) for ids in outputs),
            margins=np.array([ablation.margin for ablation in ablations]),
            tried=np.array(found.tried),
            counts=np.array([found.n_sets, found.size]),
        )

    def figure(self, data: MinimalSetData, *, dark: bool = False) -> go.Figure:
        """The outputs one below the other, tokens that changed coloured."""
        changed = (data.ids != data.ids[0]) & (data.ids >= 0)
        return outputs_figure(data.pieces, data.names, changed, dark=dark)

    def tables(self, data: MinimalSetData) -> tuple[DataFrame, ...]:
        """The token ids, by how much each set reaches the goal, and how many sets were tried."""
        sizes = [f"size {size}" for size in range(1, len(data.tried) + 1)]
        return (
            matrix_table("token ids", data.ids, data.names, [f"step {step}" for step in range(data.ids.shape[1])]),
            column_table("missed by, nats", data.names[1:], {"nats": data.margins}),
            matrix_table("sets tried", data.tried[None], ["sets"], sizes),
            matrix_table("sets found", data.counts[None], ["sets"], ["sets", "heads of each"]),
        )

    def checks(
        self, lab: Lab, seen: Inspection, plan: SearchPlan, found: MinimalSets, data: MinimalSetData
    ) -> Iterator[Check]:
        """Decodes again without each set and its parts, heads taken out of W_O."""
        outputs = [tuple(token for token in row if token >= 0) for row in data.ids.tolist()]
        margins = data.margins.tolist()
        sets = found.sets or (found.nearest,)
        shown = [
            replace(ablation, written=output, margin=margin)
            for ablation, output, margin in zip(sets, outputs[1:], margins, strict=True)
        ]
        n_sets, size = data.counts.tolist()
        tried = tuple(data.tried.tolist())
        if found.sets:
            again = replace(found, sets=tuple(shown), n_sets=n_sets, size=size, tried=tried)
        else:
            again = replace(found, sets=(), nearest=shown[0], n_sets=n_sets, size=size, tried=tried)
            yield Check("No set was found", float(n_sets), 0.0, "sets that reach the goal")
        ids = seen.source_ids, outputs[0]
        yield from check_minimal_set(lab.model, *ids, plan, seen.interventions, again)
