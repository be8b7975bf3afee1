"""What is taken away of the sections of Positions that show tables, and of the scores."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy import ndarray

from pages.positions.tables import Tables
from pages.shared.context import PageContext, is_dark
from pages.shared.exports import Export, opening_lines, papered, take_away
from transformer.analysis.positions.score_decomposition import PARTS
from transformer.analysis.positions.tables import ByOffset, ShiftFit, concatenated
from transformer.figures.positions.tables import (
    dimensions_figure,
    errors_figure,
    matrices_figure,
    offsets_figure,
    parts_figure,
    tables_figure,
)
from transformer.figures.tables import Table, numbered
from transformer.model.taps import Stack

_FIGURES, _MEASURES = "transformer.figures.positions.tables", "transformer.analysis.positions.tables"


def take_tables_away(context: PageContext, shown: Tables) -> None:
    """Of both tables."""

    def make() -> Export:
        in_rows = shown.choices.layout == "concatenated"
        values, names = [concatenated(shown.sinusoidal) if in_rows else shown.sinusoidal], [shown.sinusoidal_name]
        ends: list[int | None] = [None]
        if shown.learned is not None:
            values, names = [*values, shown.cut], [*names, shown.learned_name]
            ends.append(shown.learned.trained)
        lines = [
            *_tables(shown, (_MEASURES, "concatenated") if in_rows else None, (_FIGURES, "tables_figure")),
            *["values[0] = concatenated(values[0])"] * in_rows,
            "numbers = values[0]",
            f"figure = tables_figure(values, names, untrained_from={ends!r})",
        ]
        figure = tables_figure(values, names, untrained_from=ends, dark=is_dark())
        return _away("positions", figure, _matrices(values, names, ("position", "dimension")), lines)

    take_away(context, "positions", {"tables": make}, key="take-tables")


def take_dimensions_away(context: PageContext, shown: Tables, curves: Sequence[ndarray], labels: Sequence[str]) -> None:
    """Of single dimensions."""

    def make() -> Export:
        first = 2 * min(shown.choices.frequency, shown.d_model // 2 - 1)
        lines = [
            *_tables(shown, None, (_FIGURES, "dimensions_figure")),
            f"numbers = [table[:, i] for table in values for i in ({first}, {first + 1}) if i < table.shape[1]]",
            f"figure = dimensions_figure(numbers, {list(labels)!r})",
        ]
        tables = [
            Table(label, curve[:, None], numbered(["position"] * len(curve)), ["value"])
            for label, curve in zip(labels, curves, strict=True)
        ]
        return _away(f"positions-dimensions-{first}", dimensions_figure(curves, labels, dark=is_dark()), tables, lines)

    take_away(context, "positions", {"dimensions": make}, key="take-dimensions")


def take_distances_away(context: PageContext, shown: Tables, matrices: Sequence[ndarray], names: Sequence[str]) -> None:
    """Of the matrices of likeness."""

    def make() -> Export:
        kind = shown.choices.likeness
        lines = [
            *_tables(shown, (_MEASURES, "likeness"), (_FIGURES, "matrices_figure")),
            f"numbers = [likeness(table, {kind!r}) for table in values]",
            "figure = matrices_figure(numbers, names)",
        ]
        figure = matrices_figure(matrices, names, dark=is_dark())
        tables = _matrices(matrices, names, ("position", "position"))
        return _away(f"positions-{kind}", figure, tables, lines)

    take_away(context, "positions", {"matrices": make}, key="take-distances")


def take_offsets_away(context: PageContext, shown: Tables, offsets: Sequence[ByOffset], names: Sequence[str]) -> None:
    """Of likeness against offset."""

    def make() -> Export:
        kind, quantity = shown.choices.likeness, {"cosine": "cosine", "dot": "dot product"}[shown.choices.likeness]
        lines = [
            *_tables(shown, (_MEASURES, "by_offset, likeness"), (_FIGURES, "offsets_figure")),
            f"numbers = [by_offset(likeness(table, {kind!r})) for table in values]",
            "means, lows, highs = zip(*((o.mean, o.low, o.high) for o in numbers))",
            f"figure = offsets_figure(means, lows, highs, names, quantity={quantity!r})",
        ]
        triples = [(o.mean, o.low, o.high) for o in offsets]
        means, lows, highs = zip(*triples, strict=True)
        figure = offsets_figure(means, lows, highs, names, quantity=quantity, dark=is_dark())
        tables = [
            Table(name, np.column_stack(triple), numbered(["offset"] * len(triple[0])), ["mean", "lowest", "highest"])
            for name, triple in zip(names, triples, strict=True)
        ]
        return _away(f"positions-{kind}-by-offset", figure, tables, lines)

    take_away(context, "positions", {"offsets": make}, key="take-offsets")


def take_maps_away(context: PageContext, shown: Tables, k: int, rows: int, maps: dict[str, ndarray]) -> None:
    """Of the rotation, and of the best linear map of the learned table; `maps` by what stands above each."""

    def make() -> Export:
        axes = ("dimension of PE(pos)", "dimension of PE(pos + k)")
        turn = f"rotation({shown.d_model}, {k}, {float(shown.choices.base)!r})"
        lines = [
            *_tables(shown, (_MEASURES, "fit_shift, rotation"), (_FIGURES, "matrices_figure"), trained_only=True),
            f"numbers = [{turn}, *(fit_shift(table[:{rows}], {k}).matrix for table in values[1:])]",
            f"figure = matrices_figure(numbers, {list(maps)!r}, axes={axes!r})",
        ]
        figure = matrices_figure(list(maps.values()), list(maps), axes=axes, dark=is_dark())
        tables = _matrices(list(maps.values()), list(maps), ("to dimension", "from dimension"))
        return _away(f"positions-shift-{k}", figure, tables, lines)

    take_away(context, "positions", {"maps": make}, key="take-maps")


def take_errors_away(
    context: PageContext, shown: Tables, k: int, rows: int, exact: ndarray, fits: Sequence[ShiftFit]
) -> None:
    """Of the errors of the rotation and of the fitted maps."""

    def make() -> Export:
        turn = f"rotation({shown.d_model}, {k}, {float(shown.choices.base)!r})"
        names = ["sinusoidal, rotation", *_FITTED[: len(fits)]]
        measures = (_MEASURES, "fit_shift, rotation, shift_error")
        lines = [
            *_tables(shown, measures, (_FIGURES, "errors_figure"), trained_only=True),
            "import numpy as np",
            f"exact = shift_error(values[0], {turn}, {k})",
            f"fits = [fit_shift(table[:{rows}], {k}) for table in values]",
            "places = [np.arange(len(exact)), *(fit.held_out for fit in fits)]",
            "numbers = [exact, *(fit.error[fit.held_out] for fit in fits)]",
            f"figure = errors_figure(places, numbers, {names!r})",
        ]
        places = [np.arange(len(exact)), *(fit.held_out for fit in fits)]
        errors = [exact, *(fit.error[fit.held_out] for fit in fits)]
        tables = [
            Table(name, error[:, None], [f"position {place}" for place in at], ["largest error"])
            for name, at, error in zip(names, places, errors, strict=True)
        ]
        return _away(f"positions-shift-{k}-errors", errors_figure(places, errors, names, dark=is_dark()), tables, lines)

    take_away(context, "positions", {"errors": make}, key="take-errors")


_FITTED = ("sinusoidal, fitted map, held out", "learned, fitted map, held out")


def take_parts_away(
    context: PageContext, stack: Stack, head: int, parts: Sequence[ndarray], tokens: Sequence[str]
) -> None:
    """Of the four parts of a head's scores and their sum; masked cells are NaN in `parts`."""

    def make() -> Export:
        own = "seen.source_tokens" if stack == "encoder" else "seen.decoder_inputs"
        names = [*PARTS, "sum: the score"]
        imports = [
            "import numpy as np",
            "import torch",
            "from transformer.analysis.positions.score_decomposition import split_scores",
            "from transformer.figures.positions.tables import parts_figure",
            "from transformer.interventions import compile_interventions",
        ]
        lines = [
            *opening_lines(context, imports),
            "target = torch.tensor([[lab.model.config.bos_id, *seen.target_ids[:-1]]])",
            "tap = compile_interventions(seen.interventions, lab.model)",
            f"split = split_scores(lab.model, torch.tensor([seen.source_ids]), target, {stack!r}, tap=tap)",
            f"parts = [*split.parts[:, {head}], split.scores[{head}]]",
            "numbers = [np.where(split.mask, part, np.nan) for part in parts]",
            f"figure = parts_figure(numbers, {names!r}, {own}, {own})",
        ]
        labels = numbered(tokens)
        tables = [Table(name, part, labels, labels) for name, part in zip(names, parts, strict=True)]
        name = f"{context.lab.name}-scores-{stack}-head{head}"
        return _away(name, parts_figure(parts, names, tokens, tokens, dark=is_dark()), tables, lines)

    take_away(context, "positions", {"parts": make}, key="take-parts")


def _tables(
    shown: Tables, measures: tuple[str, str] | None, figure: tuple[str, str], *, trained_only: bool = False
) -> list[str]:
    """The lines that import what is wanted, each a module and its names, and put the tables into `values`."""
    wanted = [figure, ("transformer.model.positions", "sinusoidal_table"), *([measures] if measures else [])]
    size = f"{shown.length}, {shown.d_model}, base={float(shown.choices.base)!r}"
    made = [f"values, names = [sinusoidal_table({size}).numpy()], [{shown.sinusoidal_name!r}]"]
    if shown.learned is not None:
        wanted += [("transformer", "load"), ("transformer.runs.position_moments", "learned_table")]
        stack, moment = shown.choices.stack, shown.choices.moment
        rows = min(shown.length, shown.learned.trained) if trained_only else shown.length
        made += [
            f"learned = learned_table(load({shown.partner!r}).checkpoint, {stack!r}, {moment!r})",
            f"values.append(learned.rows[:{rows}])",
            f"names.append({shown.learned_name!r})",
        ]
    return [*(f"from {module} import {names}" for module, names in sorted(wanted)), "", *made]


def _matrices(values: Sequence[ndarray], names: Sequence[str], axes: tuple[str, str]) -> list[Table]:
    return [
        Table(name, table, *([f"{axis} {i}" for i in range(n)] for axis, n in zip(axes, table.shape, strict=True)))
        for name, table in zip(names, values, strict=True)
    ]


def _away(name: str, figure: go.Figure, tables: Sequence[Table], lines: Sequence[str]) -> Export:
    imports = [line for line in lines if line.startswith("import ")]
    lines = [*imports, *(line for line in lines if not line.startswith("import "))]
    return Export(name, papered(figure, dark=is_dark()), tuple(tables), "\n".join(lines))
