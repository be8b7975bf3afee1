"""What is taken away of a cell's whole sum: the products of q and k, and the shares of the block's output."""

import numpy as np

from pages.shared.context import PageContext, is_dark
from pages.shared.exports import Export, opening_lines, papered, take_away
from transformer.analysis.attention.entry import Cell
from transformer.figures.attention.entry import products_figure, shares_figure
from transformer.figures.tables import Table, numbered


def take_cell_away(context: PageContext, cell: Cell, query: int) -> None:
    """The popover under a cell's sum."""
    figures = {
        "Products": lambda: _products(context, cell, query),
        "Shares": lambda: _shares(context, cell, query),
    }
    take_away(context, "attention", figures, key="take-cell")


def _products(context: PageContext, cell: Cell, query: int) -> Export:
    figure = products_figure(cell.q, cell.k, kind=context.view.kind, dark=is_dark())
    lines = [
        *_opening(context, cell, query, "products_figure"),
        "numbers = cell.products  # they sum to q · k",
        f"figure = products_figure(cell.q, cell.k, kind={context.view.kind!r})",
    ]
    values = np.stack([cell.q.astype(np.float64), cell.k.astype(np.float64), cell.products], axis=-1)
    table = Table("products", values, [f"dimension {i}" for i in range(len(cell.q))], ["q", "k", "q times k"])
    name, said = _name(context, cell, query, "products"), _said(context, cell, query)
    return Export(name, papered(figure, dark=is_dark()), (table,), "\n".join(lines), said=said)


def _shares(context: PageContext, cell: Cell, query: int) -> Export:
    parts = cell.parts
    figure = shares_figure(list(parts), list(parts.values()), kind=context.view.kind, dark=is_dark())
    lines = [
        *_opening(context, cell, query, "shares_figure"),
        "numbers = list(cell.parts.values())  # they sum to 1",
        f"figure = shares_figure(list(cell.parts), numbers, kind={context.view.kind!r})",
    ]
    keys = numbered(context.inspection.attention(context.view.kind).keys[: len(cell.weights)])
    row = np.stack([cell.scores, cell.allowed, cell.numerators, cell.weights, cell.shares[cell.head]], axis=-1)
    tables = (
        Table("share", np.array(list(parts.values()))[:, None], list(parts), ["of the output"]),
        Table("row", row, keys, ["score", "allowed", "exp(score - largest)", "weight", "share"]),
    )
    name, said = _name(context, cell, query, "shares"), _said(context, cell, query)
    return Export(name, papered(figure, dark=is_dark(), width=640), tables, "\n".join(lines), said=said)


def _opening(context: PageContext, cell: Cell, query: int, figure: str) -> list[str]:
    place = f"{context.view.kind!r}, layer={context.layer}, head={cell.head}, query={query}, key={cell.key}"
    return [
        *opening_lines(context, [f"from transformer.figures.attention.entry import {figure}"]),
        f"cell = lab.cell(seen, {place})",
    ]


def _said(context: PageContext, cell: Cell, query: int) -> str:
    attention = context.inspection.attention(context.view.kind)
    where = f"{context.view.kind.label} · layer {context.layer} · head {cell.head}"
    return f"{where} · query {query} {attention.queries[query]} · key {cell.key} {attention.keys[cell.key]}"


def _name(context: PageContext, cell: Cell, query: int, what: str) -> str:
    return f"{context.lab.name}-{context.view.kind}-layer{context.layer}-head{cell.head}-cell{query}-{cell.key}-{what}"
