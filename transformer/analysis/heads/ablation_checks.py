"""Proofs of what heads are worth: a head is taken out by rewriting W_O instead of by a tap, and outputs are decoded.

A head whose columns of W_O are zero adds nothing to its block's output. One at its mean adds the same at every
position: these columns times the mean, which is then part of W_O's bias. All in double precision, nothing batched with
other heads.
"""

import math
from collections.abc import Iterator, Sequence
from copy import deepcopy
from itertools import combinations

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray
from torch import Tensor

from transformer.analysis.checks import Check, agree
from transformer.analysis.heads.ablations import Means
from transformer.analysis.heads.addresses import HeadAt
from transformer.analysis.heads.importance import OutputEffect
from transformer.analysis.heads.minimal_set import Goal, MinimalSets, reaches
from transformer.analysis.heads.validation_importance import Change, ValidationImportance
from transformer.data.batches import pair_batches
from transformer.decoding.greedy import greedy, log_probs_on_prefixes, translate_ids
from transformer.interventions import Intervention, compile_interventions
from transformer.model.attention import MultiHeadAttention
from transformer.model.taps import Tap, chain
from transformer.model.transformer import Transformer
from transformer.text.pairs import Pair
from transformer.text.tokenizer import UNK, Tokenizer

MOST_HEADS = 96
"""Heads that are taken out again at most."""
MOST_SUBSETS = 62
"""Smaller sets that are decoded again at most."""
_ROUNDING = 1e-4
_SAMPLES = 20_000
"""Bootstrap samples drawn here, from a generator of their own."""
_REWRITTEN = "its columns of W_O set to zero"
_AT_MEAN = "its columns of W_O set to zero and its mean's part of the output put into the bias"


def without_heads(model: Transformer, heads: Sequence[HeadAt], means: Means | None = None) -> Transformer:
    """A copy in double precision to whose blocks' outputs these heads add nothing, or always their mean's part."""
    precise = deepcopy(model).double()
    for at in heads:
        attention = precise.get_submodule(f"{at.stack}.layers.{at.layer}.{at.sublayer}_attention")
        assert isinstance(attention, MultiHeadAttention)
        with torch.no_grad():
            size = model.config.d_head
            columns = attention.output.weight[:, at.head * size : (at.head + 1) * size]
            if means is not None:
                mean = means[f"{at.stack}.{at.layer}.{at.sublayer}"][at.head].double()
                attention.output.bias.add_(columns @ mean)
            columns.zero_()
    return precise


def check_output_effects(
    model: Transformer,
    source: Sequence[int],
    target: Sequence[int],
    switches: Sequence[Intervention],
    effects: Sequence[OutputEffect],
    means: Means | None = None,
) -> tuple[Check, ...]:
    """That an output's log-probability changes by so much without each head, and what is written instead."""
    some, ids, each = effects[:MOST_HEADS], list(target), np.arange(len(target))
    whole = forced(without_heads(model, ()), source, target, switches)
    again, short, divergences, chances = [], [0.0], [], []
    for effect in some:
        rows = forced(without_heads(model, [effect.at], means), source, target, switches)
        again.append(math.fsum(rows[each, ids] - whole[each, ids]))
        divergences.append(math.fsum((np.exp(whole) * (whole - rows)).ravel()) / len(ids))
        token = ids[effect.step]
        chances.append([math.exp(whole[effect.step, token]), math.exp(rows[effect.step, token])])
        short.append(_falls_short(rows, ids, effect, model.config.pad_id))
    how = f"{_heads(len(some), len(effects))}, {_REWRITTEN if means is None else _AT_MEAN}, one after the other"
    return (
        agree("Without each head the output's log-probability changes by so much", _moved(some), again, 1e-3, how),
        agree(
            "KL divergence is Σ p (ln p − ln q) over the whole vocabulary, averaged over the steps",
            [effect.kl_divergence for effect in some],
            divergences,
            1e-3,
            how,
        ),
        agree(
            "Before and after are the token's probability with the head and without it",
            np.array([[effect.before, effect.after] for effect in some]).reshape(-1, 2),
            np.array(chances).reshape(-1, 2),
            1e-4,
            how,
        ),
        Check(
            "What is written then is the most probable token",
            max(short),
            _ROUNDING,
            "in the same passes, tokens that stay and the first that changes; by how much another one is above",
        ),
    )


def check_validation_importance(
    model: Transformer,
    pairs: Sequence[Pair],
    tokenizer: Tokenizer,
    found: ValidationImportance,
    at: HeadAt,
    means: Means | None = None,
) -> Iterator[Check]:
    """That loss and exact match change by so much without one head, by other passes and by decoding."""
    worth = next(worth for worth in found.heads if worth.at == at)
    whole, less = without_heads(model, ()), without_heads(model, [at], means)
    how = f"all {len(pairs):,} pairs in double precision"
    losses, lengths = _losses(whole, pairs, tokenizer)
    yield agree("The loss with all heads", found.loss, math.fsum(losses) / math.fsum(lengths), _ROUNDING, how)
    moved = _losses(less, pairs, tokenizer)[0] - losses
    how = f"{how}, {_REWRITTEN if means is None else _AT_MEAN}"
    change = math.fsum(moved) / math.fsum(lengths)
    yield agree("The change of loss without the head in hand", worth.loss.value, change, _ROUNDING, how)
    yield _interval(worth.loss, moved, lengths)
    matches = [_matches(one, pairs, tokenizer) for one in (whole, less)]
    shown = found.exact_match, found.exact_match + worth.exact_match.value
    how = f"{len(pairs):,} sentences decoded token by token, with and without it"
    yield agree("Exact match with all heads and without it", shown, matches, 0.5 / len(pairs), how)


def check_intervals_hold(found: ValidationImportance) -> Check:
    """That every interval holds the value that it belongs to."""
    changes = [change for worth in found.heads for change in (worth.loss, worth.exact_match)]
    out = max(max(change.low - change.value, change.value - change.high, 0.0) for change in changes)
    how = f"{len(changes)} intervals; by how much a value is outside"
    return Check("Every interval holds its value", out, 1e-9, how)


def check_minimal_set(
    model: Transformer,
    source: Sequence[int],
    target: Sequence[int],
    goal: Goal,
    switches: Sequence[Intervention],
    found: MinimalSets,
    exact: int,
) -> Iterator[Check]:
    """That the sets found reach the goal, decoded again; and that smaller ones do not, as far as all were tried."""
    sets = [trial.heads for trial in found.sets]
    if sets:
        wrong = sum(
            _written(model, trial.heads, source, switches, len(target)) != trial.written for trial in found.sets
        )
        how = f"{len(sets)} sets decoded again token by token, {_REWRITTEN}; outputs that differ"
        yield Check("Without such a set this is written", float(wrong), 0.0, how)
        missed = sum(not reaches(trial.written, target, goal) for trial in found.sets)
        yield Check("That is what was asked for", float(missed), 0.0, f"{len(sets)} outputs; those that are not")
        margins = [
            _miss(forced(without_heads(model, heads), source, target, switches), target, goal, model.config.pad_id)
            for heads in sets
        ]
        how = f"the same output read again, {_REWRITTEN}, token by token"
        yield agree("Each set reaches it by so much", [trial.margin for trial in found.sets], margins, 1e-3, how)
    whole = sets[0] if sets else found.nearest.heads
    size = min(exact, len(whole) - 1 if sets else len(whole))
    parts = [part for n in range(size, 0, -1) for part in combinations(whole, n)][:MOST_SUBSETS]
    if parts:
        reached = sum(reaches(_written(model, part, source, switches, len(target)), target, goal) for part in parts)
        how = f"{len(parts)} of its parts taken out and decoded; those that reach it"
        yield Check("No part of the set does it", float(reached), 0.0, how)
    if not sets:
        rows = forced(without_heads(model, whole), source, target, switches)
        miss = _miss(rows, target, goal, model.config.pad_id)
        how = f"the same output read again, {_REWRITTEN}"
        yield agree("The nearest set misses it by so much", found.nearest.margin, miss, 1e-3, how)


def forced(
    precise: Transformer,
    source: Sequence[int],
    target: Sequence[int],
    switches: Sequence[Intervention],
    *,
    real: Bool[Tensor, "1 source"] | None = None,
    also: Tap | None = None,
) -> Float[ndarray, "step vocab"]:
    """Log-probabilities at each step of an output; where positions see later ones, a pass for each step.

    `real` is False at source tokens that count as padding; `also` is a tap behind the switches.
    """
    tap = compile_interventions(switches, precise)
    tap = tap if also is None else chain(tap, also)
    ids = torch.tensor([list(source)])
    return log_probs_on_prefixes(precise, ids, torch.tensor([list(target)]), real, tap=tap)[0].numpy()


def _moved(effects: Sequence[OutputEffect]) -> list[float]:
    return [effect.log_prob for effect in effects]


def _falls_short(rows: Float[ndarray, "step vocab"], target: Sequence[int], effect: OutputEffect, pad_id: int) -> float:
    """By how much a token that should be the most probable one is not: up to the one that changes, or all."""
    writable = rows.copy()
    writable[:, pad_id] = -np.inf
    kept = len(target) if effect.instead is None else effect.step
    wanted = [*target[:kept], *([] if effect.instead is None else [effect.instead])]
    return max((float(row.max() - row[token]) for row, token in zip(writable, wanted, strict=False)), default=0.0)


def _miss(rows: Float[ndarray, "step vocab"], target: Sequence[int], goal: Goal, pad_id: int) -> float:
    """By how much log-probability an output misses a goal, token by token."""

    def above(step: int, token: int) -> float:
        others = [value for other, value in enumerate(rows[step].tolist()) if other not in (token, pad_id)]
        return float(rows[step][token]) - max(others)

    if goal.step is None:
        return min(above(step, token) for step, token in enumerate(target))
    here = above(goal.step, target[goal.step]) if goal.token is None else -above(goal.step, goal.token)
    return max([here, *(-above(step, target[step]) for step in range(goal.step))])


def _written(
    model: Transformer, heads: Sequence[HeadAt], source: Sequence[int], switches: Sequence[Intervention], n: int
) -> tuple[int, ...]:
    less = without_heads(model, heads)
    longest = min(model.config.max_length, 2 * n + 8)
    steps = greedy(less, torch.tensor([list(source)]), max_length=longest, tap=compile_interventions(switches, less))
    return tuple(int(step.tokens[0]) for step in steps)


@torch.no_grad()
def _losses(
    precise: Transformer, pairs: Sequence[Pair], tokenizer: Tokenizer
) -> tuple[Float[ndarray, "pair"], Float[ndarray, "pair"]]:
    """The summed loss of each pair, and how many tokens it has."""
    losses, lengths = np.zeros(len(pairs)), np.zeros(len(pairs))
    for rows, batch in pair_batches(pairs, tokenizer, 1_500, max_length=precise.config.max_length):
        states = precise(batch.source, batch.target_in, batch.source_mask, batch.target_mask)
        chosen: Tensor = states.log_softmax(dim=-1).gather(2, batch.target_out[..., None])[..., 0]
        losses[rows] = -(chosen * batch.target_mask).sum(dim=1).numpy()
        lengths[rows] = batch.target_mask.sum(dim=1).numpy()
    return losses, lengths


def _interval(shown: Change, moved: Float[ndarray, "pair"], lengths: Float[ndarray, "pair"]) -> Check:
    """That an interval's ends are the 2.5th and 97.5th percentiles of means of pairs drawn with replacement.

    Other samples are drawn than those of the interval, so ends differ by chance: with 2,000 samples of a normal
    distribution by 0.06 standard deviations. A quarter of one is four of these; a 90 % interval is off by a third.
    """
    generator, n = np.random.default_rng(20_011), len(moved)
    means = np.zeros(_SAMPLES)
    for some in np.array_split(np.arange(_SAMPLES), 20):
        drawn = generator.integers(n, size=(len(some), n))
        means[some] = moved[drawn].sum(axis=1) / lengths[drawn].sum(axis=1)
    how = f"{_SAMPLES:,} other samples of these pairs; differences may be a quarter of their deviation"
    tolerance = max(_ROUNDING, float(np.std(means)) / 4)
    return agree("Its 95 % interval", (shown.low, shown.high), np.percentile(means, (2.5, 97.5)), tolerance, how)


@torch.no_grad()
def _matches(precise: Transformer, pairs: Sequence[Pair], tokenizer: Tokenizer) -> float:
    """The share of pairs whose reference is written."""
    right = 0
    for rows, batch in pair_batches(pairs, tokenizer, 1_500, max_length=precise.config.max_length):
        longest = min(precise.config.max_length, batch.target_out.size(1))
        written = translate_ids(precise, batch.source, batch.source_mask, max_length=longest)
        wanted = [tokenizer.encode_target(pairs[row].target) for row in rows]
        right += sum(a == b and UNK not in b for a, b in zip(written, wanted, strict=True))
    return right / len(pairs)


def _heads(some: int, all_: int) -> str:
    return f"all {all_} heads" if some == all_ else f"{some} of {all_} heads"
