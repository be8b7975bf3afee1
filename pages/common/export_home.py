"""What is taken away of Home: its lines, and the cross-attention behind them as a matrix."""

from collections.abc import Sequence

import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray

from pages.common.exports import Away, as_typed, opening_lines, take_away
from pages.common.scene import Scene, is_dark
from transformer.figures.attention import AXIS_TITLES
from transformer.figures.export import matrix_figure
from transformer.figures.tables import Table, numbered
from transformer.figures.token_lines import lines_figure


def take_lines_away(scene: Scene, weights: Float[ndarray, "query key"], *, off: bool) -> None:
    """The popover under the lines; `off`: nothing of them goes any further."""
    figures = {"Lines": lambda: _lines(scene, weights, off), "Matrix": lambda: _matrix(scene, weights, off)}
    take_away(scene, "home", figures, key="take-home")


def _lines(scene: Scene, weights: Float[ndarray, "query key"], off: bool) -> Away:
    seen, named = scene.inspection, ("sentence", "translation")
    source, said = _typed(scene)
    figure = lines_figure(source, seen.target_tokens, weights, kind="cross", labels=named, off=off, dark=is_dark())
    lines = [
        *_numbers(scene, "from transformer.figures.token_lines import lines_figure"),
        f"source = {said}",
        "figure = lines_figure(",
        f"    source, seen.target_tokens, numbers, kind='cross', labels={named!r}{', off=True' * off},",
        ")",
    ]
    return _away(scene, weights, "lines", figure, lines)


def _matrix(scene: Scene, weights: Float[ndarray, "query key"], off: bool) -> Away:
    attention, layer = scene.inspection.cross, scene.layer
    titles = AXIS_TITLES["cross"]
    source, said = _typed(scene)
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
        *_numbers(scene, "from transformer.figures.export import matrix_figure"),
        f"source = {said}",
        "figure = matrix_figure(",
        "    numbers, attention.queries, source, kind='cross',",
        f"    titles={titles!r}, mask=attention.mask[{layer}]{', off=True' * off},",
        ")",
    ]
    return _away(scene, weights, "cross", figure, lines)


def _typed(scene: Scene) -> tuple[tuple[str, ...], str]:
    """The source tokens, as typed where the model never saw a word; and how a program says them."""
    tokens = scene.inspection.source_tokens
    typed = as_typed(tokens, scene.unseen)
    return typed, "seen.source_tokens" if typed == tokens else repr(typed)


def _numbers(scene: Scene, figure: str) -> list[str]:
    """The lines up to the numbers, with the import of the figure."""
    layer, head = scene.layer, scene.view.head
    average = "from transformer.analysis.effects import head_average"
    return [
        *opening_lines(scene, [figure, *[average] * (head is None)]),
        "attention = seen.cross",
        f"numbers = head_average(attention.weights, {layer})"
        if head is None
        else f"numbers = attention.weights[{layer}, {head}]",
    ]


def _away(
    scene: Scene, weights: Float[ndarray, "query key"], what: str, figure: go.Figure, lines: Sequence[str]
) -> Away:
    attention, head = scene.inspection.cross, scene.view.head
    table = Table("weight", weights, numbered(attention.queries), numbered(_typed(scene)[0]))
    name = f"{scene.lab.name}-{what}-layer{scene.layer}-{'average' if head is None else f'head{head}'}"
    return Away(name, figure, (table,), "\n".join(lines))
