"""What is taken away of the Attention page: the picture on the screen, and all layers and heads."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from pages.attention.bertviz_view import Framed
from pages.attention.export_bertviz import bertviz_away
from pages.attention.picture_data import Drawing, Source
from pages.attention.picture_rollout import residuals, silenced
from pages.attention.picture_sides import groups, sides
from pages.attention.pictures import forbidden_cells, framed_cell, unseen_words
from pages.shared.context import PageContext, is_dark
from pages.shared.exports import Export, as_typed, opening_lines, take_away
from transformer.figures.attention.token_lines import lines_figure
from transformer.figures.export import matrix_figure, overview_figure
from transformer.figures.tables import Table, head_tables, numbered
from transformer.lab import AttentionKind

_MERGE = "from transformer.analysis.attention.aggregation import merge_words"


def take_attention_away(context: PageContext, source: Source, made: Drawing | Framed | None) -> None:
    """The popover under the chosen head's picture; `made` is what it draws, None where nothing can be drawn."""
    figures = {"All layers and heads": partial(_overview, context, source, is_dark())}
    if isinstance(made, Framed):
        figures = {"This drawing": partial(bertviz_away, context, source, made), **figures}
    elif made is not None:
        figures = {"This picture": partial(_picture, context, made, is_dark()), **figures}
    take_away(context, "attention", figures, key="take-attention")


def _picture(context: PageContext, made: Drawing, dark: bool) -> Export:
    view, (rows, columns) = context.view, _labels(context, made)
    if as_lines(context):
        options = {"labels": made.ends, **_look(made)}
        figure = lines_figure(columns, rows, made.values, kind=view.kind, **options, dark=dark)
    else:
        options = {"titles": made.titles, "quantity": _quantity(made), "mask": made.mask, **_look(made)}
        options |= {"forbidden": forbidden_cells(view, made), "chosen": framed_cell(context, made)}
        figure = matrix_figure(made.values, rows, columns, kind=view.kind, **options, dark=dark)
    name = f"{context.lab.name}-{view.kind}-{view.show}{_place(context)}{'-lines' * as_lines(context)}"
    hides = "lines" if as_lines(context) else "cells"
    note = f"a threshold hides {hides} only; all numbers are here" if made.least else ""
    return Export(
        name,
        figure,
        (Table(made.quantity, made.values, numbered(rows), numbered(columns)),),
        python_of(context, made),
        note,
        " · ".join((view.kind.label, made.what, *made.said)),
    )


def as_lines(context: PageContext) -> bool:
    """Whether the picture is lines between tokens, which entropy has not."""
    return context.view.picture == "lines" and context.view.show != "entropy"


def _place(context: PageContext) -> str:
    """Which layer and heads, for the name of the files."""
    view, layer = context.view, f"-layer{context.layer}"
    match view.show:
        case "entropy":
            return ""
        case "rollout":
            return f"-through{layer}"
        case "weights" | "norms":
            heads = "-".join(map(str, view.over)) or "all"
            return f"{layer}-head{context.head}" if view.combine == "one" else f"{layer}-{view.combine}-{heads}"


def _labels(context: PageContext, made: Drawing) -> tuple[Sequence[str], Sequence[str]]:
    """Rows and columns, as typed where the model never saw a word."""
    rows, columns = unseen_words(context, made)
    return as_typed(made.rows.labels, rows), as_typed(made.columns.labels, columns)


def _quantity(made: Drawing) -> str:
    return made.quantity + f" in {made.unit}" * bool(made.unit)


def _look(made: Drawing) -> dict[str, Any]:
    """How matrix and lines alike are drawn, where it is not as always."""
    usual = {"top": 1.0, "least": 0.0, "off": False}
    return {name: getattr(made, name) for name, value in usual.items() if getattr(made, name) != value}


def _overview(context: PageContext, source: Source, dark: bool) -> Export:
    attention = context.inspection.attention(context.view.kind)
    n_layers, n_heads, n_queries, n_keys = attention.weights.shape
    tables = head_tables(attention.weights, attention.queries, attention.keys)
    marks = {"off": sorted(source.heads_off), "at_mean": sorted(source.off - source.heads_off)}
    marks = {name: heads for name, heads in marks.items() if heads}
    lines = [
        *opening_lines(context, ["from transformer.figures.export import overview_figure"]),
        f"attention = seen.{context.view.kind}",
        f"numbers = attention.weights  # {n_layers} layers, {n_heads} heads, {n_queries} queries, {n_keys} keys",
        f"figure = overview_figure(numbers, kind=attention.kind, mask=attention.mask{_arguments(marks)})",
    ]
    figure = overview_figure(attention.weights, kind=context.view.kind, mask=attention.mask, **marks, dark=dark)
    return Export(f"{context.lab.name}-{context.view.kind}-all-heads", figure, tables, "\n".join(lines))


def _arguments(given: Mapping[str, object]) -> str:
    """What stands behind a call's other arguments."""
    return "".join(f", {name}={value!r}" for name, value in given.items())


def python_of(context: PageContext, made: Drawing) -> str:
    """Lines that make the picture's numbers, and draw them."""
    view = context.view
    imports = ["from transformer.figures.export import matrix_figure"]
    if as_lines(context):
        imports = ["from transformer.figures.attention.token_lines import lines_figure"]
    steps, more = _numbers(context, made)
    typed = _labels(context, made)
    labels = [f"rows = {list(typed[0])!r}", f"columns = {list(typed[1])!r}"]
    plain = view.show in ("weights", "norms") and not view.words and view.specials == "shown"
    masked = ""
    if plain:
        if typed == (made.rows.labels, made.columns.labels):
            labels = [f"rows, columns = seen.{view.kind}.queries, seen.{view.kind}.keys"]
        masked = f", mask=seen.{view.kind}.mask[{context.layer}]"
    elif made.mask is not None and not as_lines(context):
        masks, wanted = _mask(context)
        steps, more, masked = [*steps, *masks], [*more, *wanted], ", mask=mask"
    forbidden = forbidden_cells(view, made)
    if forbidden is not None and forbidden.any() and not as_lines(context):
        at = ", ".join(repr(index.tolist()) for index in np.nonzero(forbidden))
        steps += ["forbidden = np.zeros(numbers.shape, dtype=bool)", f"forbidden[{at}] = True  # by switches"]
        more, masked = [*more, "import numpy as np"], f"{masked}, forbidden=forbidden"
    chosen = framed_cell(context, made)
    look = {**_look(made), **({} if chosen is None else {"chosen": chosen})}
    drawn = [
        "figure = matrix_figure(",
        f"    numbers, rows, columns, kind={view.kind!r}, titles={made.titles!r},",
        f"    quantity={_quantity(made)!r}{masked}{_arguments(look)},",
        ")",
    ]
    if as_lines(context):
        options = _arguments({"labels": made.ends, **_look(made)})
        drawn = [f"figure = lines_figure(columns, rows, numbers, kind={view.kind!r}{options})"]
    lines = [
        *opening_lines(context, [*imports, *more]),
        *steps,
        *labels,
        *drawn,
    ]
    return "\n".join(lines)


def _numbers(context: PageContext, made: Drawing) -> tuple[list[str], list[str]]:
    """The lines from the decoding to the picture's numbers, and what they import."""
    view = context.view
    if view.show == "entropy":
        attention = f"seen.{view.kind}"
        rows, _ = sides(context.lab, context.inspection, view.kind, words=False)
        kept = f"numbers = numbers[{[not mark for mark in rows.special]!r}]"
        return [
            f"entropy = row_entropy({attention}.weights, {attention}.mask, {view.unit!r}).values",
            "numbers = entropy.reshape(-1, entropy.shape[-1]).T.astype('float32')  # query, layer and head",
            *[kept] * (view.specials != "shown"),
        ], ["from transformer.analysis.attention.entropy import row_entropy"]
    steps, more = _rolled(context) if view.show == "rollout" else _combined(context)
    rows, columns = sides(context.lab, context.inspection, view.kind, words=view.words)
    if view.specials != "shown":
        more.append("from transformer.analysis.attention.aggregation import leave_out")
        steps.append(f"numbers, _ = leave_out(numbers, {list(rows.special)!r}, {list(columns.special)!r})")
    if view.specials == "renormalised":
        more.append("from transformer.analysis.attention.aggregation import renormalise")
        steps.append("numbers = renormalise(numbers)")
    return steps, more


def _mask(context: PageContext) -> tuple[list[str], list[str]]:
    """The lines that cut the mask as the numbers are cut, and what they import."""
    view, wanted = context.view, []
    steps = [f"mask = seen.{view.kind}.mask[{context.layer}]"]
    if view.show == "rollout":
        wanted.append("from transformer.analysis.attention.rollout import arrives")
        last = context.layer + 1
        steps = [f"mask = arrives(seen.{view.kind}.mask[:{last}], {_residuals(context, view.kind)[:last]!r})"]
    rows, columns = sides(context.lab, context.inspection, view.kind, words=view.words)
    if view.words:
        wanted.append("from transformer.analysis.attention.aggregation import merge_masks")
        steps.append(f"mask = merge_masks(mask, {groups(rows)!r}, {groups(columns)!r})")
    if view.specials != "shown":
        kept = [[not mark for mark in side.special] for side in (rows, columns)]
        steps.append(f"mask = mask[{kept[0]!r}][:, {kept[1]!r}]")
    return steps, wanted


def _combined(context: PageContext) -> tuple[list[str], list[str]]:
    view, steps = context.view, []
    more = ["from transformer.analysis.attention.aggregation import combine_heads"]
    values = f"seen.{view.kind}.weights[{context.layer}]"
    if view.show == "norms":
        stack, sublayer = view.kind.where
        more.append("from transformer.analysis.attention.vectors import record_vectors")
        steps = [
            f"vectors = record_vectors(lab.model, seen.source_ids, seen.interventions, {stack!r}, {sublayer!r})",
            f"norms = vectors.contributions(seen.{view.kind}.weights)",
        ]
        values = f"norms[{context.layer}]"
    everything = tuple(range(context.lab.model.config.n_heads))
    heads = (context.head,) if view.combine == "one" else view.over or everything
    how = "max" if view.combine == "max" else "mean"
    if view.words:
        steps.append(_merged(context, "words", values))
        more.append(_MERGE)
        values = "words"
    return [*steps, f"numbers = combine_heads({values}, {heads!r}, {how!r})"], more


def _merged(context: PageContext, name: str, values: str) -> str:
    """The line that merges pieces into words."""
    rows, columns = sides(context.lab, context.inspection, context.view.kind, words=True)
    return f"{name} = merge_words({values}, {groups(rows)!r}, {groups(columns)!r})"


def _rolled(context: PageContext) -> tuple[list[str], list[str]]:
    steps, more = _rollout(context)
    merged = context.view.words
    return [*steps, *[_merged(context, "numbers", "numbers")] * merged], [*more, *[_MERGE] * merged]


def _rollout(context: PageContext) -> tuple[list[str], list[str]]:
    """Rollout of what goes any further."""
    view = context.view
    if view.kind != "cross":
        lines = _effective(context, view.kind, "weights")
        rolled = f"numbers = rollout(weights, {_residuals(context, view.kind)!r})[{context.layer}].astype('float32')"
        return [*lines, rolled], ["from transformer.analysis.attention.rollout import rollout"]
    lines = [
        *_effective(context, AttentionKind.ENCODER_SELF, "encoder"),
        *_effective(context, AttentionKind.DECODER_SELF, "decoder"),
        *_effective(context, AttentionKind.CROSS, "cross"),
        f"memory = rollout(encoder, {_residuals(context, AttentionKind.ENCODER_SELF)!r})[-1]",
        f"residuals = {_residuals(context, AttentionKind.DECODER_SELF)!r}, "
        f"{_residuals(context, AttentionKind.CROSS)!r}",
        "both = cross_rollout(memory, decoder, cross, *residuals)",
        f"numbers = both.source[{context.layer}].astype('float32')",
    ]
    return lines, ["from transformer.analysis.attention.rollout import cross_rollout, rollout"]


def _effective(context: PageContext, kind: AttentionKind, name: str) -> list[str]:
    lines = [f"{name} = seen.{kind}.weights.copy()"]
    for _, at in silenced(context.inspection, kind):
        lines.append(f"{name}[{', '.join(':' if part == slice(None) else repr(part) for part in at)}] = 0")
    return lines


def _residuals(context: PageContext, kind: AttentionKind) -> list[bool]:
    return residuals(context.inspection, kind, context.lab.model.config.residual)
