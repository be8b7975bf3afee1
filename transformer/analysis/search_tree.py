"""A beam search of one sentence as a tree: every candidate with its scores, and what became of it and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from transformer.beam import ENDED, GOES_ON, BeamStep, Hypothesis, beam_search
from transformer.config import LengthNorm
from transformer.interventions import Intervention, compile_interventions
from transformer.model import Transformer

Fate = Literal["goes on", "ended", "pruned", "left over"]
"""`left over`: still in the beam when the search was over."""


@dataclass(frozen=True)
class Node:
    """One candidate: a hypothesis and the token that would continue it."""

    step: int
    token: int
    parent: int | None
    """Index of the node that it continues; None at step 0."""
    rank: int
    """Among this step's candidates by log-probability, 1 for the best."""
    log_prob: float
    """Of all tokens up to here together, in nats."""
    score: float
    """The same divided by the length norm."""
    fate: Fate
    on_best: bool
    """Whether the best result came by here."""


@dataclass(frozen=True)
class SearchTree:
    """All candidates in the order of their steps, and the results."""

    nodes: tuple[Node, ...]
    results: tuple[Hypothesis, ...]
    """The best first, at most as many as the beam is wide."""
    size: int


def search_tree(
    model: Transformer,
    source: Sequence[int],
    switches: Sequence[Intervention] = (),
    *,
    size: int,
    alpha: float,
    norm: LengthNorm,
    early_stopping: bool = True,
) -> SearchTree:
    """The tree of a search with these settings; ValueError as `beam_search`."""
    tap = compile_interventions(switches, model)
    steps = list(
        beam_search(
            model,
            torch.tensor([source]),
            size=size,
            max_length=model.config.max_length,
            alpha=alpha,
            norm=norm,
            early_stopping=early_stopping,
            tap=tap,
        )
    )
    results = steps[-1].finished[0]
    best = results[0].ids
    nodes: list[Node] = []
    beams: list[int | None] = [None] * size  # the node at each place of the beam
    for step in steps:
        found = _nodes(step, beams, best, last=step is steps[-1])
        goes_on = [len(nodes) + i for i, node in enumerate(found) if node.fate == "goes on"]
        beams = [*goes_on, *[None] * (size - len(goes_on))]
        nodes += found
    return SearchTree(tuple(nodes), results, size)


def _nodes(step: BeamStep, beams: list[int | None], best: tuple[int, ...], *, last: bool) -> list[Node]:
    found = []
    columns = (step.parents[0], step.tokens[0], step.totals[0], step.scores[0], step.fates[0])
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for rank, (parent, token, total, score, fate) in enumerate(rows, start=1):
        if total == -float("inf"):
            continue
        written = (*step.prefixes[0, parent].tolist(), token)
        name: Fate = "goes on" if fate == GOES_ON else "ended" if fate == ENDED else "pruned"
        if last and name == "goes on":
            name = "left over"
        on_best = written == best[: len(written)]
        found.append(Node(step.index, token, beams[parent], rank, total, score, name, on_best))
    return found
