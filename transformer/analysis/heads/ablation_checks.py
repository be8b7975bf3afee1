"""Checks of head importance: a head is taken out by rewriting W_O instead of by a tap, and outputs are decoded.

A head whose columns of W_O are zero adds nothing to its block's output. One at its mean adds the same at every
position: these columns times the mean, which is then part of W_O's bias. All in double precision, nothing batched with
other heads.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from math import comb

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor

from transformer.analysis.checks import Check, agree
from transformer.analysis.figure_checks import precise_log_probs
from transformer.analysis.heads.ablations import Means
from transformer.analysis.heads.addresses import HeadAt
from transformer.analysis.heads.importance import OutputEffect
from transformer.analysis.heads.minimal_set import Goal, MinimalSets, SearchPlan, reaches
from transformer.analysis.heads.validation_importance import Change, ImportanceMeasure, ValidationImportance
from transformer.data.batches import pair_batches
from transformer.decoding.greedy import greedy, translate_ids
from transformer.interventions import Intervention, compile_interventions
from transformer.model.attention import MultiHeadAttention
from transformer.model.precise import in_double
from transformer.model.transformer import Transformer
from transformer.text.pairs import Pair
from transformer.text.tokenizer import UNK, Tokenizer

MOST_HEADS = 96
"""Heads that are taken out again at most."""
MOST_READINGS = 4_000
"""Pairs that are read again without a head at most, all heads together."""
MOST_SETS = 70
"""Sets of heads of which those that reach the goal are counted again at most."""
MOST_SUBSETS = 62
"""Smaller sets that are decoded again at most."""
_ROUNDING = 1e-4
_SAMPLES_SHOWN = 2_000
"""The number of bootstrap samples behind an interval that is shown."""
_SAMPLES, _AT_ONCE = 20_000, 250
"""The number of bootstrap samples of the check's own, and of those drawn together."""
_BEYOND = 0.025
"""The share of samples beyond each end of an interval."""
_REWRITTEN = "its columns of W_O set to zero"
_AT_MEAN = "its columns of W_O set to zero and its mean's part of the output put into the bias"


@contextmanager
@torch.no_grad()
def heads_removed(precise: Transformer, heads: Sequence[HeadAt], means: Means | None = None) -> Iterator[Transformer]:
    """A block in which these heads of a copy add nothing to outputs, or always their mean's part."""
    size = precise.config.d_head
    outputs = {at: _attention(precise, at).output for at in heads}
    weights = {output: (output.weight.clone(), output.bias.clone()) for output in outputs.values()}
    try:
        for at, output in outputs.items():
            columns = output.weight[:, at.head * size : (at.head + 1) * size]
            if means is not None:
                mean = means[f"{at.stack}.{at.layer}.{at.sublayer}"][at.head].double()
                output.bias.add_(columns @ mean)
            columns.zero_()
        yield precise
    finally:
        for output, (weight, bias) in weights.items():
            output.weight.copy_(weight)
            output.bias.copy_(bias)


def _attention(model: Transformer, at: HeadAt) -> MultiHeadAttention:
    attention = model.get_submodule(f"{at.stack}.layers.{at.layer}.{at.sublayer}_attention")
    assert isinstance(attention, MultiHeadAttention)
    return attention


def check_output_effects(
    model: Transformer,
    source: Sequence[int],
    target: Sequence[int],
    switches: Sequence[Intervention],
    effects: Sequence[OutputEffect],
    means: Means | None = None,
) -> tuple[Check, ...]:
    """Checks how an output's log-probability changes without each head, and what is written instead."""
    some, ids, each = effects[:MOST_HEADS], list(target), np.arange(len(target))
    moved = [effect.log_prob for effect in some]
    precise = in_double(model)
    whole = precise_log_probs(precise, source, target, switches)
    again, short, divergences, chances, behind = [], [0.0], [], [], [0.0]
    for effect in some:
        with heads_removed(precise, [effect.at], means):
            rows = precise_log_probs(precise, source, target, switches)
        again.append(math.fsum(rows[each, ids] - whole[each, ids]))
        divergences.append(math.fsum((np.exp(whole) * (whole - rows)).ravel()) / len(ids))
        token = ids[effect.step]
        if effect.instead is None:
            shifts = np.abs(np.exp(rows[each, ids]) - np.exp(whole[each, ids]))
            behind.append(float(shifts.max() - shifts[effect.step]))
        chances.append([math.exp(whole[effect.step, token]), math.exp(rows[effect.step, token])])
        short.append(_falls_short(rows, ids, effect, model.config.pad_id))
    how = f"{_heads(len(some), len(effects))}, {_REWRITTEN if means is None else _AT_MEAN}, one after the other"
    return (
        agree("The change of the output's log-probability without each head", moved, again, 1e-3, how),
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
            "The token that is written instead is the most probable one",
            max(short),
            _ROUNDING,
            "in the same passes, tokens that stay and the first that changes; by how much another one is above",
        ),
        Check(
            "Where every token stays, the step is the one that moves most",
            max(behind),
            1e-5,
            "in the same passes; by how much another step's probability moves more",
        ),
    )


def check_validation_importance(
    model: Transformer,
    pairs: Sequence[Pair],
    tokenizer: Tokenizer,
    found: ValidationImportance,
    means: Means | None = None,
    *,
    measures: Sequence[ImportanceMeasure] = ("loss", "exact_match"),
) -> Iterator[Check]:
    """Checks loss and exact match with all heads and without each, by other passes and by decoding, and the intervals.

    As many of the heads as MOST_READINGS allows, the first ones given.
    """
    some = found.heads[: max(1, MOST_READINGS // len(pairs))]
    precise = in_double(model)

    def without_each(measured: Callable[[], Float[ndarray, " pair"]]) -> Iterator[Float[ndarray, " pair"]]:
        for head in some:
            with heads_removed(precise, [head.at], means):
                yield measured()

    how = f"all {len(pairs):,} pairs in double precision, {_heads(len(some), len(found.heads))} taken out in turn"
    how += f", {_REWRITTEN if means is None else _AT_MEAN}"
    losses, lengths = _losses(precise, pairs, tokenizer)
    if "loss" in measures:
        loss = math.fsum(losses) / math.fsum(lengths)
        rounding = _ROUNDING * max(1.0, loss)  # a loss rounds in proportion to its size
        yield agree("The loss with all heads", found.loss, loss, rounding, how)
        moved = np.array([less - losses for less in without_each(lambda: _losses(precise, pairs, tokenizer)[0])])
        yield from _changes("loss", [head.loss for head in some], moved, lengths, how, rounding)
    if "exact_match" in measures:
        matches = _matches(precise, pairs, tokenizer)
        how = f"decoded token by token, {how}"
        yield agree("Exact match with all heads", found.exact_match, matches.mean(), _ROUNDING, how)
        moved = np.array([less - matches for less in without_each(lambda: _matches(precise, pairs, tokenizer))])
        matched, one_each = [head.exact_match for head in some], np.ones(len(pairs))
        yield from _changes("exact match", matched, moved, one_each, how)


def check_minimal_set(
    model: Transformer,
    source: Sequence[int],
    target: Sequence[int],
    plan: SearchPlan,
    switches: Sequence[Intervention],
    found: MinimalSets,
) -> Iterator[Check]:
    """Checks that the sets found reach the goal and smaller ones do not, and how many were tried and reach it."""
    goal, n_heads, precise = plan.goal, len(plan.heads), in_double(model)
    sets = [ablation.heads for ablation in found.sets]

    def decoded(heads: Sequence[HeadAt]) -> tuple[int, ...]:
        return _written(precise, heads, source, switches, len(target))

    def missed_by(heads: Sequence[HeadAt]) -> float:
        with heads_removed(precise, heads):
            rows = precise_log_probs(precise, source, target, switches)
        return _miss(rows, target, goal, model.config.pad_id)

    yield agree("The output with all heads", target, decoded(()), 0, "decoded again token by token")
    if sets:
        wrong = sum(decoded(ablation.heads) != ablation.written for ablation in found.sets)
        how = f"{len(sets)} sets decoded again token by token, {_REWRITTEN}; outputs that differ"
        yield Check("The output without each set", float(wrong), 0.0, how)
        missed = sum(not reaches(ablation.written, target, goal) for ablation in found.sets)
        yield Check(
            "Each of these outputs is what was asked for", float(missed), 0.0, f"{len(sets)} outputs; wrong ones"
        )
        how = f"the same output read again, {_REWRITTEN}, token by token"
        margins = [ablation.margin for ablation in found.sets]
        yield agree("The margin by which each set reaches it", margins, list(map(missed_by, sets)), 1e-3, how)
        sizes = {len(heads) for heads in sets}
        yield agree("The number of heads in each set", [found.size], list(sizes), 0, "heads counted")
    if sets and found.exact and comb(n_heads, found.size) <= MOST_SETS:
        reached = [reaches(decoded(heads), target, goal) for heads in combinations(plan.heads, found.size)]
        how = f"all {len(reached)} sets of that size decoded"
        yield agree("The number of sets of that size that reach it", found.n_sets, sum(reached), 0, how)
    whole = sets[0] if sets else found.nearest.heads
    size = min(plan.exact, len(whole) - 1 if sets else len(whole))
    parts = [part for n in range(size, 0, -1) for part in combinations(whole, n)][:MOST_SUBSETS]
    if parts:
        by_parts = sum(reaches(decoded(part), target, goal) for part in parts)
        how = f"{len(parts)} of its parts taken out and decoded; those that reach it"
        yield Check("No part of the set reaches the goal", float(by_parts), 0.0, how)
    if not sets:
        how = f"the same output read again, {_REWRITTEN}"
        yield agree("The margin by which the nearest set misses it", found.nearest.margin, missed_by(whole), 1e-3, how)
        if found.nearest.written:
            again = _written(precise, whole, source, switches, model.config.max_length)
            yield agree("The output without the nearest set", found.nearest.written, again, 0, how)
    every = found.tried[: plan.exact]
    expected = [comb(n_heads, size) for size in range(1, len(every) + 1)]
    yield agree("Every set of these sizes was tried", every, expected, 0, f"sets of {n_heads} heads counted")
    yield agree("All sizes up to the last were tried", len(found.tried), found.size, 0, "sizes counted")


def _falls_short(rows: Float[ndarray, "step vocab"], target: Sequence[int], effect: OutputEffect, pad_id: int) -> float:
    """Returns by how much a token up to the one that changes, or any of all, misses being the most probable one."""
    writable = rows.copy()
    writable[:, pad_id] = -np.inf
    kept = len(target) if effect.instead is None else effect.step
    wanted = [*target[:kept], *([] if effect.instead is None else [effect.instead])]
    return max((float(row.max() - row[token]) for row, token in zip(writable, wanted, strict=False)), default=0.0)


def _miss(rows: Float[ndarray, "step vocab"], target: Sequence[int], goal: Goal, pad_id: int) -> float:
    """Returns by how much log-probability an output misses a goal, token by token."""

    def above(step: int, token: int) -> float:
        others = [value for other, value in enumerate(rows[step].tolist()) if other not in (token, pad_id)]
        return float(rows[step][token]) - max(others)

    if goal.step is None:
        return min(above(step, token) for step, token in enumerate(target))
    here = above(goal.step, target[goal.step]) if goal.token is None else -above(goal.step, goal.token)
    return max([here, *(-above(step, target[step]) for step in range(goal.step))])


def _written(
    precise: Transformer, heads: Sequence[HeadAt], source: Sequence[int], switches: Sequence[Intervention], n: int
) -> tuple[int, ...]:
    longest = min(precise.config.max_length, 2 * n + 8)
    tap = compile_interventions(switches, precise)
    with heads_removed(precise, heads):
        steps = greedy(precise, torch.tensor([list(source)]), max_length=longest, tap=tap)
        return tuple(int(step.tokens[0]) for step in steps)


@torch.no_grad()
def _losses(
    precise: Transformer, pairs: Sequence[Pair], tokenizer: Tokenizer
) -> tuple[Float[ndarray, " pair"], Float[ndarray, " pair"]]:
    """Returns the summed loss of each pair, and its number of tokens."""
    losses, lengths = np.zeros(len(pairs)), np.zeros(len(pairs))
    for rows, batch in pair_batches(pairs, tokenizer, 1_500, max_length=precise.config.max_length):
        states = precise(batch.source, batch.target_in, batch.source_mask, batch.target_mask)
        chosen: Tensor = states.log_softmax(dim=-1).gather(2, batch.target_out[..., None])[..., 0]
        losses[rows] = -(chosen * batch.target_mask).sum(dim=1).numpy()
        lengths[rows] = batch.target_mask.sum(dim=1).numpy()
    return losses, lengths


def _changes(
    what: str,
    shown: Sequence[Change],
    moved: Float[ndarray, "head pair"],
    lengths: Float[ndarray, " pair"],
    how: str,
    rounding: float = _ROUNDING,
) -> Iterator[Check]:
    """Checks changes and the ends of their intervals: the 2.5th and 97.5th percentiles of means of pairs drawn again.

    The 2,000 samples of the page are drawn here pair by pair, then samples of the check's own. Of these, 2.5 % lie
    beyond each end but for chance, whatever their distribution: it is skewed where pairs are few, and has steps where
    they are counted. Chance explains five binomial standard deviations, 1.8 %; a 90 % interval is off by 2.5 %.
    """
    values = [change.value for change in shown]
    again = [math.fsum(row) / math.fsum(lengths) for row in moved]
    yield agree(f"The change of {what} without each head", values, again, rounding, how)
    ends, n = np.array([[change.low, change.high] for change in shown]), len(lengths)
    counts = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=_SAMPLES_SHOWN)
    means = _means(moved, lengths, (np.repeat(np.arange(n), count)[None] for count in counts))
    wanted = np.percentile(means, (2.5, 97.5), axis=1).T
    said = f"the same {_SAMPLES_SHOWN:,} samples of {n:,} pairs, drawn pair by pair"
    yield agree(f"Each 95 % interval of the change of {what}", ends, wanted, rounding, said)
    generator = np.random.default_rng(20_011)
    means = _means(moved, lengths, (generator.integers(n, size=(_AT_ONCE, n)) for _ in range(_SAMPLES // _AT_ONCE)))
    beyond = max(_off_share(-means, -ends[:, 0], rounding), _off_share(means, ends[:, 1], rounding))
    chance = 5 * math.sqrt(_BEYOND * (1 - _BEYOND) * (1 / _SAMPLES_SHOWN + 1 / _SAMPLES))
    said = f"{_SAMPLES:,} other samples; by how much the share beyond an end is off {_BEYOND:.1%}, at most"
    yield Check(f"Other samples give the same intervals of the change of {what}", beyond, chance, said)


def _means(
    moved: Float[ndarray, "head pair"], lengths: Float[ndarray, " pair"], samples: Iterable[Int[ndarray, "some pair"]]
) -> Float[ndarray, "head sample"]:
    """Returns each head's mean over each sample of pairs."""
    return np.concatenate([moved[:, drawn].sum(axis=-1) / lengths[drawn].sum(axis=-1) for drawn in samples], axis=1)


def _off_share(means: Float[ndarray, "head sample"], end: Float[ndarray, " head"], rounding: float) -> float:
    """Returns by how much the share of samples above each upper end is off, at most; any share may lie at the end."""
    above = (means > end[:, None] + rounding).mean(axis=1)
    at_least = (means >= end[:, None] - rounding).mean(axis=1)
    return float(np.maximum(above - _BEYOND, _BEYOND - at_least).max())


@torch.no_grad()
def _matches(precise: Transformer, pairs: Sequence[Pair], tokenizer: Tokenizer) -> Float[ndarray, " pair"]:
    """Returns 1 for each pair whose reference is written, else 0."""
    right = np.zeros(len(pairs))
    for rows, batch in pair_batches(pairs, tokenizer, 1_500, max_length=precise.config.max_length):
        longest = min(precise.config.max_length, batch.target_out.size(1))
        written = translate_ids(precise, batch.source, batch.source_mask, max_length=longest)
        wanted = [tokenizer.encode_target(pairs[row].target) for row in rows]
        right[rows] = [a == b and UNK not in b for a, b in zip(written, wanted, strict=True)]
    return right


def _heads(some: int, all_: int) -> str:
    return f"all {all_} heads" if some == all_ else f"{some} of {all_} heads"
