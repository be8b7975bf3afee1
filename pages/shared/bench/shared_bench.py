"""The bench of the pages: what it was asked is computed once and shared by all visitors."""

from pages.shared import loading
from pages.shared.bench.bench import Bench, Pairs
from pages.shared.bench.decoding import written_for
from pages.shared.cache import cached
from transformer.analysis.reach.vector_probe import VectorProbe, probe_vector
from transformer.experiments.results import Results, load_results
from transformer.lab import Comparison, Inspection, Lab


class SharedBench(Bench):
    """The pages' bench: what it was asked once it remembers."""

    def lab(self, name: str) -> Lab:
        """Returns a shipped model; CheckpointError if it is gone."""
        return loading.get_lab(name)

    def seen(self, name: str, text: str, *switches: str) -> Inspection:
        """Returns a text decoded under switches."""
        return loading.get_inspection(self.lab(name), text, switches)

    def compared(self, name: str, text: str, *switches: str) -> Comparison:
        """Returns a text decoded without and with switches."""
        return loading.get_comparison(self.lab(name), text, switches)

    def written(self, name: str, pairs: Pairs, *switches: str) -> tuple[str, ...]:
        """Returns what the model writes for the source of each pair."""
        return _written(self.lab(name), pairs, switches)

    def probe(self, name: str) -> VectorProbe:
        """Returns the probes of a model's vector."""
        return _probe(self.lab(name))

    def results(self, experiment: str) -> Results:
        """Returns the shipped results of an experiment."""
        return load_results(experiment)


BENCH = SharedBench()


@cached(max_entries=64, shared=True)
def _written(lab: Lab, pairs: Pairs, switches: tuple[str, ...]) -> tuple[str, ...]:
    return written_for(lab, pairs, switches)


@cached(max_entries=4, shared=True)
def _probe(lab: Lab) -> VectorProbe:
    return probe_vector(lab.checkpoint)
