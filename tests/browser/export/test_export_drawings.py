"""Browser test of bertviz exports: drawings are saved as shown on the page, and open from disk without a network."""

import io
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from app_server import Server
from controls import open_menu
from page_models import CLASSIC, PRONOUNS
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect

from pages.shared.exhibit import EXPORT
from transformer.analysis.attention.vectors import record_vectors
from transformer.figures import theme
from transformer.figures.labels import readable
from transformer.lab import load

pytestmark = [pytest.mark.browser, pytest.mark.slow]

VIEWS = ["bertviz", "bertviz-model", "bertviz-neuron"]
SHARP = 3
"""Pixels of the PNG to one of the drawing."""


def take(page: Page, names: str, folder: Path) -> dict[str, Path]:
    """The files that the open popover gives, by their formats."""
    saved = {}
    for name in names.split():
        with page.expect_download() as download:
            page.get_by_role("button", name=name, exact=True).click()
        saved[name] = folder / download.value.suggested_filename
        download.value.save_as(saved[name])
    return saved


def drawing(page: Page, server: Server, view: str) -> Locator:
    """The SVG of the drawing on the page."""
    page.goto(server.link("attention", model=PRONOUNS, text=CLASSIC, picture=view))
    svg = page.frame_locator(".st-key-bertviz-frame iframe").locator("#vis svg")
    expect(svg.locator("line").first).to_be_attached()
    if view == "bertviz-model":
        svg.get_by_role("button", name="layer 1, head 2").press("Enter")
    return svg


def open_popover(page: Page) -> None:
    """Opens what stands under the drawing."""
    open_menu(page, "bertviz", EXPORT)


def pixels(path: Path) -> np.ndarray:
    """Red, green and blue [row column 3]."""
    return np.asarray(Image.open(path).convert("RGB")).astype(int)


def coloured(image: np.ndarray) -> int:
    """Counts the pixels that are clearly not grey."""
    return int((image.max(axis=-1) - image.min(axis=-1) > 40).sum())


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("view", VIEWS)
def test_a_drawing_is_saved_as_it_is_drawn(page: Page, server: Server, tmp_path: Path, view: str, dark: bool):
    page.emulate_media(color_scheme="dark" if dark else "light")
    drawing(page, server, view)
    open_popover(page)
    saved = take(page, "PNG SVG", tmp_path)
    stem = f"{PRONOUNS}-cross-{'bertviz-head' if view == 'bertviz' else view}"
    assert (saved["SVG"].name, saved["PNG"].name) == (f"{stem}.svg", f"{stem}.png")

    text = saved["SVG"].read_text(encoding="utf-8")
    svg = ElementTree.fromstring(text)
    tokens = [readable(token) for token in load_seen(server).source_tokens]
    words = [node.text for node in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert all(token in words for token in tokens), words
    if view != "bertviz-model":
        assert words[-1] == ("Layer 1" if view == "bertviz" else "Layer 1 · Head 0")
    assert not re.search(r"href|url\(|@import|<script|<image", text)
    assert set(re.findall(r"https?://[^\"'\s]+", text)) == {"http://www.w3.org/2000/svg"}
    inks = {node.get("style", "") for node in svg.iter("{http://www.w3.org/2000/svg}text")}
    assert all("font-family" in ink for ink in inks if ink) and len(inks) > 1

    width, height = int(svg.get("width", 0)), int(svg.get("height", 0))
    image = pixels(saved["PNG"])
    assert image.shape == (height * SHARP, width * SHARP, 3) and min(width, height) > 200
    paper = theme.palette(dark).background
    ground = [int(paper[at : at + 2], 16) for at in (1, 3, 5)]
    assert image[1, 1].tolist() == image[-2, -2].tolist() == ground
    empty = (image == ground).all(axis=-1).mean()
    assert 0.2 < empty < 0.98 and coloured(image) > 5_000


def load_seen(server: Server):
    """Loads the decoding that the server shows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENTION_LAB_RUNS", str(server.runs))
        return load(PRONOUNS).inspect(CLASSIC)


def test_a_hidden_head_and_kept_lines_are_saved_as_such(page: Page, server: Server, tmp_path: Path):
    svg = drawing(page, server, "bertviz")
    svg.locator("> g:last-child > rect").nth(1).click()
    svg.locator("#left > g:last-child > g").nth(2).click()
    open_popover(page)
    text = take(page, "SVG", tmp_path)["SVG"].read_text(encoding="utf-8")
    saved = ElementTree.fromstring(text)
    heads = {group.get("head-index"): list(group.iter("{http://www.w3.org/2000/svg}line")) for group in groups(saved)}
    assert heads["0"] and not heads["1"]
    shown = {line.get("left-token-index") for lines in heads.values() for line in lines if line.get("visibility")}
    assert shown == {"2"}


def groups(svg: ElementTree.Element) -> list[ElementTree.Element]:
    found = svg.find(".//*[@id='attention']")
    assert found is not None
    return list(found)


@pytest.mark.parametrize("view", VIEWS)
def test_the_file_opens_from_the_disk_with_no_network(page: Page, browser: Browser, server: Server, tmp_path, view):
    drawing(page, server, view)
    open_popover(page)
    saved = take(page, "HTML NPZ CSV", tmp_path)
    seen = load_seen(server)
    with np.load(io.BytesIO(saved["NPZ"].read_bytes())) as found:
        assert np.array_equal(found["layer 1 head 2"], seen.cross.weights[1, 2])
        if view == "bertviz-neuron":
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("ATTENTION_LAB_RUNS", str(server.runs))
                vectors = record_vectors(load(PRONOUNS).model, seen.source_ids, (), "decoder", "cross")
            assert np.array_equal(found["layer 0 head 3 q"], vectors.q[0, 3])
            assert np.array_equal(found["layer 1 head 1 k"], vectors.k[1, 1])
    assert saved["CSV"].read_text(encoding="utf-8").startswith("layer 0 head 0,0 ")

    context = browser.new_context(offline=True)
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    alone = context.new_page()
    alone.goto(saved["HTML"].as_uri())
    expect(alone.locator("#vis svg line").first).to_be_attached()
    if view != "bertviz-model":
        expect(alone.get_by_text("animal", exact=True).first).to_be_visible()
    expect(alone.get_by_text(f"{PRONOUNS} · {CLASSIC}")).to_be_visible()
    context.close()
    assert asked == [saved["HTML"].as_uri()]
