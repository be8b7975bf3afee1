"""Two buttons that save a drawing in a frame of the page as PNG or SVG, as the browser shows it at that moment."""

from streamlit.components.v2 import component

from pages.shared.components.frontend import text_of

_component = component(
    "attention_lab_save_drawing",
    html="<div class='root'></div>\n",
    css=text_of("save_chart.css"),
    js=text_of("save_drawing.js"),
)


def save_drawing(frame: str, *, name: str, key: str) -> None:
    """Draws the buttons for the SVG in the frame that stands in the container with the key `frame`."""
    _component(key=key, data={"frame": frame, "name": name})
