"""The views of one step's inside: the logit lens, and what made one logit larger than another."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.checks import Check, agree
from transformer.analysis.steps.candidates import candidates, rank
from transformer.analysis.steps.checks import check_contributions_of_parts, check_depths
from transformer.analysis.steps.logit_lens import LogitLens, Part
from transformer.analysis.steps.output_checks import SlowReader
from transformer.figures.steps.logit_lens import Depth, Share, contribution_bars, lens_figure
from transformer.figures.tables import column_table, matrix_table, numbered
from transformer.inspection.inspection import Inspection
from transformer.lab import Lab
from transformer.model.kinds import AttentionKind
from transformer.views.steps.candidates import WITHOUT

_KINDS = {"self": AttentionKind.DECODER_SELF, "cross": AttentionKind.CROSS}
"""The attention whose colour a part has, by its sublayer."""


@dataclass(frozen=True)
class LensData:
    """The prediction at each depth of the decoder."""

    names: tuple[str, ...]
    tokens: tuple[str, ...]
    """All tokens of the vocabulary."""
    written: int
    """The id of the token that the step wrote."""
    log_probs: Float[ndarray, "depth vocab"]
    baseline: Float[ndarray, "depth vocab"] | None
    """The same without the switches, after the same words; None where there are no switches."""

    @property
    def ranks(self) -> tuple[int, ...]:
        """The rank of the written token at each depth."""
        return tuple(rank(row, self.written) for row in self.log_probs)


@dataclass(frozen=True, kw_only=True)
class LogitLensDepths:
    """The tokens that each depth of the decoder would have written if it were the last."""

    n: int = 4
    """Tokens at each depth."""
    name = "lens"

    def data(self, lab: Lab, seen: Inspection, step: int, lens: LogitLens, baseline: LogitLens | None) -> LensData:
        """Names the depths."""
        names = ["before layer 0", *(f"after layer {layer}" for layer in range(len(lens.log_probs) - 1))]
        tokens = tuple(map(lab.tokenizer.piece, range(lens.log_probs.shape[1])))
        without = None if baseline is None else baseline.log_probs
        return LensData(tuple(names), tokens, seen.target_ids[step], lens.log_probs, without)

    def figure(self, data: LensData, *, dark: bool = False) -> go.Figure:
        """A row for each depth."""
        depths = []
        for depth, (name, row) in enumerate(zip(data.names, data.log_probs, strict=True)):
            found, before = candidates(row, self.n), None
            if data.baseline is not None:
                before = self._followed(data.baseline[depth], data.written)
            tokens = tuple(data.tokens[token] for token in found.ids)
            depths.append(Depth(name, tokens, found.probabilities, *self._followed(row, data.written), before))
        return lens_figure(depths, data.tokens[data.written], before_name="without switches", dark=dark)

    def tables(self, data: LensData) -> tuple[DataFrame, ...]:
        """All log-probabilities at each depth."""
        columns = numbered(data.tokens)
        tables = [matrix_table("log-probability", data.log_probs, data.names, columns)]
        if data.baseline is not None:
            tables.append(matrix_table(f"log-probability {WITHOUT}", data.baseline, data.names, columns))
        return tuple(tables)

    def checks(
        self, lab: Lab, seen: Inspection, step: int, lens: LogitLens, baseline: LogitLens | None, data: LensData
    ) -> Iterator[Check]:
        """Decodes the step with decoders shortened to each depth, in double precision."""
        prefix = seen.target_ids[:step]
        for shown, switches in ((data.log_probs, seen.interventions), (data.baseline, ())):
            if shown is not None:
                yield check_depths(lab.model, seen.source_ids, prefix, switches, shown)
        own = seen.log_probs[step].astype(np.float64)
        how = "the last depth against the step that was decoded"
        yield agree("The last depth is the model's own prediction", np.exp(data.log_probs[-1]), np.exp(own), 1e-4, how)
        yield agree("The followed token is the one that was written", data.written, seen.target_ids[step], 0, "by id")

    @staticmethod
    def _followed(row: Float[ndarray, " vocab"], token: int) -> tuple[int, float]:
        return rank(row, token), float(np.exp(row[token]))


Contributions = tuple[tuple[Part, float], ...]


@dataclass(frozen=True)
class ContributionsData:
    """The share of every part of the decoder in the difference of two logits."""

    written: str
    against: str
    parts: Contributions
    difference: float
    baseline: Contributions | None
    """The parts without the switches, after the same words; None where there are no switches."""
    baseline_difference: float | None

    @property
    def error(self) -> float:
        """The distance between the sum of the parts and the difference."""
        return abs(math.fsum(value for _, value in self.parts) - self.difference)


@dataclass(frozen=True, kw_only=True)
class LogitContributions:
    """Why the written token's logit is larger than another's: a bar for each part of the decoder."""

    against: int
    """The id of the other token."""
    n: int = 14
    """Parts with a bar of their own; all others share one."""
    name = "contributions-against{against}"

    def data(
        self, lab: Lab, seen: Inspection, step: int, lens: LogitLens, baseline: LogitLens | None
    ) -> ContributionsData:
        """Splits the difference among the parts; ValueError for a token that does not exist."""
        written = seen.target_ids[step]
        if not 0 <= self.against < lab.model.config.vocab_size:
            raise ValueError(f"there is no token {self.against} in a vocabulary of {lab.model.config.vocab_size}")
        pair = written, self.against
        return ContributionsData(
            lab.tokenizer.piece(written),
            lab.tokenizer.piece(self.against),
            lens.contributions(lab.model, *pair),
            lens.difference(*pair),
            None if baseline is None else baseline.contributions(lab.model, *pair),
            None if baseline is None else baseline.difference(*pair),
        )

    def figure(self, data: ContributionsData, *, dark: bool = False) -> go.Figure:
        """The largest parts first, the others together, the sum last."""
        without = None if data.baseline is None else dict(data.baseline)
        ranked = sorted(data.parts, key=lambda pair: -abs(pair[1]))
        shown, rest = ranked[: self.n], ranked[self.n :]
        shares = [
            Share(
                part.title, value, _KINDS.get(part.sublayer or ""), None if without is None else without.get(part, 0.0)
            )
            for part, value in shown
        ]
        if rest:
            before = None if without is None else math.fsum(without.get(part, 0.0) for part, _ in rest)
            shares.append(Share(f"{len(rest)} other parts", math.fsum(value for _, value in rest), None, before))
        shares.append(Share("together", data.difference, None, data.baseline_difference))
        return contribution_bars(shares, raised=data.written, lowered=data.against, before_name=WITHOUT, dark=dark)

    def tables(self, data: ContributionsData) -> tuple[DataFrame, ...]:
        """Every part by itself, and the difference."""
        tables = [_table("contribution", data.parts, data.difference)]
        if data.baseline is not None and data.baseline_difference is not None:
            tables.append(_table(f"contribution {WITHOUT}", data.baseline, data.baseline_difference))
        return tuple(tables)

    def checks(
        self,
        lab: Lab,
        seen: Inspection,
        step: int,
        lens: LogitLens,
        baseline: LogitLens | None,
        data: ContributionsData,
    ) -> Iterator[Check]:
        """Carries the direction between both tokens back through the decoder, in double precision."""
        prefix, pair = seen.target_ids[:step], (seen.target_ids[step], self.against)
        for parts, difference, switches in (
            (data.parts, data.difference, seen.interventions),
            (data.baseline, data.baseline_difference, ()),
        ):
            if parts is None or difference is None:
                continue
            row = SlowReader(lab.model, switches).next_log_probs(seen.source_ids, [list(prefix)])[0]
            scale = 1e-3 * max(1.0, abs(difference))
            together = math.fsum(value for _, value in parts)
            yield agree("All parts sum to the difference of the logits", together, difference, scale, "summed again")
            yield check_contributions_of_parts(lab.model, seen.source_ids, prefix, switches, *pair, parts)
            how = "ln p of one less ln p of the other, read again in double precision"
            claim = "It is the logarithm of the ratio of both probabilities"
            yield agree(claim, difference, row[pair[0]] - row[pair[1]], scale, how)


def _table(name: str, parts: Contributions, difference: float) -> DataFrame:
    values = np.array([*(value for _, value in parts), difference])
    return column_table(name, [*(part.title for part, _ in parts), "together"], {"logits": values})
