"""Readers of a figure's menu: the files and numbers of its export, and the verdicts of its badge."""

import base64
import json

import numpy as np
from page_models import CLASSIC, PRONOUNS, checked, open_page, texts
from streamlit.testing.v1 import AppTest

from pages.shared.exhibit import EXPLAIN, EXPORT, PROVE

ENTRIES = {"proof": PROVE, "export": EXPORT, "explained": EXPLAIN}
"""The entries of a figure's menu, by the ends of their names in tests."""


def with_menus(at: AppTest, *entries: str) -> AppTest:
    """The page with the menus of figures open at these entries, each named by its figure: "head-matrix-proof"."""
    for entry in entries:
        figure, _, name = entry.rpartition("-")
        at.session_state[f"{figure}-menu"] = True
        at.session_state[f"{figure}-about"] = ENTRIES[name]
    return checked(at.run())


def opened(page: str, entry: str, **parameters) -> AppTest:
    """The page with the menu of a figure open at this entry."""
    return with_menus(open_page(page, **{"model": PRONOUNS, "text": CLASSIC, **parameters}), entry)


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
    return with_menus(open_page(page, **parameters), *badges)


def verdicts(at):
    """Counts the checks that hold and those that fail, over all open badges."""
    said = texts(at)
    return said.count(":green[:material/check:]"), said.count(":red[:material/close:]")
