"""What the Decoder steps page computes beside decodings, computed once and shared by all visitors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import streamlit as st
from jaxtyping import Float
from numpy import ndarray

from pages.common import loading
from transformer.analysis.exposure import AtPosition, TwoReadings, exposure, two_readings
from transformer.analysis.inside import Inside, look_inside
from transformer.corpora import CorpusError, load_corpus
from transformer.data import fits
from transformer.lab import AttentionKind, Inspection, Lab
from transformer.pairs import Pair

N_PAIRS = 300
"""Validation pairs over which exposure bias is measured, the first ones."""


@dataclass(frozen=True)
class Usual:
    """What the model does without switches after a road's words, teacher-forced."""

    log_probs: Float[ndarray, "step vocab"]
    weights: dict[AttentionKind, Float[ndarray, "layer head query key"]]


def get_usual(lab: Lab, road: Inspection) -> Usual:
    """A road under switches read again without them, remembered."""
    switches = tuple(map(str, road.interventions))
    return _usual(lab.name, loading.age_of(lab), road.text, switches, road.forced)


def get_inside(lab: Lab, road: Inspection, step: int, switches: Sequence[object]) -> Inside:
    """`look_inside` of a step of a road, under these switches (which may be others than the road's), remembered."""
    ids = (road.source_ids, road.target_ids[:step])
    return _inside(lab.name, loading.age_of(lab), ids, step, tuple(map(str, switches)))


def get_two_readings(lab: Lab, source: Sequence[int], ids: Sequence[int], switches: Sequence[object]) -> TwoReadings:
    """`two_readings` of a reference, remembered; ValueError where it is too long."""
    return _two_readings(lab.name, loading.age_of(lab), tuple(source), tuple(ids), tuple(map(str, switches)))


@st.cache_data(max_entries=16, show_spinner=False)
def validation_pairs(name: str, age: int) -> tuple[Pair, ...]:
    """The first pairs of a model's validation split that it can read; none where its corpus is not here any more."""
    lab = loading.get_lab(name)
    try:
        found = load_corpus(lab.checkpoint.corpus_config).validation
    except (CorpusError, OSError):
        return ()
    longest = lab.model.config.max_length
    return tuple(pair for pair in found[: 2 * N_PAIRS] if fits(pair, lab.tokenizer, longest))[:N_PAIRS]


Measured = tuple[AtPosition, ...]


def measured(lab: Lab, switches: Sequence[object]) -> Measured | None:
    """Exposure bias by position as it was measured before, by whomever; None where it was not."""
    return _measurements().get(_key(lab, switches))


def measure(lab: Lab, switches: Sequence[object]) -> Iterator[float]:
    """Measures it, telling the share done; `measured` has it afterwards."""
    pairs = validation_pairs(lab.name, loading.age_of(lab))
    specs = loading.get_resolved(lab, switches)
    found: Measured = ()
    for done, so_far in exposure(lab.model, pairs, lab.tokenizer, specs, batch_tokens=512):
        found = so_far
        yield done / len(pairs)
    store = _measurements()
    while len(store) >= 64:
        store.pop(next(iter(store)))
    store[_key(lab, switches)] = found


def _key(lab: Lab, switches: Sequence[object]) -> tuple:
    return lab.name, loading.age_of(lab), tuple(map(str, switches))


@st.cache_resource(max_entries=1)
def _measurements() -> dict[tuple, Measured]:
    return {}


@st.cache_data(max_entries=32, show_spinner=False)
def _usual(name: str, age: int, text: str, switches: tuple[str, ...], forced: tuple[tuple[int, int], ...]) -> Usual:
    lab = loading.get_lab(name)
    road = loading.get_road(lab, text, switches, forced)
    found = lab.attention_on(road, ())
    weights: dict[AttentionKind, ndarray] = {kind: attention.weights for kind, attention in found.items()}
    return Usual(lab.without_switches(road), weights)


@st.cache_data(max_entries=128, show_spinner=False)
def _inside(
    name: str, age: int, ids: tuple[tuple[int, ...], tuple[int, ...]], step: int, switches: tuple[str, ...]
) -> Inside:
    source, target = ids
    lab = loading.get_lab(name)
    return look_inside(lab.model, source, target, step, loading.get_resolved(lab, switches))


@st.cache_data(max_entries=64, show_spinner=False)
def _two_readings(
    name: str, age: int, source: tuple[int, ...], reference: tuple[int, ...], switches: tuple[str, ...]
) -> TwoReadings:
    lab = loading.get_lab(name)
    return two_readings(lab.model, source, reference, loading.get_resolved(lab, switches))
