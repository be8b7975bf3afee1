"""What is taken away of Home: its lines, and the cross-attention behind them as a matrix."""

from collections.abc import Sequence

import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray

from pages.shared.context import PageContext, is_dark
from pages.shared.exports import Export, as_typed, opening_lines, take_away
from transformer.figures.attention.matrix import AXIS_TITLES
from transformer.figures.attention.token_lines import lines_figure
from transformer.figures.export import matrix_figure
from transformer.figures.tables import Table, numbered


def take_lines_away(context: PageContext, weights: Float[ndarray, "query key"], *, off: bool) -> None:
    """The popover under the lines; `off`: nothing of them goes any further."""
    figures = {"Lines": lambda: _lines(context, weights, off), "Matrix": lambda: _matrix(context, weights, off)}
    take_away(context, "home", figures, key="take-home")


def _lines(context: PageContext, weights: Float[ndarray, "query key"], off: bool) -> Export:
    seen, named = context.inspection, ("sentence", "translation")
    source, said = _typed(context)
    figure = lines_figure(source, seen.target_tokens, weights, kind="cross", labels=named, off=off, dark=is_dark())
    lines = [
        *_numbers(context, "from transformer.figures.attention.token_lines import lines_figure"),
        f"source = {said}",
        "figure = lines_figure(",
        f"    source, seen.target_tokens, numbers, kind='cross', labels={named!r}{', off=True' * off},",
        ")",
    ]
    return _away(context, weights, "lines", figure, lines)


def _matrix(context: PageContext, weights: Float[ndarray, "query key"], off: bool) -> Export:
    attention, layer = context.inspection.cross, context.layer
    titles = AXIS_TITLES["cross"]
    source, said = _typed(context)
    figure = matrix_figure(
        weights,
        attention.queries,
        source,
        kind="cross",
        titles=titles,
        mask=attention.mask[layer],
        off=off,
        dark=is_dark(),
    )
    lines = [
        *_numbers(context, "from transformer.figures.export import matrix_figure"),
        f"source = {said}",
        "figure = matrix_figure(",
        "    numbers, attention.queries, source, kind='cross',",
        f"    titles={titles!r}, mask=attention.mask[{layer}]{', off=True' * off},",
        ")",
    ]
    return _away(context, weights, "cross", figure, lines)


def _typed(context: PageContext) -> tuple[tuple[str, ...], str]:
    """The source tokens, as typed where the model never saw a word; and how a program says them."""
    tokens = context.inspection.source_tokens
    typed = as_typed(tokens, context.unseen)
    return typed, "seen.source_tokens" if typed == tokens else repr(typed)


def _numbers(context: PageContext, figure: str) -> list[str]:
    """The lines up to the numbers, with the import of the figure."""
    layer, head = context.layer, context.view.head
    average = "from transformer.analysis.heads.importance import head_average"
    return [
        *opening_lines(context, [figure, *[average] * (head is None)]),
        "attention = seen.cross",
        f"numbers = head_average(attention.weights, {layer})"
        if head is None
        else f"numbers = attention.weights[{layer}, {head}]",
    ]


def _away(
    context: PageContext, weights: Float[ndarray, "query key"], what: str, figure: go.Figure, lines: Sequence[str]
) -> Export:
    attention, head = context.inspection.cross, context.view.head
    table = Table("weight", weights, numbered(attention.queries), numbered(_typed(context)[0]))
    name = f"{context.lab.name}-{what}-layer{context.layer}-{'average' if head is None else f'head{head}'}"
    return Export(name, figure, (table,), "\n".join(lines))
