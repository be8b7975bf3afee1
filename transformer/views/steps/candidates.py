"""The figures of one decoding step: its most probable tokens, and a row of its attention."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.attention.weight_checks import check_recorded
from transformer.analysis.checks import Check, agree
from transformer.analysis.heads.importance import head_average
from transformer.analysis.steps.candidates import candidates, rank
from transformer.analysis.steps.output_checks import SlowReader, check_labels
from transformer.figures.steps.candidates import candidate_bars, row_bars
from transformer.figures.tables import column_table, matrix_table, numbered
from transformer.inspection.inspection import Inspection
from transformer.interventions import Intervention
from transformer.lab import Lab
from transformer.model.kinds import AttentionKind, KindName
from transformer.model.taps import Site

WITHOUT = "without the switches"


def check_step(seen: Inspection, step: int) -> None:
    """Refuses a step that a decoding does not have."""
    if not 0 <= step < len(seen.target_ids):
        raise ValueError(f"there is no step {step}: this output has steps 0 to {len(seen.target_ids) - 1}")


@dataclass(frozen=True)
class CandidatesData:
    """The most probable tokens of one step."""

    ids: tuple[int, ...]
    tokens: tuple[str, ...]
    probabilities: Float[ndarray, " candidate"]
    baseline: Float[ndarray, " candidate"] | None
    """The probabilities without the switches after the same words; None where there are no switches."""
    written: int
    """The row of the token that was written."""
    written_rank: int
    """Its rank in the whole vocabulary; 1 for the most probable."""
    reference: int | None
    """The row of the reference's token; None where it is not followed."""
    rest: float
    """The probability of all other tokens together."""
    n_rest: int
    """The number of other tokens."""
    entropy: float
    """The entropy of the whole distribution, in nats."""


@dataclass(frozen=True, kw_only=True)
class StepCandidates:
    """The most probable tokens of one step, with the one that was written."""

    step: int
    reference: int | None = None
    """A token that is shown as well: the next one of a reference."""
    logarithmic: bool = False
    n: int = 10
    name = "step{step}-candidates"
    explained = (
        "At this step the model gave each token of its vocabulary a probability to come next; together they are 1. "
        "Each bar is one of the most probable tokens, and the blue one was written. Where the axis is logarithmic, "
        "equal distances are equal factors, so that small probabilities can be told apart."
    )

    def data(self, lab: Lab, seen: Inspection) -> CandidatesData:
        """Ranks what the step of this very decoding could have written."""
        check_step(seen, self.step)
        row, written = seen.log_probs[self.step], seen.target_ids[self.step]
        found = candidates(row, self.n, {written} if self.reference is None else {written, self.reference})
        baseline = None
        if seen.interventions:
            baseline = np.exp(lab.without_switches(seen)[self.step][list(found.ids)].astype(np.float64))
        return CandidatesData(
            ids=found.ids,
            tokens=tuple(map(lab.tokenizer.piece, found.ids)),
            probabilities=np.array(found.probabilities),
            baseline=baseline,
            written=found.ids.index(written),
            written_rank=rank(row, written),
            reference=None if self.reference is None else found.ids.index(self.reference),
            rest=found.rest,
            n_rest=found.n_rest,
            entropy=found.entropy,
        )

    def figure(self, data: CandidatesData, *, dark: bool = False) -> go.Figure:
        """A bar for each candidate."""
        return candidate_bars(
            data.tokens,
            data.probabilities.tolist(),
            written=data.written,
            reference=data.reference,
            before=None if data.baseline is None else data.baseline.tolist(),
            logarithmic=self.logarithmic,
            dark=dark,
        )

    def tables(self, data: CandidatesData) -> tuple[DataFrame, ...]:
        """The probabilities."""
        columns = {"probability": data.probabilities, WITHOUT: data.baseline}
        return (column_table("probability", numbered(data.tokens), columns),)

    def checks(self, lab: Lab, seen: Inspection, data: CandidatesData) -> Iterator[Check]:
        """Reads the words before the step again, in double precision, and ranks the whole vocabulary."""
        prefix = [list(seen.target_ids[: self.step])]
        row = SlowReader(lab.model, seen.interventions).next_log_probs(seen.source_ids, prefix)[0]
        shares, ids = np.exp(row), list(data.ids)
        how = "the same words read again in double precision, on the explicit path, without a cache"
        yield agree("The probabilities are the model's", data.probabilities, shares[ids], 1e-4, how)
        others = np.delete(shares, ids)
        missed = float(others.max(initial=0.0) - np.sort(shares[ids])[::-1][: self.n].min())
        yield Check("No other token is more probable", max(0.0, missed), 1e-5, f"all {len(row):,} tokens compared")
        yield agree("The other tokens have this probability together", data.rest, float(others.sum()), 1e-4, "summed")
        yield agree("The number of other tokens is right", data.n_rest, len(others), 0, "counted")
        yield agree("The entropy is −Σ p ln p", data.entropy, -float((shares * row).sum()), 1e-3, "summed again")
        yield check_labels(lab.tokenizer, data.ids, data.tokens)
        marked = [data.ids[data.written], *([] if data.reference is None else [data.ids[data.reference]])]
        wanted = [seen.target_ids[self.step], *([] if self.reference is None else [self.reference])]
        yield agree("The marked tokens are the written one and the reference's", marked, wanted, 0, "ids compared")
        above, p = data.written_rank - 1, shares[wanted[0]]
        apart = max(int((shares > p + 1e-5).sum()) - above, above - int((shares > p - 1e-5).sum() - 1), 0)
        yield Check(
            "The rank of the written token counts the more probable ones", float(apart), 0.0, "counted; difference"
        )
        if data.baseline is not None:
            without = SlowReader(lab.model, ()).next_log_probs(seen.source_ids, prefix)[0]
            claim = "The marks are the probabilities without the switches"
            yield agree(claim, data.baseline, np.exp(without[ids]), 1e-4, how)


@dataclass(frozen=True)
class AttentionRowData:
    """The attention of one step."""

    query: str
    keys: tuple[str, ...]
    weights: Float[ndarray, " key"]
    baseline: Float[ndarray, " key"] | None
    """The weights without the switches after the same words; None where there are no switches."""


@dataclass(frozen=True, kw_only=True)
class StepAttention:
    """The attention of one step, of one head or averaged over a layer."""

    explained = (
        "Where this step looked: a bar for each token it could look at, and its weight. They sum to 1. Cross-attention "
        "looks at the tokens of the sentence, decoder self-attention at what has been written so far."
    )

    kind: KindName
    layer: int
    head: int | None = None
    """None for the average of the layer's heads."""
    step: int

    @property
    def name(self) -> str:
        """The last part of the names of its files."""
        head = "average" if self.head is None else f"head{self.head}"
        return f"step{self.step}-{self.kind}-layer{self.layer}-{head}"

    def data(self, lab: Lab, seen: Inspection) -> AttentionRowData:
        """Takes the step's row of the recorded attention; of its own words a step sees those up to itself."""
        check_step(seen, self.step)
        attention = seen.attention(self.kind)
        keys = attention.keys[: self._n_keys(attention.keys)]
        baseline = None
        if seen.interventions:
            baseline = self._row(lab.attention_on(seen, ())[AttentionKind(self.kind)].weights)[: len(keys)]
        row = self._row(attention.weights)[: len(keys)]
        return AttentionRowData(attention.queries[self.step], keys, row, baseline)

    def figure(self, data: AttentionRowData, *, dark: bool = False) -> go.Figure:
        """A bar for each key."""
        return row_bars(data.weights, data.keys, kind=self.kind, before=data.baseline, dark=dark)

    def tables(self, data: AttentionRowData) -> tuple[DataFrame, ...]:
        """The weights."""
        rows = {data.query: data.weights, f"{data.query}, {WITHOUT}": data.baseline}
        kept = {name: values for name, values in rows.items() if values is not None}
        return (matrix_table("weight", np.stack(list(kept.values())), list(kept), numbered(data.keys)),)

    def checks(self, lab: Lab, seen: Inspection, data: AttentionRowData) -> Iterator[Check]:
        """Computes all weights of the decoding from q, k and masks, and reads the step again in double precision."""
        yield from check_recorded(lab.model, seen, self.kind)
        whose = "the average of the layer's heads" if self.head is None else f"head {self.head}"
        for claim, shown, switches in (
            (f"The bars are {whose}", data.weights, seen.interventions),
            ("The marks are the same without the switches", data.baseline, ()),
        ):
            if shown is not None:
                again = self._again(lab, seen, switches)
                yield agree(claim, shown, again, 1e-4, "the same words read again in double precision")

    def _n_keys(self, keys: Sequence[str]) -> int:
        return self.step + 1 if self.kind == "decoder_self" else len(keys)

    def _row(self, weights: Float[ndarray, "layer head query key"]) -> Float[ndarray, " key"]:
        return (head_average(weights, self.layer) if self.head is None else weights[self.layer, self.head])[self.step]

    def _again(self, lab: Lab, seen: Inspection, switches: Sequence[Intervention]) -> Float[ndarray, " key"]:
        """Reads the words of the step alone; self-attention without a causal mask is that of the last whole pass."""
        end = len(seen.target_ids) if self.kind == "decoder_self" and not seen.cached else self.step + 1
        recording = SlowReader(lab.model, switches).recording(seen.source_ids, seen.target_ids[:end])
        site = Site("decoder", self.layer, AttentionKind(self.kind).sublayer, "weights")
        rows = recording[site][0, :, self.step].numpy()
        heads = range(len(rows)) if self.head is None else [self.head]
        row = np.sum([rows[head] for head in heads], axis=0) / len(heads)
        return row[: self._n_keys(row)]
