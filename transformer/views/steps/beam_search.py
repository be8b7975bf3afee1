"""The figures of a beam search: its tree, and the attention of one hypothesis."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray

from transformer.analysis.checks import Check, agree
from transformer.analysis.heads.importance import head_average
from transformer.analysis.steps.output_checks import (
    SlowReader,
    check_labels,
    check_search,
)
from transformer.analysis.steps.search_tree import Node, SearchTree
from transformer.figures.attention.matrix import head_heatmap
from transformer.figures.steps.search_tree import Candidate, search_figure
from transformer.figures.tables import Table, numbered
from transformer.inspection.inspection import Inspection
from transformer.lab import Lab
from transformer.model.taps import Site


@dataclass(frozen=True)
class BeamResult:
    """One result of a search."""

    ids: tuple[int, ...]
    text: str
    log_prob: float
    score: float
    ended: bool
    """False where it was cut off at the length limit."""


@dataclass(frozen=True)
class BeamData:
    """The candidates of a search in the order of their steps, and its results, the best first."""

    nodes: tuple[Node, ...]
    tokens: tuple[str, ...]
    """The token of each candidate."""
    fates: tuple[str, ...]
    """What became of each candidate and why, as a sentence without its full stop."""
    results: tuple[BeamResult, ...]


@dataclass(frozen=True, kw_only=True)
class BeamTree:
    """The tree of a beam search: every candidate of each step, and what became of it."""

    chosen: int | None = None
    """The candidate that is drawn larger."""
    name = "tree"

    def data(self, lab: Lab, seen: Inspection, tree: SearchTree) -> BeamData:
        """Labels the candidates and results of the search."""
        piece, decode, eos = lab.tokenizer.piece, lab.tokenizer.decode, lab.model.config.eos_id
        return BeamData(
            tree.nodes,
            tuple(piece(node.token) for node in tree.nodes),
            tuple(_fate(node, index, tree) for index, node in enumerate(tree.nodes)),
            tuple(
                BeamResult(
                    result.ids,
                    decode([token for token in result.ids if token != eos]),
                    result.log_prob,
                    result.score,
                    result.ended,
                )
                for result in tree.results
            ),
        )

    def figure(self, data: BeamData, *, dark: bool = False) -> go.Figure:
        """A column a step; the best result's way in the accent colour."""
        shown = [
            Candidate(n.step, token, n.parent, n.log_prob, n.score, n.fate, n.on_best, fate)
            for n, token, fate in zip(data.nodes, data.tokens, data.fates, strict=True)
        ]
        return search_figure(shown, chosen=self.chosen, dark=dark)

    def tables(self, data: BeamData) -> tuple[Table, ...]:
        """The candidates and the results."""
        columns = ["step", "token", "continues", "rank", "log-probability", "score", "best way"]
        rows = [
            (n.step, n.token, math.nan if n.parent is None else n.parent, n.rank, n.log_prob, n.score, n.on_best)
            for n in data.nodes
        ]
        names = [f"{token}, {n.fate}" for token, n in zip(data.tokens, data.nodes, strict=True)]
        found = np.array([(result.log_prob, result.score) for result in data.results])
        texts = numbered([result.text for result in data.results])
        return (
            Table("candidates", np.array(rows, dtype=np.float64), numbered(names), columns),
            Table("results", found.reshape(-1, 2), texts, ["log-probability", "score"]),
        )

    def checks(self, lab: Lab, seen: Inspection, tree: SearchTree, data: BeamData) -> Iterator[Check]:
        """Searches again in a plain loop over the same hypotheses, in double precision, without a cache."""
        yield from check_search(
            lab.model,
            seen.source_ids,
            seen.interventions,
            data.nodes,
            [(result.ids, result.log_prob, result.score, result.ended) for result in data.results],
            size=tree.size,
            alpha=tree.alpha,
            norm=tree.norm,
            early_stopping=tree.early_stopping,
        )
        yield check_labels(lab.tokenizer, [node.token for node in data.nodes], data.tokens)


def _fate(node: Node, index: int, tree: SearchTree) -> str:
    """Returns what became of a candidate, and why, with the numbers that decided it."""
    rank, place = f"number {node.rank} of this step's candidates", tree.place_of(index)
    match node.fate:
        case "goes on":
            return f"{rank}: goes on"
        case "ended" if place is not None:
            return f"{rank}: ended, and is result {place} by its score"
        case "ended":
            return f"{rank}: ended, but {tree.size} complete hypotheses have better scores"
        case "left over" if place is not None:
            return f"{rank}: cut off at the length limit, and is result {place} by its score"
        case "left over":
            return f"{rank}: still in the beam when the search was over"
    kept = tree.kept_last(node.step)
    if kept is None or kept.log_prob < node.log_prob:
        return f"{rank}: pruned, as an end counts only among the best {tree.size}"
    return (
        f"{rank}: pruned, as the beam has room for {tree.size}. Its log-probability, {node.log_prob:.3g} nats, is "
        f"{kept.log_prob - node.log_prob:.3g} below that of the last one that went on"
    )


@dataclass(frozen=True)
class HypothesisData:
    """Where one hypothesis of a search looked in the source."""

    ids: tuple[int, ...]
    tokens: tuple[str, ...]
    keys: tuple[str, ...]
    probabilities: Float[ndarray, "token"]
    """The probability of each token when it was added."""
    weights: Float[ndarray, "token key"]


@dataclass(frozen=True, kw_only=True)
class HypothesisAttention:
    """The cross-attention of one hypothesis, as the search's own passes recorded it."""

    candidate: int
    """The index of its last candidate."""
    layer: int
    head: int | None = None
    """None for the average of the layer's heads."""

    @property
    def name(self) -> str:
        """The last part of the names of its files."""
        head = "average" if self.head is None else f"head{self.head}"
        return f"candidate{self.candidate}-cross-layer{self.layer}-{head}"

    def data(self, lab: Lab, seen: Inspection, tree: SearchTree) -> HypothesisData:
        """Follows the candidate back to the first step; ValueError where there is no such candidate."""
        if not 0 <= self.candidate < len(tree.nodes):
            raise ValueError(f"there is no candidate {self.candidate}: this tree has 0 to {len(tree.nodes) - 1}")
        path, weights = tree.path(self.candidate), tree.attention(self.candidate)
        totals = (0.0, *(node.log_prob for node in path))
        ids = tuple(node.token for node in path)
        return HypothesisData(
            ids,
            tuple(map(lab.tokenizer.piece, ids)),
            seen.cross.keys,
            np.exp([after - before for before, after in pairwise(totals)]),
            head_average(weights, self.layer) if self.head is None else weights[self.layer, self.head],
        )

    def figure(self, data: HypothesisData, *, dark: bool = False) -> go.Figure:
        """A row for each token."""
        return head_heatmap(data.weights, data.tokens, data.keys, kind="cross", dark=dark)

    def tables(self, data: HypothesisData) -> tuple[Table, ...]:
        """The weights, and the tokens' probabilities."""
        rows = numbered(data.tokens)
        return (
            Table("weight", data.weights, rows, numbered(data.keys)),
            Table("probability", data.probabilities[:, None], rows, ["probability"]),
        )

    def checks(self, lab: Lab, seen: Inspection, tree: SearchTree, data: HypothesisData) -> Iterator[Check]:
        """Reads the words of the hypothesis alone, one by one where positions see later ones."""
        reader, source, ids = SlowReader(lab.model, seen.interventions), seen.source_ids, list(data.ids)
        rows = reader.log_probs(source, ids)
        how = f"its {len(ids)} tokens read again in double precision, without a beam"
        claim = "Each token's probability is the model's, given the tokens before it"
        yield agree(claim, data.probabilities, np.exp(rows[np.arange(len(ids)), ids]), 1e-4, how)
        site, again = Site("decoder", self.layer, "cross", "weights"), []
        for step in range(len(ids)):
            heads = reader.recording(source, ids[: step + 1])[site][0, :, -1].numpy()
            again.append(sum(heads) / len(heads) if self.head is None else heads[self.head])
        yield agree("Its attention is that of writing these words", data.weights, again, 1e-4, how)
        yield agree(
            "Every row sums to 1", data.weights.sum(axis=1, dtype=np.float64), np.ones(len(ids)), 1e-4, "summed"
        )
        yield check_labels(lab.tokenizer, data.ids, data.tokens)
