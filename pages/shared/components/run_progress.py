"""A run at work: its curves, its state in numbers, and the translations of its pinned sentences.

They are drawn anew in place several times a second, which Plotly (remounted each time) is too slow for.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pages.shared.components.frontend import Live, declared, drawn, reserve, run_colours
from pages.shared.texts.figure_words import FIGURE_WORDS
from transformer.figures.training.curves import Curve, Panel, thinned

_curve = declared("run_curve", css=("run_curve.css",), js=("live.js", "run_curve.js"))
_readings = declared(
    "run_readings",
    html="""<div class='root'>
<div class='line' aria-live='off'><span class='state'></span><span class='rest'></span></div>
<div class='bar' role='progressbar' aria-label='Progress' aria-valuemin='0' aria-valuemax='100'><div></div></div>
<dl></dl></div>
""",
    css=("run_readings.css",),
    js=("live.js", "run_readings.js"),
    reports=("over",),
)
_AROUND, _BELOW = 46, 34
"""Pixels that run_curve.js needs around each panel, with a line of names, and for the steps below the last one."""
_WITH_READINGS, _STATE_ALONE = 9.8125, 3.1875
"""The height of a run in numbers, in rem, where its readings take two lines, and without readings."""
_sentences = declared("run_sentences", css=("run_sentences.css",), js=("live.js", "run_sentences.js"))


def run_curve(panels: Sequence[Panel], *, x_title: str, x_least: float, key: str) -> None:
    """Draws the panels below each other over one x axis that reaches at least to `x_least`."""
    draw_curve(described_curve(panels, x_title=x_title, x_least=x_least), key=key)


def draw_curve(described: Mapping[str, Any], *, live: Live | None = None, key: str) -> None:
    """Draws what `described_curve` returns, and then what the stream of a run at work sends."""
    reserve(key, (_BELOW + sum(_AROUND + panel["height"] for panel in described["panels"])) / 16)
    _curve(key=key, data=drawn(described, live))


def described_curve(panels: Sequence[Panel], *, x_title: str, x_least: float) -> dict[str, Any]:
    """Returns the panels as the script draws them."""
    described = [_described(panel) for panel in panels]
    return {"x_title": FIGURE_WORDS(x_title), "x_least": x_least, "panels": described}


def draw_readings(described: Mapping[str, Any], *, live: Live | None = None, key: str) -> None:
    """Draws what `described_readings` returns, and then what the stream of a run at work sends.

    At the run's end, or when it pauses, its state stands in `st.session_state[key]["over"]`, and the page runs again.
    """
    reserve(key, _WITH_READINGS if described["readings"] else _STATE_ALONE)
    _readings(key=key, data=drawn(described, live))


def described_readings(
    *, state: str, tone: str, rest: str, share: float, readings: Sequence[tuple[str, str, str]]
) -> dict[str, Any]:
    """Returns the readings as the script draws them."""
    listed = [list(reading) for reading in readings]
    return {"state": state, "tone": tone, "rest": rest, "share": share, "readings": listed}


def draw_sentences(described: Mapping[str, Any], *, live: Live | None = None, key: str) -> None:
    """Draws what `described_sentences` returns, and then what the stream of a run at work sends."""
    _sentences(key=key, data=drawn(described, live))


def described_sentences(sources: Sequence[str], samples: Mapping[str, Sequence[tuple[int, str]]]) -> dict[str, Any]:
    """Returns each source with its translations, the oldest first; the newest is drawn large."""
    sentences = [
        {
            "source": source,
            "samples": [{"step": step, "translation": text} for step, text in samples.get(source, ())],
        }
        for source in sources
    ]
    return {"sentences": sentences}


def drawn_curve(curve: Curve, factor: float = 1, most: int = 400) -> Curve:
    """Returns the points that the browser gets of a curve: the finite ones of the thinned line, with four digits."""
    shown = thinned(curve, most)
    kept = np.isfinite(shown.y)  # JSON has no word for anything else
    return Curve(curve.name, shown.x[kept], np.array([float(f"{value * factor:.4g}") for value in shown.y[kept]]))


def _described(panel: Panel) -> dict[str, Any]:
    fixed = (0.0, 100.0) if panel.percent else panel.range
    thin = [_series(curve, "thin", None, panel.percent) for curve in panel.thin]
    main = [
        _series(curve, "main", run_colours(index) if panel.overlay else None, panel.percent)
        for index, curve in enumerate(panel.main)
    ]
    return {
        "title": FIGURE_WORDS(panel.title),
        "unit": " %" if panel.percent else "",
        "log": panel.log and fixed is None,
        "range": None if fixed is None else list(fixed),
        "height": panel.height,
        "series": thin + main,
    }


def _series(curve: Curve, style: str, colour: dict[str, str] | None, percent: bool) -> dict[str, Any]:
    shown, name = drawn_curve(curve, 100 if percent else 1), FIGURE_WORDS(curve.name)
    return {"name": name, "style": style, "colour": colour, "x": shown.x.tolist(), "y": shown.y.tolist()}
