"""The badges of Two at once: each side's probabilities and weights, the difference, and how heads were matched."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy import ndarray

from pages.compare.loading import Side, read_texts, texts_of
from pages.compare.matching import Compared, Facing, Pair
from pages.shared.checks import badge, weight_checks
from transformer.analysis.attention.weight_checks import check_weights
from transformer.analysis.checks import Check, agree
from transformer.analysis.comparison.checks import check_alignment, check_matching
from transformer.analysis.figure_checks import check_output
from transformer.lab import Attention


def check_outputs(pair: Pair) -> None:
    """Of both outputs: each token's probability, and which tokens stand across from one another."""

    def run() -> Iterable[Check]:
        for name, seen, lab in (
            ("left", pair.first.seen, pair.first.lab),
            ("right", pair.second.seen, pair.second.lab),
        ):
            with np.errstate(divide="ignore"):
                own = np.log(seen.probabilities)  # which are drawn
            for check in check_output(lab.model, seen.source_ids, seen.target_ids, seen.interventions, own):
                yield _of(name, check)
        outputs = pair.first.seen.target_tokens, pair.second.seen.target_tokens
        yield check_alignment("Nothing aligns the two with fewer edits", *outputs, pair.aligned)

    badge(run, key="proof-two-outputs")


def check_head(facing: Facing, name: str, drawn: ndarray) -> None:
    """Of one side's head: its weights, and that these are what is drawn."""

    def run() -> Iterable[Check]:
        _, side, (layer, head) = next(shown for shown in facing.sides if shown[0] == name)
        yield from weight_checks(side.lab, side.seen, facing.kind)
        recorded = side.seen.attention(facing.kind).weights[layer, head]
        yield agree("The picture draws the recorded weights", drawn, recorded, 0, "cell by cell, bit by bit")

    badge(run, key=f"proof-two-{name}")


def check_two_difference(facing: Facing, drawn: ndarray) -> None:
    """Of the difference: that it is the difference of two passes, each recorded anew by itself."""
    compared = facing.compared
    assert isinstance(compared, Compared), "a difference is drawn"

    def run() -> Iterable[Check]:
        again: list[Attention] = []
        for name, side, _ in facing.sides:
            if compared.how == "forced":
                again.append(side.lab.attention_on(facing.pair.first.seen, side.seen.interventions)[facing.kind])
                yield from _forced_weights(facing, name, side, again[-1])
            else:
                seen = side.lab.inspect(side.seen.text, side.seen.interventions)
                again.append(seen.attention(facing.kind))
                yield _of(name, weight_checks(side.lab, seen, facing.kind)[0])
        if compared.how == "aligned":
            for what, along in (("Rows", compared.rows), ("Columns", compared.columns)):
                a, b = ((one.queries if what == "Rows" else one.keys) for one in again)
                yield check_alignment(f"{what} are aligned by the fewest edits", a, b, _whole(along, len(a), len(b)))
        left, right = compared.cut(again[0], again[1])
        subtracted = right.weights[facing.there] - left.weights[facing.here]
        how = "both sides passed through their models again, one after the other, and subtracted"
        yield agree("The picture draws right minus left", drawn, subtracted, 0, how)

    badge(run, key="proof-two-difference")


def check_two_matching(facing: Facing) -> None:
    """Of the distances between heads and of their pairing."""

    def run() -> Iterable[Check]:
        first, second = facing.pair.first, facing.pair.second
        switches = first.seen.interventions, second.seen.interventions
        reads = read_texts(first.lab, second.lab, texts_of(first), *switches, facing.kind)
        assert not isinstance(facing.matching, str), "heads are matched"
        return check_matching(*reads, facing.matching)

    badge(run, key="proof-two-matching")


def _forced_weights(facing: Facing, name: str, side: Side, found: Attention) -> Iterable[Check]:
    """Of a side that reads the first one's output, where no pass over it shows later tokens than its steps did."""
    if not side.lab.model.config.causal_mask or any(str(spec) == "mask:causal" for spec in side.seen.interventions):
        return
    stack, sublayer = facing.kind.where
    on = facing.pair.first.seen
    weights, *_ = check_weights(
        side.lab.model,
        on.source_ids,
        side.seen.interventions,
        dict(enumerate(on.target_ids)),
        stack=stack,
        sublayer=sublayer,
        weights=found.weights,
        mask=found.mask,
    )
    yield _of(name, weights)


def _of(name: str, check: Check) -> Check:
    return replace(check, claim=f"{name.capitalize()}: {check.claim[0].lower()}{check.claim[1:]}")


def _whole(along: tuple[tuple[int, int], ...], n: int, m: int) -> tuple[tuple[int | None, int | None], ...]:
    """The whole alignment of which these are the positions with another across from them."""
    found: list[tuple[int | None, int | None]] = []
    i = j = 0
    for row, column in (*along, (n, m)):
        found += [(at, None) for at in range(i, row)] + [(None, at) for at in range(j, column)]
        if (row, column) != (n, m):
            found.append((row, column))
        i, j = row + 1, column + 1
    return tuple(found)
