"""The figures of sampling: the distribution that a token is drawn from, and the outputs that were drawn."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.checks import Check, agree
from transformer.analysis.steps.branches import prefix_tree
from transformer.analysis.steps.candidates import candidates
from transformer.analysis.steps.checks import check_sampling
from transformer.analysis.steps.output_checks import (
    SlowReader,
    check_greedy,
    check_labels,
    check_samples,
)
from transformer.analysis.steps.samples import Sample, Sampling, draw_samples
from transformer.figures.steps.branches import TreeToken, branches_figure
from transformer.figures.steps.candidates import candidate_bars
from transformer.figures.tables import column_table, numbered
from transformer.inspection.inspection import Inspection
from transformer.lab import Lab
from transformer.views.steps.candidates import WITHOUT, check_step


@dataclass(frozen=True)
class DistributionData:
    """The distribution that a token of one step is drawn from."""

    tokens: tuple[str, ...]
    """All tokens of the vocabulary."""
    log_probs: Float[ndarray, " vocab"]
    """The model's own log-probabilities."""
    drawn_from: Float[ndarray, " vocab"]
    """The same reshaped by the settings; -inf for tokens that cannot be drawn."""
    baseline: Float[ndarray, " vocab"] | None
    """The reshaped ones without the switches; None where there are no switches."""


@dataclass(frozen=True, kw_only=True)
class SamplingDistribution(Sampling):
    """One step's distribution as temperature, top-k, top-p and min-p reshape it."""

    step: int
    n: int = 10
    name = "step{step}-distribution"
    explained = (
        "Instead of the most probable token, each step draws one at random, by its probability. The temperature T "
        "sharpens the distribution (below 1) or flattens it (above 1); top-k, top-p and min-p leave out its improbable "
        "end before the draw."
    )
    equation = r"P_T(i) = \frac{e^{z_i / T}}{\sum_{j} e^{z_j / T}}"

    def data(self, lab: Lab, seen: Inspection) -> DistributionData:
        """Reshapes the distribution of this very step."""
        check_step(seen, self.step)
        never, row = lab.model.config.pad_id, seen.log_probs[self.step]
        baseline = None
        if seen.interventions:
            baseline = self.reshape(lab.without_switches(seen)[self.step], never=never)
        tokens = tuple(map(lab.tokenizer.piece, range(len(row))))
        return DistributionData(tokens, row, self.reshape(row, never=never), baseline)

    def figure(self, data: DistributionData, *, dark: bool = False) -> go.Figure:
        """Bars of the most probable tokens; marks: without the switches, or else as the model has them."""
        ids = list(candidates(data.log_probs, self.n).ids)
        before = data.log_probs if data.baseline is None else data.baseline
        return candidate_bars(
            [data.tokens[token] for token in ids],
            np.exp(data.drawn_from[ids]).tolist(),
            written=None,
            before=np.exp(before[ids]).tolist(),
            before_name="the model's own" if data.baseline is None else WITHOUT,
            dark=dark,
        )

    def tables(self, data: DistributionData) -> tuple[DataFrame, ...]:
        """All log-probabilities."""
        columns = {"the model's own": data.log_probs, "drawn from": data.drawn_from, WITHOUT: data.baseline}
        return (column_table("log-probability", numbered(data.tokens), columns),)

    def checks(self, lab: Lab, seen: Inspection, data: DistributionData) -> Iterator[Check]:
        """Reads the words before the step again, and reshapes in plain Python."""
        prefix, pad = [list(seen.target_ids[: self.step])], lab.model.config.pad_id
        row = SlowReader(lab.model, seen.interventions).next_log_probs(seen.source_ids, prefix)[0]
        how = "log-probabilities of the same words read again in double precision, without a cache"
        yield agree("The distribution is the model's, given what it has read so far", data.log_probs, row, 2e-3, how)
        yield from check_sampling(row, self, data.drawn_from, pad_id=pad)
        if data.baseline is not None:
            without = SlowReader(lab.model, ()).next_log_probs(seen.source_ids, prefix)[0]
            yield from check_sampling(without, self, data.baseline, pad_id=pad, whose="Without switches: ")


@dataclass(frozen=True)
class SamplesData:
    """The different outputs among the samples, the most frequent first."""

    samples: tuple[Sample, ...]
    tokens: tuple[tuple[str, ...], ...]
    texts: tuple[str, ...]
    greedy: tuple[int, ...]
    """The output of greedy decoding."""
    baseline: tuple[Sample, ...] | None
    """The samples without the switches; None where there are no switches."""


@dataclass(frozen=True, kw_only=True)
class SampleTree(Sampling):
    """The most frequent outputs among samples as one tree, each token with the number of samples that wrote it."""

    n: int = 100
    seed: int = 0
    most: int = 12
    """The number of different outputs in the figure."""
    name = "samples-seed{seed}"
    explained = (
        "Many outputs drawn at random from the model's probabilities, as one tree that grows to the right. The number "
        "at a token says how many of the samples wrote it there. Greedy decoding always takes the most probable token "
        "and has one way only, in the accent colour."
    )

    def data(self, lab: Lab, seen: Inspection) -> SamplesData:
        """Draws the samples, also without switches where there are any."""
        samples, eos = self._draw(lab, seen, seen.interventions), lab.model.config.eos_id
        return SamplesData(
            samples,
            tuple(tuple(map(lab.tokenizer.piece, sample.ids)) for sample in samples),
            tuple(lab.tokenizer.decode([token for token in sample.ids if token != eos]) for sample in samples),
            seen.target_ids,
            self._draw(lab, seen, ()) if seen.interventions else None,
        )

    def figure(self, data: SamplesData, *, dark: bool = False) -> go.Figure:
        """A column a step; greedy decoding's way in the accent colour."""
        tree = prefix_tree([sample.ids for sample in data.samples], [sample.count for sample in data.samples])
        kept = [index for index, node in enumerate(tree) if node.outputs[0] < self.most]
        places = {index: place for place, index in enumerate(kept)}
        nodes = []
        for node in (tree[index] for index in kept):
            prefix = data.samples[node.outputs[0]].ids[: node.step + 1]
            said = f"written by {node.weight:g} of {self.n} samples"
            if data.baseline is not None:
                without = sum(sample.count for sample in data.baseline if sample.ids[: len(prefix)] == prefix)
                said += f"; without the switches by {without}"
            nodes.append(
                TreeToken(
                    node.step,
                    data.tokens[node.outputs[0]][node.step],
                    node.row,
                    None if node.parent is None else places[node.parent],
                    f"{node.weight:g} ×",
                    node.weight / self.n,
                    prefix == data.greedy[: len(prefix)],
                    said,
                )
            )
        return branches_figure(nodes, dark=dark)

    def tables(self, data: SamplesData) -> tuple[DataFrame, ...]:
        """The outputs with their counts and log-probabilities."""
        tables = [_sample_table("samples", data.samples, [" ".join(tokens) for tokens in data.tokens])]
        if data.baseline is not None:
            ids = [" ".join(map(str, sample.ids)) for sample in data.baseline]
            tables.append(_sample_table(f"samples {WITHOUT}, by ids", data.baseline, ids))
        return tuple(tables)

    def checks(self, lab: Lab, seen: Inspection, data: SamplesData) -> Iterator[Check]:
        """Reads every output again, and draws again from the same seed in a plain loop without a cache."""
        source, specs = seen.source_ids, seen.interventions
        for samples, switches, whose in ((data.samples, specs, ""), (data.baseline, (), "Without switches: ")):
            if samples is not None:
                again = {"n": self.n, "seed": self.seed, "whose": whose}
                yield from check_samples(SlowReader(lab.model, switches), source, samples, self, **again)
        for sample, tokens in zip(data.samples, data.tokens, strict=True):
            check = check_labels(lab.tokenizer, sample.ids, tokens)
            if not check.holds:
                yield check
        yield from check_greedy(SlowReader(lab.model, specs), source, data.greedy)

    def _draw(self, lab: Lab, seen: Inspection, switches: Sequence) -> tuple[Sample, ...]:
        return draw_samples(lab.model, seen.source_ids, switches, self, n=self.n, seed=self.seed)


def _sample_table(name: str, samples: Sequence[Sample], outputs: Sequence[str]) -> DataFrame:
    columns = {
        "count": np.array([sample.count for sample in samples]),
        "log-probability": np.array([sample.log_prob for sample in samples]),
    }
    return column_table(name, numbered(outputs), columns)
