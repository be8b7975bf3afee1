"""What switches did: to each token's probability, to the output, and to the attention of one head."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool, Float
from numpy import ndarray

from transformer.analysis.attention.weight_checks import check_weights
from transformer.analysis.checks import Check, agree
from transformer.analysis.comparison.checks import check_most_moved, check_outputs
from transformer.analysis.figure_checks import check_comparison
from transformer.figures.attention.comparison import aligned_figure, difference_figure, probabilities_figure
from transformer.figures.tables import Table, numbered
from transformer.inspection.inspection import AttentionShift, Comparison
from transformer.lab import Lab
from transformer.model.kinds import AttentionKind, KindName

NAMES = "before", "after"
SHIFT_SAID = "after minus before, on the same words"
NEGLIGIBLE = 1e-6
"""A move of a weight that rounding alone can cause."""


@dataclass(frozen=True)
class ProbabilityData:
    """The original output's tokens before and after, each given the original tokens before it."""

    tokens: tuple[str, ...]
    before: Float[ndarray, "step"]
    after: Float[ndarray, "step"]
    kl_divergence: Float[ndarray, "step"]
    """Nats."""


@dataclass(frozen=True, kw_only=True)
class TokenProbabilities:
    """Each token's probability before and after, and how far its step's whole distribution moved."""

    name = "probabilities"

    def data(self, lab: Lab, comparison: Comparison) -> ProbabilityData:
        """What was measured on the original output, teacher-forced."""
        measured = comparison.forced_before, comparison.forced_after, comparison.kl_divergence
        return ProbabilityData(comparison.before.target_tokens, *measured)

    def figure(self, data: ProbabilityData, *, dark: bool = False) -> go.Figure:
        """Points above, bars below."""
        return probabilities_figure(data.tokens, data.before, data.after, data.kl_divergence, dark=dark)

    def tables(self, data: ProbabilityData) -> tuple[Table, ...]:
        """A row for each token."""
        values = np.stack((data.before, data.after, data.kl_divergence), axis=-1)
        return (Table("probability", values, numbered(data.tokens), [*NAMES, "KL divergence in nats"]),)

    def checks(self, lab: Lab, comparison: Comparison, data: ProbabilityData) -> Iterator[Check]:
        """Reads the output again in double precision, without and with the switches."""
        yield from check_comparison(
            lab.model,
            comparison.before.source_ids,
            comparison.before.target_ids,
            comparison.after.interventions,
            before=data.before,
            after=data.after,
            kl_divergence=data.kl_divergence,
        )


@dataclass(frozen=True)
class OutputsData:
    """Two outputs side by side."""

    tokens: tuple[tuple[str, ...], tuple[str, ...]]
    before: Float[ndarray, "step"]
    """The probability of each token."""
    after: Float[ndarray, "step"]
    aligned: tuple[tuple[int | None, int | None], ...]
    """The tokens that stand for each other, by the fewest edits."""


@dataclass(frozen=True, kw_only=True)
class BothOutputs:
    """The outputs without and with the switches, token beside token."""

    name = "before-and-after"

    def data(self, lab: Lab, comparison: Comparison) -> OutputsData:
        """The free-running outputs, aligned."""
        before, after = comparison.before, comparison.after
        tokens = before.target_tokens, after.target_tokens
        return OutputsData(tokens, before.probabilities, after.probabilities, comparison.alignment)

    def figure(self, data: OutputsData, *, dark: bool = False) -> go.Figure:
        """Two columns of tokens."""
        return aligned_figure(data.tokens, (data.before, data.after), data.aligned, names=NAMES, dark=dark)

    def tables(self, data: OutputsData) -> tuple[Table, ...]:
        """A table for each output."""
        sides = zip(NAMES, data.tokens, (data.before, data.after), strict=True)
        return tuple(Table(name, p[:, None], numbered(tokens), ["probability"]) for name, tokens, p in sides)

    def checks(self, lab: Lab, comparison: Comparison, data: OutputsData) -> Iterator[Check]:
        """Reads both outputs again, and counts the edits between them again."""
        yield from check_outputs(lab.model, comparison)
        for name, shown, seen in zip(
            NAMES, (data.before, data.after), (comparison.before, comparison.after), strict=True
        ):
            how = "tokens looked up one by one"
            own = [np.exp(row[token]) for row, token in zip(seen.log_probs, seen.target_ids, strict=True)]
            yield agree(f"Drawn {name} are the probabilities of the output", shown, own, 1e-6, how)
        pairs = [[-1 if i is None else i, -1 if j is None else j] for i, j in data.aligned]
        own = [[-1 if i is None else i, -1 if j is None else j] for i, j in comparison.alignment]
        yield agree("Tokens stand beside each other as aligned", pairs, own, 0, "every pair compared")


@dataclass(frozen=True)
class DifferenceData:
    """One head's weights on the original output, without and with the switches."""

    before: Float[ndarray, "query key"]
    after: Float[ndarray, "query key"]
    mask: Bool[ndarray, "query key"]
    """True where the query may see the key before or after."""
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    moved: float
    """The largest change of a weight of any head."""
    most: tuple[str, int, int]
    """The kind, layer and head in which it is."""


@dataclass(frozen=True, kw_only=True)
class AttentionDifference:
    """What switches changed in one head's weights, on the words of the original output."""

    kind: KindName
    layer: int
    head: int
    name = "difference-{kind}-layer{layer}-head{head}"

    def data(self, lab: Lab, comparison: Comparison) -> DifferenceData:
        """All attention before and after; of it this head, and the head that moved most."""
        shift = lab.attention_shift(comparison)
        before, after = shift.before[AttentionKind(self.kind)], shift.after[AttentionKind(self.kind)]
        moved, kind, layer, head = shift.largest()[0]
        at = self.layer, self.head
        return DifferenceData(
            before.weights[at],
            after.weights[at],
            before.mask[self.layer] | after.mask[self.layer],
            before.queries,
            before.keys,
            moved,
            (str(kind), layer, head),
        )

    def figure(self, data: DifferenceData, *, dark: bool = False) -> go.Figure:
        """After minus before."""
        sides = data.queries, data.keys
        return difference_figure(data.before, data.after, *sides, kind=self.kind, mask=data.mask, dark=dark)

    def tables(self, data: DifferenceData) -> tuple[Table, ...]:
        """The weights before, after, and their difference."""
        named = (("before", data.before), ("after", data.after), ("after minus before", data.after - data.before))
        return tuple(Table(name, values, numbered(data.queries), numbered(data.keys)) for name, values in named)

    def checks(self, lab: Lab, comparison: Comparison, data: DifferenceData) -> Iterator[Check]:
        """Reads each side again, without recording anything else, and every head for the one that moved most."""
        kind, seen = AttentionKind(self.kind), comparison.before
        shift, forced = lab.attention_shift(comparison), dict(enumerate(seen.target_ids))
        sides = ((), shift.before[kind], data.before), (comparison.after.interventions, shift.after[kind], data.after)
        masks = []
        for name, (switches, found, shown) in zip(NAMES, sides, strict=True):
            claim, *_ = check_weights(
                lab.model,
                seen.source_ids,
                switches,
                forced,
                stack=kind.stack,
                sublayer=kind.sublayer,
                weights=_with(found.weights, (self.layer, self.head), shown),
                mask=found.mask,
            )
            yield replace(claim, claim=f"{name.capitalize()}: {claim.claim}")
            again = lab.attention_on(seen, switches)[kind]
            masks.append(again.mask[self.layer])
            own = again.weights[self.layer, self.head]
            yield agree(
                f"What is called {name} is that pass's attention", shown, own, 0, "the original output read again"
            )
        either = [[bool(a) or bool(b) for a, b in zip(*rows, strict=True)] for rows in zip(*masks, strict=True)]
        yield agree("Masked is what neither pass allowed", data.mask, either, 0, "places looked at one by one")
        named, layer, head = data.most
        claim = f"{AttentionKind(named).label}, layer {layer}, head {head} moved most"
        if data.moved < NEGLIGIBLE:
            claim = "No weight of any head moved, but for rounding"
        yield check_most_moved(lab.model, comparison, _Named(shift, (data.moved, named, layer, head)), claim)


@dataclass(frozen=True)
class _Named:
    """A shift whose largest move is the one that is shown."""

    shift: AttentionShift
    shown: tuple[float, str, int, int]

    def largest(self) -> tuple[tuple[float, str, int, int], ...]:
        return (self.shown,)


def _with(weights: ndarray, at: tuple[int, int], shown: ndarray) -> ndarray:
    found = weights.copy()
    found[at] = shown
    return found
