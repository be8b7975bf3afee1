"""Browser test: tokens of markup, emoji, right-to-left text and control characters stay text in every picture."""

import shutil
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
from app_server import Server
from controls import open_menu, wait_for_rest
from playwright.sync_api import Page, expect
from random_models import randomise

from pages.shared.exhibit import EXPORT
from transformer.checkpoints.settings import Settings
from transformer.checkpoints.store import save_checkpoint
from transformer.config import CorpusConfig, ModelConfig, TrainConfig
from transformer.model.transformer import Transformer
from transformer.text.tokenizer import train_tokenizer
from transformer.training.state import weights_of

pytestmark = pytest.mark.browser
slow = partial(pytest.param, marks=pytest.mark.slow)

NAME = "untrained-markup"
HOSTILE = "</script><script>window.hacked=1</script> <img src=x onerror=window.hacked=1> 👩‍👧 \u202eevil\u202c a\x07b"
COPIED = f"copy:encoder.0.ffn.output:0>1:{HOSTILE}"
DRAWN = {
    "attention": ".st-key-head canvas",
    "lines": ".st-key-head-lines path",
    "two-at-once": ".st-key-two-left .heatmaplayer image",
    "masks": ".st-key-sentence-masks .heatmaplayer image",
    "walkthrough": "[data-step]",
    "heads": ".st-key-leave-one-out .heatmaplayer image",
}


@pytest.fixture(scope="module", autouse=True)
def hostile_model(server: Server):
    """An untrained model whose tokens are pieces of the sentence, for as long as these tests run."""
    folder: Path = server.runs / NAME
    tokenizer = train_tokenizer("bpe", [HOSTILE] * 4)
    sizes = ModelConfig(
        vocab_size=tokenizer.vocab_size,
        d_model=16,
        n_heads=2,
        d_ff=16,
        n_encoder_layers=1,
        n_decoder_layers=1,
        max_length=96,
    )
    torch.manual_seed(0)
    model = Transformer(sizes)
    randomise(model)
    settings = Settings(name=NAME, model=sizes, train=TrainConfig(), corpus=CorpusConfig(name="reverse"))
    save_checkpoint(folder, settings, tokenizer, weights_of(model))
    yield
    shutil.rmtree(folder)


def harmless(page: Page) -> None:
    """No text of the visitor's became code, in the page or in a frame of it."""
    wait_for_rest(page)
    for frame in page.frames:
        assert frame.evaluate("() => window.hacked") is None
        assert frame.locator("img[src=x]").count() == 0


@pytest.mark.parametrize(
    ("where", "path", "more"),
    [
        slow("attention", "attention", {"kind": "encoder_self", "words": "merged", "switch": COPIED}),
        slow("lines", "attention", {"picture": "lines", "words": "merged"}),
        slow("two-at-once", "two-at-once", {"two": "sentences", "other_text": HOSTILE[::-1]}),
        ("masks", "masks", {"beside": HOSTILE}),
        slow("walkthrough", "walkthrough", {}),
        slow("heads", "heads", {"section": "evidence"}),
    ],
)
def test_a_page_shows_hostile_tokens_as_text(page: Page, server: Server, where: str, path: str, more: dict[str, str]):
    page.goto(server.link(path, model=NAME, text=HOSTILE, **more))
    expect(page.locator(DRAWN[where]).first).to_be_attached()
    harmless(page)


@pytest.mark.slow
@pytest.mark.parametrize("view", ["bertviz", "bertviz-model", "bertviz-neuron"])
def test_bertviz_shows_hostile_tokens_as_text(page: Page, server: Server, view: str):
    page.goto(server.link("attention", model=NAME, text=HOSTILE, kind="encoder_self", picture=view, words="merged"))
    expect(page.frame_locator("iframe").locator("svg line, svg path").first).to_be_attached()
    open_menu(page, "bertviz", EXPORT)
    with page.expect_download() as download:
        page.get_by_role("button", name="SVG", exact=True).click()
    saved = ElementTree.parse(download.value.path()).getroot()
    assert not saved.findall(".//{*}script") and not saved.findall(".//{*}img")
    if view != "bertviz-model":
        assert any("<" in text for text in saved.itertext()) and any("␇" in text for text in saved.itertext())
    harmless(page)
