"""A figure with a smallest width: in a narrower window it scrolls inside itself and its labels stay apart."""

from typing import Any

import plotly.graph_objects as go
import streamlit as st

from pages.shared.texts.figure_words import in_language
from transformer.figures import theme

_HEIGHT = 450
"""Plotly's own height of a figure, in pixels."""


def scrolling_figure(figure: go.Figure, *, key: str, **options: Any) -> Any:
    """Draws a figure never narrower than its `layout.meta["smallest_width"]`; returns what `st.plotly_chart` does.

    Where `layout.meta["squares"]` counts square cells, with the margins in pixels around them, the room that they leave
    free below them in a narrow window is cut off. In a column narrower than `layout.meta["small_labels_below"]`, the
    labels of its axes are small. A figure with `layout.meta["own_width"]` is as wide as it says, in a wide window too.
    """
    frame, figure = f"{key}-scroll", in_language(figure)
    layout: Any = figure.layout
    meta = layout.meta or {}
    smallest, height, lower = meta.get("smallest_width", 0), f"{layout.height or _HEIGHT}px", ""
    if meta.get("own_width"):
        options["width"] = "content"
    if squares := meta.get("squares"):
        inside = f"(max(100cqw, {smallest}px) - {squares['beside']}px)"
        room = f"calc({inside} * {squares['rows'] / max(squares['columns'], 1):.4f} + {squares['above']}px)"
        height, lower = f"min({height}, {room})", f"max-height: {room}; overflow: hidden"
    with st.container(key=frame):
        st.html(_style(f".st-key-{frame}", smallest, height, lower, meta.get("small_labels_below", 0)))
        return st.plotly_chart(figure, key=key, theme=None, config={"displayModeBar": False}, **options)


def _style(frame: str, smallest: int, height: str, lower: str, small_labels_below: int) -> str:
    """Returns the rules of a frame: a figure that goes on fades out at the right, and its scroll bar is always drawn.

    The figure's room is kept while it loads, so that nothing below it moves.

    A frame that does not scroll has no timeline, so that nothing fades there.
    """
    fade = "mask-image: linear-gradient(to left, transparent, black 48px)"
    return (
        f"<style>@keyframes figure-goes-on {{from, 97% {{{fade}}} 98%, to {{mask-image: none}}}} "
        f"{frame} {{animation: figure-goes-on linear; animation-timeline: scroll(self inline)}} "
        f"{frame} {{overflow-x: auto; container-type: inline-size}} "
        f"{frame} > * {{min-width: {smallest}px; {lower}}} "
        f"{frame} > :last-child {{min-height: {height}}} "
        f"@container (max-width: {small_labels_below}px) "
        f"{{{frame} :is(.xtick, .ytick, .x2tick, .x3tick) text {{font-size: 9px !important}}}} "
        f"{frame}::-webkit-scrollbar {{height: 10px}} "
        f"{frame}::-webkit-scrollbar-track {{background: {theme.SCROLL_TRACK}; border-radius: 5px}} "
        f"{frame}::-webkit-scrollbar-thumb {{background: {theme.SCROLL_THUMB}; border-radius: 5px}}</style>"
    )
