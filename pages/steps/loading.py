"""What the Decoder steps page computes beside decodings, computed once and shared by all visitors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import streamlit as st
from jaxtyping import Float
from numpy import ndarray

from pages.shared import loading
from pages.shared.cache import cached, lab_key
from transformer.analysis.steps.exposure_bias import AtPosition, ReferenceLosses, exposure, reference_losses
from transformer.analysis.steps.logit_lens import LogitLens, logit_lens
from transformer.data.batches import fits
from transformer.data.corpora import CorpusError, load_corpus
from transformer.lab import AttentionKind, Inspection, Lab
from transformer.text.pairs import Pair

N_PAIRS = 300
"""Validation pairs over which exposure bias is measured, the first ones."""


@dataclass(frozen=True)
class Baseline:
    """What the model does without switches after a road's words, teacher-forced."""

    log_probs: Float[ndarray, "step vocab"]
    weights: dict[AttentionKind, Float[ndarray, "layer head query key"]]


@cached(max_entries=32)
def get_baseline(lab: Lab, road: Inspection) -> Baseline:
    """A road under switches read again without them, remembered."""
    found = lab.attention_on(road, ())
    weights: dict[AttentionKind, ndarray] = {kind: attention.weights for kind, attention in found.items()}
    return Baseline(lab.without_switches(road), weights)


@cached(max_entries=128)
def get_logit_lens(lab: Lab, road: Inspection, step: int, switches: Sequence[object]) -> LogitLens:
    """`logit_lens` of a step of a road, under these switches (which may be others than the road's), remembered."""
    return logit_lens(lab.model, road.source_ids, road.target_ids[:step], step, loading.get_resolved(lab, switches))


@cached(max_entries=64)
def get_two_readings(lab: Lab, source: Sequence[int], ids: Sequence[int], switches: Sequence[object]) -> ReferenceLosses:
    """`reference_losses` of a reference, remembered; ValueError where it is too long."""
    return reference_losses(lab.model, source, ids, loading.get_resolved(lab, switches))


@cached(max_entries=16)
def validation_pairs(lab: Lab) -> tuple[Pair, ...]:
    """The first pairs of a model's validation split that it can read; none where its corpus is not here any more."""
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
    pairs = validation_pairs(lab)
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
    return lab_key(lab), tuple(map(str, switches))


@st.cache_resource(max_entries=1)
def _measurements() -> dict[tuple, Measured]:
    return {}
