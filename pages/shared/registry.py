"""The pages of the app: each one's folder, title, address, and place in the navigation. A new page is one line here."""

from dataclasses import dataclass

START, EXPLORE, TRAIN = "Start", "Explore", "Train"
ANY = ("transformer", "rnn", "conv")
"""Every family of models."""


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

    families: tuple[str, ...] = ("transformer",)
    """The families of which it has something to show of every model, recurrent ones without attention among them."""

    decodes: bool = True
    """True if it shows a decoding as soon as it opens: the server then begins to decode before the page asks."""

    only_for_several: bool = False
    """True if the navigation names it only on a server that tells several people apart."""

    only_for_teachers: bool = False
    """True if of these it names it to teachers alone."""

    asks: tuple[str, ...] = ()
    """The experiments of the Paper lab about what the page shows, by name; it ends with links to them."""

    @property
    def path(self) -> str:
        """Returns the path of its script, relative to the app's folder."""
        return f"pages/{self.folder}/page.py"


PAGES = (
    RegisteredPage("home", "Home", "home", START, families=ANY),
    RegisteredPage("playground", "Playground", "playground", START, shows_a_sentence=False, decodes=False),
    RegisteredPage("learn", "Lessons", "lessons", START, shows_a_sentence=False, decodes=False),
    RegisteredPage("glossary", "Glossary", "glossary", START, shows_a_sentence=False, decodes=False),
    RegisteredPage("attention", "Attention", "attention", asks=("scaling", "table-1", "alignment")),
    RegisteredPage("heads", "Heads", "heads", decodes=False, asks=("heads", "alignment", "table-3")),
    RegisteredPage("masks", "Masks", "masks"),
    RegisteredPage("steps", "Decoder steps", "decoder-steps", families=ANY, asks=("beam-search", "averaging")),
    RegisteredPage(
        "walkthrough",
        "Walkthrough",
        "walkthrough",
        families=("transformer", "rnn"),
        asks=("scaling", "table-1", "table-3"),
    ),
    RegisteredPage("compare", "Two at once", "two-at-once", families=ANY),
    RegisteredPage(
        "gallery", "Failures", "failures", shows_a_sentence=False, decodes=False, asks=("scaling", "warm-up", "heads")
    ),
    RegisteredPage(
        "before",
        "Before attention",
        "before-attention",
        families=ANY,
        decodes=False,
        asks=("why-attention", "alignment", "parallel-training"),
    ),
    RegisteredPage("positions", "Positions", "positions", decodes=False, asks=("table-3",)),
    RegisteredPage("tokenizers", "Tokenizer lab", "tokenizers", shows_a_sentence=False, decodes=False),
    RegisteredPage("paper_lab", "Paper lab", "paper-lab", shows_a_sentence=False, decodes=False),
    RegisteredPage(
        "train",
        "Train",
        "train",
        TRAIN,
        shows_a_sentence=False,
        decodes=False,
        asks=("warm-up", "regularisation", "averaging", "parallel-training"),
    ),
    RegisteredPage("runs", "Runs", "runs", TRAIN, shows_a_sentence=False, decodes=False),
    RegisteredPage("classroom", "Class", "class", TRAIN, shows_a_sentence=False, decodes=False, only_for_several=True),
    RegisteredPage(
        "server",
        "Server",
        "server",
        TRAIN,
        shows_a_sentence=False,
        decodes=False,
        only_for_several=True,
        only_for_teachers=True,
    ),
)
"""The pages in the order of the navigation; the app opens on the first."""
REOPENABLE = {page.url: page for page in PAGES if page.shows_a_sentence}
"""The pages whose views can be saved and reopened, by the end of their address."""
