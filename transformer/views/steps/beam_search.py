"""The figures of a beam search: its tree, and the attention of one hypothesis."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.checks import Check, agree
from transformer.analysis.heads.importance import head_average
from transformer.analysis.steps.output_checks import SlowReader, check_labels
from transformer.analysis.steps.search_checks import check_search
from transformer.analysis.steps.search_tree import Fate, Node, SearchTree
from transformer.figures.attention.matrix import head_heatmap
from transformer.figures.steps.search_tree import Candidate, search_figure
from transformer.figures.tables import column_table, matrix_table, numbered
from transformer.inspection.inspection import Inspection
from transformer.lab import Lab
from transformer.model.taps import Site
from transformer.views.steps.candidates import WITHOUT


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
    """The candidates of a search in the order of their steps, as columns, and its results, the best first."""

    step: Int[ndarray, " candidate"]
    token: Int[ndarray, " candidate"]
    parent: Int[ndarray, " candidate"]
    """The index of the candidate that each continues; -1 at step 0."""
    place: Int[ndarray, " candidate"]
    rank: Int[ndarray, " candidate"]
    log_prob: Float[ndarray, " candidate"]
    score: Float[ndarray, " candidate"]
    on_best: Bool[ndarray, " candidate"]
    fates: tuple[Fate, ...]
    tokens: tuple[str, ...]
    """The token of each candidate, in characters."""
    reasons: tuple[str, ...]
    """The fate of each candidate and the reason for it, as a sentence without its full stop."""
    results: tuple[BeamResult, ...]
    baseline: tuple[BeamResult, ...] | None
    """The results of the search without the switches; None where there are no switches."""

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The candidates one by one."""
        columns = (self.step, self.token, self.place, self.rank, self.log_prob, self.score, self.on_best)
        rows = zip(*(column.tolist() for column in columns), self.parent.tolist(), self.fates, strict=True)
        return tuple(
            Node(step, token, None if parent < 0 else parent, place, rank, log_prob, score, fate, on_best)
            for step, token, place, rank, log_prob, score, on_best, parent, fate in rows
        )


@dataclass(frozen=True, kw_only=True)
class BeamTree:
    """The tree of a beam search: every candidate of each step, and its fate."""

    chosen: int | None = None
    """The candidate that is drawn larger."""
    name = "tree"
    explained = (
        "Each column is a step. A beam search keeps several beginnings at once; each is continued by every token, and "
        "the best of all of these by their score, the number beside the token, go on. The others are pruned, drawn as "
        "a cross. The score is the log-probability of the whole output so far, divided by a norm of its length. Blue "
        "is the way to the best result."
    )
    equation = r"\mathrm{score}(y) = \frac{\sum_t \log P(y_t \mid y_{<t}, \text{source})}{\mathrm{norm}(|y|)}"

    def data(self, lab: Lab, seen: Inspection, tree: SearchTree, baseline: SearchTree | None) -> BeamData:
        """Labels the candidates and results of the search."""
        nodes = tree.nodes
        return BeamData(
            step=np.array([node.step for node in nodes]),
            token=np.array([node.token for node in nodes]),
            parent=np.array([-1 if node.parent is None else node.parent for node in nodes]),
            place=np.array([node.place for node in nodes]),
            rank=np.array([node.rank for node in nodes]),
            log_prob=np.array([node.log_prob for node in nodes]),
            score=np.array([node.score for node in nodes]),
            on_best=np.array([node.on_best for node in nodes]),
            fates=tuple(node.fate for node in nodes),
            tokens=tuple(lab.tokenizer.piece(node.token) for node in nodes),
            reasons=tuple(_reason(node, index, tree) for index, node in enumerate(nodes)),
            results=_results(lab, tree),
            baseline=None if baseline is None else _results(lab, baseline),
        )

    def figure(self, data: BeamData, *, dark: bool = False) -> go.Figure:
        """A column a step; the best result's way in the accent colour."""
        shown = [
            Candidate(n.step, token, n.parent, n.log_prob, n.score, n.fate, n.on_best, reason)
            for n, token, reason in zip(data.nodes, data.tokens, data.reasons, strict=True)
        ]
        return search_figure(shown, chosen=self.chosen, dark=dark)

    def tables(self, data: BeamData) -> tuple[DataFrame, ...]:
        """The candidates and the results."""
        columns = {
            "step": data.step,
            "token": data.token,
            "continues": data.parent,
            "rank": data.rank,
            "log-probability": data.log_prob,
            "score": data.score,
            "best way": data.on_best,
        }
        names = [f"{token}, {fate}" for token, fate in zip(data.tokens, data.fates, strict=True)]
        tables = [column_table("candidates", numbered(names), columns), _result_table("results", data.results)]
        if data.baseline is not None:
            tables.append(_result_table(f"results {WITHOUT}", data.baseline))
        return tuple(tables)

    def checks(
        self, lab: Lab, seen: Inspection, tree: SearchTree, baseline: SearchTree | None, data: BeamData
    ) -> Iterator[Check]:
        """Searches again in a plain loop over the same hypotheses, in double precision, without a cache."""
        reader = SlowReader(lab.model, seen.interventions)
        yield from check_search(reader, seen.source_ids, tree, data.nodes, data.results)
        yield check_labels(lab.tokenizer, data.token.tolist(), data.tokens)
        if baseline is not None and data.baseline is not None:
            reader = SlowReader(lab.model, ())
            for check in check_search(reader, seen.source_ids, baseline, baseline.nodes, data.baseline):
                yield Check(f"Without switches: {check.claim}", check.measured, check.tolerance, check.how)


def _results(lab: Lab, tree: SearchTree) -> tuple[BeamResult, ...]:
    eos = lab.model.config.eos_id
    texts = [lab.tokenizer.decode([token for token in result.ids if token != eos]) for result in tree.results]
    return tuple(
        BeamResult(result.ids, text, result.log_prob, result.score, result.ended)
        for result, text in zip(tree.results, texts, strict=True)
    )


def _result_table(name: str, results: tuple[BeamResult, ...]) -> DataFrame:
    values = np.array([(result.log_prob, result.score) for result in results]).reshape(-1, 2)
    return matrix_table(name, values, numbered([result.text for result in results]), ["log-probability", "score"])


def _reason(node: Node, index: int, tree: SearchTree) -> str:
    """Returns the fate of a candidate, and the reason for it with the numbers that decided it."""
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
    """The attention of one hypothesis of a search to the source."""

    ids: tuple[int, ...]
    tokens: tuple[str, ...]
    keys: tuple[str, ...]
    probabilities: Float[ndarray, " token"]
    """The probability of each token when it was added."""
    weights: Float[ndarray, "token key"]


@dataclass(frozen=True, kw_only=True)
class HypothesisAttention:
    """The cross-attention of one hypothesis, as the search's own passes recorded it."""

    explained = (
        "One hypothesis of the beam search, and where the decoder looked in the sentence as it wrote each of its "
        "tokens: rows are its tokens, columns the tokens of the sentence. The weights are those of the passes of the "
        "search itself."
    )

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

    def data(self, lab: Lab, seen: Inspection, tree: SearchTree, baseline: SearchTree | None) -> HypothesisData:
        """Follows the candidate back to the first step; ValueError where there is no such candidate."""
        if not 0 <= self.candidate < len(tree.nodes):
            raise ValueError(f"there is no candidate {self.candidate}: this tree has 0 to {len(tree.nodes) - 1}")
        seen.attention("cross")  # says what a model lacks
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

    def tables(self, data: HypothesisData) -> tuple[DataFrame, ...]:
        """The weights, and the tokens' probabilities."""
        rows = numbered(data.tokens)
        return (
            matrix_table("weight", data.weights, rows, numbered(data.keys)),
            column_table("probability", rows, {"probability": data.probabilities}),
        )

    def checks(
        self, lab: Lab, seen: Inspection, tree: SearchTree, baseline: SearchTree | None, data: HypothesisData
    ) -> Iterator[Check]:
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
        yield check_labels(lab.tokenizer, data.ids, data.tokens)
