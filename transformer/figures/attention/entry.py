"""One cell of attention in pictures: the product of q and k, number by number, and what a block's output is made of."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.labels import exact
from transformer.model.kinds import KindName

_NUMBERED = 16
"""Up to this many dimensions the numbers stand in the cells."""
_ROW_HEIGHT = 34


def products_figure(
    q: Float[ndarray, "d_head"],
    k: Float[ndarray, "d_head"],
    terms: Float[ndarray, "d_head"] | None = None,
    *,
    kind: KindName,
    dark: bool = False,
) -> go.Figure:
    """q, k and their product for each dimension of the head: three rows, coloured around 0. Hovering is exact.

    `terms` are those of an additive score, v tanh(q + k), which then stand in place of the products.
    """
    colours, scale = theme.palette(dark), theme.diverging(dark)
    fig = theme.apply(go.Figure(), dark)
    vectors = max(float(np.abs(q).max(initial=0)), float(np.abs(k).max(initial=0))) or 1.0
    products = q.astype(np.float64) * k if terms is None else terms
    name, typeset = ("q · k", "q<sub>i</sub> k<sub>i</sub>") if terms is None else ("v · tanh(q + k)", "v tanh")
    for row, (label, values, reach) in enumerate(
        (("q", q, vectors), ("k", k, vectors), (name, products, float(np.abs(products).max(initial=0)) or 1.0))
    ):
        numbered = len(values) <= _NUMBERED
        positions = (values / reach + 1) / 2
        texts = [
            f'<span style="color:{theme.ink_on(scale, float(at))}">{_typeset(f"{value:.2f}")}</span>'
            for value, at in zip(values.tolist(), positions.tolist(), strict=True)
        ]
        digits = [exact(value) if row < 2 else f"{value:.9g}" for value in values]
        fig.add_heatmap(
            z=[values],
            x=np.arange(len(values)),
            y=[row],
            zmin=-reach,
            zmax=reach,
            colorscale=scale,
            showscale=False,
            xgap=1,
            ygap=2,
            text=[texts] if numbered else None,
            texttemplate="%{text}" if numbered else None,
            textfont={"size": 12},
            customdata=[[f"dimension {i}<br>{label} = {text}" for i, text in enumerate(digits)]],
            hovertemplate="%{customdata}<extra></extra>",
        )
    quiet = {"showline": False, "ticks": ""}
    title = {"text": "dimension of the head", "font": {"color": theme.kind_colour(kind, dark)}}
    fig.update_xaxes(**quiet, title=title, tickfont={"color": colours.quiet, "size": 12}, nticks=17)
    fig.update_yaxes(**quiet, tickvals=[0, 1, 2], ticktext=["q", "k", typeset], range=[2.5, -0.5])
    fig.update_layout(
        height=3 * _ROW_HEIGHT + 52,
        margin={"l": 44, "r": 8, "t": 6, "b": 46, "autoexpand": False},
        meta={"smallest_width": 60 + 34 * min(len(q), _NUMBERED) if len(q) <= _NUMBERED else 360},
    )
    return fig


def shares_figure(names: Sequence[str], shares: Sequence[float], *, kind: KindName, dark: bool = False) -> go.Figure:
    """What the block's output is made of, the first term being the cell: bars around 0 whose lengths sum to 1."""
    if len(names) != len(shares):
        raise ValueError(f"{len(shares)} shares need as many names, not {len(names)}")
    colours = theme.palette(dark)
    fig = theme.apply(go.Figure(), dark)
    fig.add_bar(
        x=list(shares),
        y=list(range(len(names))),
        orientation="h",
        width=0.55,
        marker_color=[theme.kind_colour(kind, dark), *[colours.quiet] * (len(names) - 1)],
        text=[_typeset(f"{share:+.3f}") for share in shares],
        textposition="outside",
        cliponaxis=False,
        textfont={"color": colours.text, "size": 13},
        hovertemplate="%{customdata}<extra></extra>",
        customdata=[f"{name}: {share:.9g}" for name, share in zip(names, shares, strict=True)],
    )
    low, high = min(0.0, *shares), max(0.0, *shares)
    room = 0.18 * ((high - low) or 1.0)
    fig.update_xaxes(
        showline=False,
        ticks="",
        showticklabels=False,
        range=[low - room * (low < 0), high + room],
        zeroline=True,
        zerolinecolor=colours.line,
        title={"text": "share of the block's output; all of them sum to 1", "font": {"color": colours.quiet}},
    )
    fig.update_yaxes(
        showline=False,
        ticks="",
        tickvals=list(range(len(names))),
        ticktext=list(names),
        range=[len(names) - 0.5, -0.5],
        automargin=True,
    )
    fig.update_layout(
        height=round(len(names) * 28 + 44), margin={"l": 8, "r": 8, "t": 4, "b": 36}, meta={"smallest_width": 380}
    )
    return fig


def _typeset(number: str) -> str:
    return number.replace("-", "−")
