"""Checks of an entry: every term against the same one computed again from `record_rows`."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from transformer.analysis.attention.entry import Entry
from transformer.analysis.attention.entry_reference import Row, record_rows
from transformer.analysis.attention.score_reference import score_formula
from transformer.analysis.checks import Check, agree
from transformer.interventions import Intervention
from transformer.model.score_forms import SCORE_FORMS
from transformer.model.taps import Address
from transformer.model.transformer import Transformer

_ROUNDING = 1e-5
"""Float32 sums against float64 ones, in units of the largest term."""


def check_entry(
    model: Transformer,
    source: Sequence[int],
    switches: Sequence[Intervention],
    forced: Mapping[int, int],
    *,
    address: Address,
    query: int,
    entry: Entry,
    shown: Float[ndarray, " key"],
) -> tuple[Check, ...]:
    """Checks an entry of the block at `address`, term by term; `shown` is its row of weights as the picture has it."""
    row = record_rows(model, source, switches, forced, [address])[0][query]
    drawn = np.pad(entry.weights, (0, max(0, len(shown) - len(entry.weights))))  # later keys did not exist yet
    same = agree("The row of weights is the picture's", drawn, shown, 0, f"all {len(shown)} keys, bit by bit")
    return (same, *_scores_and_weights(row, entry), *_contributions(row, entry))


def _scores_and_weights(row: Row, entry: Entry) -> tuple[Check, ...]:
    head, n = entry.head, len(row.allowed)
    inputs = row.projected(head, entry.key)
    multiplied = "multiplied out again and turned" if row.is_turned else "multiplied out again"
    if row.copied:
        multiplied += f"; {', '.join(row.copied)} as a switch has it"
    products = np.array([row.terms(head, k) for k in row.k[head]])
    dot = math.fsum(products[entry.key])
    added = " − slope · distance" if row.has_slopes else ""
    even = "; 0 throughout, as a switch asks" if row.is_even(head) else ""
    asked = "; overwritten, as a switch asks" if row.asked(head) is not None else ""
    return (
        agree(
            "q, k and v are W_Q, W_K and W_V times the block's inputs",
            np.concatenate([entry.q, entry.k, entry.v]),
            inputs,
            _within(inputs),
            multiplied,
        ),
        agree(
            f"The terms sum to {SCORE_FORMS[row.model.config.score].written}, and the divisor is the model's",
            [*entry.products, entry.dot, entry.divisor, entry.score == row.model.config.score],
            [*products[entry.key], dot, row.divisor, True],
            1e-9 * max(1.0, abs(dot)),
            "multiplied and summed again, exactly rounded",
        ),
        agree(
            f"Each score of the row is {score_formula(row.model)}{added}",
            entry.scores,
            row.scores[head],
            _within(np.abs(products).sum(axis=-1) / row.divisor),
            f"all {n} keys computed again{even}",
        ),
        agree("The mask is what its rule says", entry.allowed, row.allowed, 0, f"{n} keys looked at one by one"),
        agree(
            "The weights are the softmax over allowed keys",
            entry.weights,
            row.softmax[head],
            _ROUNDING,
            f"all {n} keys computed again{asked}",
        ),
    )


def _contributions(row: Row, entry: Entry) -> tuple[Check, ...]:
    vectors, output = row.vectors, row.output
    whole = vectors.sum(axis=(0, 1)) + row.bias
    length = math.fsum(output * output)
    scale = 1 / length if length else 0.0
    shares = np.append((vectors @ output).ravel(), row.bias @ output) * scale
    rounding = _within(np.abs(vectors).sum(axis=(0, 1)))
    rest = float((row.expected_output - whole) @ output) * scale
    by_switch = row.new_output is not None or bool(row.put_in_place.any())
    heads, keys = vectors.shape[:2]
    unreached = "" if row.reached[entry.head] else "; nothing of it goes on, as a switch asks"
    put = ", with what a switch put there" if by_switch else ""
    return (
        agree(
            "The contribution is α · v W_O",
            [*entry.contribution, entry.reached],
            [*vectors[entry.head, entry.key], row.reached[entry.head]],
            1e-6,
            f"this head's columns of W_O times its value{unreached}",
        ),
        agree(
            "The shares are the projections on the output",
            np.append(entry.shares, entry.bias_share),
            shares,
            _within(shares) / 10,
            f"{heads} heads × {keys} keys and the bias, projected again",
        ),
        agree(
            "All vectors and the bias sum to the block's output",
            entry.output,
            row.expected_output,
            rounding,
            f"{heads * keys} vectors summed{put}",
        ),
        agree(
            "The rest of the output was put there by a switch" if by_switch else "Nothing else is in the output",
            entry.rest_share,
            rest,
            1e-9 + rounding * math.fsum(np.abs(output)) * scale,
            "the output without the vectors and the bias, projected on the output",
        ),
    )


def _within(terms: ndarray) -> float:
    return _ROUNDING * max(1.0, float(np.abs(terms).max(initial=0.0)))
