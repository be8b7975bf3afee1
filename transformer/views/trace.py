"""The figures of Walkthrough: the map of the model with the shapes of one pass, and the numbers of one step."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Int
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.checks import Check, agree
from transformer.analysis.trace.checks import (
    check_opened,
    check_probabilities_written,
    check_steps,
    check_unrecorded,
    check_weights_written,
    precise_trace,
)
from transformer.analysis.trace.diagram import draw_map, map_arrays
from transformer.analysis.trace.opened import OpenedStep, open_step
from transformer.analysis.trace.step import Axis, Value
from transformer.analysis.trace.steps import find_step
from transformer.analysis.trace.trace import Trace
from transformer.figures.labels import hover_label
from transformer.figures.tables import matrix_table, numbered
from transformer.figures.trace.arrays import Scale, Strip, strips_figure
from transformer.figures.trace.diagram import Drawing, map_figure
from transformer.inspection.inspection import AttentionKind, Inspection
from transformer.lab import Lab
from transformer.views.trace_product import Product, head_product
from transformer.views.view import OF_FIGURE

Side = Literal["in", "out", "all"]
"""The input and the output for one token, and the output for all of them."""
N_BEST = 12
"""The number of tokens of the vocabulary that are shown."""


@dataclass(frozen=True)
class MapData:
    """The map, and the size of every array that comes out of a step on it."""

    drawing: Drawing
    arrays: tuple[tuple[str, str], ...]
    """The step and the name of each array."""
    sizes: Int[ndarray, "array 3"]
    """Heads, rows and columns; 0 for an axis that an array does not have."""

    @property
    def shapes(self) -> dict[str, dict[str, tuple[int, ...]]]:
        """The shape of each array, by its step and its name."""
        found: dict[str, dict[str, tuple[int, ...]]] = {}
        for (step, name), sizes in zip(self.arrays, self.sizes.tolist(), strict=True):
            found.setdefault(step, {})[name] = tuple(size for size in sizes if size)
        return found


@dataclass(frozen=True, kw_only=True)
class TraceMap:
    """The architecture with one sublayer unfolded, and the shape of what comes out of each step."""

    explained = (
        "The model as a map, as in figure 1 of the paper, with one part unfolded into its steps. Beside each step "
        "stands the shape of what comes out of it in this very pass: heads, tokens, dimensions."
    )

    step: str
    """The step as it prints: encoder.self.weights."""
    layer: int = 0
    note = "a size of 0 stands for an axis that an array does not have"

    @property
    def name(self) -> str:
        """The last part of the names of its files."""
        return f"map-{self.step.replace('.', '-')}-layer{self.layer}"

    def data(self, lab: Lab, seen: Inspection, trace: Trace) -> MapData:
        """Draws the map of the model at this step, and takes the shapes of the arrays that the pass computed."""
        drawing = draw_map(lab.model, find_step(lab.model, self.step), self.layer, seen.interventions)
        arrays = map_arrays(lab.model, trace, drawing, self.layer)
        named = {(step, name): shown for step, own in arrays.items() for name, shown in own.items()}
        sizes = [_sizes(shown.values.shape, shown.columns) for shown in named.values()]
        return MapData(drawing, tuple(named), np.array(sizes))

    def figure(self, data: MapData, *, dark: bool = False) -> go.Figure:
        """The map with the shape of each array beside its step."""
        return map_figure(data.drawing, data.shapes, dark=dark)

    def tables(self, data: MapData) -> tuple[DataFrame, ...]:
        """The sizes of all arrays."""
        rows = [f"{step} {name}" for step, name in data.arrays]
        return (matrix_table("shape", data.sizes, rows, ["heads", "rows", "columns"]),)

    def checks(self, lab: Lab, seen: Inspection, trace: Trace, data: MapData) -> Iterator[Check]:
        """Measures the arrays by their axes, and computes every step of the pass again."""
        model = lab.model
        axes = _axes(lab, seen, trace)
        expected = []
        for own in map_arrays(model, trace, data.drawing, self.layer).values():
            for shown in own.values():
                heads = model.config.n_heads if shown.values.ndim == 3 else 0
                expected.append((heads, axes[shown.rows], axes[shown.columns]))
        how = "counted from the tokens and the model's settings, axis by axis"
        yield agree("Each array is as large as its axes", data.sizes, expected, 0, how)
        yield check_steps(model, trace)
        yield check_unrecorded(model, trace)
        if seen.attentions:
            yield check_weights_written(model, trace, seen, tuple(seen.attentions))
        yield check_probabilities_written(model, trace, seen)


@dataclass(frozen=True)
class StepData:
    """The numbers of one step of one layer, and the tokens at their rows and columns."""

    opened: OpenedStep
    kind: AttentionKind | None
    """The attention to which the step belongs."""
    source: tuple[str, ...]
    target: tuple[str, ...]
    """The tokens that the decoder read, as many as this pass has."""
    vocabulary: tuple[str, ...]
    """The pieces of the vocabulary where columns are those, else empty."""

    def tokens(self, axis: Axis) -> tuple[str, ...] | None:
        """Returns the tokens at rows or columns; None where they are dimensions or ids."""
        return self.labels.get(axis)

    @property
    def labels(self) -> dict[str, tuple[str, ...] | None]:
        """The tokens of each axis that counts tokens."""
        return {"source": self.source, "target": self.target, "vocab": self.vocabulary}


@dataclass(frozen=True, kw_only=True)
class StepNumbers:
    """The numbers of one step of a forward pass, followed for one token."""

    explained = (
        "The numbers of one step for one token, as they were in the pass that wrote this output: what goes in and what "
        "comes out. Each cell is one number, coloured by its size and sign; point at it for the exact value."
    )

    step: str
    """The step as it prints: encoder.self.weights."""
    layer: int = 0
    head: int = field(default=0, metadata=OF_FIGURE)
    row: int = field(default=0, metadata=OF_FIGURE)
    """The token that is followed: its position in the sentence, in the decoder its step."""
    side: Side = field(default="out", metadata=OF_FIGURE)

    @property
    def name(self) -> str:
        """The last part of the names of its files."""
        stack, *sublayer, step = self.step.split(".")
        place = [f"layer{self.layer}"] if sublayer else []
        place += [f"head{self.head}"] if sublayer and sublayer != ["ffn"] else []
        return "-".join([stack, *sublayer, step, *place, self.side])

    def data(self, lab: Lab, seen: Inspection, trace: Trace) -> StepData:
        """Reads the arrays that go in and out of the step from the recorded pass."""
        step = find_step(lab.model, self.step)
        opened = open_step(trace, step, self.layer)
        target = seen.decoder_inputs[: len(trace.inputs)]
        pieces = range(lab.tokenizer.vocab_size) if opened.comes_out[0].columns == "vocab" else ()
        return StepData(opened, step.kind, seen.source_tokens, target, tuple(map(lab.tokenizer.piece, pieces)))

    def figure(self, data: StepData, *, dark: bool = False) -> go.Figure:
        """The arrays of one side below one another."""
        strips = [replace(strip, name=hover_label(strip.name)) for strip in self.strips(data)]
        return strips_figure(strips, kind=data.kind, dark=dark)

    def tables(self, data: StepData) -> tuple[DataFrame, ...]:
        """The numbers of all tokens; where a switch put others in place, those that the model computed too."""
        return tuple(table for shown in self._shown(data) for table in self._tables(data, shown))

    def checks(self, lab: Lab, seen: Inspection, trace: Trace, data: StepData) -> Iterator[Check]:
        """Evaluates the equation again in double precision, and runs the whole pass so; compares with the decoding."""
        model, step = lab.model, find_step(lab.model, self.step)
        yield from check_opened(trace, precise_trace(model, trace), step, self.layer, data.opened)
        if step.kind is not None and step.name == "weights":
            yield check_weights_written(model, trace, seen, [step.kind], self.layer)
        if step.name == "probabilities":
            yield check_probabilities_written(model, trace, seen)

    def sides(self, data: StepData) -> tuple[Side, ...]:
        """Returns the sides that have something to show."""
        first = data.opened.comes_out[0]
        one_token = first.columns in ("id", "vocab") or first.rows == "one"
        has_input = any(shown.columns != "id" for shown in data.opened.comes_in)
        found: list[Side] = ["in"] if has_input else []
        return (*found, "out") if one_token else (*found, "out", "all")

    def strips(self, data: StepData) -> list[Strip]:
        """Returns the arrays as strips of the followed token, or as matrices of all of them."""
        return [strip for shown in self._shown(data) for strip in self._strips(data, shown)]

    def product(self, data: StepData) -> Product:
        """Returns the matrix product that the head computes, at a step which is one (`Step.is_product`)."""
        left, right = data.opened.comes_in
        return head_product(left, right, data.opened.comes_out[0], self.head, data.labels)

    def _shown(self, data: StepData) -> tuple[Value, ...]:
        out = data.opened.comes_out
        if self.side == "in":
            return tuple(shown for shown in data.opened.comes_in if shown.columns != "id")
        if self.side == "out":
            return out
        if out[-1].columns == "d_model":
            return out[-1:]
        return tuple(shown for shown in out if not shown.every_row)

    def _strips(self, data: StepData, shown: Value) -> Iterator[Strip]:
        columns, rows = data.tokens(shown.columns), data.tokens(shown.rows)
        if shown.columns == "id":
            name = "id of each token in the vocabulary"
            yield Strip(name, shown.values[:, 0], rows, scale="plain")
        elif shown.columns == "vocab":
            yield self._best(data, shown)
        elif self.side == "all" or shown.every_row:
            frame = None if shown.every_row else self.row
            values = self._of_head(shown.values)
            yield Strip(shown.name, values, columns, rows, shown.allowed, _scale(shown), frame)
        else:
            at = 0 if shown.rows == "one" else self.row
            allowed = None if shown.allowed is None else shown.allowed[at]
            arrays = {shown.name: shown.values}
            if shown.before is not None:
                arrays = {
                    f"{shown.name}, as computed": shown.before,
                    f"{shown.name}, as a switch leaves it": shown.values,
                }
            for name, values in arrays.items():
                row = self._of_head(values)[at]
                yield Strip(name, row, columns, allowed=allowed, scale=_scale(shown))

    def _best(self, data: StepData, shown: Value) -> Strip:
        """Returns a row over the vocabulary, cut down to its most probable tokens."""
        row = shown.values[self.row]
        best = np.argsort(-row, kind="stable")[:N_BEST]
        tokens = [data.vocabulary[i] for i in best]
        name = f"{shown.name} of the {len(best)} best of {row.size:,} tokens"
        return Strip(name, row[best], tokens, scale=_scale(shown))

    def _tables(self, data: StepData, shown: Value) -> Iterator[DataFrame]:
        n_rows, n_columns = shown.values.shape[-2:]
        rows = numbered(data.tokens(shown.rows) or [""] * n_rows)
        tokens = data.tokens(shown.columns)
        columns = numbered(tokens) if tokens else list(map(str, range(n_columns)))
        yield matrix_table(shown.name, self._of_head(shown.values), rows, columns)
        if shown.before is not None:
            yield matrix_table(f"{shown.name}, as computed", self._of_head(shown.before), rows, columns)

    def _of_head(self, values: ndarray) -> ndarray:
        return values[self.head] if values.ndim == 3 else values


def _sizes(shape: Sequence[int], columns: Axis) -> tuple[int, int, int]:
    """Returns heads, rows and columns of an array; 0 where it has no such axis."""
    heads = shape[0] if len(shape) == 3 else 0
    return heads, shape[-2], 0 if columns == "id" else shape[-1]


def _axes(lab: Lab, seen: Inspection, trace: Trace) -> dict[Axis, int]:
    """Returns the length of each axis, from the tokens and the model's settings."""
    config = lab.model.config
    n_target = trace.last + 1 if trace.sees_later else len(seen.target_ids)
    return {
        "source": len(seen.source_ids),
        "target": n_target,
        "one": 1,
        "d_model": config.d_model,
        "d_head": config.d_model // config.n_heads,
        "d_ff": getattr(config, "d_ff", 0),
        "vocab": lab.tokenizer.vocab_size,
        "id": 0,
    }


def _scale(shown: Value) -> Scale:
    return "weights" if shown.name in ("weights", "probabilities") else "around 0"
