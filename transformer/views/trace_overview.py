"""The figure of Walkthrough's overview: a few tokens from input to output."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.checks import Check, agree, agree_in_units, softmax_units
from transformer.analysis.trace.checks import (
    LOGITS,
    WHOLE_PASS,
    check_probabilities_written,
    check_weights_written,
    largest,
    precise_trace,
)
from transformer.analysis.trace.opened import ROUNDING
from transformer.analysis.trace.overview import Stage, stages, written_probabilities
from transformer.analysis.trace.trace import Trace
from transformer.figures.tables import column_table, matrix_table, numbered
from transformer.figures.trace.overview import Column, Row, Tower, overview_figure
from transformer.inspection.inspection import AttentionKind, Inspection
from transformer.lab import Lab
from transformer.model.taps import Stack
from transformer.views.view import OF_FIGURE


@dataclass(frozen=True)
class OverviewData:
    """Every token's vector after each sublayer of both stacks, and what was written in the end."""

    encoder: tuple[Stage, ...]
    decoder: tuple[Stage, ...]
    probabilities: Float[ndarray, " step"]
    source: tuple[str, ...]
    inputs: tuple[str, ...]
    """The tokens that the decoder read."""
    written: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class TraceOverview:
    """A few tokens from input to output: a strip for each vector, a line for each weight, the mean of all heads."""

    explained = (
        "Three tokens on their way through the model, from the bottom up. Each strip is a token's vector after one "
        "part of a layer. A line shows attention: one token's vector takes something from another's, the more the "
        "thicker. At the top stands the token that was written."
    )

    tokens: tuple[int, ...] = field(default=(0, 1, 2), metadata=OF_FIGURE)
    """The source tokens that are shown."""
    steps: tuple[int, ...] = field(default=(0, 1, 2), metadata=OF_FIGURE)
    """The steps of the decoding that are shown."""

    @property
    def name(self) -> str:
        """The last part of the names of its files."""
        return "-".join(["overview", *map(str, self.tokens), "steps", *map(str, self.steps)])

    def data(self, lab: Lab, seen: Inspection, trace: Trace) -> OverviewData:
        """Reads the vectors between the sublayers from the recorded pass."""
        n = len(trace.inputs)
        return OverviewData(
            stages(lab.model, trace, "encoder"),
            stages(lab.model, trace, "decoder"),
            written_probabilities(lab.model, trace),
            seen.source_tokens,
            seen.decoder_inputs[:n],
            seen.target_tokens[:n],
        )

    def figure(self, data: OverviewData, *, dark: bool = False) -> go.Figure:
        """The shown tokens as columns, both stacks from the bottom up."""
        source = [Column(data.source[i]) for i in self._kept(self.tokens, data.source)]
        steps = self._kept(self.steps, data.inputs)
        target = [Column(data.inputs[i], f"{data.written[i]} {data.probabilities[i]:.3f}") for i in steps]
        return overview_figure(
            Tower(source, self._rows(data.encoder, data)), Tower(target, self._rows(data.decoder, data)), dark=dark
        )

    def tables(self, data: OverviewData) -> tuple[DataFrame, ...]:
        """All vectors and weights, of all tokens, and the probabilities."""
        return tuple(self._tables(data))

    def _tables(self, data: OverviewData) -> Iterator[DataFrame]:
        for stack, own, tokens in (("encoder", data.encoder, data.source), ("decoder", data.decoder, data.inputs)):
            for stage in own:
                rows = numbered(tokens)
                yield matrix_table(
                    f"{stack}, {stage.name}", stage.states, rows, list(map(str, range(stage.states.shape[1])))
                )
                if stage.weights is not None:
                    keys = numbered(data.source if stage.kind == AttentionKind.CROSS else tokens)
                    yield matrix_table(f"{stack}, {stage.name}, weights", stage.weights, rows, keys)
        yield column_table("probability", numbered(data.written), {"probability": data.probabilities})

    def checks(self, lab: Lab, seen: Inspection, trace: Trace, data: OverviewData) -> Iterator[Check]:
        """Runs the whole pass again in double precision; compares with the decoding."""
        precise, again = precise_trace(lab.model, trace)
        shown_stages: dict[Stack, tuple[Stage, ...]] = {"encoder": data.encoder, "decoder": data.decoder}
        for stack, own in shown_stages.items():
            expected = stages(precise, again, stack)
            how = f"the pass run again in double precision, {len(expected)} rows of the {stack}"
            size = max(1.0, *(float(np.abs(stage.states).max()) for stage in expected))
            shown, theirs = ([stage.states for stage in side] for side in (own, expected))
            yield agree(
                f"The {stack}'s vectors are those of this pass", shown, theirs, ROUNDING * WHOLE_PASS * size, how
            )
            if all(stage.weights is None for stage in expected):
                continue  # a recurrent encoder, or a decoder without attention
            shown, theirs = (_weights(side) for side in (own, expected))
            scores = [site for site in again.taken if (site.stack, site.tensor) == (stack, "scores")]
            units = softmax_units(theirs, largest(again, scores))
            claim = f"The {stack}'s lines are the mean of its heads"
            yield agree_in_units(claim, shown, theirs, units, ROUNDING * WHOLE_PASS, how)
        how = "those of the written tokens, by the pass run again in double precision"
        expected = written_probabilities(precise, again)
        units = softmax_units(expected, largest(again, [LOGITS]))
        claim, tolerance = "They are the probabilities of this pass", ROUNDING * WHOLE_PASS
        yield agree_in_units(claim, data.probabilities, expected, units, tolerance, how)
        if seen.attentions:
            yield check_weights_written(lab.model, trace, seen, tuple(seen.attentions))
        yield check_probabilities_written(lab.model, trace, seen)

    def _kept(self, chosen: Sequence[int], tokens: Sequence[str]) -> list[int]:
        """Returns the chosen tokens that there are; the first where there is none."""
        return [i for i in chosen if i < len(tokens)] or [0]

    def _rows(self, own: Sequence[Stage], data: OverviewData) -> list[Row]:
        shown = self._kept(self.tokens, data.source), self._kept(self.steps, data.inputs)
        tokens = shown[0] if own is data.encoder else shown[1]
        rows = []
        for stage in own:
            keys = shown[0] if stage.kind == AttentionKind.CROSS else tokens
            weights = None if stage.weights is None else stage.weights[np.ix_(tokens, keys)]
            reach = float(np.abs(stage.states).max(initial=0.0)) or 1.0
            rows.append(Row(stage.name, stage.states[tokens], reach, stage.kind, weights))
        return rows


def _weights(own: Sequence[Stage]) -> ndarray:
    return np.concatenate([stage.weights.ravel() for stage in own if stage.weights is not None])
