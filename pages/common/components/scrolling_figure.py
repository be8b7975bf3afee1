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
        st.html(_style(f".st-key-{frame}", smallest))
        return st.plotly_chart(figure, key=key, theme=None, config={"displayModeBar": False}, **options)


def _style(frame: str, smallest: int) -> str:
    """The rules of a frame: its scroll bar is always drawn, as nothing else says that the figure goes on."""
    return (
        f"<style>{frame} {{overflow-x: auto}} {frame} > * {{min-width: {smallest}px}} "
        f"{frame}::-webkit-scrollbar {{height: 10px}} "
        f"{frame}::-webkit-scrollbar-track {{background: rgba(128, 132, 149, 0.15); border-radius: 5px}} "
        f"{frame}::-webkit-scrollbar-thumb {{background: rgba(128, 132, 149, 0.7); border-radius: 5px}}</style>"
    )
