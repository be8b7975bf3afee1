"""What is taken away of a cell's whole sum: the products of q and k, and the shares of the block's output."""

import numpy as np

from pages.common.exports import Away, opening_lines, papered, take_away
from pages.common.scene import Scene, is_dark
from transformer.analysis.cell import Cell
from transformer.figures.cell import products_figure, shares_figure
from transformer.figures.tables import Table, numbered
from transformer.figures.theme import KIND_NAMES


def take_cell_away(scene: Scene, cell: Cell, query: int) -> None:
    """The popover under a cell's sum."""
    figures = {
        "Products": lambda: _products(scene, cell, query),
        "Shares": lambda: _shares(scene, cell, query),
    }
    take_away(scene, "attention", figures, key="take-cell")


def _products(scene: Scene, cell: Cell, query: int) -> Away:
    figure = products_figure(cell.q, cell.k, kind=scene.view.kind, dark=is_dark())
    lines = [
        *_opening(scene, cell, query, "products_figure"),
        "numbers = cell.products  # they sum to q · k",
        f"figure = products_figure(cell.q, cell.k, kind={scene.view.kind!r})",
    ]
    values = np.stack([cell.q.astype(np.float64), cell.k.astype(np.float64), cell.products], axis=-1)
    table = Table("products", values, [f"dimension {i}" for i in range(len(cell.q))], ["q", "k", "q times k"])
    name, said = _name(scene, cell, query, "products"), _said(scene, cell, query)
    return Away(name, papered(figure, dark=is_dark()), (table,), "\n".join(lines), said=said)


def _shares(scene: Scene, cell: Cell, query: int) -> Away:
    parts = cell.parts
    figure = shares_figure(list(parts), list(parts.values()), kind=scene.view.kind, dark=is_dark())
    lines = [
        *_opening(scene, cell, query, "shares_figure"),
        "numbers = list(cell.parts.values())  # they sum to 1",
        f"figure = shares_figure(list(cell.parts), numbers, kind={scene.view.kind!r})",
    ]
    keys = numbered(scene.inspection.attention(scene.view.kind).keys[: len(cell.weights)])
    row = np.stack([cell.scores, cell.allowed, cell.numerators, cell.weights, cell.shares[cell.head]], axis=-1)
    tables = (
        Table("share", np.array(list(parts.values()))[:, None], list(parts), ["of the output"]),
        Table("row", row, keys, ["score", "allowed", "exp(score - largest)", "weight", "share"]),
    )
    name, said = _name(scene, cell, query, "shares"), _said(scene, cell, query)
    return Away(name, papered(figure, dark=is_dark(), width=640), tables, "\n".join(lines), said=said)


def _opening(scene: Scene, cell: Cell, query: int, figure: str) -> list[str]:
    place = f"{scene.view.kind!r}, layer={scene.layer}, head={cell.head}, query={query}, key={cell.key}"
    return [
        *opening_lines(scene, [f"from transformer.figures.cell import {figure}"]),
        f"cell = lab.cell(seen, {place})",
    ]


def _said(scene: Scene, cell: Cell, query: int) -> str:
    attention = scene.inspection.attention(scene.view.kind)
    where = f"{KIND_NAMES[scene.view.kind]} · layer {scene.layer} · head {cell.head}"
    return f"{where} · query {query} {attention.queries[query]} · key {cell.key} {attention.keys[cell.key]}"


def _name(scene: Scene, cell: Cell, query: int, what: str) -> str:
    return f"{scene.lab.name}-{scene.view.kind}-layer{scene.layer}-head{cell.head}-cell{query}-{cell.key}-{what}"
