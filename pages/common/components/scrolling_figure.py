"""A figure with a smallest width: in a narrower window it scrolls inside itself and its labels stay apart."""

from typing import Any

import plotly.graph_objects as go
import streamlit as st


def scrolling_figure(figure: go.Figure, *, key: str, **options: Any) -> Any:
    """Draws a figure never narrower than its `layout.meta["smallest_width"]`; returns what `st.plotly_chart` does.

    Where `layout.meta["squares"]` counts square cells, with the margins in pixels around them, the room that they leave
    free below them in a narrow window is cut off.
    """
    frame = f"{key}-scroll"
    layout: Any = figure.layout
    meta = layout.meta or {}
    smallest, lower = meta.get("smallest_width", 0), ""
    if squares := meta.get("squares"):
        inside = f"(max(100cqw, {smallest}px) - {squares['beside']}px)"
        height = f"calc({inside} * {squares['rows'] / max(squares['columns'], 1):.4f} + {squares['above']}px)"
        lower = f"max-height: {height}; overflow: hidden"
    with st.container(key=frame):
        st.html(
            f"<style>.st-key-{frame} {{overflow-x: auto; container-type: inline-size}} "
            f".st-key-{frame} > * {{min-width: {smallest}px; {lower}}}</style>"
        )
        return st.plotly_chart(figure, key=key, theme=None, config={"displayModeBar": False}, **options)
