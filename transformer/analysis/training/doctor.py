"""The diagnosis of a training run: each finding in a sentence with the number seen, and with advice.

The signs are read from the rows that the run wrote; heads, corpus and use of the source are measured elsewhere and
handed in. A healthy run has no findings; the checks that were made are listed all the same.
"""

from collections.abc import Sequence

from transformer.analysis.heads.health import HeadHealth
from transformer.analysis.proportions import Proportions
from transformer.analysis.training.curve_findings import (
    all_wrong,
    answer_seen,
    course_of_the_loss,
    not_a_number,
    one_vector,
    over_fitting,
)
from transformer.analysis.training.curves import Curves, curves_of
from transformer.analysis.training.findings import SEVERITIES, Diagnosis, Finding, Severity, counted, number
from transformer.analysis.training.source_use import SourceUse
from transformer.config import AnyModelConfig, ModelConfig, TrainConfig

__all__ = ["Diagnosis", "Finding", "Severity", "diagnose"]

ENOUGH = 0.95
"""The exact match from which a run is a success, whatever its curves look like."""
FEWEST_STEPS = 60
"""The number of steps after the warm-up before which a curve says nothing."""
RARE_ENTRY = 10
"""The occurrences of an average vocabulary entry below which it can hardly be learned."""
EVEN, ADDS_NOTHING, ALWAYS_ONE = 0.99, 0.02, 0.95
"""The shares of the largest entropy, of a head's output, and of one-hot rows at which a head is dead or saturated."""
ALIKE, NO_RISE = 0.98, 0.02
"""The cosine between an encoder's vectors, and the rise of the loss in nats, at which the source is not used."""
MOST_NAMED = 4
"""The most heads that a finding names."""


def diagnose(
    rows: Sequence[dict],
    model: AnyModelConfig,
    train: TrainConfig,
    *,
    over: bool,
    error: str = "",
    corpus: Proportions | None = None,
    heads: Sequence[HeadHealth] | None = None,
    source: SourceUse | None = None,
) -> Diagnosis:
    """Diagnoses a run from its rows and the measurements of its corpus, heads and source (None: not measured).

    `over`: no step will follow. `error`: why it failed, where it did.
    """
    curves = curves_of(rows)
    seen = [not_a_number(curves, model, train, error)]
    checked = [f"the loss and gradient norm of {counted(len(curves.steps), 'step')} for NaN and infinity"]
    unchecked = []
    enough = _exact_match(curves) >= ENOUGH
    if len(curves.steps) >= min(train.warmup_steps, 200) + FEWEST_STEPS:
        seen += course_of_the_loss(curves, model, train, over=over, enough=enough)
        checked.append("the course of the training loss for divergence, standstill and unsteadiness")
    else:
        unchecked.append(f"the course of the loss ({counted(len(curves.steps), 'step')}: too few)")
    if len(curves.evaluations) >= 4:
        seen.append(over_fitting(curves, train))
        checked.append(f"{len(curves.evaluations):,} evaluations for over-fitting and plateau")
    else:
        unchecked.append(f"over-fitting ({counted(len(curves.evaluations), 'evaluation')}, 4 are needed)")
    if curves.evaluations and (over or len(curves.evaluations) >= 4):
        seen.append(answer_seen(curves, model) or all_wrong(curves, train, over=over))
        checked.append("the exact match of the last evaluation against its loss")
        seen.append(one_vector(curves, model) if over and not enough else None)
    if corpus is None:
        unchecked.append("vocabulary and lengths (no weights yet, or no corpus)")
    else:
        seen += [None if enough else vocabulary(corpus), length(corpus, model)]
        checked.append(f"a vocabulary of {corpus.vocab_size:,} and max_length {corpus.max_length} against the corpus")
    if heads is None or len(curves.steps) < FEWEST_STEPS:
        unchecked.append("the attention heads (no weights yet, too few steps, no corpus, or the measurement failed)")
    elif heads:
        seen += dead_and_saturated(heads, model, enough=enough)
        checked.append(f"{counted(len(heads), 'attention head')} for dead and saturated ones")
    if source is None or not curves.evaluations:
        unchecked.append(
            "whether the output depends on the source (no weights or evaluation yet, no corpus, or the test failed)"
        )
    else:
        ignored = source_ignored(source, model, train)
        seen = [finding for finding in seen if ignored is None or finding is None or finding.kind != "dead_heads"]
        seen.append(ignored)
        checked.append(f"{counted(source.n_pairs, 'pair')} with their sources exchanged")
    findings = [finding for finding in seen if finding is not None]
    return Diagnosis(
        tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))),
        tuple(checked),
        tuple(unchecked),
    )


def _exact_match(curves: Curves) -> float:
    return float(curves.evaluations[-1].get("exact_match") or 0.0) if curves.evaluations else 0.0


def source_ignored(source: SourceUse, model: AnyModelConfig, train: TrainConfig) -> Finding | None:
    """Finds an output that does not depend on the source: the encoder's vectors are all alike, and any source will do.

    Both must hold: early in training no model uses its source yet, but its encoder's vectors still differ.
    """
    if source.cosine < ALIKE or source.rise > NO_RISE:
        return None
    ways = [f"a lower peak learning rate than {number(train.learning_rate)} (try a quarter)"]
    ways.append(f"a longer warm-up than {counted(train.warmup_steps, 'step')}")
    if model.norm == "post":
        ways.append("layer norm before each sublayer (pre), which trains at higher rates")
    if train.optimizer == "adamw":
        ways.append("Muon, which keeps the encoder's vectors apart at such a rate")
    return Finding(
        "source_ignored",
        "serious",
        f"The output does not depend on the source: with the sources of {counted(source.n_pairs, 'pair')} exchanged, "
        f"the loss changes by {number(round(source.rise, 4) + 0.0)} nats per token, and the encoder's vectors of one "
        f"sentence are all alike (mean cosine {source.cosine:.4f}). What it writes may be fluent, and is not a "
        "translation.",
        f"Start again with {', or '.join(ways)}.",
    )


def vocabulary(corpus: Proportions) -> Finding | None:
    """Finds a vocabulary larger than is proposed for so many pairs, whose entries are too rare to be learned."""
    if corpus.tokens_an_entry >= RARE_ENTRY or corpus.vocab_size <= corpus.suited:
        return None
    return Finding(
        "vocabulary",
        "warning",
        f"The vocabulary has {corpus.vocab_size:,} entries for {corpus.n_pairs:,} pairs: each occurs "
        f"{number(corpus.tokens_an_entry)} times on average, too seldom to be learned.",
        f"A vocabulary of at most {corpus.suited:,}, characters as tokens, or more pairs.",
    )


def length(corpus: Proportions, model: AnyModelConfig) -> Finding | None:
    """Finds pairs that are too long for the model, and learned positions that no pair reaches."""
    if corpus.too_long > 0.01:
        return Finding(
            "length",
            "warning",
            f"{100 * corpus.too_long:.3g} % of the training pairs are longer than max_length ({corpus.max_length} "
            f"tokens) and are left out; the longest seen has {corpus.longest}.",
            f"max_length {corpus.longest}, or a larger vocabulary, whose tokens are longer.",
        )
    if model.positions == "learned" and corpus.max_length > 8 * corpus.longest:
        return Finding(
            "length",
            "note",
            f"The learned position table has {corpus.max_length} rows, the longest pair {corpus.longest} tokens: the "
            "other rows are never trained.",
            f"max_length {corpus.longest}.",
        )
    return None


def dead_and_saturated(heads: Sequence[HeadHealth], model: AnyModelConfig, *, enough: bool) -> list[Finding | None]:
    """Finds dead heads, a finding for each kind; and saturated ones in a run that has not succeeded with them."""
    silent = [head for head in heads if head.strength < ADDS_NOTHING]
    constant = [head for head in heads if head not in silent and head.variation < ADDS_NOTHING]
    even = [head for head in heads if head not in silent + constant and head.evenness > EVEN]
    sharp = [head for head in heads if head.one_hot > ALWAYS_ONE]
    dead = [
        (silent, lambda h: f"adds {100 * h.strength:.2g} % of its sublayer's output"),
        (constant, lambda h: f"adds the same vector to every token (only {100 * h.variation:.2g} % of it changes)"),
        (even, lambda h: f"spreads its attention evenly ({100 * h.evenness:.3g} % of the largest entropy)"),
    ]
    found: list[Finding | None] = []
    for group, reason in dead:
        if group:
            subject = f"{counted(len(group), 'head')} of {len(heads)} {'does' if len(group) == 1 else 'do'}"
            found.append(
                Finding(
                    "dead_heads",
                    "warning" if len(group) * 2 > len(heads) else "note",
                    f"{subject} not depend on what is read: {group[0].name} {reason(group[0])}{_others(group)}.",
                    "Fewer heads may do; if most are dead, train longer or raise the learning rate.",
                )
            )
    if sharp and not enough:
        advice = "A lower learning rate or a longer warm-up keeps scores small"
        unscaled = isinstance(model, ModelConfig) and not model.scale_scores
        advice += "; so does dividing them by √d_k, which this run leaves out." if unscaled else "."
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
