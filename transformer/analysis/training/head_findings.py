"""What a run's attention heads say of it: dead ones, saturated ones."""

from collections.abc import Sequence

from transformer.analysis.heads.health import HeadHealth
from transformer.analysis.training.findings import Finding, counted
from transformer.config import ModelConfig

EVEN, ADDS_NOTHING, ALWAYS_ONE = 0.99, 0.02, 0.95
MOST_NAMED = 4


def dead_and_saturated(heads: Sequence[HeadHealth], model: ModelConfig, *, enough: bool) -> list[Finding | None]:
    """Dead heads, a kind of death at a time; saturated ones where the run has not done well with them."""
    silent = [head for head in heads if head.strength < ADDS_NOTHING]
    constant = [head for head in heads if head not in silent and head.variation < ADDS_NOTHING]
    even = [head for head in heads if head not in silent + constant and head.evenness > EVEN]
    sharp = [head for head in heads if head.one_hot > ALWAYS_ONE]
    dead = [
        (silent, lambda h: f"adds {100 * h.strength:.2g} % of its block's output"),
        (constant, lambda h: f"adds the same vector to every token (only {100 * h.variation:.2g} % of it changes)"),
        (even, lambda h: f"spreads its attention evenly ({100 * h.evenness:.3g} % of the largest entropy)"),
    ]
    found: list[Finding | None] = [
        Finding(
            "dead_heads",
            "warning" if len(those) * 2 > len(heads) else "note",
            f"{counted(len(those), 'head')} of {len(heads)} {'does' if len(those) == 1 else 'do'} not depend on what "
            f"is read: {those[0].name} {said(those[0])}{_others(those)}.",
            "Fewer heads may do; if most are dead, train longer or raise the learning rate.",
        )
        for those, said in dead
        if those
    ]
    if sharp and not enough:
        advice = "A lower learning rate or a longer warm-up keeps scores small"
        advice += "." if model.scale_scores else "; so does dividing them by √d_k, which this run leaves out."
        found.append(
            Finding(
                "saturated_heads",
                "warning" if len(sharp) * 2 > len(heads) else "note",
                f"{counted(len(sharp), 'head')} of {len(heads)} {'looks' if len(sharp) == 1 else 'look'} at one token "
                f"alone nearly everywhere: {sharp[0].name} in {100 * sharp[0].one_hot:.3g} % of its rows"
                f"{_others(sharp)}. No gradient comes back through such a softmax.",
                advice,
            )
        )
    return found


def _others(heads: Sequence[HeadHealth]) -> str:
    rest = [head.name for head in heads[1:MOST_NAMED]]
    more = f" and {len(heads) - MOST_NAMED} more" if len(heads) > MOST_NAMED else ""
    return f"; likewise {', '.join(rest)}{more}" if rest else ""
