"""The check of a beam search: its hypotheses followed in a plain loop, in double precision and without a cache."""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Protocol, runtime_checkable

import numpy as np

from transformer.analysis.checks import Check, agree
from transformer.analysis.steps.output_checks import AGAIN, CLOSE, TIE, SlowReader
from transformer.analysis.steps.search_tree import Fate, Node, SearchTree
from transformer.decoding.beam import length_norm


@runtime_checkable
class Result(Protocol):
    """A result as it is shown."""

    @property
    def ids(self) -> tuple[int, ...]: ...
    @property
    def log_prob(self) -> float: ...
    @property
    def score(self) -> float: ...
    @property
    def ended(self) -> bool: ...


def check_search(
    reader: SlowReader,
    source: Sequence[int],
    tree: SearchTree,
    nodes: Sequence[Node],
    results: Sequence[Result],
) -> Iterator[Check]:
    """Checks a beam search's candidates, and its results, step by step, with the settings of a search."""
    size, longest = tree.size, reader.max_length
    beam: list[tuple[tuple[int, ...], float, int | None]] = [((), 0.0, None)]
    pool: list[tuple[tuple[int, ...], float, float]] = []
    totals, scores, missed, wrong, place = [], [], 0.0, 0, 0
    best = results[0].ids if results else ()
    for step in range(longest):
        rows = reader.next_log_probs(source, [prefix for prefix, _, _ in beam])
        rows[:, reader.pad] = -math.inf
        sums = rows + np.array([[total] for _, total, _ in beam])
        divisor, last = length_norm(step + 1, tree.alpha, tree.norm), step + 1 == longest
        found = list(nodes[place : place + min(2 * size, int(np.isfinite(sums).sum()))])
        going: list[tuple[tuple[int, ...], float, int | None]] = []
        fates: list[Fate] = []
        for rank, node in enumerate(found, start=1):
            if not 0 <= node.place < len(beam):
                yield Check("Every candidate continues a hypothesis of the beam", math.inf, 0.0, f"step {step}")
                return
            prefix, _, parent = beam[node.place]
            ids, total = (*prefix, node.token), float(sums[node.place, node.token])
            totals.append(total)
            scores.append(total / divisor)
            sums[node.place, node.token] = -math.inf
            wrong += (node.step, node.parent, node.rank) != (step, parent, rank)
            wrong += node.on_best != (ids == best[: len(ids)])
            if node.token == reader.eos:
                fates.append("ended" if rank <= size else "pruned")
            else:
                fates.append("goes on" if len(going) < size else "pruned")
            if fates[-1] == "goes on":
                going.append((ids, total, place + rank - 1))
            if fates[-1] == "ended" or (last and fates[-1] == "goes on"):
                pool.append((ids, total, total / divisor))
        missed = max(missed, float(sums.max()) - min((total for total in totals[place:]), default=math.inf))
        pool = sorted(pool, key=lambda each: -each[2])[:size]
        bound = max((total for _, total, _ in going), default=-math.inf)
        reach = bound / length_norm(longest, tree.alpha, tree.norm)
        over = last or not going or (len(pool) >= size and (tree.early_stopping or reach <= pool[-1][2]))
        named = ["left over" if over and fate == "goes on" else fate for fate in fates]
        wrong += sum(node.fate != fate for node, fate in zip(found, named, strict=True))
        place, beam = place + len(found), going
        if over:
            break
    shown = nodes[: len(totals)]
    how = f"{len(nodes)} candidates {AGAIN}"
    claim = "A candidate's log-probability is the sum over its tokens, each given those before it"
    yield agree(claim, [node.log_prob for node in nodes], totals, CLOSE, how)
    claim = "A score is the log-probability divided by the length norm"
    yield agree(claim, [node.score for node in shown], scores, CLOSE, how)
    yield Check("No better continuation was left out", max(0.0, missed), TIE, "all of each step; nats above the last")
    unordered = max(
        (b.log_prob - a.log_prob for _, each in groupby(shown, key=lambda node: node.step) for a, b in pairwise(each)),
        default=0.0,
    )
    yield Check("The candidates of a step are in order", max(0.0, unordered), 0.0, "neighbours compared, in nats")
    claim = "What goes on, ends or is pruned follows the rules of the search"
    yield Check(claim, float(wrong), 0.0, f"{len(nodes)} candidates followed in a plain loop; wrong ones")
    if len(results) != len(pool):
        yield Check("The results are the best hypotheses", math.inf, 0.0, f"{len(pool)} found, {len(results)} shown")
        return
    known = {ids: (total, score) for ids, total, score in pool}
    again = [known.get(result.ids, (math.nan, math.nan)) for result in results]
    found = [(result.log_prob, result.score) for result in results]
    yield agree("The results are the best hypotheses", found, again, CLOSE, "collected again")
    ends = [result.ids[-1] == reader.eos for result in results]
    claim = "They are complete where an end mark was written"
    yield agree(claim, [result.ended for result in results], ends, 0, "last tokens looked at")
