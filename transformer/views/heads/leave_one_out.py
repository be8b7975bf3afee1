"""Attention against effect: the cost of hiding each source token, and its agreement with the weights of heads."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.attention.weight_checks import check_recorded, recomputed_attention
from transformer.analysis.checks import Check, agree
from transformer.analysis.figure_checks import precise_log_probs
from transformer.analysis.heads.addresses import HeadAt, heads_of
from transformer.analysis.heads.leave_one_out import Faithfulness, Hiding, faithfulness, received
from transformer.analysis.heads.leave_one_out_checks import check_faithfulness, check_leave_one_out, check_received
from transformer.analysis.steps.output_checks import check_labels
from transformer.figures.heads.bars import dependence_bars, weight_against_effect
from transformer.figures.heads.labels import head_name
from transformer.figures.heads.tables import column_map, effect_map
from transformer.figures.tables import column_table, matrix_table, numbered
from transformer.inspection.inspection import Inspection
from transformer.lab import Lab
from transformer.model.precise import in_double
from transformer.views.steps.candidates import check_step

Effect = Float[ndarray, "target source"]
FAITHFULNESS_COLUMNS = ("ρ within a token", "tokens", "ρ over all cells", "ρ of the sums")


@dataclass(frozen=True)
class EffectData:
    """The loss of each output token without each source token, in nats."""

    effect: Float[ndarray, "target source"]
    targets: tuple[str, ...]
    sources: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LeaveOneOut:
    """The log-probability that each output token loses when a source token is hidden."""

    name = "leave-one-out"
    explained = (
        "Each source token, a column, is hidden in turn, and the same output is forced. A cell is the log-probability, "
        "in nats, that the output token of its row loses by it: red where it loses, blue where it gains, 0 where the "
        "hidden token does not matter. A loss of 0.69 nats halves a probability."
    )

    def data(self, lab: Lab, seen: Inspection, hiding: Hiding, effect: Effect) -> EffectData:
        """The effects."""
        return EffectData(effect, seen.target_tokens, seen.source_tokens)

    def figure(self, data: EffectData, *, dark: bool = False) -> go.Figure:
        """A row for each output token."""
        return effect_map(data.effect, data.targets, data.sources, dark=dark)

    def tables(self, data: EffectData) -> tuple[DataFrame, ...]:
        """The effects."""
        return (matrix_table("nats lost", data.effect, numbered(data.targets), numbered(data.sources)),)

    def checks(self, lab: Lab, seen: Inspection, hiding: Hiding, effect: Effect, data: EffectData) -> Iterator[Check]:
        """Hides each token in passes of its own."""
        yield from _effect_checked(lab, seen, hiding, data.effect)


@dataclass(frozen=True)
class DependenceData:
    """The weights of one output token on each source token, and its probability with each of these hidden."""

    weights: Float[ndarray, "layer source"]
    """The mean over the heads of each layer."""
    left: Float[ndarray, " source"]
    whole: float
    """Its probability with none hidden."""
    written: str
    sources: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class TokenDependence:
    """The probability that is left to one output token when each source token is hidden, beside its attention."""

    step: int
    name = "step{step}-dependence"
    explained = (
        "Each row is a token of the input. The first bars are the weight that it gets while this output token is "
        "written, the mean over the heads of cross-attention in each layer. The last bar is the probability that the "
        "output token keeps when the row's token is hidden from all attention; the dotted line is its probability with "
        "nothing hidden. A bar that ends far from the line belongs to a token that the output needs."
    )

    def data(self, lab: Lab, seen: Inspection, hiding: Hiding, effect: Effect) -> DependenceData:
        """The weights of the step, and the probabilities."""
        check_step(seen, self.step)
        whole = float(seen.probabilities[self.step])
        left = whole * np.exp(-effect[self.step])
        weights = seen.cross.weights[:, :, self.step].astype(np.float64).mean(axis=1)
        return DependenceData(weights, left, whole, seen.target_tokens[self.step], seen.source_tokens)

    def figure(self, data: DependenceData, *, dark: bool = False) -> go.Figure:
        """A row for each source token."""
        own = {"written": data.written, "whole": data.whole}
        return dependence_bars(data.weights, data.left, data.sources, kind="cross", dark=dark, **own)

    def tables(self, data: DependenceData) -> tuple[DataFrame, ...]:
        """The weights and the probabilities."""
        columns = {f"weight in layer {layer}": weights for layer, weights in enumerate(data.weights)}
        columns["probability without it"] = data.left
        columns["probability with nothing hidden"] = np.full(len(data.left), data.whole)
        return (column_table(data.written, numbered(data.sources), columns),)

    def checks(
        self, lab: Lab, seen: Inspection, hiding: Hiding, effect: Effect, data: DependenceData
    ) -> Iterator[Check]:
        """Computes the weights from q and k, and hides each token again."""
        yield from check_recorded(lab.model, seen, "cross")
        mean = [
            [math.fsum(layer[:, self.step, key].tolist()) / len(layer) for key in range(layer.shape[-1])]
            for layer in seen.cross.weights
        ]
        yield agree(
            "A weight is the mean over the heads of its layer", data.weights, mean, 1e-12, "added up one by one"
        )
        yield from _effect_checked(lab, seen, hiding, effect)
        written = seen.target_ids[self.step]
        log_probs = precise_log_probs(in_double(lab.model), seen.source_ids, seen.target_ids, seen.interventions)
        whole = math.exp(log_probs[self.step, written])
        yield agree("The probability with nothing hidden", data.whole, whole, 1e-4, "one pass in double precision")
        left = [whole * math.exp(-lost) for lost in effect[self.step].tolist()]
        yield agree("The probabilities that are left", data.left, left, 1e-4, "from the log-probabilities lost")
        yield check_labels(lab.tokenizer, (written, *seen.source_ids), (data.written, *data.sources))


@dataclass(frozen=True)
class WeightEffectData:
    """A head's weights, and the cost of hiding each source token."""

    weights: Float[ndarray, "target source"]
    effect: Float[ndarray, "target source"]
    faithfulness: Faithfulness
    targets: tuple[str, ...]
    sources: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class WeightAgainstEffect:
    """Each weight of a head of cross-attention against the cost of hiding that source token."""

    head: str
    """Its address, as in "decoder.1.cross.2"."""
    name = "{head}-faithfulness"
    explained = (
        "Does attention tell what matters? Each dot is one source token at one step: across, the weight that this head "
        "gave it; up, how much less probable the written token becomes when that source token is hidden. If attention "
        "were an explanation, dots far to the right would stand high."
    )

    def data(self, lab: Lab, seen: Inspection, hiding: Hiding, effect: Effect) -> WeightEffectData:
        """The weights, the effects, and how well one ranks the other."""
        at = HeadAt.parse(self.head)
        if at.kind != "cross" or at not in heads_of(lab.model):
            raise ValueError(f"there is no head of cross-attention {self.head}")
        weights = _weights(seen, at)
        return WeightEffectData(weights, effect, faithfulness(weights, effect), seen.target_tokens, seen.source_tokens)

    def figure(self, data: WeightEffectData, *, dark: bool = False) -> go.Figure:
        """A dot for each weight."""
        sides = data.targets, data.sources
        return weight_against_effect(data.weights, data.effect, *sides, kind="cross", dark=dark)

    def tables(self, data: WeightEffectData) -> tuple[DataFrame, ...]:
        """Weights, effects and correlations."""
        sides = numbered(data.targets), numbered(data.sources)
        own = data.faithfulness
        return (
            matrix_table("weight", data.weights, *sides),
            matrix_table("nats lost", data.effect, *sides),
            matrix_table(
                "rank correlation",
                np.array([[own.per_token, own.n_tokens, own.pooled]]),
                [head_name(self.head)],
                FAITHFULNESS_COLUMNS[:3],
            ),
        )

    def checks(
        self, lab: Lab, seen: Inspection, hiding: Hiding, effect: Effect, data: WeightEffectData
    ) -> Iterator[Check]:
        """Computes the weights from q and k, hides each token again, and counts ranks."""
        at = HeadAt.parse(self.head)
        decoded = seen.source_ids, seen.interventions, dict(seen.forced)
        again = recomputed_attention(lab.model, *decoded, at.kind)
        how = "decoded again with q, k and mask recorded, and computed from these in double precision"
        own = again.weights[at.layer, at.head]
        yield again.check("The weights are those of the decoding", data.weights, own, how)
        yield from _effect_checked(lab, seen, hiding, data.effect)
        yield from check_faithfulness(data.weights, data.effect, data.faithfulness)


@dataclass(frozen=True)
class FaithfulnessData:
    """The rank correlations of every head that looks at source tokens; NaN where there is none."""

    heads: tuple[str, ...]
    values: Float[ndarray, "head 4"]
    """The columns are FAITHFULNESS_COLUMNS."""


@dataclass(frozen=True, kw_only=True)
class FaithfulnessTable:
    """The rank correlations of every head's weights on source tokens with the cost of hiding them."""

    name = "faithfulness"
    explained = (
        "For each head: do its weights rank the source tokens as their effect does? The effect is how much less "
        "probable a written token becomes when the source token is hidden. 1 is the same order, 0 no connection, −1 "
        "the reverse order (Spearman's rank correlation)."
    )

    def data(self, lab: Lab, seen: Inspection, hiding: Hiding, effect: Effect) -> FaithfulnessData:
        """The correlations of each head."""
        heads = [at for at in heads_of(lab.model) if at.kind != "decoder_self"]  # which looks at no source token
        values = []
        for at in heads:
            weights = _weights(seen, at)
            own = faithfulness(weights, effect) if at.kind == "cross" else None
            within = (own.per_token, own.n_tokens, own.pooled) if own else (math.nan,) * 3
            values.append([*within, received(weights, effect)])
        return FaithfulnessData(tuple(map(str, heads)), np.array(values, dtype=float))

    def figure(self, data: FaithfulnessData, *, dark: bool = False) -> go.Figure:
        """The correlations as shaded cells."""
        rho = data.values[:, [0, 2, 3]]
        columns = [FAITHFULNESS_COLUMNS[i] for i in (0, 2, 3)]
        limits = (-1.0, 1.0)
        return column_map(rho, data.heads, columns, quantity="rank correlation", limits=limits, dark=dark)

    def tables(self, data: FaithfulnessData) -> tuple[DataFrame, ...]:
        names = [head_name(head) for head in data.heads]
        return (matrix_table("rank correlation", data.values, names, FAITHFULNESS_COLUMNS),)

    def checks(
        self, lab: Lab, seen: Inspection, hiding: Hiding, effect: Effect, data: FaithfulnessData
    ) -> Iterator[Check]:
        """Counts ranks again."""
        cross: list[tuple[Check, ...]] = []
        for head, row in zip(data.heads, data.values, strict=True):
            at = HeadAt.parse(head)
            if at.kind != "cross":
                yield agree(f"{head_name(head)} has no output token", row[:3], [math.nan] * 3, 0, "its kind looked up")
            else:
                n = math.nan if math.isnan(row[1]) else int(row[1])
                own = Faithfulness(float(row[0]), n, float(row[2]))  # type: ignore[arg-type]
                cross.append(tuple(check_faithfulness(_weights(seen, at), effect, own)))
        for same in zip(*cross, strict=True):
            worst = max(same, key=lambda check: check.measured)
            how = f"{len(same)} heads; {worst.how}"
            yield Check(f"{worst.claim}, of every head", worst.measured, worst.tolerance, how)
        weights = [_weights(seen, HeadAt.parse(head)) for head in data.heads]
        yield check_received(weights, effect, data.values[:, 3].tolist())


def _weights(seen: Inspection, at: HeadAt) -> Float[ndarray, "query key"]:
    return seen.attention(at.kind).weights[at.layer, at.head].astype(np.float64)


def _effect_checked(lab: Lab, seen: Inspection, hiding: Hiding, effect: Effect) -> Iterator[Check]:
    ids = seen.source_ids, seen.target_ids
    yield from check_leave_one_out(lab.model, *ids, hiding, seen.interventions, effect)
