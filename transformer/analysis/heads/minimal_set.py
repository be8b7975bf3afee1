"""Finds the smallest set of heads whose removal changes an output: every set up to some size, then one more head.

Exact by enumeration up to the size asked for. Past it greedy: to each of the sets nearest to the goal every other head
is added, and of these again the nearest are kept (forward selection with a beam, which with a width of 1 is the plain
greedy search). That finds small sets but does not prove that none is smaller.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer.analysis.heads.ablations import forced_under, in_batches
from transformer.analysis.heads.addresses import HeadAt, Tell
from transformer.decoding.greedy import greedy
from transformer.interventions import AblateHeads, Intervention, compile_interventions
from transformer.model.taps import Stack, Sublayer
from transformer.model.transformer import Transformer

EXACT = 3
"""Every set of up to so many heads is tried."""
WIDTH = 256
"""Sets of a size that are grown further, past the sizes of which all are tried."""
KEPT = 12
"""Sets that are kept, the clearest first."""


@dataclass(frozen=True)
class Goal:
    """The change that is wanted of the output. Tokens before `step` must stay as they are."""

    step: int | None = None
    """The token that is to change; None: any of them."""
    token: int | None = None
    """The token that it is to become; None: anything else."""


@dataclass(frozen=True)
class Ablation:
    """A set of heads taken out together."""

    heads: tuple[HeadAt, ...]
    margin: float
    """The log-probability by which the goal is missed, in nats; below 0 it is reached."""
    written: tuple[int, ...] = ()
    """The greedy output without these heads; empty where it was not decoded."""
    ended: bool = True
    """False where that was cut off before an end mark, eight tokens past twice the output's length at the latest."""

    @property
    def switches(self) -> tuple[AblateHeads, ...]:
        """The interventions that take these heads out, one for each block."""
        sublayers: dict[tuple[Stack, int, Sublayer], list[int]] = {}
        for at in self.heads:
            sublayers.setdefault((at.stack, at.layer, at.sublayer), []).append(at.head)
        return tuple(AblateHeads(*where, tuple(sorted(heads))) for where, heads in sorted(sublayers.items()))


@dataclass(frozen=True)
class MinimalSets:
    """The result of a search."""

    sets: tuple[Ablation, ...]
    """Sets of the smallest size found that reach the goal, each decoded; the clearest first, KEPT at most."""
    n_sets: int
    """The number of sets of that size that reach it, of those tried."""
    size: int
    """Heads of a set; where none was found, the most that were tried."""
    exact: bool
    """True where all sets of that size and below were tried."""
    tried: tuple[int, ...]
    """The number of sets of each size that were tried, from 1 on."""
    nearest: Ablation
    """The set nearest to the goal, of all that were tried."""


@dataclass(frozen=True)
class SearchPlan:
    """A goal, the heads among which sets are looked for, and how large these may be."""

    goal: Goal
    heads: tuple[HeadAt, ...]
    exact: int = EXACT
    """Every set of up to so many heads is tried."""
    most: int = 8
    """Heads of a set at most."""

    @property
    def n_ablations(self) -> int:
        """The number of sets that a search may have to try, at most."""
        return n_ablations(len(self.heads), exact=self.exact, most=self.most)


def n_ablations(n_heads: int, *, exact: int = EXACT, most: int, width: int = WIDTH) -> int:
    """Returns the number of sets that a search may have to try, at most."""
    every = sum(comb(n_heads, size) for size in range(1, min(exact, most) + 1))
    grown = range(exact + 1, min(most, n_heads) + 1)
    return every + sum(min(comb(n_heads, size), width * (n_heads - size + 1)) for size in grown)


@torch.no_grad()
def minimal_set(
    model: Transformer,
    source: Sequence[int],
    target: Sequence[int],
    goal: Goal,
    heads: Sequence[HeadAt],
    *,
    switches: Sequence[Intervention] = (),
    exact: int = EXACT,
    most: int = 8,
    width: int = WIDTH,
    tell: Tell | None = None,
) -> MinimalSets:
    """Finds the smallest set of these heads without which greedy decoding reaches the goal.

    The output with all heads, under `switches`, is `target`.

    A set that reaches it is then decoded, token by token, and dropped if rounding between the two ways of computing
    made the difference. ValueError for a goal that the output has no place for, and for no heads.
    """
    _check(model, target, goal, heads)
    total = n_ablations(len(heads), exact=exact, most=most, width=width)
    search = _Search(model, source, target, goal, tuple(switches), total, width, tell)
    tried: list[int] = []
    for size in range(1, min(exact, most, len(heads)) + 1):
        sets = list(combinations(heads, size))
        reached = search.try_all(sets)
        tried.append(len(sets))
        if reached:
            return search.found(reached, size, tried, exact=True)
    while len(tried) < min(most, len(heads)):
        grown = {frozenset((*ablation.heads, at)) for ablation in search.nearest_of_size for at in heads}
        sets = [tuple(at for at in heads if at in chosen) for chosen in grown if len(chosen) == len(tried) + 1]
        reached = search.try_all(sets)
        tried.append(len(sets))
        if reached:
            return search.found(reached, len(tried), tried, exact=False)
    return MinimalSets((), 0, len(tried), len(tried) <= exact, tuple(tried), search.nearest)


def reaches(written: Sequence[int], target: Sequence[int], goal: Goal) -> bool:
    """Tells whether an output reaches the goal, where the output with all heads was `target`."""
    if goal.step is None:
        return tuple(written) != tuple(target)
    if len(written) <= goal.step or tuple(written[: goal.step]) != tuple(target[: goal.step]):
        return False
    now = written[goal.step]
    return now != target[goal.step] if goal.token is None else now == goal.token


@dataclass
class _Search:
    model: Transformer
    source: Sequence[int]
    target: Sequence[int]
    goal: Goal
    switches: tuple[Intervention, ...]
    n_ablations: int
    width: int
    tell: Tell | None
    n_tried: int = 0
    nearest: Ablation = Ablation((), torch.inf)
    nearest_of_size: tuple[Ablation, ...] = ()
    """The sets of the last size, the nearest first."""

    def __post_init__(self) -> None:
        self.tap = compile_interventions(self.switches, self.model)
        self.ids = torch.tensor(self.target)
        self.sizes = len(self.source), len(self.target), self.model.config.vocab_size
        self.memory = self.model.encode(torch.tensor([self.source]), tap=self.tap)

    def try_all(self, sets: Sequence[tuple[HeadAt, ...]]) -> list[Ablation]:
        """Tries sets and returns those that reach the goal, the clearest first."""
        self.nearest_of_size = ()
        reached = []
        # Sets that leave out the same heads of the encoder then stand together and share its pass.
        ordered = sorted(sets, key=lambda heads: ([at for at in heads if at.stack == "encoder"], heads))
        for part in in_batches(ordered, *self.sizes):
            memory = None if any(at.stack == "encoder" for heads in part for at in heads) else self.memory
            found = forced_under(self.model, self.source, self.target, part, tap=self.tap, memory=memory)
            margins, hits = judged(found, self.ids, self.goal, self.model.config.pad_id)
            ablations = [Ablation(heads, margin) for heads, margin in zip(part, margins.tolist(), strict=True)]
            reached += [ablation for ablation, hit in zip(ablations, hits.tolist(), strict=True) if hit]
            nearest = sorted((*self.nearest_of_size, *ablations), key=_margin)
            self.nearest_of_size = tuple(nearest[: self.width])
            self.n_tried += len(part)
            if self.tell is not None:
                self.tell(min(1.0, self.n_tried / self.n_ablations))
        self.nearest = min(self.nearest, *self.nearest_of_size, key=_margin)
        return self._decoded(sorted(reached, key=_margin))

    def found(self, reached: list[Ablation], size: int, tried: list[int], *, exact: bool) -> MinimalSets:
        return MinimalSets(tuple(reached[:KEPT]), len(reached), size, exact, tuple(tried), reached[0])

    def _decoded(self, reached: list[Ablation]) -> list[Ablation]:
        """Decodes the first of them and drops those that reach the goal only by rounding."""
        kept: list[Ablation] = []
        for place, ablation in enumerate(reached):
            if len(kept) == KEPT:
                return kept + reached[place:]
            written = self._written(ablation)
            if reaches(written, self.target, self.goal):
                kept.append(replace(ablation, written=written, ended=written[-1] == self.model.config.eos_id))
        return kept

    def _written(self, ablation: Ablation) -> tuple[int, ...]:
        tap = compile_interventions([*self.switches, *ablation.switches], self.model)
        longest = min(self.model.config.max_length, 2 * len(self.target) + 8)  # without heads some never end
        steps = greedy(self.model, torch.tensor([self.source]), max_length=longest, tap=tap)
        return tuple(int(step.tokens[0]) for step in steps)


def _margin(ablation: Ablation) -> float:
    return ablation.margin


def judged(
    log_probs: Float[Tensor, "set step vocab"], target: Int[Tensor, " step"], goal: Goal, pad_id: int
) -> tuple[Float[Tensor, " set"], Bool[Tensor, " set"]]:
    """Returns the nats by which each set misses the goal, and whether it reaches it."""
    writable = log_probs.clone()
    writable[..., pad_id] = -torch.inf  # is never written
    chosen = writable.gather(2, target[None, :, None].expand(len(writable), -1, 1))[..., 0].double()
    best = writable.topk(2, dim=-1)
    stays = writable.argmax(dim=-1) == target
    other = torch.where(best.indices[..., 0] == target, best.values[..., 1], best.values[..., 0]).double()
    slack = chosen - other
    if goal.step is None:
        return slack.amin(dim=-1), ~stays.all(dim=-1)
    before = stays[:, : goal.step].all(dim=-1)
    at_step = writable[:, goal.step]
    if goal.token is None:
        miss, there = slack[:, goal.step], ~stays[:, goal.step]
    else:
        others = at_step.clone()
        others[:, goal.token] = -torch.inf
        miss, there = (others.amax(dim=-1) - at_step[:, goal.token]).double(), at_step.argmax(dim=-1) == goal.token
    if goal.step:
        miss = torch.maximum(miss, -slack[:, : goal.step].amin(dim=-1))
    return miss, before & there


def _check(model: Transformer, target: Sequence[int], goal: Goal, heads: Sequence[HeadAt]) -> None:
    if not heads:
        raise ValueError("there is no head to take out")
    if goal.step is None:
        return
    if not 0 <= goal.step < len(target):
        raise ValueError(f"token {goal.step} does not exist: the output has tokens 0 to {len(target) - 1}")
    if goal.token is not None and not 0 <= goal.token < model.config.vocab_size:
        raise ValueError(f"token id {goal.token} is outside the vocabulary of {model.config.vocab_size:,}")
    if goal.token in (target[goal.step], model.config.pad_id):
        raise ValueError("the token is to become what it is already, or padding, which is never written")
