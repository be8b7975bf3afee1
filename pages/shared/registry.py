"""The pages of the app: each one's folder, title, address, place in the navigation, and what comes after it. A new page
is one entry here.

The sections of the navigation are the map of the app: look, switch off, compare, train, measure. The next questions
lead through all of them, round in a circle.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

START, LOOK, SWITCH_OFF, COMPARE, TRAIN, MEASURE = "Start", "Look", "Switch off", "Compare", "Train", "Measure"
ANY = ("transformer", "rnn", "conv")
"""Every family of models."""


@dataclass(frozen=True)
class NextQuestion:
    """The question that a page leaves open, with the page that answers it."""

    asks: str
    answer: str
    """What the visitor does there to answer it."""
    folder: str
    """The folder of the page that answers it."""
    state: Mapping[str, str] = field(default_factory=dict, hash=False)
    """The query parameters that it is opened with, beside the visitor's model and sentence."""


@dataclass(frozen=True)
class RegisteredPage:
    """A page as the navigation knows it."""

    folder: str
    """Its folder in `pages/`, which holds its `page.py`."""
    title: str
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
    def path(self) -> str:
        """Returns the path of its script, relative to the app's folder."""
        return f"pages/{self.folder}/page.py"


PAGES = (
    RegisteredPage(
        "home",
        "Home",
        "home",
        START,
        families=ANY,
        then=NextQuestion(
            "Which head looked where?", "See each one's weights for this sentence, and switch one off.", "attention"
        ),
    ),
    RegisteredPage(
        "playground",
        "Playground",
        "playground",
        START,
        shows_a_sentence=False,
        decodes=False,
        then=NextQuestion("Can the same machine translate?", "Type an English sentence and read it in French.", "home"),
    ),
    RegisteredPage(
        "learn",
        "Lessons",
        "lessons",
        START,
        shows_a_sentence=False,
        decodes=False,
        then=NextQuestion(
            "Can you see attention being learned?", "Press Play, and guess first what it turns into.", "playground"
        ),
    ),
    RegisteredPage(
        "glossary",
        "Glossary",
        "glossary",
        START,
        shows_a_sentence=False,
        decodes=False,
        then=NextQuestion(
            "What are these words for?",
            "Begin with the first lesson: why attention was invented.",
            "learn",
            {"lesson": "why-attention"},
        ),
    ),
    RegisteredPage(
        "attention",
        "Attention",
        "attention",
        then=NextQuestion(
            "What else could it have written?", "Go step by step through the tokens that it considered.", "steps"
        ),
        asks=("scaling", "table-1", "alignment"),
    ),
    RegisteredPage(
        "steps",
        "Decoder steps",
        "decoder-steps",
        families=ANY,
        then=NextQuestion(
            "Where do these probabilities come from?",
            "Follow one token's numbers through every layer.",
            "walkthrough",
        ),
        asks=("beam-search", "averaging"),
    ),
    RegisteredPage(
        "walkthrough",
        "Walkthrough",
        "walkthrough",
        families=("transformer", "rnn"),
        then=NextQuestion(
            "Does the output need every head?",
            "Switch each one off in turn and see what it costs.",
            "heads",
            {"section": "worth"},
        ),
        asks=("scaling", "table-1", "table-3"),
    ),
    RegisteredPage(
        "positions",
        "Positions",
        "positions",
        decodes=False,
        then=NextQuestion(
            "Could the model learn its positions instead?",
            "Train one that does, and compare.",
            "train",
            {"positions": "learned"},
        ),
        asks=("table-3",),
    ),
    RegisteredPage(
        "tokenizers",
        "Tokenizer lab",
        "tokenizers",
        shows_a_sentence=False,
        decodes=False,
        then=NextQuestion("What does a model do with its tokens?", "See which of them each one looks at.", "attention"),
    ),
    RegisteredPage(
        "heads",
        "Heads",
        "heads",
        SWITCH_OFF,
        decodes=False,
        then=NextQuestion(
            "What if a word could see the words after it?",
            "Lift the causal mask and see what leaks.",
            "masks",
            {"switch": "mask:causal"},
        ),
        asks=("heads", "alignment", "table-3"),
    ),
    RegisteredPage(
        "masks",
        "Masks",
        "masks",
        SWITCH_OFF,
        then=NextQuestion(
            "And if it was trained without the mask?",
            "See how models trained without one part fail.",
            "gallery",
        ),
    ),
    RegisteredPage(
        "gallery",
        "Failures",
        "failures",
        SWITCH_OFF,
        shows_a_sentence=False,
        decodes=False,
        then=NextQuestion(
            "What does a model without positions see?",
            "Lay its attention beside that of one with them.",
            "compare",
            {"model": "reverse", "other": "reverse-without-positions"},
        ),
        asks=("scaling", "warm-up", "heads"),
    ),
    RegisteredPage(
        "compare",
        "Two at once",
        "two-at-once",
        COMPARE,
        families=ANY,
        then=NextQuestion(
            "How was this done before attention?",
            "See what one vector keeps of a sentence.",
            "before",
            {"model": "reverse-rnn"},
        ),
    ),
    RegisteredPage(
        "before",
        "Before attention",
        "before-attention",
        COMPARE,
        families=ANY,
        decodes=False,
        then=NextQuestion(
            "A recurrent model reads in order. How does attention know it?",
            "See what is added to every token.",
            "positions",
            {"model": "reverse"},
        ),
        asks=("why-attention", "alignment", "parallel-training"),
    ),
    RegisteredPage(
        "train",
        "Train",
        "train",
        TRAIN,
        shows_a_sentence=False,
        decodes=False,
        then=NextQuestion("Which settings learn faster?", "Race two of them on the same data and seed.", "race"),
        asks=("warm-up", "regularisation", "averaging", "parallel-training"),
    ),
    RegisteredPage(
        "race",
        "Race",
        "race",
        TRAIN,
        shows_a_sentence=False,
        decodes=False,
        then=NextQuestion("And more than two settings?", "Lay the curves of your runs over each other.", "runs"),
        asks=("warm-up", "why-attention", "heads"),
    ),
    RegisteredPage(
        "runs",
        "Runs",
        "runs",
        TRAIN,
        shows_a_sentence=False,
        decodes=False,
        then=NextQuestion(
            "Would another seed say the same?", "See the paper's claims measured, with their uncertainty.", "paper_lab"
        ),
    ),
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
    RegisteredPage(
        "paper_lab",
        "Paper lab",
        "paper-lab",
        MEASURE,
        shows_a_sentence=False,
        decodes=False,
        then=NextQuestion("Could you explain it to a friend?", "Test yourself in the lessons.", "learn"),
    ),
)
"""The pages in the order of the navigation; the app opens on the first."""
BY_FOLDER = {page.folder: page for page in PAGES}
"""The same by their folders."""
REOPENABLE = {page.url: page for page in PAGES if page.shows_a_sentence}
"""The pages whose views can be saved and reopened, by the end of their address."""
