"""The models and measurements of lessons without the pages' caches, loaded and made anew."""

from functools import cache

from pages.shared.bench.bench import Bench, Pairs
from pages.shared.bench.decoding import written_for
from transformer.analysis.reach.vector_probe import VectorProbe, probe_vector
from transformer.experiments.results import Results, load_results
from transformer.interventions import parse_intervention
from transformer.lab import Comparison, Inspection, Lab, load

_load = cache(load)


@cache
def _seen(name: str, text: str, switches: tuple[str, ...]) -> Inspection:
    return _load(name).inspect(text, [parse_intervention(switch) for switch in switches])


@cache
def _probe(name: str) -> VectorProbe:
    return probe_vector(_load(name).checkpoint)


class PlainBench(Bench):
    """What lessons ask for, from the library alone; models and decodings are made once for all tests."""

    def lab(self, name: str) -> Lab:
        return _load(name)

    def seen(self, name: str, text: str, *switches: str) -> Inspection:
        return _seen(name, text, switches)

    def compared(self, name: str, text: str, *switches: str) -> Comparison:
        return _load(name).effect(_seen(name, text, ()), _seen(name, text, switches))

    def written(self, name: str, pairs: Pairs, *switches: str) -> tuple[str, ...]:
        return written_for(_load(name), pairs, switches)

    def probe(self, name: str) -> VectorProbe:
        return _probe(name)

    def results(self, experiment: str) -> Results:
        return load_results(experiment)
