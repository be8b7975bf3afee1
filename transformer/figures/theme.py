"""The look, defined once: what each colour means, the two scales, and the frame of every figure.

`.streamlit/config.toml` repeats these colours because Streamlit reads no Python; tests/figures/test_theme.py keeps them
equal.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from transformer.model.kinds import AttentionKind, KindName

Scale = tuple[tuple[float, str], ...]


@dataclass(frozen=True, kw_only=True)
class Palette:
    """The colours of one theme."""

    background: str
    surface: str
    """The colour of the sidebar and of widgets."""
    text: str
    quiet: str
    """Secondary text: axes, special tokens, notes. Still 4.5 : 1 on the background."""
    faint: str
    """The word-start mark, which should hardly be noticed."""
    line: str
    masked: str
    """A cell that the pass was not allowed to use: no colour of the scale."""
    accent: str
    """Buttons and focus; it has no meaning for attention."""
    encoder_self: str
    decoder_self: str
    cross: str


LIGHT = Palette(
    background="#fdfdfc",
    surface="#f4f4f1",
    text="#1e1f25",
    quiet="#686b73",
    faint="#b9b8b4",
    line="#dddcd7",
    masked="#eae9e4",
    accent="#314c7e",
    encoder_self="#00736a",
    decoder_self="#6737b7",
    cross="#a84e02",
)
DARK = Palette(
    background="#15171c",
    surface="#1e2127",
    text="#e8e7e3",
    quiet="#989ba3",
    faint="#575b64",
    line="#343841",
    masked="#2a2c31",
    accent="#98b8f2",
    encoder_self="#50d7c3",
    decoder_self="#b298f9",
    cross="#fca34d",
)

ENCODER_SELF, DECODER_SELF, CROSS = LIGHT.encoder_self, LIGHT.decoder_self, LIGHT.cross

FONT = '"Source Sans", "Source Sans 3", "Helvetica Neue", Arial, sans-serif'
MONOSPACE = '"Source Code Pro", "SFMono-Regular", Menlo, Consolas, monospace, sans-serif'

# Attention's colours mean attention and stay out of here. Told apart by lightness too.
RUN_COLOURS = ("#314c7e", "#b0306a", "#5d7c15", "#2f86c1", "#7d5a3c", "#1e1f25")
RUN_COLOURS_DARK = ("#98b8f2", "#ff86b3", "#b7d65c", "#4fa9e0", "#caa079", "#e8e7e3")
"""The colours of runs, and of whatever else is compared in one picture."""

# Steps of equal lightness in OKLab; the hue turns, so that neighbours differ for every kind of colour vision.
_PAPER = (
    *("#f3fcff", "#bde9fe", "#8ed3fb", "#6abbf1", "#51a1e3", "#4387cf"),
    *("#3d6eb6", "#385697", "#324174", "#2a2e4f", "#1e1f25"),
)
_GLOW = (
    *("#21212f", "#2b3254", "#314477", "#335a98", "#3171b5", "#308bcc"),
    *("#3ca4de", "#40c4d3", "#83dbc3", "#c6eac3", "#f6f8e1"),
)
_PAPER_DIVERGING = (
    *("#015ba6", "#3f7ab9", "#6b98cb", "#96b7dc", "#c3d5ea", "#f3f3f3"),
    *("#f0cec1", "#e4aa94", "#d68768", "#c5633b", "#af4000"),
)
_GLOW_DIVERGING = (
    *("#71bfff", "#5a9ed6", "#4c7ea8", "#3e607c", "#324251", "#262626"),
    *("#52382d", "#7d4b35", "#a95f3d", "#d67546", "#fe8f5a"),
)

SCROLL_TRACK, SCROLL_THUMB = "rgba(128, 132, 149, 0.15)", "rgba(128, 132, 149, 0.7)"
"""The colours of a figure's own scroll bar, visible on both backgrounds."""
INKS = (LIGHT.text, "#ffffff")
"""The colours of text on light and on dark colours of a scale."""


def palette(dark: bool = False) -> Palette:
    """Returns the colours of the light or the dark theme."""
    return DARK if dark else LIGHT


def kind_colour(kind: KindName, dark: bool = False) -> str:
    """Returns the colour that means this kind of attention."""
    return getattr(palette(dark), AttentionKind(kind))


def run_colour(index: int, dark: bool = False) -> str:
    """Returns the colour of the run at this place in a comparison."""
    colours = RUN_COLOURS_DARK if dark else RUN_COLOURS
    return colours[index % len(colours)]


def sequential(dark: bool = False) -> Scale:
    """Returns the scale of weights, from 0: light on paper, glowing on dark."""
    return _scale(_GLOW if dark else _PAPER)


def diverging(dark: bool = False) -> Scale:
    """Returns the scale of differences and positions, around 0: blue below, vermilion above."""
    return _scale(_GLOW_DIVERGING if dark else _PAPER_DIVERGING)


def distances(dark: bool = False) -> Scale:
    """Returns the scale of distances from 0 to 1: small ones stand out."""
    return tuple((1 - position, colour) for position, colour in reversed(sequential(dark)))


def greys(dark: bool = False) -> Scale:
    """Returns the scale of weights that are computed and not used."""
    colours = palette(dark)
    return _scale((colours.background, colours.line, colours.quiet))


def ink_on(scale: Scale, position: float) -> str:
    """Returns the text colour, nearly black or white, that stands out more at 0 <= position <= 1 of the scale."""
    colour = sample_colorscale([list(stop) for stop in scale], [min(1.0, max(0.0, position))], colortype="tuple")[0]
    luminance = sum(share * float(part) ** 2.2 for share, part in zip((0.2126, 0.7152, 0.0722), colour, strict=True))
    return INKS[0] if luminance > 0.2 else INKS[1]


def figure(traces: Iterable[Any], dark: bool = False, **layout: Any) -> go.Figure:
    """Builds a figure in the app's type and colours. Show it with `st.plotly_chart(fig, theme=None)`.

    It is built in one go: each later change of a figure costs milliseconds.
    """
    return go.Figure(data=list(traces), layout={"template": _template(dark), **layout})


def on_paper(fig: go.Figure, dark: bool = False) -> go.Figure:
    """Puts the theme's background behind the figure, for a file; on a page the page's own shows through."""
    return fig.update_layout(paper_bgcolor=palette(dark).background)


@cache
def _template(dark: bool) -> go.layout.Template:
    """Returns the defaults of every figure: bare axes, one legend above the drawing, notes in quiet text."""
    colours = palette(dark)
    axis = {
        "showline": False,
        "ticks": "",
        "showgrid": False,
        "gridcolor": colours.line,
        "zeroline": False,
        "linecolor": colours.line,
        "tickcolor": colours.line,
        "tickfont": {"color": colours.text},
        "title": {"font": {"color": colours.quiet, "size": 13}},
    }
    return go.layout.Template(
        layout={
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"family": FONT, "size": 14, "color": colours.text},
            "hoverlabel": {
                "bgcolor": colours.background,
                "bordercolor": colours.line,
                "font": {"family": FONT, "size": 13, "color": colours.text},
            },
            "xaxis": axis,
            "yaxis": axis,
            "legend": {
                **{"orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom"},
                "font": {"size": 13},
            },
            "annotationdefaults": {"showarrow": False, "font": {"size": 12, "color": colours.quiet}},
        }
    )


def _scale(colours: tuple[str, ...]) -> Scale:
    return tuple((index / (len(colours) - 1), colour) for index, colour in enumerate(colours))
