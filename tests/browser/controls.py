"""Controls of pages in a browser: the menu at a figure's corner, and the Train page's sizes and buttons."""

import time
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from pages.shared.exhibit import MENU
from transformer.runs.status import STATUS_FILE, status_of

_AT_REST = """(quiet_ms) => new Promise((done, fail) => {
  const busy = "[data-testid=stSpinner], [data-testid=stSkeleton], [data-stale=true]";
  let timer;
  const look = () => (document.querySelector(busy) ? wait() : done());
  const wait = () => { clearTimeout(timer); timer = setTimeout(look, quiet_ms); };
  new MutationObserver(wait).observe(document.body, { subtree: true, childList: true, characterData: true });
  setTimeout(() => fail(new Error("the page never came to rest")), 60000);
  wait();
})"""
FAULTS = "[data-testid=stException], [data-testid=stAlertContentError]"
"""The elements in the place of a part that failed: Streamlit's box, or the sentence of `guard`."""
TRAINING_MS = 180_000
"""The time limit for a hundred steps of the smallest model on a busy machine."""
SMALL = {"d_model": 32, "n_heads": 2, "d_ff": 32, "n_encoder_layers": 1, "n_decoder_layers": 1, "threads": 1}


def state(page: Page, word: str) -> None:
    """Waits until the run on show is in this state."""
    expect(page.locator(".st-key-readings .state")).to_have_text(word, timeout=TRAINING_MS)


def wait_for_trainers(page: Page, runs: Path) -> None:
    """Waits until no trainer is at work, as long as they take steps: they give way to all else on a busy machine."""
    steps, since = -1, time.monotonic()
    while active := [found for file in runs.glob(f"*/{STATUS_FILE}") if (found := status_of(file.parent)).active]:
        if (now := sum(run.step for run in active)) != steps:
            steps, since = now, time.monotonic()
        assert time.monotonic() - since < TRAINING_MS / 1000, f"no step for {TRAINING_MS / 1000:.0f} s: {active}"
        page.wait_for_timeout(200)


def wait_for_rest(page: Page, quiet_ms: int = 500) -> None:
    """Waits until nothing is computed or stale on the page, and nothing has changed there for so many milliseconds."""
    page.evaluate(_AT_REST, quiet_ms)


def press(page: Page, name: str, word: str) -> None:
    """Presses a button of the run, and waits for the state that it leads to."""
    page.get_by_role("button", name=name, exact=True).click()
    state(page, word)


def click_point(page: Page, point: Locator) -> None:
    """Clicks a point or a bar of a figure once the figure answers the mouse: a click before that is lost."""
    point.hover(force=True)
    expect(page.locator(".hoverlayer .hovertext").first).to_be_visible()
    point.click(force=True)


def menu_of(page: Page, figure: str) -> Locator:
    """The button of a figure's menu; `figure` is the key of its view, such as "head-matrix"."""
    return page.locator(f".st-key-{figure}-menu").get_by_role("button")


def open_menu(page: Page, figure: str | Locator, entry: str) -> None:
    """Opens a figure's menu at an entry; the figure by its key, or the button of its menu."""
    button = menu_of(page, figure) if isinstance(figure, str) else figure
    button.click()
    chosen = page.locator("[data-testid=stPopoverBody]").get_by_role("radio", name=entry, exact=True)
    chosen.click()
    wait_for_rest(page, 200)
    if not chosen.is_checked():  # what opens is drawn anew once the server has filled it: a click before that is lost
        chosen.click()
    expect(chosen).to_be_checked()


def menus(page: Page) -> Locator:
    """The buttons of all menus."""
    return page.get_by_role("button", name=MENU)


def open_drawer(page: Page, part: str) -> None:
    """Opens a part of the drawer of the Attention page: "Picture", "Switches" or "An entry"."""
    page.get_by_role("button", name="More controls").click()
    page.get_by_role("tab", name=part, exact=True).click()


def bring(page: Page, file: Path) -> None:
    """Uploads a file of sentence pairs on the Train page."""
    wait_for_rest(page, 200)  # fields push the button down as they are drawn: a press meanwhile may miss it
    page.get_by_role("button", name="Bring your own").click()
    page.locator("input[type=file]").set_input_files(file)


def unfold_settings(page: Page) -> None:
    """Opens the fold of the Train page."""
    page.locator(".st-key-train-settings").get_by_text("Settings", exact=True).click()


def wait_for_translation(page: Page, french: str) -> None:
    """Waits until Home shows this French text, whatever English stands beneath its words."""
    page.wait_for_function(
        """(french) => [...document.querySelectorAll(".home-translation")].some((shown) => {
          const copy = shown.cloneNode(true);
          copy.querySelectorAll("rt").forEach((english) => english.remove());
          return copy.textContent === french;
        })""",
        arg=french,
    )
