"""Sets of interventions: what several come to on one page, and the one tap that applies them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from torch import Tensor

from transformer.interventions.protocol import Applied, Intervention
from transformer.model.seq2seq import Seq2Seq
from transformer.model.taps import Site, Tap


def merged(specs: Iterable[Intervention]) -> tuple[Intervention, ...]:
    """The same interventions, each once, with the heads of one block in one of them.

    Of two for one head, one row or the positions of one stack the last one counts.
    """
    kept: list[Intervention] = []
    for part in chain.from_iterable(spec.parts() for spec in specs):
        if part not in kept:
            kept = [*(earlier for earlier in kept if not part.replaces(earlier)), part]
    groups: dict[tuple[str | float, ...], list[Intervention]] = {}
    for part in kept:
        if part.group:
            groups.setdefault(part.group, []).append(part)
    joined = (first.joined(others) for _, (first, *others) in sorted(groups.items()))
    return (*joined, *(part for part in kept if not part.group))


def superseded_notes(specs: Iterable[Intervention]) -> tuple[str, ...]:
    """Returns a sentence for each part that `merged` leaves out in favour of a later one."""
    kept: list[Intervention] = []
    notes = []
    for part in chain.from_iterable(spec.parts() for spec in specs):
        if part in kept:
            continue
        for earlier in [other for other in kept if part.replaces(other)]:
            notes.append(f"“{earlier.label()}” gives way to “{part.label()}”: of two for one thing the last counts.")
            kept.remove(earlier)
        kept.append(part)
    return tuple(notes)


def compile_interventions(specs: Iterable[Intervention], model: Seq2Seq) -> Tap | None:
    """One tap that applies all specs, each checked against the model and the others; None for no spec."""
    ordered = sorted(dict.fromkeys(specs), key=lambda spec: spec.order)
    at_site: dict[Site, list[Applied]] = {}
    for spec in ordered:
        for site in spec.sites(model):
            at_site.setdefault(site, []).append(spec.bound(model, ordered))
    for spec in reversed(ordered):  # of two that clash the later one is named
        spec.check_with([other for other in ordered if other != spec])
    return _Interventions(at_site, any(spec.needs_recomputation for spec in ordered)) if ordered else None


@dataclass(frozen=True)
class _Interventions:
    at_site: Mapping[Site, Sequence[Applied]]
    needs_recomputation: bool

    def __call__(self, site: Site, tensor: Tensor) -> Tensor:
        for spec in self.at_site.get(site, ()):
            tensor = spec.apply(site, tensor)
        return tensor
