"""The figure of the four parts of attention scores, of content and position."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
import torch
from jaxtyping import Float
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.checks import Check, agree
from transformer.analysis.positions.checks import check_decomposition
from transformer.analysis.positions.score_decomposition import PARTS, decompose_scores
from transformer.figures.positions.tables import parts_figure
from transformer.figures.tables import column_table, matrix_table, numbered
from transformer.inspection.inspection import Inspection
from transformer.interventions import Intervention, compile_interventions
from transformer.lab import Lab
from transformer.model.taps import Site, Stack

TITLES = (*PARTS, "sum: the score")


@dataclass(frozen=True)
class ScorePartsData:
    """One head's scores in the first layer of a stack, and their four parts; NaN where the mask hides a cell."""

    tokens: tuple[str, ...]
    parts: Float[ndarray, "part query key"]
    """The parts in the order of PARTS."""
    scores: Float[ndarray, "query key"]
    """The scores of the pass."""
    spread: Float[ndarray, " part"]
    """Standard deviation of each part over the cells."""
    largest_error: float
    """Largest difference between the sum of the parts and the score."""


@dataclass(frozen=True, kw_only=True)
class ScoreParts:
    """The four parts of one head's scores in the first layer: content and position of query and key."""

    stack: Stack
    head: int
    name = "scores-{stack}-head{head}"

    def data(self, lab: Lab, seen: Inspection) -> ScorePartsData:
        """The parts and the scores; ValueError for a model that adds no positions, or where a switch sets scores."""
        set_by = [str(switch) for switch in seen.interventions if self._sets_scores(switch, lab)]
        if set_by:
            raise ValueError(f"{set_by[0]} sets scores of this head, which are then no sum of content and position")
        source, target = seen.source_ids, self._decoder_input(lab, seen)
        tap = compile_interventions(seen.interventions, lab.model)
        found = decompose_scores(lab.model, torch.tensor([source]), torch.tensor([target]), self.stack, tap=tap)
        parts, scores = (
            np.where(found.mask, part, np.nan) for part in (found.parts[:, self.head], found.scores[self.head])
        )
        return ScorePartsData(
            tokens=seen.source_tokens if self.stack == "encoder" else seen.decoder_inputs,
            parts=parts,
            scores=scores,
            spread=np.array([part[found.mask].std() for part in parts]),
            largest_error=float(np.nanmax(np.abs(parts.sum(axis=0) - scores))),
        )

    def figure(self, data: ScorePartsData, *, dark: bool = False) -> go.Figure:
        """The parts and their sum, side by side on one scale."""
        return parts_figure((*data.parts, data.scores), TITLES, data.tokens, data.tokens, dark=dark)

    def tables(self, data: ScorePartsData) -> tuple[DataFrame, ...]:
        """The parts and the scores, and how much each part varies."""
        labels = numbered(data.tokens)
        spread = column_table("standard deviation", PARTS, {"over the cells": data.spread})
        parts = zip(TITLES, (*data.parts, data.scores), strict=True)
        return (*(matrix_table(title, part, labels, labels) for title, part in parts), spread)

    def checks(self, lab: Lab, seen: Inspection, data: ScorePartsData) -> Iterator[Check]:
        """Computes each bilinear part again in double precision."""
        yield from check_decomposition(
            lab.model,
            seen.source_ids,
            self._decoder_input(lab, seen),
            seen.interventions,
            self.stack,
            self.head,
            parts=data.parts,
            scores=data.scores,
        )
        again = [np.sqrt(max(0.0, np.nanmean(part**2) - np.nanmean(part) ** 2)) for part in data.parts]
        size = max(1.0, float(np.nanmax(np.abs(data.parts))))
        yield agree(
            "The standard deviation of each part", data.spread, again, 1e-5 * size, "from its cells and their squares"
        )
        apart = max(abs(sum(cells) - score) for *cells, score in _cells(data))
        yield agree("The largest error of the sum", data.largest_error, apart, 1e-9 * size, "cell by cell")

    def _sets_scores(self, switch: Intervention, lab: Lab) -> bool:
        """Tells whether a switch changes what lies between the embeddings and this head's scores."""
        between = {Site(self.stack, 0, "self", tensor) for tensor in ("input", "q", "k", "scores")}
        rows = {row.head for row in switch.overwritten}
        heads = rows or (switch.replaced and switch.replaced.heads) or {self.head}
        return self.head in heads and not between.isdisjoint(switch.sites(lab.model))

    def _decoder_input(self, lab: Lab, seen: Inspection) -> list[int]:
        return [lab.model.config.bos_id, *seen.target_ids[:-1]]


def _cells(data: ScorePartsData) -> Iterator[tuple[float, ...]]:
    """Yields the four parts and the score of each cell that the mask lets be seen."""
    stacked = np.stack((*data.parts, data.scores), axis=-1).reshape(-1, len(PARTS) + 1)
    return (tuple(cell) for cell in stacked.tolist() if not np.isnan(cell).any())
