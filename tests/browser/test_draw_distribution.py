"""The distribution that is drawn from, in a real browser: the rule itself, and the sliders as they move."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from app_server import Server
from controls import wait_for_rest
from page_models import REVERSE
from playwright.sync_api import Page, expect

from pages.shared.components.frontend import text_of
from transformer.analysis.steps.candidates import candidates
from transformer.analysis.steps.samples import Sampling
from transformer.decoding.sampling import reshaped
from transformer.lab import load

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FLOAT32 = 4e-6
"""The tolerance for log-probabilities around 10, summed in two different orders in float32."""
SETTINGS = [
    Sampling(),
    Sampling(temperature=0.1),
    Sampling(temperature=5.0, top_k=3),
    Sampling(top_p=0.5),
    Sampling(top_p=0.05, min_p=1.0),
    Sampling(temperature=2.0, top_k=50, top_p=0.9, min_p=0.05),
    Sampling(temperature=0.7, top_k=7, top_p=0.75, min_p=0.2),
]


def rows() -> Iterator[np.ndarray]:
    """Log-probabilities flat and peaked, some equal and some impossible."""
    rng = np.random.default_rng(0)
    for spread in (0.01, 1.0, 8.0):
        scores = torch.from_numpy(rng.normal(0, spread, 300).astype(np.float32))
        yield scores.log_softmax(-1).numpy()
        scores[::3] = scores.max()
        scores[1::7] = -torch.inf
        yield scores.log_softmax(-1).numpy()


def test_the_browser_reshapes_as_sampling_does(page: Page) -> None:
    cases = [(row, draw) for row in rows() for draw in SETTINGS]
    asked = [
        {"scores": [None if np.isinf(x) else float(x) for x in row], "settings": vars(draw)} for row, draw in cases
    ]
    found = page.evaluate(
        f"(cases) => {{ {text_of('draw_rule.js')}\n"
        "const given = (scores) => Float32Array.from(scores, (score) => score ?? -Infinity);"
        "return cases.map(({ scores, settings }) => Array.from(reshaped(given(scores), settings).logProbs)); }",
        asked,
    )
    for (row, draw), browsers in zip(cases, found, strict=True):
        ours = reshaped(torch.from_numpy(row)[None], **vars(draw))[0].numpy()
        theirs = np.array(browsers, np.float32)
        assert np.array_equal(np.isfinite(ours), np.isfinite(theirs)), draw
        kept = np.isfinite(ours)
        assert np.allclose(ours[kept], theirs[kept], rtol=0, atol=FLOAT32), draw


def shown(page: Page, column: int) -> list[float]:
    """A column of numbers of the candidates' rows: 0 drawn from, 1 the model's."""
    cells = page.locator(f"table tbody tr:has(th.token) td.number:nth-of-type({column + 2})")
    return [float(text.replace("−", "-")) for text in cells.all_inner_texts()]


def agrees(numbers: list[float], log_probs: np.ndarray) -> bool:
    """Checks that the shown numbers are these probabilities, to three digits (one digit below 0.0001)."""
    return len(numbers) == len(log_probs) and all(
        math.isclose(number, p, rel_tol=6e-3 if p >= 1e-4 else 0.51, abs_tol=1e-30)
        for number, p in zip(numbers, np.exp(log_probs.astype(np.float64)), strict=True)
    )


@pytest.fixture(scope="module")
def log_probs(server: Server) -> np.ndarray:
    """Returns the log-probabilities of step 1, from a model on the server."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENTION_LAB_RUNS", str(server.runs))
        return load(REVERSE).inspect("a b c d").log_probs[1]


def test_the_bars_follow_a_slider_before_it_is_let_go_of(server: Server, page: Page, log_probs: np.ndarray) -> None:
    ids = list(candidates(log_probs, 10).ids)
    page.goto(server.link("decoder-steps", model=REVERSE, text="a b c d", look="samples", step=1))
    temperature, top_k = (page.get_by_role("slider", name=name) for name in ("Temperature", "Top-k"))
    expect(page.locator("table tbody tr")).to_have_count(11)
    assert agrees(shown(page, 0), Sampling().reshape(log_probs, never=0)[ids])
    assert agrees(shown(page, 1), log_probs[ids])

    temperature.focus()
    for value in range(11, 21):
        page.keyboard.down("ArrowRight")  # and is held
        expect(temperature).to_have_attribute("aria-valuetext", f"{value / 10}")
        assert agrees(shown(page, 0), Sampling(temperature=value / 10).reshape(log_probs, never=0)[ids])
    assert "temperature" not in page.url
    assert agrees(shown(page, 1), log_probs[ids])
    page.keyboard.up("ArrowRight")
    page.wait_for_url("**temperature=2**")
    assert "step=1" in page.url  # the arrow did not step

    top_k.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(page.locator("p.said")).to_contain_text(f"3 of {len(log_probs)} tokens can be drawn")
    assert agrees(shown(page, 0), Sampling(temperature=2.0, top_k=3).reshape(log_probs, never=0)[ids])
    expect(page.get_by_text("cut: top-k")).to_have_count(7)
    page.wait_for_url("**top_k=3**")
    expect(page.get_by_text("100 samples with seed 0")).to_be_visible()


def test_a_drag_moves_the_bars_and_its_end_the_samples(server: Server, page: Page, log_probs: np.ndarray) -> None:
    page.goto(server.link("decoder-steps", model=REVERSE, text="a b c d", look="samples", step=1, top_p=0.5))
    slider = page.get_by_role("slider", name="Temperature")
    expect(page.get_by_text("100 samples with seed 0")).to_be_visible()
    wait_for_rest(page)  # what comes late moves the slider from under the pointer
    slider.hover()
    box = slider.bounding_box()
    assert box is not None
    page.mouse.down()
    said = page.locator("p.said")
    before = said.inner_text()
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + box["height"] / 2, steps=5)
    expect(slider).to_have_attribute("aria-valuetext", "5.0")
    sampling = Sampling(temperature=5.0, top_p=0.5)
    left = int(np.isfinite(sampling.reshape(log_probs, never=0)).sum())
    expect(said).to_contain_text(f"{left} of {len(log_probs)} tokens can be drawn")
    assert said.inner_text() != before and "temperature" not in page.url
    page.mouse.up()
    page.wait_for_url("**temperature=5**")
    page.reload()
    expect(slider).to_have_attribute("aria-valuetext", "5.0")
    expect(said).to_contain_text(f"{left} of {len(log_probs)} tokens")
