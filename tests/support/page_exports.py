"""Readers of what stands under a figure: the files and numbers of its export, and the verdicts of its badge."""

import base64
import json

import numpy as np
from page_models import CLASSIC, PRONOUNS, checked, open_page, texts
from streamlit.testing.v1 import AppTest


def opened(page: str, key: str, **parameters) -> AppTest:
    """The page with this popover open."""
    at = open_page(page, **{"model": PRONOUNS, "text": CLASSIC, **parameters})
    at.session_state[key] = True
    at.run()
    assert not at.exception, [e.value for e in at.exception]
    return at


def figures(at):
    return [json.loads(chart.proto.spec) for chart in at.get("plotly_chart")]


def drawn(figure) -> list:
    """The numbers of a figure's heatmaps, masked cells as NaN."""
    found = []
    for trace in figure["data"]:
        if trace["type"] == "heatmap" and trace.get("hoverinfo") != "skip":
            found.append(array(trace["z"]))
    return found


def array(z) -> np.ndarray:
    """A figure's numbers."""
    if isinstance(z, dict):
        flat = np.frombuffer(base64.b64decode(z["bdata"]), dtype=z["dtype"])
        return flat.reshape([int(n) for n in z["shape"].split(",")]) if "shape" in z else flat
    return np.array([[np.nan if v is None else v for v in row] for row in z], dtype=float)


def run_lines(at) -> dict:
    """Runs the page's lines of Python and returns the names they define."""
    (code,) = (sublayer.value for sublayer in at.code if "from transformer import load" in sublayer.value)
    names: dict = {}
    exec(compile(code, "lines", "exec"), names)
    return names


def same_figure(at) -> dict:
    """Runs the page's lines, asserts that their heatmaps hold the page's numbers, and returns the names they define."""
    (shown,) = (f for f in figures(at) if f["layout"].get("paper_bgcolor", "").startswith("#"))
    made = run_lines(at)
    own = drawn(json.loads(made["figure"].to_json()))
    for mine, theirs in zip(own, drawn(shown), strict=True):
        assert np.array_equal(mine.astype(np.float32), theirs.astype(np.float32), equal_nan=True)
    return made


def proved(page, *badges, **parameters):
    """Opens a page with these badges open."""
    at = open_page(page, **parameters)
    for badge in badges:
        at.session_state[badge] = True
    return checked(at.run())


def verdicts(at):
    """Counts the checks that hold and those that fail, over all open badges."""
    said = texts(at)
    return said.count(":green[:material/check:]"), said.count(":red[:material/close:]")
