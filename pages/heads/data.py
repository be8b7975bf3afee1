"""On which sentences the Heads page measures: validation pairs, a file of pairs, or sentences of the visitor's own."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import streamlit as st

from pages.heads.choices import COUNTS, LONGEST_LINES, Choices, Data, Removal, area, box, segments
from pages.shared import loading
from pages.shared.cache import cached
from pages.shared.controls import PageContext, say
from pages.shared.wording import plain
from transformer.analysis.heads.ablations import Means
from transformer.config import DecodeConfig
from transformer.data.batches import encode_sources, fits
from transformer.data.cleaning import CorpusError, clean_pairs, kinds_of_files, rows_of
from transformer.data.corpus_snapshot import AbsentCorpus, load_own
from transformer.data.tasks import AlignmentUnit
from transformer.data.uploads import MAX_UPLOAD_BYTES
from transformer.lab import Lab
from transformer.text.pairs import Pair, split_of
from transformer.training.evaluation import fitting

FEW = 20
"""Pairs below which the page says that they are few."""
_FILE = "heads-file"
_SENTENCES = {
    "everyday-en-fr": (
        "Where is the station?",
        "My sister lives in a small house.",
        "I did not see him yesterday.",
        "Do you like this book?",
        "It is raining again.",
        "They are waiting for us at home.",
        "She speaks three languages.",
        "We have no time to lose.",
        "He bought a new car last week.",
        "The children are playing in the garden.",
        "What do you want to drink?",
        "This coffee is too hot.",
        "I would like to go with you.",
        "Nobody knows the answer.",
        "Open the window, please.",
        "The train was late this morning.",
        "You should talk to your father.",
        "There is a cat under the table.",
        "I forgot to close the door.",
        "How old is your brother?",
    )
}
"""Sentences to begin with for a shipped model that comes without its corpus."""


@dataclass(frozen=True)
class Measured:
    """The pairs that heads are measured on."""

    key: tuple[Hashable, ...]
    """Says which they are, and at its end how many."""
    pairs: tuple[Pair, ...]
    of: int
    """How many there are in all."""
    what: str
    """Such as "validation pairs"."""
    unit: AlignmentUnit = "word"
    own_output: bool = False
    """Whether the targets are the model's own translations."""

    @property
    def said(self) -> str:
        """What they are: "500 of 20,542 validation pairs"."""
        n = len(self.pairs)
        return f"{n:,} of {self.of:,} {self.what}" if n < self.of else f"{'all ' * (n > 1)}{n:,} {self.what}"

    @property
    def filed(self) -> str:
        """How many they are, in the name of a file."""
        n = len(self.pairs)
        return f"{n}-of-{self.of}-pairs" if n < self.of else f"{n}-pairs"

    def first(self, count: int) -> "Measured":
        """The first so many of them."""
        return replace(self, key=(*self.key[:-1], count), pairs=self.pairs[:count])


@dataclass(frozen=True)
class _Own:
    """A model's own validation pairs, or in a sentence why there are none."""

    pairs: tuple[Pair, ...] = ()
    unit: AlignmentUnit = "word"
    what: str = "validation pairs"
    missing: str = ""


def means_of(lab: Lab, removal: Removal) -> Means | None:
    """What a removed head says; None: nothing."""
    return lab.head_means.means if removal == "mean" else None


def choose_data(context: PageContext, chosen: Choices) -> Measured | None:
    """A button behind which the pairs are chosen, and these; None, with a sentence, where there are none yet."""
    own = _validation(context.lab)
    offered: dict[Data, str] = {"validation": "Validation pairs"} if own.pairs else {}
    offered |= {"own": "Sentences of your own", "file": "A file of pairs"}
    data = chosen.data if chosen.data in offered else next(iter(offered))
    if own.missing and data == "own":
        st.markdown(own.missing)
    with st.popover("Measure on other sentences"):
        segments("data", "Measured on", offered, data)
        if data != "own":
            _choose_count(chosen)
        match data:
            case "validation":
                found = _at_most(("validation",), own.pairs, chosen, own.what, own.unit)
            case "own":
                found = _sentences(context, chosen)
            case "file":
                found = _file(context, chosen)
    if found is None:
        st.markdown("There is nothing to measure on yet: bring a file or type sentences, behind the button above.")
    elif len(found.pairs) < FEW:
        st.caption(f"{len(found.pairs)} sentences say little of what a head usually does: take some dozens.")
    return found


def _choose_count(chosen: Choices) -> None:
    most = chosen.most_pairs or "all"
    slow = "Every head is removed in turn: all pairs take minutes." if chosen.section == "worth" else None
    box("pairs", "Pairs at most", (*COUNTS, "all"), most, lambda n: n if n == "all" else f"{n:,}", help=slow)


def _at_most(
    key: tuple[Hashable, ...], pairs: Sequence[Pair], chosen: Choices, what: str, unit: AlignmentUnit = "word"
) -> Measured:
    """As many of the pairs as were chosen."""
    whole = Measured((*key, len(pairs)), tuple(pairs), len(pairs), what, unit)
    return whole if chosen.most_pairs is None else whole.first(min(chosen.most_pairs, len(pairs)))


@cached(max_entries=8, spinner="Reading the corpus", shared=True)
def _validation(lab: Lab) -> _Own:
    checkpoint = lab.checkpoint
    try:
        corpus = load_own(checkpoint.settings.corpus, checkpoint.folder)
        found = fitting(corpus.validation, lab.tokenizer, lab.model.config.max_length, len(corpus.validation))
    except AbsentCorpus as error:
        return _Own(
            missing=f"{plain(str(error))}, so its heads are measured on sentences of yours, as it translates them. "
            "Bring the file of pairs, or one like it, to measure on real translations."
        )
    except (CorpusError, ValueError) as error:
        return _Own(missing=f"There are no validation pairs to measure on: {plain(str(error))}.")
    what = "validation pairs" + " that fit into the model" * (len(found) < len(corpus.validation))
    return _Own(tuple(found), corpus.alignment_unit, what)


def offered_lines(lab: Lab, text: str) -> tuple[str, ...]:
    """Sentences to begin with: the one in sight, and the examples of the model."""
    return tuple(dict.fromkeys((text, *loading.examples(lab), *_SENTENCES.get(lab.name, ()))))


def _sentences(context: PageContext, chosen: Choices) -> Measured | None:
    lines = [line.strip() for line in chosen.lines.splitlines() if line.strip()]
    lines = lines or list(offered_lines(context.lab, context.view.text))
    area("lines", "Sentences, one a line", "\n".join(lines), limit=LONGEST_LINES)
    kept, refused = [], []
    for line in dict.fromkeys(lines):
        try:
            encode_sources([line], context.lab.tokenizer, max_length=context.lab.model.config.max_length)
            kept.append(line)
        except ValueError as error:
            refused.append(f"“{line[:40]}” is left out: {error}.")
    say(*refused[:3])
    if not kept:
        return None
    pairs = _translated(context.lab, tuple(kept))
    n = len(pairs)
    if n == 0:
        say("The model writes nothing for these sentences that could be given to it again: take others.")
        return None
    what = f"sentence{'s' * (n != 1)}, translated by the model itself"
    return Measured(("own", tuple(kept), n), pairs, n, what, own_output=True)


@cached(max_entries=24, spinner="Translating the sentences")
def _translated(lab: Lab, lines: tuple[str, ...]) -> tuple[Pair, ...]:
    longest = lab.model.config.max_length
    written = lab.translate(lines, DecodeConfig(max_length=longest - 1))  # to be read behind a start mark
    pairs = (Pair(line, target) for line, target in zip(lines, written, strict=True))
    return tuple(pair for pair in pairs if fits(pair, lab.tokenizer, longest))


def _file(context: PageContext, chosen: Choices) -> Measured | None:
    kinds = ", ".join(kinds_of_files())
    brought = st.file_uploader(
        f"A file of pairs ({kinds}): source, then target. It stays in this tab and is not in the link.", key=_FILE
    )
    if brought is None:
        return None
    digest, config = sha256(brought.getvalue()).hexdigest(), context.lab.model.config
    try:
        found, held_out = _read(brought.name, digest, brought.getvalue())
    except CorpusError as error:
        say(f"{str(error)[:1].upper()}{str(error)[1:]}.")
        return None
    pairs = _fitting(context.lab, digest, found)
    if not pairs:
        say(f"None of its {len(found):,} pairs fits into the model's {config.max_length} tokens.")
        return None
    which = "that the lab's rule holds out of training" if held_out else "of the file"
    return _at_most(("file", digest), pairs, chosen, f"pairs {which}")


@cached(max_entries=4, spinner="Reading the file", shared=True)
def _fitting(lab: Lab, digest: str, _found: Sequence[Pair]) -> tuple[Pair, ...]:
    return tuple(pair for pair in _found if fits(pair, lab.tokenizer, lab.model.config.max_length))


@cached(max_entries=4, spinner="Reading the file")
def _read(name: str, digest: str, _content: bytes) -> tuple[Sequence[Pair], bool]:
    """The pairs of a file that the split rule puts to validation; all, where they are few."""
    pairs, report = clean_pairs(rows_of(name, _content, limit=MAX_UPLOAD_BYTES))
    if not pairs:
        raise CorpusError(f"{name} has no pair that can be used ({report})")
    kept = [pair for pair in pairs if split_of(pair.source) == "validation"]
    return (kept, True) if len(kept) >= FEW else (pairs, False)
