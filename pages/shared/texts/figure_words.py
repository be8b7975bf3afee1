"""The words in figures, in the server's language: in titles, names and hover boxes. Tokens and numbers stay."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from pages.shared.texts.phrases import Phrases, speaks_english

FIGURE_WORDS = Phrases("library.figures")
_NO_NAME = "<extra></extra>"
"""The end of a template of plotly's that says a point's text alone."""


def in_language(figure: go.Figure) -> go.Figure:
    """Returns the figure with its words in the server's language; itself where that is English."""
    if speaks_english():
        return figure
    traces = [trace.to_plotly_json() for trace in figure.data]
    layout: Any = figure.layout
    return go.Figure([trace | _of_trace(trace) for trace in traces], _of_layout(layout.to_plotly_json()))


def lines_in_language(text: str) -> str:
    """Returns a text of a figure, line by line, in the server's language."""
    end = _NO_NAME if text.endswith(_NO_NAME) else ""
    return "<br>".join(map(FIGURE_WORDS, text.removesuffix(end).split("<br>"))) + end


def _of_trace(trace: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what a trace says: its name, its hover boxes, the title of its colours."""
    said = {name: _each(trace[name]) for name in ("name", "hovertemplate", "customdata") if trace.get(name) is not None}
    return said | ({"colorbar": _titled(trace["colorbar"])} if "colorbar" in trace else {})


def _of_layout(layout: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a layout with its titles, its notes and the names on its axes in the language."""
    said = _titled(layout)
    for name, part in said.items():
        if re.fullmatch(r"[xy]axis\d*", name):
            said[name] = _named(_titled(part))
        elif name == "legend":
            said[name] = _titled(part)
        elif name.startswith("coloraxis") and "colorbar" in part:
            said[name] = {**part, "colorbar": _titled(part["colorbar"])}
        elif name == "annotations":
            said[name] = [{**note, "text": lines_in_language(note.get("text", ""))} for note in part]
    return said


def _titled(part: Mapping[str, Any]) -> dict[str, Any]:
    title = part.get("title")
    if not title or not title.get("text"):
        return dict(part)
    return {**part, "title": {**title, "text": lines_in_language(title["text"])}}


def _named(axis: dict[str, Any]) -> dict[str, Any]:
    """Returns an axis whose labels are in the language if each of them is such a word; else they are tokens."""
    labels = axis.get("ticktext")
    said = [] if labels is None else [FIGURE_WORDS.find(label) for label in labels]
    return {**axis, "ticktext": said} if said and None not in said else axis


def _each(texts: Any) -> Any:
    """Returns a text, or an array of texts and numbers, in the language."""
    if isinstance(texts, str):
        return lines_in_language(texts)
    if isinstance(texts, np.ndarray):
        return np.array(_each(texts.tolist()), dtype=object) if texts.dtype.kind in "OU" else texts
    return [_each(text) for text in texts] if isinstance(texts, Sequence) else texts
