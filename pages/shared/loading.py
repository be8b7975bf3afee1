"""Models and results, loaded once and shared. What a training run writes later under the same name is seen."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

import streamlit as st

from pages.shared.background import Background, Tell, Watcher, Work
from pages.shared.cache import cached, lab_key
from pages.shared.serving.machine import cores
from transformer.access.ownership import may_take
from transformer.checkpoints.settings import WEIGHTS_FILE, CheckpointError, Found, find_checkpoint, list_checkpoints
from transformer.data.corpora import CorpusError, load_corpus
from transformer.data.pronouns.reading import read as read_pronoun_sentence
from transformer.interventions import Intervention, parse_intervention
from transformer.lab import Comparison, Inspection, Lab, load
from transformer.text.pairs import Pair
from transformer.text.sentence import Sentence

FIRST_CHOICE = "pronouns-en-fr"
CLASSIC = "The animal did not cross the street because it was too tired."
_DECODINGS = Background("decoding", at_once=cores(), kept=0)
_TURNS = threading.BoundedSemaphore(cores())


def models() -> tuple[Found, ...]:
    """Returns every model that can be opened: shipped ones, then runs, the newest first."""
    return list_checkpoints()


def first_choice(found: Sequence[Found]) -> str:
    """Returns the name of the model that a visitor meets first."""
    names = [model.name for model in found]
    return FIRST_CHOICE if FIRST_CHOICE in names else names[0]


def _written_ns(name: str) -> int:
    folder = find_checkpoint(name, folders=False)
    try:
        return (folder / WEIGHTS_FILE).stat().st_mtime_ns
    except FileNotFoundError:
        raise CheckpointError(f"the model in {folder.name} is gone; choose another one") from None


@cached(max_entries=6, shared=True, also=_written_ns)
def get_lab(name: str) -> Lab:
    """Returns the model of this name (never a path); CheckpointError if there is none."""
    return load(name)


@cached(max_entries=128)
def get_resolved(lab: Lab, switches: Sequence[object]) -> tuple[Intervention, ...]:
    """Returns the switches with what they need from elsewhere, cached; ValueError if that cannot be had."""
    specs = [parse_intervention(str(switch)) for switch in switches]
    waiting = [spec.preparation for spec in specs if spec.preparation]
    with st.spinner(waiting[0]) if waiting else nullcontext():
        return lab.resolved(specs)


@cached(max_entries=128, shared=True)
def get_sentence(lab: Lab, text: str) -> Sentence:
    """Returns the text as the model reads it, remembered; ValueError for one that it cannot read."""
    return lab.sentence(text)


@cached(max_entries=128, shared=True)
def get_inspection(lab: Lab, text: str, switches: Sequence[object] = (), _tell: Tell | None = None) -> Inspection:
    """`lab.inspect`, remembered; ValueError for a text that the model cannot read.

    `_tell` is told the share of the longest output after each step.
    """
    longest = lab.model.config.max_length

    def watch(n_steps: int, so_far: Callable[[], Inspection]) -> None:
        if _tell is not None:
            _tell(n_steps / longest, so_far)

    sentence, specs = get_sentence(lab, text), get_resolved(lab, switches)
    with a_turn():
        return lab.inspect(sentence, specs, watch=watch)


@contextmanager
def a_turn() -> Iterator[None]:
    """A block that waits until fewer sentences are being decoded than there are cores: more would slow all of them."""
    with _TURNS:
        yield


def decoding(lab: Lab, text: str, switches: Sequence[object], watcher: Watcher) -> Work[Inspection]:
    """Begins `get_inspection` in the background, or joins it: what is written so far can be looked at.

    The watcher leaves the decoding that it wanted before, which stops if nobody else waits for it.
    """
    key = lab_key(lab), text, tuple(map(str, switches))
    return _DECODINGS.submit_instead("decoding", key, lambda tell: get_inspection(lab, text, switches, tell), watcher)


@cached(max_entries=128, shared=True)
def get_comparison(lab: Lab, text: str, switches: Sequence[object]) -> Comparison:
    """`lab.compare`, remembered."""
    return lab.effect(get_inspection(lab, text), get_inspection(lab, text, switches))


@cached(max_entries=64)
def get_examples(name: str, corpus: str, pinned: tuple[str, ...]) -> tuple[str, ...]:
    """Sentences to offer for a model: its corpus's, then those pinned to its run."""
    try:
        offered = load_corpus(corpus).examples
    except CorpusError:  # an uploaded file that is not here any more
        offered = ()
    first = (CLASSIC,) if CLASSIC in offered else ()
    return tuple(dict.fromkeys((*first, *offered, *pinned)))


def examples(lab: Lab) -> tuple[str, ...]:
    """Sentences to offer for this model; those that its run follows are only for who may take from it."""
    settings = lab.checkpoint.settings
    pinned = settings.pinned if may_read_corpus(lab) else ()
    return get_examples(lab.name, settings.corpus.name, pinned)


def may_read_corpus(lab: Lab) -> bool:
    """Tells whether the visitor may see sentences that the model learned from or that its run follows."""
    return may_take(lab.checkpoint.folder)


def reference(lab: Lab, text: str) -> Pair | None:
    """Returns the right translation with its referent, if this model's corpus has a rule for it."""
    return read_pronoun_sentence(text) if lab.checkpoint.settings.corpus.name == "pronouns-en-fr" else None
