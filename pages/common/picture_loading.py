"""What pictures of attention need beyond the inspection, remembered between reruns."""

import streamlit as st

from pages.common import loading
from transformer.analysis.vectors import Vectors, record_vectors
from transformer.lab import KIND_SITES, AttentionKind, Inspection, Lab


def get_vectors(lab: Lab, seen: Inspection, kind: AttentionKind) -> Vectors:
    """`record_vectors` of an inspection's own decoding, remembered."""
    switches = tuple(map(str, seen.interventions))
    return _vectors(lab.name, loading.age_of(lab), seen.source_ids, switches, kind)


@st.cache_data(max_entries=32, show_spinner=False)
def _vectors(name: str, age: int, source: tuple[int, ...], switches: tuple[str, ...], kind: AttentionKind) -> Vectors:
    stack, block = KIND_SITES[kind]
    lab = loading.get_lab(name)
    return record_vectors(lab.model, source, loading.get_resolved(lab, switches), stack, block)
