"""What is taken away of Home: the cross-attention behind its lines, as a matrix."""

from jaxtyping import Float
from numpy import ndarray

from pages.common.exports import Away, opening_lines, take_away
from pages.common.scene import Scene, is_dark
from transformer.figures.attention import AXIS_TITLES
from transformer.figures.export import matrix_figure
from transformer.figures.tables import Table, numbered


def take_lines_away(scene: Scene, weights: Float[ndarray, "query key"]) -> None:
    """The popover under the lines; its link opens the same view on the Attention page."""
    note = "lines become a matrix, with every number on hover"
    take_away(scene, "attention", {"Cross-attention": lambda: _matrix(scene, weights, note)}, key="take-home")


def _matrix(scene: Scene, weights: Float[ndarray, "query key"], note: str) -> Away:
    attention, layer, head = scene.inspection.cross, scene.layer, scene.view.head
    titles = AXIS_TITLES["cross"]
    figure = matrix_figure(
        weights,
        attention.queries,
        attention.keys,
        kind="cross",
        titles=titles,
        mask=attention.mask[layer],
        dark=is_dark(),
    )
    average = "from transformer.analysis.effects import head_average"
    lines = [
        *opening_lines(scene, ["from transformer.figures.export import matrix_figure", *[average] * (head is None)]),
        "attention = seen.cross",
        f"numbers = head_average(attention.weights, {layer})"
        if head is None
        else f"numbers = attention.weights[{layer}, {head}]",
        "figure = matrix_figure(",
        "    numbers, attention.queries, attention.keys, kind='cross',",
        f"    titles={titles!r}, mask=attention.mask[{layer}],",
        ")",
    ]
    table = Table("weight", weights, numbered(attention.queries), numbered(attention.keys))
    name = f"{scene.lab.name}-cross-layer{layer}-{'average' if head is None else f'head{head}'}"
    return Away(name, figure, (table,), "\n".join(lines), note)
