"""The bench: shipped models, and what lessons and the gallery ask of them. No Streamlit here: tests use their own."""

from typing import Protocol

from transformer.analysis.reach.vector_probe import VectorProbe
from transformer.experiments.results import Results
from transformer.lab import Comparison, Inspection, Lab

Pairs = tuple[tuple[str, str], ...]
"""Sources with their right targets."""


class Bench(Protocol):
    """Shipped models and what they do. Each result is computed once and then remembered."""

    def lab(self, name: str) -> Lab:
        """Returns a shipped model."""
        ...

    def seen(self, name: str, text: str, *switches: str) -> Inspection:
        """Returns a text decoded by a model under switches, in the form that links have."""
        ...

    def compared(self, name: str, text: str, *switches: str) -> Comparison:
        """Returns a text decoded without and with switches."""
        ...

    def written(self, name: str, pairs: Pairs, *switches: str) -> tuple[str, ...]:
        """Returns what the model, under switches, writes for the source of each pair."""
        ...

    def right(self, name: str, pairs: Pairs, *switches: str) -> tuple[bool, ...]:
        """Tells of each pair whether the model, under switches, writes its target."""
        written = self.written(name, pairs, *switches)
        return tuple(text == target for text, (_, target) in zip(written, pairs, strict=True))

    def probe(self, name: str) -> VectorProbe:
        """Returns the linear probes of a recurrent model's vector."""
        ...

    def results(self, experiment: str) -> Results:
        """Returns the shipped results of an experiment."""
        ...
