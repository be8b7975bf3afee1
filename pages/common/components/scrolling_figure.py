"""A figure with a smallest width: in a narrower window it scrolls inside itself and its labels stay apart."""

from typing import Any

import plotly.graph_objects as go
import streamlit as st


def scrolling_figure(figure: go.Figure, *, key: str, **options: Any) -> Any:
    """Draws a figure never narrower than its `layout.meta["smallest_width"]`; returns what `st.plotly_chart` does."""
    frame = f"{key}-scroll"
    layout: Any = figure.layout
    smallest = (layout.meta or {}).get("smallest_width", 0)
    with st.container(key=frame):
        st.html(f"<style>.st-key-{frame} {{overflow-x: auto}} .st-key-{frame} > * {{min-width: {smallest}px}}</style>")
        return st.plotly_chart(figure, key=key, theme=None, config={"displayModeBar": False}, **options)
