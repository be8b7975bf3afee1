"""Two buttons that save a chart of the page as PNG or SVG, drawn by the browser."""

from streamlit.components.v2 import component

from pages.shared.components.frontend import text_of

_component = component(
    "attention_lab_save_chart",
    html="<div class='root'></div>\n",
    css=text_of("save_chart.css"),
    js=text_of("save_chart.js"),
)


def save_chart(chart: str, *, name: str, key: str) -> None:
    """Draws the buttons for the Plotly chart with the key `chart`; files are called `name`.

    The chart's mode bar must hold `toImage`: its own button is pressed, with the format asked for.
    """
    _component(key=key, data={"chart": chart, "name": name})
