"""The views of a reference read teacher-forced and free-running: its losses, and exposure bias over many."""

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.checks import Check, agree
from transformer.analysis.steps.exposure_bias import (
    AtPosition,
    Exposure,
    ReferenceLosses,
    readable_pairs,
    reference_losses,
)
from transformer.analysis.steps.output_checks import SlowReader, check_exposure, check_labels, check_reference_losses
from transformer.data.corpora import load_corpus
from transformer.figures.steps.teacher_forcing import Measured, exposure_figure, losses_figure
from transformer.figures.tables import column_table, matrix_table, numbered
from transformer.inspection.inspection import Inspection
from transformer.lab import Lab


@dataclass(frozen=True)
class ReferenceData:
    """A reference's losses, also without the switches where there are any."""

    tokens: tuple[str, ...]
    losses: ReferenceLosses
    baseline: ReferenceLosses | None


@dataclass(frozen=True, kw_only=True)
class TeacherForcedReference:
    """The loss of each token of a reference, after the reference's own words and after the model's."""

    reference: tuple[int, ...]
    """Its ids, the end mark included."""
    name = "reference-losses"

    def data(self, lab: Lab, seen: Inspection) -> ReferenceData:
        """Reads the reference in both ways; ValueError where it is too long."""
        switches = seen.interventions
        return ReferenceData(
            tuple(map(lab.tokenizer.piece, self.reference)),
            reference_losses(lab.model, seen.source_ids, self.reference, switches),
            reference_losses(lab.model, seen.source_ids, self.reference) if switches else None,
        )

    def figure(self, data: ReferenceData, *, dark: bool = False) -> go.Figure:
        """Both losses by position, and where another token was written first."""
        return losses_figure(
            data.tokens,
            data.losses.forced_loss.astype(np.float64),
            data.losses.free_loss.astype(np.float64),
            divergence=data.losses.divergence,
            before=None if data.baseline is None else data.baseline.forced_loss.astype(np.float64),
            dark=dark,
        )

    def tables(self, data: ReferenceData) -> tuple[DataFrame, ...]:
        """The losses."""
        rows = {"teacher-forced": data.losses.forced_loss, "free-running": data.losses.free_loss}
        if data.baseline is not None:
            rows["teacher-forced, without the switches"] = data.baseline.forced_loss
            rows["free-running, without the switches"] = data.baseline.free_loss
        return (matrix_table("loss", np.stack(list(rows.values())), list(rows), numbered(data.tokens)),)

    def checks(self, lab: Lab, seen: Inspection, data: ReferenceData) -> Iterator[Check]:
        """Reads the reference and the model's own output again, in double precision."""
        for losses, switches, whose in (
            (data.losses, seen.interventions, ""),
            (data.baseline, (), "Without switches: "),
        ):
            if losses is not None:
                yield agree(
                    f"{whose}The losses are of this reference", losses.reference, self.reference, 0, "ids compared"
                )
                yield from check_reference_losses(SlowReader(lab.model, switches), seen.source_ids, losses, whose)
        yield check_labels(lab.tokenizer, self.reference, data.tokens)


@dataclass(frozen=True)
class ExposureData:
    """Exposure bias by position; the fields are those of `AtPosition`, by position."""

    n_pairs: int
    position: Int[ndarray, " position"]
    count: Int[ndarray, " position"]
    forced_right: Int[ndarray, " position"]
    free_right: Int[ndarray, " position"]
    forced_loss: Float[ndarray, " position"]
    bias: Float[ndarray, " position"]
    bias_error: Float[ndarray, " position"]
    going: Int[ndarray, " position"]

    @property
    def positions(self) -> tuple[AtPosition, ...]:
        """The same, position by position."""
        columns = [getattr(self, field.name).tolist() for field in fields(AtPosition)]
        return tuple(AtPosition(*row) for row in zip(*columns, strict=True))


@dataclass(frozen=True, kw_only=True)
class ExposureBias:
    """The cost to the model of reading its own words, by position over many sentences."""

    name = "exposure-bias"

    def data(self, lab: Lab, exposure: Exposure) -> ExposureData:
        """Takes the measurement's columns."""
        columns = (
            np.array([getattr(at, field.name) for at in exposure.positions], dtype=field.type)
            for field in fields(AtPosition)
        )
        return ExposureData(exposure.n_pairs, *columns)

    def figure(self, data: ExposureData, *, dark: bool = False) -> go.Figure:
        """The bias with its interval, and below it the shares of right tokens."""
        return exposure_figure([_measured(at) for at in data.positions], dark=dark)

    def tables(self, data: ExposureData) -> tuple[DataFrame, ...]:
        """All columns."""
        columns = {
            "bias": data.bias,
            "half the 95 % interval": data.bias_error,
            "sentences": data.count,
            "going on": data.going,
            "right, teacher-forced": data.forced_right,
            "right, free-running": data.free_right,
        }
        rows = [f"position {position}" for position in data.position.tolist()]
        return (column_table("exposure bias", rows, columns),)

    def checks(self, lab: Lab, exposure: Exposure, data: ExposureData) -> Iterator[Check]:
        """Reads the pairs one by one in a plain loop, in double precision, without a cache."""
        validation = load_corpus(lab.checkpoint.corpus_config).validation
        pairs = readable_pairs(validation, lab.tokenizer, lab.model.config.max_length, exposure.n_pairs)
        yield agree("The number of pairs is that of the measurement", data.n_pairs, len(pairs), 0, "counted")
        yield from check_exposure(SlowReader(lab.model, exposure.switches), pairs, lab.tokenizer, data.positions)


def _measured(at: AtPosition) -> Measured:
    return Measured(
        at.position,
        at.count,
        at.going,
        at.bias,
        at.bias - at.bias_error,
        at.bias + at.bias_error,
        at.forced_right / at.count,
        at.free_right / at.count,
    )
