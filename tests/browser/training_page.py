"""The Train page in a browser: the smallest sizes, a run's state, and its buttons."""

from playwright.sync_api import Page, expect

TRAINING_MS = 180_000
"""The time limit for a hundred steps of the smallest model on a busy machine."""
SMALL = {"d_model": 32, "n_heads": 2, "d_ff": 32, "n_encoder_layers": 1, "n_decoder_layers": 1, "threads": 1}


def state(page: Page, word: str) -> None:
    """Waits until the run on show is in this state."""
    expect(page.locator(".st-key-readings .state")).to_have_text(word, timeout=TRAINING_MS)


def press(page: Page, name: str, word: str) -> None:
    """Presses a button of the run, and waits for the state that it leads to."""
    page.get_by_role("button", name=name, exact=True).click()
    state(page, word)
