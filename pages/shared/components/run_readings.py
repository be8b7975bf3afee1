"""A run in numbers: its state, how far it is, and a line of readings."""

from collections.abc import Sequence

from streamlit.components.v2 import component

from pages.shared.components.frontend import text_of

_component = component(
    "attention_lab_run_readings",
    html="""<div class='root'>
<div class='line' aria-live='off'><span class='state'></span><span class='rest'></span></div>
<div class='bar' role='progressbar' aria-label='Progress' aria-valuemin='0' aria-valuemax='100'><div></div></div>
<dl></dl></div>
""",
    css=text_of("run_readings.css"),
    js=text_of("run_readings.js"),
)


def run_readings(
    *, state: str, tone: str, rest: str, share: float, readings: Sequence[tuple[str, str, str]], key: str
) -> None:
    """Draws the state in words, the share done (0..1) as a bar, and each reading's name, value and unit."""
    _component(
        key=key,
        data={"state": state, "tone": tone, "rest": rest, "share": share, "readings": [list(r) for r in readings]},
    )
