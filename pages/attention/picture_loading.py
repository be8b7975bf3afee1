"""What pictures of attention need beyond the inspection, remembered between reruns."""

from pages.shared import loading
from pages.shared.cache import cached
from transformer.analysis.attention.vectors import Vectors, record_vectors
from transformer.lab import AttentionKind, Inspection, Lab


@cached(max_entries=32)
def get_vectors(lab: Lab, seen: Inspection, kind: AttentionKind) -> Vectors:
    """`record_vectors` of an inspection's own decoding, remembered."""
    stack, sublayer = kind.where
    return record_vectors(lab.model, seen.source_ids, loading.get_resolved(lab, seen.interventions), stack, sublayer)
