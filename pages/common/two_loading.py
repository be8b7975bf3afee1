"""Both sides of Two at once: models as they ended or as a snapshot has them, decodings, and heads brought together."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from pages.common import loading, switch_names
from transformer.analysis.matching import Matching, Read, match_heads
from transformer.checkpoint import load_checkpoint
from transformer.interventions import Intervention, parse_intervention
from transformer.lab import Attention, AttentionKind, Inspection, Lab
from transformer.runs import RunError, snapshots
from transformer.settings import CheckpointError, find_checkpoint

SENTENCES = 6
"""On which heads are matched, beside the page's own: enough to tell heads apart, few enough for a page."""


@dataclass(frozen=True)
class Side:
    """One of the two: a model at a step of its run, a sentence, and what the model made of it."""

    lab: Lab
    step: str
    """Empty: the weights that it ended with."""
    seen: Inspection
    left_out: tuple[str, ...]
    """Sentences about switches that this model cannot take."""

    @property
    def name(self) -> str:
        """The model, with its step where it is a snapshot."""
        return f"{self.lab.name}, step {int(self.step):,}" if self.step else self.lab.name


def steps_of(name: str) -> tuple[str, ...]:
    """The steps at which weights of this model were kept; none for a shipped one."""
    try:
        return tuple(str(step) for step in snapshots(name))
    except RunError:
        return ()


def get_lab_at(name: str, step: str) -> Lab:
    """The model, at a step of its run where one is named; CheckpointError where there is no such thing."""
    if not step:
        return loading.get_lab(name)
    kept = {str(number): path for number, path in _snapshots(name).items()}
    if step not in kept:
        found = f"there are {', '.join(list(kept)[:12])}" if kept else "it kept none"
        raise CheckpointError(f"there is no snapshot of step {step} of {name}: {found}")
    return _lab_at(name, str(kept[step]), kept[step].stat().st_mtime_ns)


def side(name: str, step: str, text: str, switches: Sequence[Intervention]) -> Side:
    """The decoding of a text by a model at a step; CheckpointError or ValueError where that cannot be had."""
    lab = get_lab_at(name, step)
    usable, left_out = [], []
    for spec in switches:
        try:
            lab.resolved([spec], n_source=lab.n_source_tokens(text))
            usable.append(spec)
        except ValueError as error:
            left_out.append(switch_names.left_out(spec, error, f" for {name}"))
    return Side(lab, step, _inspection(name, step, _age(name, step), text, tuple(map(str, usable))), tuple(left_out))


def same_words(first: Lab, second: Lab) -> bool:
    """Whether both models have the same vocabulary, so that one can read what the other wrote."""
    return first.tokenizer.vocabulary() == second.tokenizer.vocabulary()


def read_same(on: Side, reader: Side, kind: AttentionKind) -> Attention:
    """What a model's heads look at while it reads the sentence and the output of another, teacher-forced.

    ValueError where they are too long for it.
    """
    return reader.lab.attention_on(on.seen, reader.seen.interventions)[kind]


def get_matching(first: Side, second: Side, kind: AttentionKind) -> Matching:
    """The heads of both models brought together on several sentences, each with the first model's output."""
    keys = [(side.lab.name, side.step, _age(side.lab.name, side.step)) for side in (first, second)]
    switches = [tuple(map(str, side.seen.interventions)) for side in (first, second)]
    return _matching(keys[0], keys[1], texts_of(first), switches[0], switches[1], kind)


def texts_of(first: Side) -> tuple[str, ...]:
    """The sentences on which heads are matched: the page's, and examples of its model."""
    return tuple(dict.fromkeys((first.seen.text, *loading.examples(first.lab)[:SENTENCES])))


def read_texts(
    first: Lab,
    second: Lab,
    texts: Sequence[str],
    first_switches: Sequence[Intervention],
    second_switches: Sequence[Intervention],
    kind: AttentionKind,
) -> tuple[list[Read], list[Read]]:
    """What the heads of both look at while they read each text and the first model's output of it."""
    reads: tuple[list[Read], list[Read]] = [], []
    for text in texts:
        seen = first.inspect(text, first_switches)
        for found, lab, switches in zip(reads, (first, second), (first_switches, second_switches), strict=True):
            shown = lab.attention_on(seen, switches)[kind]
            found.append(Read(shown.weights, shown.mask))
    return reads


@st.cache_data(max_entries=32, show_spinner="Bringing the heads of both models together")
def _matching(
    first: tuple[str, str, int],
    second: tuple[str, str, int],
    texts: tuple[str, ...],
    first_switches: tuple[str, ...],
    second_switches: tuple[str, ...],
    kind: AttentionKind,
) -> Matching:
    labs = [get_lab_at(name, step) for name, step, _ in (first, second)]
    switches = [[parse_intervention(text) for text in own] for own in (first_switches, second_switches)]
    return match_heads(*read_texts(labs[0], labs[1], texts, switches[0], switches[1], kind))


@st.cache_data(max_entries=64, show_spinner=False)
def _inspection(name: str, step: str, age: int, text: str, switches: tuple[str, ...]) -> Inspection:
    return get_lab_at(name, step).inspect(text, [parse_intervention(switch) for switch in switches])


@st.cache_resource(max_entries=6, show_spinner="Opening a snapshot")
def _lab_at(name: str, path: str, age: int) -> Lab:
    return Lab(load_checkpoint(find_checkpoint(name, folders=False), weights=Path(path)))


def _snapshots(name: str) -> dict[int, Path]:
    try:
        return snapshots(name)
    except RunError:
        return {}


def _age(name: str, step: str) -> int:
    return _snapshots(name)[int(step)].stat().st_mtime_ns if step else loading.age_of(loading.get_lab(name))
