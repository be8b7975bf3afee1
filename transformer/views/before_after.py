"""The effects of switches on each token's probability, on the output, and on the attention of one head."""

from collections.abc import Iterator
from dataclasses import dataclass

import plotly.graph_objects as go
from jaxtyping import Bool, Float
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.attention.weight_checks import recomputed_attention
from transformer.analysis.checks import Check, agree
from transformer.analysis.comparison.checks import check_most_moved
from transformer.analysis.figure_checks import check_comparison
from transformer.figures.attention.comparison import aligned_figure, probabilities_figure
from transformer.figures.attention.matrix import difference_figure
from transformer.figures.tables import column_table, matrix_table, numbered
from transformer.inspection.inspection import Comparison
from transformer.lab import Lab
from transformer.model.kinds import AttentionKind, KindName
from transformer.views.comparison import OutputsData

NAMES = "before", "after"
SHIFT_SAID = "after minus before, on the same words"
NEGLIGIBLE = 1e-6
"""A move of a weight that rounding alone can cause."""


@dataclass(frozen=True)
class ProbabilityData:
    """The original output's tokens before and after, each given the original tokens before it."""

    tokens: tuple[str, ...]
    before: Float[ndarray, " step"]
    after: Float[ndarray, " step"]
    kl_divergence: Float[ndarray, " step"]
    """Nats."""


@dataclass(frozen=True, kw_only=True)
class TokenProbabilities:
    """Each token's probability before and after, and how far its step's whole distribution moved."""

    name = "probabilities"
    explained = (
        "Above, the probability of each token of the original output before and after your switches, both given the "
        "same original tokens before it. Below, how far the whole distribution of that step moved: the KL divergence, "
        "0 where nothing changed. A step can move a lot even if the token written stays the same."
    )

    def data(self, lab: Lab, comparison: Comparison) -> ProbabilityData:
        """The measurements on the original output, teacher-forced."""
        measured = comparison.forced_before, comparison.forced_after, comparison.kl_divergence
        return ProbabilityData(comparison.before.target_tokens, *measured)

    def figure(self, data: ProbabilityData, *, dark: bool = False) -> go.Figure:
        """Points above, bars below."""
        return probabilities_figure(data.tokens, data.before, data.after, data.kl_divergence, dark=dark)

    def tables(self, data: ProbabilityData) -> tuple[DataFrame, ...]:
        """A row for each token."""
        probabilities = dict(zip(NAMES, (data.before, data.after), strict=True))
        columns = {**probabilities, "KL divergence in nats": data.kl_divergence}
        return (column_table("probability", numbered(data.tokens), columns),)

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


@dataclass(frozen=True, kw_only=True)
class BothOutputs:
    """The outputs without and with the switches, token beside token."""

    name = "before-and-after"
    explained = (
        "The output as the model wrote it, and as it writes with your switches, each decoded from its own beginning. "
        "Tokens that belong together stand beside each other, by the fewest edits; what differs is framed. The numbers "
        "are the probabilities with which each token was written."
    )

    def data(self, lab: Lab, comparison: Comparison) -> OutputsData:
        """The free-running outputs, aligned."""
        before, after = comparison.before, comparison.after
        tokens = before.target_tokens, after.target_tokens
        return OutputsData(tokens, (before.probabilities, after.probabilities), comparison.alignment)

    def figure(self, data: OutputsData, *, dark: bool = False) -> go.Figure:
        """Two columns of tokens."""
        return aligned_figure(data.tokens, data.probabilities, data.aligned, names=NAMES, dark=dark)

    def tables(self, data: OutputsData) -> tuple[DataFrame, ...]:
        """A table for each output."""
        return data.tables(NAMES)

    def checks(self, lab: Lab, comparison: Comparison, data: OutputsData) -> Iterator[Check]:
        """Reads both outputs again, and counts the edits between them again."""
        yield from data.checks(NAMES, (lab, lab), (comparison.before, comparison.after))


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
    """The change of one head's weights by switches, on the words of the original output."""

    kind: KindName
    layer: int
    head: int
    name = "difference-{kind}-layer{layer}-head{head}"
    explained = (
        "How the weights of one head changed: after your switches minus before. Both passes read the same original "
        "output, so rows and columns are the same words. A coloured cell gained or lost weight; a head before the "
        "switch in the network cannot change at all."
    )

    def data(self, lab: Lab, comparison: Comparison) -> DifferenceData:
        """All attention before and after; of it this head, and the head that moved most."""
        comparison.before.attention(self.kind)  # says what a model lacks
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

    def tables(self, data: DifferenceData) -> tuple[DataFrame, ...]:
        """The weights before, after, and their difference."""
        named = (("before", data.before), ("after", data.after), ("after minus before", data.after - data.before))
        return tuple(matrix_table(name, values, numbered(data.queries), numbered(data.keys)) for name, values in named)

    def checks(self, lab: Lab, comparison: Comparison, data: DifferenceData) -> Iterator[Check]:
        """Reads each side again, without recording anything else, and every head for the one that moved most."""
        source, forced = comparison.before.source_ids, dict(enumerate(comparison.before.target_ids))
        shown, at, masks = {"Before": data.before, "After": data.after}, (self.layer, self.head), []
        for (name, own), seen in zip(shown.items(), (comparison.before, comparison.after), strict=True):
            again = recomputed_attention(lab.model, source, seen.interventions, forced, self.kind)
            masks.append(again.mask[self.layer])
            how = "the original output read again, and computed from queries and keys in double precision"
            yield again.check(f"{name}: the weights of this head", own, again.weights[at], how)
        yield agree(
            "The hidden cells are those that neither pass allowed", data.mask, masks[0] | masks[1], 0, "read again"
        )
        named, layer, head = data.most
        claim = f"{AttentionKind(named).label}, layer {layer}, head {head} moved most"
        if data.moved < NEGLIGIBLE:
            claim = "No weight of any head moved, but for rounding"
        yield check_most_moved(lab.model, comparison, data.moved, data.most, claim)
