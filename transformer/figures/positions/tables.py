"""Draws position tables: values, single dimensions, similarity, shifts, and the parts of scores."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.labels import axis_labels, hover_label
from transformer.figures.training.curves import RUN_COLOURS, RUN_COLOURS_DARK

Table = Float[ndarray, "_ _"]
Matrix = Float[ndarray, "_ _"]

_GAP = 0.09
"""Space between panels, as a share of the figure's width; it holds the second panel's axis."""
_HEIGHT = 420
LARGE = 40_000
"""Panels with at least so many cells are drawn as one picture."""


def tables_figure(
    tables: Sequence[Table], titles: Sequence[str], *, untrained_from: Sequence[int | None] = (), dark: bool = False
) -> go.Figure:
    """Draws tables side by side, position down and dimension across, on one scale around 0.

    `untrained_from` draws a line above the first row of a table that training never reached.
    """
    fig = _panels(
        tables,
        titles,
        hover="position %{y}, dimension %{x}",
        axes=("dimension", "position"),
        dark=dark,
    )
    for panel, row in enumerate(untrained_from):
        if row is not None and row < len(tables[panel]):
            reference = "" if panel == 0 else str(panel + 1)
            fig.add_shape(
                type="line", x0=-0.5, x1=tables[panel].shape[1] - 0.5, y0=row - 0.5, y1=row - 0.5,
                xref=f"x{reference}", yref=f"y{reference}",
                line={"color": theme.palette(dark).text, "width": 1, "dash": "dot"},
            )  # fmt: skip
    return fig


def matrices_figure(
    matrices: Sequence[Matrix], titles: Sequence[str], *, axes: tuple[str, str] = ("position", "position"),
    dark: bool = False,
) -> go.Figure:  # fmt: skip
    """Draws square matrices side by side, rows from the top, on one scale around 0; `axes` names columns and rows."""
    across, down = axes
    return _panels(
        matrices,
        titles,
        hover=f"{down} %{{y}}, {across} %{{x}}",
        axes=axes,
        dark=dark,
    )


def dimensions_figure(curves: Sequence[Float[ndarray, "_"]], names: Sequence[str], *, dark: bool = False) -> go.Figure:
    """Draws one line for each dimension, over positions."""
    return _lines([np.arange(len(curve)) for curve in curves], curves, names, ("position", "value"), dark=dark)


def offsets_figure(
    means: Sequence[Float[ndarray, "_"]],
    lows: Sequence[Float[ndarray, "_"]],
    highs: Sequence[Float[ndarray, "_"]],
    names: Sequence[str],
    *,
    quantity: str,
    dark: bool = False,
) -> go.Figure:
    """Draws each table's mean similarity at each offset, with a band from the lowest to the highest pair."""
    fig = _lines(
        [np.arange(len(mean)) for mean in means], means, names, ("offset between positions", quantity), dark=dark
    )
    for index, (low, high) in enumerate(zip(lows, highs, strict=True)):
        x = np.arange(len(low))
        fig.add_scatter(
            x=np.concatenate((x, x[::-1])),
            y=np.concatenate((high, low[::-1])),
            fill="toself",
            fillcolor=_colour(index, dark),
            opacity=0.15,
            mode="none",
            name=names[index],
            showlegend=False,
            hoverinfo="skip",
        )
    return fig


def errors_figure(
    positions: Sequence[Int[ndarray, "_"]],
    errors: Sequence[Float[ndarray, "_"]],
    names: Sequence[str],
    *,
    dark: bool = False,
) -> go.Figure:
    """Draws the largest error of a shifted row at each given position, on a log axis; errors of 0 are left out."""
    shown = [np.where(error > 0, error, np.nan) for error in errors]
    titles = ("position pos", "largest error of a dimension")
    fig = _lines(positions, shown, names, titles, form=".2e", dark=dark)
    fig.update_traces(mode="lines+markers", marker_size=5)
    return fig.update_yaxes(type="log", exponentformat="power", dtick=2)


def parts_figure(
    parts: Sequence[Float[ndarray, "query key"]],
    titles: Sequence[str],
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    dark: bool = False,
) -> go.Figure:
    """Draws the parts of one head's scores side by side on one scale around 0: queries are rows, keys are columns."""
    texts = [[f"query <b>{hover_label(q)}</b><br>key <b>{hover_label(k)}</b>" for k in keys] for q in queries]
    fig = _panels(
        parts,
        titles,
        hover="%{customdata}",
        axes=("key", "query"),
        dark=dark,
        gap=0.02,
    )
    fig.update_traces(customdata=texts)
    quiet, faint = theme.palette(dark).quiet, theme.palette(dark).faint
    columns, rows = (axis_labels(tokens, quiet=quiet, faint=faint) for tokens in (keys, queries))
    face = {"family": theme.MONOSPACE, "size": 11}
    fig.update_xaxes(tickvals=np.arange(len(keys)), ticktext=columns, tickangle=-90, tickfont=face, constrain="domain")
    fig.update_yaxes(tickvals=np.arange(len(queries)), ticktext=rows, tickfont=face, title_text="")
    for panel in range(1, len(parts)):
        fig.layout[f"yaxis{panel + 1}"].showticklabels = False
    fig.update_xaxes(automargin=True, title_standoff=8)
    fig.update_yaxes(automargin=True)
    fig.update_layout(yaxis_title_text="query", yaxis_title_standoff=8)
    return fig.update_layout(meta={"smallest_width": 170 * len(parts) + 80})


def _panels(
    panels: Sequence[Matrix],
    titles: Sequence[str],
    *,
    hover: str,
    axes: tuple[str, str],
    dark: bool,
    gap: float = _GAP,
) -> go.Figure:
    reach = max((float(np.nan_to_num(np.abs(panel)).max(initial=0.0)) for panel in panels), default=0.0) or 1.0
    fig = go.Figure()
    width = (1 - gap * (len(panels) - 1)) / len(panels)
    for index, (panel, title) in enumerate(zip(panels, titles, strict=True)):
        reference = "" if index == 0 else str(index + 1)
        left = index * (width + gap)
        fig.add_heatmap(
            z=panel.astype(np.float32), name=title, coloraxis="coloraxis",
            hovertemplate=f"{hover}<br>%{{z:.7g}}<extra></extra>",
            zsmooth="fast" if panel.size >= LARGE else False,  # cells smaller than pixels, drawn as one picture
            xaxis=f"x{reference}", yaxis=f"y{reference}",
        )  # fmt: skip
        fig.update_layout(
            {
                f"xaxis{reference}": {
                    "domain": [left, left + width],
                    "anchor": f"y{reference}",
                    "title": {"text": axes[0]},
                },
                f"yaxis{reference}": {"anchor": f"x{reference}", "autorange": "reversed", "title": {"text": axes[1]}},
            }
        )
        fig.add_annotation(
            text=hover_label(title), x=left, y=1, xref="paper", yref="paper", xanchor="left", yanchor="bottom",
            yshift=6, showarrow=False, font={"color": theme.palette(dark).quiet, "size": 13},
        )  # fmt: skip
    theme.apply(fig, dark)
    bar: dict[str, object] = {
        "thickness": 10, "outlinewidth": 0, "tickfont": {"color": theme.palette(dark).text}, "len": 0.8
    }  # fmt: skip
    scale = [list(stop) for stop in theme.diverging(dark)]
    return fig.update_layout(
        coloraxis={"colorscale": scale, "cmin": -reach, "cmax": reach, "colorbar": bar},
        height=_HEIGHT,
        margin={"l": 60, "r": 10, "t": 34, "b": 50},
        meta={"smallest_width": 300 * len(panels)},
    )


def _lines(
    xs: Sequence[ndarray], ys: Sequence[ndarray], names: Sequence[str], titles: tuple[str, str], *, dark: bool,
    form: str = ".4g",
) -> go.Figure:  # fmt: skip
    fig = theme.apply(go.Figure(), dark)
    for index, (x, y, name) in enumerate(zip(xs, ys, names, strict=True)):
        fig.add_scatter(
            x=x, y=y, name=hover_label(name), mode="lines", line={"color": _colour(index, dark), "width": 2},
            hovertemplate=f"%{{y:{form}}}",
        )  # fmt: skip
    fig.update_xaxes(title_text=titles[0], showline=True, automargin=True)
    fig.update_yaxes(title_text=titles[1], showgrid=True, gridcolor=theme.palette(dark).line, automargin=True)
    return fig.update_layout(
        height=340,
        hovermode="x unified",
        showlegend=True,
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        legend={"orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom"},
    )


def _colour(index: int, dark: bool) -> str:
    colours = RUN_COLOURS_DARK if dark else RUN_COLOURS
    return colours[index % len(colours)]
