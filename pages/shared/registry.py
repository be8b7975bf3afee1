"""The pages of the app: each one's folder, title, address, and place in the navigation. A new page is one line here."""

from dataclasses import dataclass

EXPLORE, TRAIN = "Explore", "Train"


@dataclass(frozen=True)
class RegisteredPage:
    """A page as the navigation knows it."""

    folder: str
    """Its folder in `pages/`, which holds its `page.py`."""
    title: str
    url: str
    """The end of its address."""
    section: str = EXPLORE
    """The part of the navigation in which it stands."""
    shows_a_sentence: bool = True
    """True if its link describes a sentence, so that a saved view can reopen it."""

    takes_any_model: bool = False
    """True if it has something to show of every model, recurrent ones without attention among them."""

    decodes: bool = True
    """True if it shows a decoding as soon as it opens: the server then begins to decode before the page asks."""

    @property
    def path(self) -> str:
        """Returns the path of its script, relative to the app's folder."""
        return f"pages/{self.folder}/page.py"


PAGES = (
    RegisteredPage("home", "Home", "home", takes_any_model=True),
    RegisteredPage("attention", "Attention", "attention"),
    RegisteredPage("heads", "Heads", "heads", decodes=False),
    RegisteredPage("masks", "Masks", "masks"),
    RegisteredPage("steps", "Decoder steps", "decoder-steps", takes_any_model=True),
    RegisteredPage("walkthrough", "Walkthrough", "walkthrough"),
    RegisteredPage("compare", "Two at once", "two-at-once", takes_any_model=True),
    RegisteredPage("before", "Before attention", "before-attention", takes_any_model=True, decodes=False),
    RegisteredPage("positions", "Positions", "positions", decodes=False),
    RegisteredPage("paper_lab", "Paper lab", "paper-lab", shows_a_sentence=False, decodes=False),
    RegisteredPage("train", "Train", "train", TRAIN, shows_a_sentence=False, decodes=False),
    RegisteredPage("runs", "Runs", "runs", TRAIN, shows_a_sentence=False, decodes=False),
)
"""The pages in the order of the navigation; the app opens on the first."""
REOPENABLE = {page.url: page for page in PAGES if page.shows_a_sentence}
"""The pages whose views can be saved and reopened, by the end of their address."""
