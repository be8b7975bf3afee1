"""Results that the Decoder steps page shares among its views and visitors, beside decodings."""

from collections.abc import Sequence

import streamlit as st
from jaxtyping import Float
from numpy import ndarray

from pages.shared import loading
from pages.shared.background import Background, Work
from pages.shared.cache import cached, lab_key
from pages.shared.waiting import session_watcher
from transformer.analysis.steps.exposure_bias import Exposure, exposure_bias, readable_pairs
from transformer.analysis.steps.logit_lens import LogitLens, logit_lens
from transformer.analysis.steps.search_tree import SearchTree, search_tree
from transformer.config import LengthNorm
from transformer.data.corpora import CorpusError, load_corpus
from transformer.lab import Inspection, Lab
from transformer.text.pairs import Pair


@cached(max_entries=128)
def get_branch(lab: Lab, text: str, switches: Sequence[object], forced: Sequence[tuple[int, int]]) -> Inspection:
    """Returns `lab.inspect` with forced tokens; ValueError for a token that cannot be written."""
    specs = loading.get_resolved(lab, switches)
    with loading.a_turn():
        return lab.inspect(text, specs, dict(forced))


@cached(max_entries=32)
def get_baseline(lab: Lab, branch: Inspection) -> Float[ndarray, "step vocab"]:
    """Returns the log-probabilities of a branch under switches read again without them."""
    return lab.without_switches(branch)


@cached(max_entries=64)
def get_search(
    lab: Lab,
    text: str,
    switches: Sequence[object],
    *,
    size: int,
    alpha: float,
    norm: LengthNorm,
    early_stopping: bool,
) -> SearchTree:
    """Returns `search_tree` of a text."""
    specs, source = loading.get_resolved(lab, switches), loading.get_inspection(lab, text).source_ids
    return search_tree(lab.model, source, specs, size=size, alpha=alpha, norm=norm, early_stopping=early_stopping)


@cached(max_entries=128)
def get_logit_lens(lab: Lab, branch: Inspection, step: int, switches: Sequence[object]) -> LogitLens:
    """Returns `logit_lens` of a step of a branch, under these switches (which may be others than the branch's)."""
    specs = loading.get_resolved(lab, switches)
    return logit_lens(lab.transformer, branch.source_ids, branch.target_ids[:step], step, specs)


@cached(max_entries=16, also=loading.may_read_corpus)
def validation_pairs(lab: Lab) -> tuple[Pair, ...]:
    """Returns the pairs over which exposure bias is measured; none where the model's corpus is gone."""
    try:
        found = load_corpus(lab.checkpoint.corpus_config).validation
    except (CorpusError, OSError):
        return ()
    return readable_pairs(found, lab.tokenizer, lab.model.config.max_length)


@st.cache_resource
def _measurements() -> Background:
    return Background("exposure bias", kept=64)


def measured_exposure(lab: Lab, switches: Sequence[object]) -> Work[Exposure] | None:
    """Returns the measurement of exposure bias: done by anyone, or under way and awaited by this visitor."""
    work = _measurements().find(_key(lab, switches))
    if work is None or work.stopped:
        return None
    return work if work.over.is_set() or work.is_awaited_by(session_watcher()) else None


def measure_exposure(lab: Lab, switches: Sequence[object]) -> None:
    """Begins the measurement in the background, or joins it; it goes on while a visitor who waits for it is here."""
    specs, pairs = loading.get_resolved(lab, switches), validation_pairs(lab)
    _measurements().submit(
        _key(lab, switches),
        lambda tell: exposure_bias(lab.model, pairs, lab.tokenizer, specs, tell=tell),
        session_watcher(),
    )


def leave_exposure(lab: Lab, switches: Sequence[object]) -> None:
    """Ends this visitor's wait for the measurement, and the measurement itself if nobody else waits for it."""
    _measurements().leave(_key(lab, switches), session_watcher())


def _key(lab: Lab, switches: Sequence[object]) -> tuple[object, ...]:
    return lab_key(lab), tuple(map(str, switches))
