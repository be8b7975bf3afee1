"""The pages of the app: each one's folder, address, place in the navigation, and what comes after it. A new page
is one entry here, with its title and question in the catalogue.

The sections of the navigation are the map of the app: look, switch off, compare, train, measure. The next questions
lead through all of them, round in a circle.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pages.shared.texts.catalogue import Texts

TEXTS = Texts("pages")
"""The title of each page, by its folder, and the question with which it ends."""
START, LOOK, SWITCH_OFF = TEXTS("sections.start"), TEXTS("sections.look"), TEXTS("sections.switch_off")
COMPARE, TRAIN, MEASURE = TEXTS("sections.compare"), TEXTS("sections.train"), TEXTS("sections.measure")
ANY = ("transformer", "rnn", "conv")
"""Every family of models."""


@dataclass(frozen=True)
class NextQuestion:
    """The question that a page leaves open, with the page that answers it."""

    after: str
    """The folder of the page that leaves it open."""
    folder: str
    """The folder of the page that answers it."""
    state: Mapping[str, str] = field(default_factory=dict, hash=False)
    """The query parameters that it is opened with, beside the visitor's model and sentence."""

    @property
    def asks(self) -> str:
        """Returns the question."""
        return TEXTS(f"{self.after}.asks")

    @property
    def answer(self) -> str:
        """Returns how the visitor finds the answer there."""
        return TEXTS(f"{self.after}.answer")


@dataclass(frozen=True)
class RegisteredPage:
    """A page as the navigation knows it."""

    folder: str
    """Its folder in `pages/`, which holds its `page.py`."""
    url: str
    """The end of its address."""
    section: str = LOOK
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

    then: NextQuestion | None = None
    """The question with which it ends; None for a page that teaches nothing."""

    asks: tuple[str, ...] = ()
    """The experiments of the Paper lab about what the page shows, by name; it ends with links to them."""

    @property
    def title(self) -> str:
        """Returns its name in the navigation."""
        return TEXTS(f"{self.folder}.title")

    @property
    def path(self) -> str:
        """Returns the path of its script, relative to the app's folder."""
        return f"pages/{self.folder}/page.py"


PAGES = (
    RegisteredPage("home", "home", START, families=ANY, then=NextQuestion("home", "attention")),
    RegisteredPage(
        "playground",
        "playground",
        START,
        shows_a_sentence=False,
        decodes=False,
        then=NextQuestion("playground", "home"),
    ),
    RegisteredPage(
        "learn", "lessons", START, shows_a_sentence=False, decodes=False, then=NextQuestion("learn", "playground")
    ),
    RegisteredPage(
        "glossary",
        "glossary",
        START,
        shows_a_sentence=False,
        decodes=False,
        then=NextQuestion("glossary", "learn", {"lesson": "why-attention"}),
    ),
    RegisteredPage(
        "attention", "attention", then=NextQuestion("attention", "steps"), asks=("scaling", "table-1", "alignment")
    ),
    RegisteredPage(
        "steps",
        "decoder-steps",
        families=ANY,
        then=NextQuestion("steps", "walkthrough"),
        asks=("beam-search", "averaging"),
    ),
    RegisteredPage(
        "walkthrough",
        "walkthrough",
        families=("transformer", "rnn"),
        then=NextQuestion("walkthrough", "heads", {"section": "worth"}),
        asks=("scaling", "table-1", "table-3"),
    ),
    RegisteredPage(
        "positions",
        "positions",
        decodes=False,
        then=NextQuestion("positions", "train", {"positions": "learned"}),
        asks=("table-3",),
    ),
    RegisteredPage(
        "tokenizers", "tokenizers", shows_a_sentence=False, decodes=False, then=NextQuestion("tokenizers", "attention")
    ),
    RegisteredPage(
        "heads",
        "heads",
        SWITCH_OFF,
        decodes=False,
        then=NextQuestion("heads", "masks", {"switch": "mask:causal"}),
        asks=("heads", "alignment", "table-3"),
    ),
    RegisteredPage("masks", "masks", SWITCH_OFF, then=NextQuestion("masks", "gallery")),
    RegisteredPage(
        "gallery",
        "failures",
        SWITCH_OFF,
        shows_a_sentence=False,
        decodes=False,
        then=NextQuestion("gallery", "compare", {"model": "reverse", "other": "reverse-without-positions"}),
        asks=("scaling", "warm-up", "heads"),
    ),
    RegisteredPage(
        "compare",
        "two-at-once",
        COMPARE,
        families=ANY,
        then=NextQuestion("compare", "before", {"model": "reverse-rnn"}),
    ),
    RegisteredPage(
        "before",
        "before-attention",
        COMPARE,
        families=ANY,
        decodes=False,
        then=NextQuestion("before", "positions", {"model": "reverse"}),
        asks=("why-attention", "alignment", "parallel-training"),
    ),
    RegisteredPage(
        "train",
        "train",
        TRAIN,
        shows_a_sentence=False,
        decodes=False,
        then=NextQuestion("train", "race"),
        asks=("warm-up", "regularisation", "averaging", "parallel-training"),
    ),
    RegisteredPage(
        "race",
        "race",
        TRAIN,
        shows_a_sentence=False,
        decodes=False,
        then=NextQuestion("race", "runs"),
        asks=("warm-up", "why-attention", "heads"),
    ),
    RegisteredPage(
        "runs", "runs", TRAIN, shows_a_sentence=False, decodes=False, then=NextQuestion("runs", "paper_lab")
    ),
    RegisteredPage("classroom", "class", TRAIN, shows_a_sentence=False, decodes=False, only_for_several=True),
    RegisteredPage(
        "server", "server", TRAIN, shows_a_sentence=False, decodes=False, only_for_several=True, only_for_teachers=True
    ),
    RegisteredPage(
        "paper_lab",
        "paper-lab",
        MEASURE,
        shows_a_sentence=False,
        decodes=False,
        then=NextQuestion("paper_lab", "learn"),
    ),
)
"""The pages in the order of the navigation; the app opens on the first."""
BY_FOLDER = {page.folder: page for page in PAGES}
"""The same by their folders."""
REOPENABLE = {page.url: page for page in PAGES if page.shows_a_sentence}
"""The pages whose views can be saved and reopened, by the end of their address."""
