"""The theme is defined once: Streamlit's copy agrees, and the colours carry what they must for every eye."""

import itertools
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from numpy import ndarray

from transformer.figures import theme
from transformer.model.kinds import AttentionKind, KindName

ROOT = Path(__file__).parents[2]
NAMES = {
    "primaryColor": "accent",
    "backgroundColor": "background",
    "secondaryBackgroundColor": "surface",
    "textColor": "text",
    "borderColor": "line",
    "grayTextColor": "quiet",
    "greenColor": "encoder_self",
    "greenTextColor": "encoder_self",
    "violetColor": "decoder_self",
    "violetTextColor": "decoder_self",
    "orangeColor": "cross",
    "orangeTextColor": "cross",
}
# Machado, Oliveira and Fernandes (2009), complete deficiency, on linear RGB.
EYES = {
    "typical": np.eye(3),
    "protan": np.array([[0.152286, 1.052583, -0.20487], [0.114503, 0.786281, 0.099216], [-0.00388, -0.04812, 1.052]]),
    "deutan": np.array([[0.367322, 0.860646, -0.227968], [0.28009, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]),
    "tritan": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.1476], [0.00473, 0.691367, 0.3039]]),
}
TELLABLE = 0.1
"""A distance in OKLab that large areas and thin lines alike show clearly; 0.02 is just noticeable."""


def linear(colour: str) -> ndarray:
    srgb = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def oklab(colour: str, eye: str = "typical") -> ndarray:
    """Björn Ottosson's OKLab of the colour as this eye sees it."""
    rgb = np.clip(EYES[eye] @ linear(colour), 0, 1)
    to_lms = [[0.412221, 0.536333, 0.051446], [0.211903, 0.6807, 0.107397], [0.088302, 0.281719, 0.629979]]
    to_lab = [[0.210454, 0.793618, -0.004072], [1.977998, -2.428592, 0.450594], [0.025904, 0.782772, -0.808676]]
    return np.array(to_lab) @ np.cbrt(np.array(to_lms) @ rgb)


def contrast(first: str, second: str) -> float:
    """WCAG 2's contrast ratio, 1 to 21."""
    low, high = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (first, second))
    return (high + 0.05) / (low + 0.05)


@pytest.fixture(scope="module")
def streamlit_theme() -> dict[str, Any]:
    return tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"]


@pytest.mark.parametrize("dark", [False, True])
def test_streamlits_theme_repeats_ours(streamlit_theme: dict[str, Any], dark: bool) -> None:
    theirs = streamlit_theme["dark" if dark else "light"]
    ours = {name: getattr(theme.palette(dark), field) for name, field in NAMES.items()}
    assert {name: value for name, value in theirs.items() if name != "sidebar"} == ours
    assert theirs["sidebar"]["backgroundColor"] == theme.palette(dark).surface


def test_no_colour_is_written_anywhere_else() -> None:
    """Components take their colours from Streamlit's variables or from theme.py."""
    written = re.compile(r"#[0-9a-fA-F]{3,8}\b|rgba?\(\s*[\d.]")
    files = [*(ROOT / "pages").rglob("*.css"), *(ROOT / "pages").rglob("*.js"), *(ROOT / "pages").rglob("*.py")]
    assert [path.name for path in files if written.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("dark", [False, True])
def test_text_can_be_read(dark: bool) -> None:
    colours = theme.palette(dark)
    for ground, name in itertools.product(
        (colours.background, colours.surface), ("text", "quiet", "accent", *AttentionKind)
    ):
        ratio = contrast(getattr(colours, name), ground)
        assert ratio >= (7 if name == "text" else 4.2), f"{name} on {ground}: {ratio:.2f}"
        assert ground != colours.background or ratio >= 4.5


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("pair", [*itertools.combinations(AttentionKind, 2)], ids="-".join)
def test_kinds_of_attention_differ_for_every_eye(dark: bool, eye: str, pair: tuple[KindName, KindName]) -> None:
    first, second = (oklab(theme.kind_colour(kind, dark), eye) for kind in pair)
    assert np.linalg.norm(first - second) >= TELLABLE


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("eye", EYES)
def test_weights_rise_in_lightness_evenly_for_every_eye(dark: bool, eye: str) -> None:
    lightness = np.array([oklab(colour, eye)[0] for _, colour in theme.sequential(dark)])
    steps = np.diff(lightness) * (1 if dark else -1)
    assert (steps > 0).all()
    assert steps.max() / steps.min() < 1.1 if eye == "typical" else steps.max() / steps.min() < 2


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("eye", EYES)
def test_differences_of_opposite_sign_can_be_told_apart(dark: bool, eye: str) -> None:
    colours = [colour for _, colour in theme.diverging(dark)]
    for below, above in zip(colours[:4], colours[:-5:-1], strict=True):
        assert np.linalg.norm(oklab(below, eye) - oklab(above, eye)) >= TELLABLE / 2


@pytest.mark.parametrize("dark", [False, True])
def test_a_masked_cell_is_no_colour_of_the_scale(dark: bool) -> None:
    nearest = min(np.linalg.norm(oklab(theme.palette(dark).masked) - oklab(c)) for _, c in theme.sequential(dark))
    assert nearest >= 0.02


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("scale", [theme.sequential, theme.diverging])
def test_numbers_can_be_read_on_every_cell(dark: bool, scale: Any) -> None:
    for position, colour in scale(dark):
        assert contrast(theme.ink_on(scale(dark), position), colour) >= 4.0


def test_a_figure_has_the_themes_frame_and_the_data_it_was_given() -> None:
    fig = theme.figure([go.Bar(x=["a"], y=[1.5])], dark=True)
    assert fig.layout.template.layout.font.color == theme.DARK.text
    assert fig.data[0].y == (1.5,)


def test_the_primary_button_is_legible_on_both_accents():
    rule = re.search(r"stBaseButton-primary.*light-dark\((#\w+), (#\w+)\)", (ROOT / "static" / "frame.css").read_text())
    assert rule is not None
    for ink, dark in zip(rule.groups(), (False, True), strict=True):
        assert contrast(ink, theme.palette(dark).accent) >= 4.5


@pytest.mark.parametrize("name", ["text", "quiet", "accent", "surface", "line"])
def test_the_frames_stylesheet_repeats_the_palettes(name: str):
    rule = re.search(rf"--{name}: light-dark\((#\w+), (#\w+)\)", (ROOT / "static" / "frame.css").read_text())
    assert rule is not None
    assert rule.groups() == (getattr(theme.LIGHT, name), getattr(theme.DARK, name))
