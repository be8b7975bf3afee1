"""The sentences that the Heads page measures on: validation pairs, a file of pairs, or the visitor's own."""

from collections.abc import Sequence
from functools import partial
from hashlib import sha256

import streamlit as st

from pages.heads.choices import COUNTS, MAX_LINES, Choices, Data, area, box, segments
from pages.shared import loading
from pages.shared.cache import cached
from pages.shared.context import PageContext, say, sentence
from pages.shared.wording import plain
from pages.training.columns import choose_columns
from transformer.analysis.heads.pair_sample import PairSample, validation_sample
from transformer.config import DecodeConfig
from transformer.data.batches import encode_sources, fits
from transformer.data.cleaning import CleaningReport
from transformer.data.corpus_snapshot import AbsentCorpus
from transformer.data.pair_files import Columns, columns_of, kinds_of_files, pairs_of
from transformer.data.unpacking import CorpusError
from transformer.data.uploads import MAX_UPLOAD_BYTES
from transformer.interventions.names import plural
from transformer.lab import Lab
from transformer.text.pairs import Pair, shuffled, split_of

FEW = 20
"""The page says that there are few pairs below this number."""
_FILE = "heads-file"
_COLUMNS = "heads-file-columns"
"""The key of the columns chosen by hand, by the digest of their file."""
_ENGLISH = (
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
_SENTENCES = {"everyday-en-fr": _ENGLISH, "everyday-en-de": _ENGLISH}
"""Sentences to begin with for shipped models that come without their corpus."""


def choose_data(context: PageContext, chosen: Choices) -> PairSample | None:
    """Renders a button behind which the pairs are chosen; returns them, or None after saying that there are none."""
    own, missing = _validation(context.lab)
    offered: dict[Data, str] = {"validation": "Validation pairs"} if own else {}
    offered |= {"own": "Your own sentences", "file": "A file of pairs"}
    data = chosen.data if chosen.data in offered else next(iter(offered))
    if missing and data == "own":
        st.markdown(missing)
    with st.popover("Measure on other sentences"):
        segments("data", "Measured on", offered, data)
        if data != "own":
            _choose_count(chosen)
        match data:
            case "validation":
                found = own and own.first(chosen.max_pairs)
            case "own":
                found = _sentences(context, chosen)
            case "file":
                found = _file(context, chosen)
    if found is None:
        st.markdown("There is nothing to measure on yet: add a file or type sentences with the button above.")
    elif (n := len(found.pairs)) < FEW:
        st.caption(f"{n} {plural(n, 'sentence')} say little about what a head usually does: use a few dozen.")
    return found


def _choose_count(chosen: Choices) -> None:
    most = chosen.max_pairs or "all"
    slow = "Every head is removed in turn: using all pairs takes minutes." if chosen.section == "worth" else None
    box("pairs", "Maximum pairs", (*COUNTS, "all"), most, lambda n: n if n == "all" else f"{n:,}", help=slow)


@cached(max_entries=8, spinner="Reading the corpus", shared=True, also=loading.may_read_corpus)
def _validation(lab: Lab) -> tuple[PairSample | None, str]:
    """Returns the model's own validation pairs, or None with a sentence that says why there are none."""
    try:
        return validation_sample(lab.checkpoint), ""
    except AbsentCorpus as error:
        return None, (
            f"{plain(str(error))}, so its heads are measured on your own sentences, as the model translates them. "
            "Add the file of pairs, or one like it, to measure on real translations."
        )
    except (CorpusError, ValueError) as error:
        return None, f"There are no validation pairs to measure on: {plain(str(error))}."


def offered_lines(lab: Lab, text: str) -> tuple[str, ...]:
    """Sentences to begin with: the one on the page, and the examples of the model."""
    return tuple(dict.fromkeys((text, *loading.examples(lab), *_SENTENCES.get(lab.name, ()))))


def _sentences(context: PageContext, chosen: Choices) -> PairSample | None:
    lines = [line.strip() for line in chosen.lines.splitlines() if line.strip()]
    lines = lines or list(offered_lines(context.lab, context.view.text))
    area("lines", "Sentences, one per line", "\n".join(lines), limit=MAX_LINES)
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
        say("The model's translations of these sentences do not fit back into it: try others.")
        return None
    what = f"{plural(n, 'sentence')}, translated by the model itself"
    return PairSample(pairs, n, what, own_output=True)


@cached(max_entries=24, spinner="Translating the sentences")
def _translated(lab: Lab, lines: tuple[str, ...]) -> tuple[Pair, ...]:
    longest = lab.model.config.max_length
    written = lab.translate(lines, DecodeConfig(max_length=longest - 1))  # to be read behind a start mark
    pairs = (Pair(line, target) for line, target in zip(lines, written, strict=True))
    return tuple(pair for pair in pairs if fits(pair, lab.tokenizer, longest))


def _file(context: PageContext, chosen: Choices) -> PairSample | None:
    kinds = ", ".join(kinds_of_files())
    brought = st.file_uploader(f"A file of pairs ({kinds}). It stays in this tab and is not in the link.", key=_FILE)
    if brought is None:
        return None
    name, content, config = brought.name, brought.getvalue(), context.lab.model.config
    digest = sha256(content).hexdigest()
    columns = st.session_state.get(_COLUMNS, {}).get(digest)
    try:
        offered = _offered(name, digest, content, columns)
        choose_columns(offered, partial(_take_columns, digest), key="heads-columns")
        found, held_out, report = _read(name, digest, content, columns)
    except CorpusError as error:
        say(sentence(str(error)))
        return None
    st.caption(plain(sentence(str(report))))
    pairs = _fitting(context.lab, (digest, columns), found)
    if not pairs:
        say(f"None of its {len(found):,} pairs fits into the model's {config.max_length} tokens.")
        return None
    which = "that the lab's split rule would hold out of training" if held_out else "of the file"
    return PairSample(pairs, len(pairs), f"pairs {which}").first(chosen.max_pairs)


@cached(max_entries=4, spinner="Reading the file", shared=True)
def _fitting(lab: Lab, file: tuple[str, str | None], _found: Sequence[Pair]) -> tuple[Pair, ...]:
    return tuple(pair for pair in _found if fits(pair, lab.tokenizer, lab.model.config.max_length))


def _take_columns(digest: str, columns: str) -> None:
    st.session_state[_COLUMNS] = {digest: columns}


@cached(max_entries=4, spinner="Reading the file", shared=True)
def _offered(name: str, digest: str, _content: bytes, columns: str | None) -> Columns:
    return columns_of(name, _content, columns, limit=MAX_UPLOAD_BYTES)


@cached(max_entries=4, spinner="Reading the file")
def _read(name: str, digest: str, _content: bytes, columns: str | None) -> tuple[Sequence[Pair], bool, CleaningReport]:
    """Returns the pairs of a file that the split rule holds out for validation, or all of them if these are few, in
    an order of which the beginning is a fair sample; and how it was read."""
    pairs, report = pairs_of(name, _content, columns, limit=MAX_UPLOAD_BYTES).clean()
    if not pairs:
        raise CorpusError(f"{name} has no usable pair ({report})")
    kept = [pair for pair in pairs if split_of(pair.source) == "validation"]
    return shuffled(kept if len(kept) >= FEW else pairs), len(kept) >= FEW, report
