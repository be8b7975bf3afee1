"""A beam search of one sentence as a tree: every candidate with its scores and its fate."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from transformer.config import LengthNorm
from transformer.decoding.beam import ENDED, GOES_ON, BeamStep, Hypothesis, beam_search
from transformer.interventions import Intervention, compile_interventions
from transformer.model.kinds import AttentionKind
from transformer.model.seq2seq import Seq2Seq, attention_layers
from transformer.model.taps import Site

Fate = Literal["goes on", "ended", "pruned", "left over"]
"""`left over`: still in the beam when the search was over."""


@dataclass(frozen=True)
class Node:
    """One candidate: a hypothesis and the token that would continue it."""

    step: int
    token: int
    parent: int | None
    """The index of the node that it continues; None at step 0."""
    place: int
    """The row, in the beam and in this step's pass, of the hypothesis that it continues."""
    rank: int
    """The rank among this step's candidates by log-probability, 1 for the best."""
    log_prob: float
    """The sum over all tokens up to here, in nats."""
    score: float
    """The log-probability divided by the length norm."""
    fate: Fate
    on_best: bool
    """True if the best result begins with this hypothesis."""


@dataclass(frozen=True)
class SearchTree:
    """All candidates in the order of their steps, and the results."""

    nodes: tuple[Node, ...]
    results: tuple[Hypothesis, ...]
    """The best first, at most as many as the beam is wide."""
    size: int
    alpha: float
    norm: LengthNorm
    early_stopping: bool
    cross: tuple[Float[ndarray, "layer beam head key"], ...]
    """Cross-attention of every hypothesis in the beam at each step, as the search's own pass recorded it."""

    def path(self, index: int) -> tuple[Node, ...]:
        """Returns the candidates from the first step to this one."""
        node = self.nodes[index]
        return (node,) if node.parent is None else (*self.path(node.parent), node)

    def attention(self, index: int) -> Float[ndarray, "layer head step key"]:
        """Returns the cross-attention of the hypothesis that ends with this candidate: a row for each of its tokens."""
        return np.stack([self.cross[node.step][:, node.place] for node in self.path(index)], axis=2)

    def index_of(self, result: Hypothesis) -> int:
        """Returns the index of a result's last candidate."""
        wanted = result.ids
        last = (i for i, node in enumerate(self.nodes) if node.step == len(wanted) - 1 and node.token == wanted[-1])
        return next(i for i in last if tuple(node.token for node in self.path(i)) == wanted)

    def kept_last(self, step: int) -> Node | None:
        """Returns the least probable candidate of a step that went on."""
        kept = [node for node in self.nodes if node.step == step and node.fate in ("goes on", "left over")]
        return kept[-1] if kept else None

    def place_of(self, index: int) -> int | None:
        """Returns the place of a complete hypothesis among the results, 1 for the best; None if it is none of them."""
        ids = tuple(node.token for node in self.path(index))
        return next((place for place, result in enumerate(self.results, start=1) if result.ids == ids), None)


def search_tree(
    model: Seq2Seq,
    source: Sequence[int],
    switches: Sequence[Intervention] = (),
    *,
    size: int,
    alpha: float,
    norm: LengthNorm,
    early_stopping: bool = False,
) -> SearchTree:
    """Searches with these settings and returns the tree; ValueError as `beam_search`."""
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
            record=lambda site: (site.stack, site.sublayer, site.tensor) == ("decoder", "cross", "weights"),
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
    n_layers = attention_layers(model).get(AttentionKind.CROSS, 0)
    cross = tuple(_attention(step, n_layers) for step in steps) if n_layers else ()
    return SearchTree(tuple(nodes), results, size, alpha, norm, early_stopping, cross)


def _attention(step: BeamStep, n_layers: int) -> Float[ndarray, "layer beam head key"]:
    """Returns the weights of the newest query of every hypothesis in the pass."""
    assert step.recording is not None, "recording was asked for"
    weights = [step.recording[Site("decoder", layer, "cross", "weights")][:, :, -1] for layer in range(n_layers)]
    return torch.stack(weights)[:, step.alive[0]].numpy()


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
        found.append(Node(step.index, token, beams[parent], parent, rank, total, score, name, on_best))
    return found
