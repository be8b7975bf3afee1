"""A product of two matrices on a canvas: pointing at a row shows the columns that it meets, and where."""

from pages.shared.components.frontend import colours_of, declared, in_both_themes, packed_arrays, scale_colours
from transformer.figures import theme
from transformer.figures.labels import readable
from transformer.model.kinds import KindName
from transformer.views.trace_product import Product

_component = declared(
    "matrix_product",
    css=("value_axes.css", "matrix_product.css"),
    js=("scales.js", "value_axes.js", "matrix_product.js"),
)


def matrix_product(product: Product, *, row: int, kind: KindName | None, label: str, key: str) -> None:
    """Draws the left matrix, the right one above their product, and follows `row` where nothing is pointed at."""
    matrices = (product.left, product.right, product.result)
    header = {
        "names": list(product.names),
        "tokens": {
            axis: None if labels is None else [readable(token) for token in labels]
            for axis, labels in (("rows", product.rows), ("inner", product.inner), ("columns", product.columns))
        },
        "limits": [list(limits) for limits in product.limits],
        "plain": [low == 0 for low, _ in product.limits],
        "scales": {"weights": scale_colours(theme.sequential), "signed": scale_colours(theme.diverging)},
        "colours": in_both_themes(lambda dark: theme.palette(dark).accent) if kind is None else colours_of(kind),
        "row": row,
        "label": label,
    }
    _component(key=key, data=packed_arrays(header, matrices))
