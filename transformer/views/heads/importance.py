"""The importance of heads: each removed in turn from one output, or over many pairs, as a map and as a ranking."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.checks import Check
from transformer.analysis.heads.ablation_checks import check_output_effects, check_validation_importance
from transformer.analysis.heads.addresses import HeadAt
from transformer.analysis.heads.importance import OutputEffect
from transformer.analysis.heads.pair_sample import PairSample
from transformer.analysis.heads.validation_importance import (
    Change,
    Importance,
    ImportanceMeasure,
    ValidationImportance,
)
from transformer.figures.heads.bars import Bar, ranking
from transformer.figures.heads.labels import Sublayer, head_name
from transformer.figures.heads.tables import head_map
from transformer.figures.labels import typeset
from transformer.figures.tables import column_table, matrix_table
from transformer.inspection.inspection import Inspection
from transformer.lab import Lab
from transformer.views.heads.subjects import Removal, means_of
from transformer.views.heads.survey import MapData, on_map

QUANTITIES = {
    "sentence": "change of log-probability, nats",
    "loss": "change of loss, nats per token",
    "exact_match": "change of exact match",
}
Effects = Sequence[OutputEffect]
_ENDS = ("value", "low", "high")


@dataclass(frozen=True)
class OutputImportanceData:
    """The output without each head, in the order of the map; heads that are off already are left out."""

    heads: tuple[str, ...]
    map: MapData
    """The change of the output's log-probability."""
    kl_divergence: Float[ndarray, " head"]
    step: Int[ndarray, " head"]
    """The first step at which another token is written; where there is none, the one that moves most."""
    before: Float[ndarray, " head"]
    """The probability of the token at that step, with the head and without it."""
    after: Float[ndarray, " head"]
    instead: Int[ndarray, " head"]
    """The token that is written there then; -1: the same."""


@dataclass(frozen=True, kw_only=True)
class OutputImportance:
    """The change of an output's log-probability without each head."""

    chosen: str = ""
    """The address of the head that is framed."""
    name = "importance"

    def data(self, lab: Lab, seen: Inspection, removal: Removal, effects: Effects) -> OutputImportanceData:
        """The effects of all heads."""
        if not effects:
            raise ValueError(
                "no head is left to remove: your switches have taken out every one. Remove one of them, or measure on "
                "the pairs, where they are not used"
            )
        by_head = {str(effect.at): effect for effect in effects}
        found = on_map(lab, {effect.at: effect.log_prob for effect in effects})
        own = [by_head[head] for head in found.heads() if head in by_head]
        return OutputImportanceData(
            heads=tuple(str(effect.at) for effect in own),
            map=found,
            kl_divergence=np.array([effect.kl_divergence for effect in own]),
            step=np.array([effect.step for effect in own]),
            before=np.array([effect.before for effect in own]),
            after=np.array([effect.after for effect in own]),
            instead=np.array([-1 if effect.instead is None else effect.instead for effect in own]),
        )

    def figure(self, data: OutputImportanceData, *, dark: bool = False) -> go.Figure:
        return _map(data.map, "nats", self.chosen, dark)

    def tables(self, data: OutputImportanceData) -> tuple[DataFrame, ...]:
        """The map, and all that was measured of each head."""
        columns = {
            "KL divergence": data.kl_divergence,
            "step": data.step,
            "before": data.before,
            "after": data.after,
            "instead": data.instead,
        }
        names = [head_name(head) for head in data.heads]
        return data.map.table(QUANTITIES["sentence"]), column_table("without each head", names, columns)

    def checks(
        self, lab: Lab, seen: Inspection, removal: Removal, effects: Effects, data: OutputImportanceData
    ) -> Iterator[Check]:
        """Takes each head out of W_O and reads the output again."""
        by_head = dict(zip(data.map.heads(), data.map.values.ravel().tolist(), strict=True))
        shown = [
            OutputEffect(HeadAt.parse(head).switch, kl, by_head.get(head, np.nan), step, before, after, instead)
            for head, kl, step, before, after, instead in zip(
                data.heads,
                data.kl_divergence.tolist(),
                data.step.tolist(),
                data.before.tolist(),
                data.after.tolist(),
                [None if token < 0 else token for token in data.instead.tolist()],
                strict=True,
            )
        ]
        off = [value for head, value in by_head.items() if head not in data.heads and not np.isnan(value)]
        yield Check("Heads that are off already have no number", float(len(off)), 0.0, "numbers counted")
        yield from _effects_checked(lab, seen, removal, shown)


@dataclass(frozen=True)
class RankingData:
    """Heads by how much their removal costs, the costliest first."""

    heads: tuple[str, ...]
    values: Float[ndarray, "head end"]
    """The change; with intervals, their lower and upper ends too."""
    n_heads: int
    """The number of all heads."""

    def bars(self) -> list[Bar]:
        """Returns the bars of the figure."""
        return [
            Bar(head_name(head), Sublayer.of(head).kind, *row)
            for head, row in zip(self.heads, self.values.tolist(), strict=True)
        ]

    def table(self, quantity: str) -> DataFrame:
        return matrix_table(quantity, self.values, [bar.name for bar in self.bars()], _ENDS[: self.values.shape[1]])


@dataclass(frozen=True, kw_only=True)
class OutputRanking:
    """The heads that an output needs most."""

    most: int = 24
    """Heads that are shown."""
    name = "importance-ranking"

    def data(self, lab: Lab, seen: Inspection, removal: Removal, effects: Effects) -> RankingData:
        """The heads whose removal costs most log-probability."""
        order = sorted(effects, key=lambda effect: effect.log_prob)[: self.most]
        values = np.array([[effect.log_prob] for effect in order]).reshape(len(order), 1)
        return RankingData(tuple(str(effect.at) for effect in order), values, len(effects))

    def figure(self, data: RankingData, *, dark: bool = False) -> go.Figure:
        """A dot for each head."""
        return ranking(data.bars(), quantity=QUANTITIES["sentence"], dark=dark)

    def tables(self, data: RankingData) -> tuple[DataFrame, ...]:
        return (data.table(QUANTITIES["sentence"]),)

    def checks(
        self, lab: Lab, seen: Inspection, removal: Removal, effects: Effects, data: RankingData
    ) -> Iterator[Check]:
        """Takes each head out of W_O and reads the output again; looks at the order."""
        by_head = {str(effect.at): effect for effect in effects}
        values = data.values[:, 0].tolist()
        shown = [replace(by_head[head], log_prob=value) for head, value in zip(data.heads, values, strict=True)]
        yield from _ordered(data, {head: effect.log_prob for head, effect in by_head.items()}, rising=True)
        yield next(iter(_effects_checked(lab, seen, removal, shown)))


@dataclass(frozen=True)
class ValidationData:
    """Every head removed over many pairs; for each its change, and the ends of its interval."""

    map: MapData
    """The changes of the measure that is drawn."""
    heads: tuple[str, ...]
    loss: Float[ndarray, "head 3"]
    exact_match: Float[ndarray, "head 3"]
    whole: Float[ndarray, "2"]
    """Loss and exact match with all heads."""
    n_pairs: int
    n_tokens: int


@dataclass(frozen=True, kw_only=True)
class ValidationImportanceMap:
    """The change of loss or exact match over many pairs without each head."""

    measure: ImportanceMeasure
    chosen: str = ""
    """The address of the head that is framed; it is checked first."""
    name = "importance-{measure}"

    def data(self, lab: Lab, sample: PairSample, removal: Removal, found: ValidationImportance) -> ValidationData:
        """The changes of all heads, with their intervals."""
        by_head = {str(head.at): head for head in found.heads}
        drawn = on_map(lab, {head.at: getattr(head, self.measure).value for head in found.heads})
        heads = tuple(head for head in drawn.heads() if head in by_head)
        loss, exact_match = (
            np.array([[getattr(getattr(by_head[head], name), end) for end in _ENDS] for head in heads])
            for name in ("loss", "exact_match")
        )
        whole = np.array([found.loss, found.exact_match])
        return ValidationData(drawn, heads, loss, exact_match, whole, found.n_pairs, found.n_tokens)

    def figure(self, data: ValidationData, *, dark: bool = False) -> go.Figure:
        """The map; hovering gives intervals."""
        ends = dict(zip(data.heads, getattr(data, self.measure).tolist(), strict=True))
        notes = [f"{typeset(f'{v[1]:+.3g}')} to {typeset(f'{v[2]:+.3g}')}" for v in ends.values()]
        unit = "nats per token" if self.measure == "loss" else "change"
        width = data.map.values.shape[1]
        rows = [tuple(notes[start : start + width]) for start in range(0, len(notes), width)]
        return _map(replace(data.map, notes=tuple(rows)), unit, self.chosen, dark)

    def tables(self, data: ValidationData) -> tuple[DataFrame, ...]:
        """The map, both changes, and what they are changes of."""
        names = [head_name(head) for head in data.heads]
        loss, exact_match = data.whole
        whole = {"loss": loss, "exact match": exact_match, "pairs": data.n_pairs, "tokens": data.n_tokens}
        return (
            data.map.table(f"map of {self.measure}"),
            matrix_table(QUANTITIES["loss"], data.loss, names, _ENDS),
            matrix_table(QUANTITIES["exact_match"], data.exact_match, names, _ENDS),
            column_table("with all heads", ["all heads"], {name: np.array([value]) for name, value in whole.items()}),
        )

    def checks(
        self, lab: Lab, sample: PairSample, removal: Removal, found: ValidationImportance, data: ValidationData
    ) -> Iterator[Check]:
        """Takes heads out of W_O, reads the pairs again and decodes them, and draws the intervals again."""
        column = getattr(data, self.measure)[:, 0]
        yield Check(
            "The map holds these changes",
            float(np.abs(data.map.values.ravel() - column).max()),
            0.0,
            "cells against the table",
        )
        order = sorted(range(len(data.heads)), key=lambda i: data.heads[i] != self.chosen)
        changes = {i: (Change(*data.loss[i].tolist()), Change(*data.exact_match[i].tolist())) for i in order}
        heads = tuple(Importance(HeadAt.parse(data.heads[i]), *changes[i]) for i in order)
        loss, exact_match = data.whole.tolist()
        shown = ValidationImportance(heads, loss, exact_match, data.n_pairs, data.n_tokens)
        means = means_of(lab, removal)
        yield from check_validation_importance(lab.model, sample.pairs, lab.tokenizer, shown, means)
        tokens = sum(len(lab.tokenizer.encode_target(pair.target)) + 1 for pair in sample.pairs)
        counted = (len(sample.pairs), tokens)
        yield Check(
            "The number of pairs and tokens",
            float(max(abs(a - b) for a, b in zip(counted, (data.n_pairs, data.n_tokens), strict=True))),
            0.0,
            "pairs and their tokens counted, end marks included",
        )


@dataclass(frozen=True, kw_only=True)
class ValidationRanking:
    """The heads that a model needs most over many pairs, with intervals."""

    measure: ImportanceMeasure
    most: int = 24
    """Heads that are shown."""
    name = "importance-{measure}-ranking"

    def data(self, lab: Lab, sample: PairSample, removal: Removal, found: ValidationImportance) -> RankingData:
        """The heads whose removal costs most."""
        changes = {str(head.at): getattr(head, self.measure) for head in found.heads}
        order = sorted(changes, key=lambda head: changes[head].value * self._sign)[: self.most]
        values = np.array([[getattr(changes[head], end) for end in _ENDS] for head in order])
        return RankingData(tuple(order), values, len(changes))

    def figure(self, data: RankingData, *, dark: bool = False) -> go.Figure:
        """A dot with its interval for each head."""
        return ranking(data.bars(), quantity=QUANTITIES[self.measure], dark=dark)

    def tables(self, data: RankingData) -> tuple[DataFrame, ...]:
        """The changes and their intervals."""
        return (data.table(QUANTITIES[self.measure]),)

    def checks(
        self, lab: Lab, sample: PairSample, removal: Removal, found: ValidationImportance, data: RankingData
    ) -> Iterator[Check]:
        """Takes the heads out of W_O, reads the pairs again, draws the intervals again; looks at the order."""
        by_head = {str(head.at): head for head in found.heads}
        changes = [Change(*row) for row in data.values.tolist()]
        shown = [
            replace(by_head[head], **{self.measure: change}) for head, change in zip(data.heads, changes, strict=True)
        ]
        values = {head: getattr(own, self.measure).value for head, own in by_head.items()}
        yield from _ordered(data, values, rising=self._sign > 0)
        part = replace(found, heads=tuple(shown))
        args = lab.model, sample.pairs, lab.tokenizer, part, means_of(lab, removal)
        yield from check_validation_importance(*args, measures=(self.measure,))

    @property
    def _sign(self) -> int:
        return -1 if self.measure == "loss" else 1


def _map(data: MapData, quantity: str, chosen: str, dark: bool) -> go.Figure:
    """Draws the map of changes, 0 in the middle of its colours."""
    reach = float(np.nanmax(np.abs(data.values), initial=0.0)) or 1.0
    notes = data.notes or [[""] * data.values.shape[1]] * len(data.sublayers)
    hover = [
        ["" if np.isnan(v) else f"{typeset(f'{v:+.3g}')}<br>{note}" for v, note in zip(*line, strict=True)]
        for line in zip(data.values.tolist(), notes, strict=True)
    ]
    blocks = [Sublayer.of(row) for row in data.sublayers]
    look = {"quantity": quantity, "limits": (-reach, reach), "diverging": True, "chosen": data.place(chosen)}
    return head_map(data.values, blocks, hover, **look, dark=dark)


def _effects_checked(lab: Lab, seen: Inspection, removal: Removal, shown: Sequence[OutputEffect]) -> tuple[Check, ...]:
    ids = seen.source_ids, seen.target_ids, seen.interventions
    return check_output_effects(lab.model, *ids, shown, means_of(lab, removal))


def _ordered(data: RankingData, values: dict[str, float], *, rising: bool) -> Iterator[Check]:
    """Checks that the costliest head stands first and none that is left out costs more."""
    sign = 1 if rising else -1
    steps = np.diff(data.values[:, 0]) * sign
    left = [sign * value for head, value in values.items() if head not in data.heads]
    short = max((float(data.values[-1, 0] * sign) - value for value in left), default=0.0)
    how = f"{len(data.heads)} heads, each against the one above; by how much the order is wrong"
    claim = "The head whose removal costs most stands first"
    yield Check(claim, max(0.0, short, float(-steps.min(initial=0.0))), 0.0, how)
    counted = abs(data.n_heads - len(values))
    yield Check("The number of heads that were removed in turn", float(counted), 0.0, "heads counted")
