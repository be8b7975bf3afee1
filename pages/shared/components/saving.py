"""Buttons that save a chart or a drawing of the page as PNG or SVG, as the browser draws it."""

from pages.shared.components.frontend import declared

_chart = declared("save_chart", css=("save_chart.css",), js=("save_chart.js",))
_drawing = declared("save_drawing", css=("save_chart.css",), js=("save_drawing.js",))


def save_chart(chart: str, *, name: str, key: str) -> None:
    """Draws the buttons for the Plotly chart with the key `chart`; files are called `name`.

    The chart's mode bar must hold `toImage`: its own button is pressed, with the format asked for.
    """
    _chart(key=key, data={"chart": chart, "name": name})


def save_drawing(frame: str, *, name: str, key: str) -> None:
    """Draws the buttons for the SVG, as it is at that moment, in the frame in the container with the key `frame`."""
    _drawing(key=key, data={"frame": frame, "name": name})
