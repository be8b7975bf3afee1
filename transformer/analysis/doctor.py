"""What is wrong with a training run, if anything: each finding in a sentence with the number seen, and what to try.

The signs are read from the rows that the run wrote; heads and corpus are measured elsewhere and handed in. A healthy
run has no findings, and what was checked is said.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from transformer.analysis.curves import Curves, curves_of, relapses, rise, stall, still_falling, turn
from transformer.analysis.head_health import HeadHealth
from transformer.analysis.proportions import Proportions
from transformer.config import ModelConfig, TrainConfig
from transformer.schedule import paper_peak

Kind = Literal[
    "not_a_number",
    "divergence",
    "no_learning",
    "unsteady",
    "over_fitting",
    "plateau",
    "unfinished",
    "answer_seen",
    "vocabulary",
    "length",
    "dead_heads",
    "saturated_heads",
]
Severity = Literal["serious", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("serious", "warning", "note")

ENOUGH = 0.95
"""Exact match from which a run has done what it was for, however its curves look."""
FEWEST_STEPS = 60
"""Steps, counted after the warm-up, before which a curve says nothing."""
RARE_ENTRY = 10
"""Occurrences of an average vocabulary entry below which it can hardly be learned."""
EVEN, ADDS_NOTHING, ALWAYS_ONE = 0.99, 0.02, 0.95
MOST_NAMED = 4


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or may be."""

    kind: Kind
    severity: Severity
    sentence: str
    """What was seen, with its number."""
    advice: str
    """What to try."""


@dataclass(frozen=True)
class Diagnosis:
    """All findings, the gravest first, and what was looked at to come to them."""

    findings: tuple[Finding, ...]
    checked: tuple[str, ...]
    """Each check with what it had before it, as a phrase."""
    unchecked: tuple[str, ...] = ()
    """What could not be checked, and why, as a phrase."""


def diagnose(
    rows: Sequence[dict],
    model: ModelConfig,
    train: TrainConfig,
    *,
    over: bool,
    error: str = "",
    corpus: Proportions | None = None,
    heads: Sequence[HeadHealth] | None = None,
) -> Diagnosis:
    """What the rows of a run and what was measured of its corpus and heads (None: not measured) say of it.

    `over`: no step will follow. `error`: why it failed, where it did.
    """
    curves = curves_of(rows)
    seen = [_not_a_number(curves, model, train, error)]
    checked = [f"the loss and gradient norm of {_counted(len(curves.steps), 'step')} for NaN and infinity"]
    unchecked = []
    enough = _exact_match(curves) >= ENOUGH
    if len(curves.steps) >= min(train.warmup_steps, 200) + FEWEST_STEPS:
        seen += _curve_findings(curves, model, train, over=over, enough=enough)
        checked.append("the course of the training loss for divergence, standstill and unsteadiness")
    else:
        unchecked.append(f"the course of the loss ({_counted(len(curves.steps), 'step')}: too few)")
    if len(curves.evaluations) >= 4:
        seen += [_over_fitting(curves, train), _answer_seen(curves, model)]
        checked.append(f"{len(curves.evaluations):,} evaluations for over-fitting and plateau")
    else:
        unchecked.append(f"over-fitting ({_counted(len(curves.evaluations), 'evaluation')}, 4 are needed)")
    if corpus is None:
        unchecked.append("vocabulary and lengths (the corpus is not here)")
    else:
        seen += [_vocabulary(corpus), _length(corpus, model)]
        checked.append(f"a vocabulary of {corpus.vocab_size:,} and max_length {corpus.max_length} against the corpus")
    if heads is None or len(curves.steps) < FEWEST_STEPS:
        unchecked.append("the attention heads (no weights yet, too few steps, or no corpus)")
    else:
        seen += _heads(heads, model, enough=enough)
        checked.append(f"{_counted(len(heads), 'attention head')} for dead and saturated ones")
    findings = [finding for finding in seen if finding is not None]
    return Diagnosis(
        tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))),
        tuple(checked),
        tuple(unchecked),
    )


def _not_a_number(curves: Curves, model: ModelConfig, train: TrainConfig, error: str) -> Finding | None:
    if "no longer a finite number" not in error and curves.broken is None:
        return None
    before = ""
    if curves.steps:
        before = (
            f" At step {curves.steps[-1]:,}, just before, the loss was {_number(curves.losses[-1])}, the gradient norm "
            f"{_number(curves.norms[-1])} and the learning rate {_number(curves.rates[-1])}."
        )
    what = (
        f"{error[:1].upper()}{error[1:]}".split(":")[0]
        if error
        else f"The loss is not a number at step {curves.broken:,}"
    )
    return Finding("not_a_number", "serious", f"{what}.{before}", _calmer(model, train))


def _curve_findings(
    curves: Curves, model: ModelConfig, train: TrainConfig, *, over: bool, enough: bool
) -> list[Finding | None]:
    """At most one word on where the loss is going: the gravest."""
    if (found := rise(curves)) is not None:
        sentence = (
            f"The training loss is {_number(found.now)} nats; it was {_number(found.lowest)} at step {found.at:,} and "
            "did not come back: the run has diverged."
        )
        return [Finding("divergence", "serious", sentence, _calmer(model, train))]
    fell = curves.first - min(curves.medians[-2:])
    if fell < max(0.1, 0.05 * curves.first) and curves.first > 0.5:
        sentence = (
            f"The training loss fell by {_number(max(fell, 0))} nats in {len(curves.steps):,} steps, from "
            f"{_number(curves.first)} to {_number(min(curves.medians[-2:]))}: the model has learned next to nothing."
        )
        return [Finding("no_learning", "serious", sentence, _livelier(curves, model, train))]
    if enough:
        return []
    found = []
    if len(again := relapses(curves)) >= 2:
        step, size = max(again, key=lambda relapse: relapse[1])
        found.append(
            Finding(
                "unsteady",
                "warning",
                f"{len(again)} times the training loss rose by more than 0.4 nats and fell again, most at step "
                f"{step:,} (by {_number(size)}); the peak learning rate is {_number(train.learning_rate)}.",
                _calmer(model, train),
            )
        )
    if (stuck := stall(curves)) is not None:
        found.append(
            Finding(
                "plateau",
                "warning",
                f"The validation loss has not fallen since step {stuck.since:,}: it was {_number(stuck.before)} nats, "
                f"the best of the {stuck.evaluations} evaluations since is {_number(stuck.now)}. Training stands still "
                "too, although the learning rate is still high.",
                "Let the learning rate fall (schedule cosine), or take another one; if the loss then stays, the model "
                "is too small for the task or lacks a part that it needs.",
            )
        )
    elif over and (falling := still_falling(curves)) is not None and turn(curves) is None:
        low = train.warmup_steps and train.learning_rate < paper_peak(model.d_model, train.warmup_steps) / 10
        found.append(
            Finding(
                "unfinished",
                "note",
                f"The training loss was still falling when the run ended: by {_number(falling[0])} nats in the last "
                f"fifth of its steps, of {_number(falling[1])} in all.",
                f"Raise the learning rate ({_number(train.learning_rate)} is low for d_model {model.d_model})."
                if low
                else "Continue it with more steps, or raise the learning rate.",
            )
        )
    return found


def _over_fitting(curves: Curves, train: TrainConfig) -> Finding | None:
    found = turn(curves)
    if found is None:
        return None
    better = found.score_now > found.score_then
    score = {"exact_match": "exact match", "bleu": "BLEU", "chrf": "chrF"}[found.score]
    scale = 100 if found.score == "exact_match" else 1
    then, now = (f"{scale * value:.3g}{' %' * (scale == 100)}" for value in (found.score_then, found.score_now))
    sentence = (
        f"The validation loss was lowest at step {found.at:,} ({_number(found.lowest)} nats) and is "
        f"{_number(found.now)} at step {found.step:,}, while the training loss fell from "
        f"{_number(found.train_then)} to {_number(found.train_now)}: the model learns its training pairs by heart."
    )
    sentence += (
        f" Its translations still got better ({score} {then}, now {now})."
        if better
        else f" {score[:1].upper()}{score[1:]} was {then} then and is {now} now."
    )
    advice = "More pairs, a smaller model, or more dropout"
    advice += "; keep the best weights by ending after some evaluations without gain (patience)."
    return Finding("over_fitting", "note" if better else "warning", sentence, advice)


def _answer_seen(curves: Curves, model: ModelConfig) -> Finding | None:
    last = curves.evaluations[-1]
    exact = last.get("exact_match")
    if exact is None or last["loss"] > 0.1 or exact > 0.2:
        return None
    return Finding(
        "answer_seen",
        "warning",
        f"With the right answer before it the model's loss is {_number(last['loss'])} nats, yet only "
        f"{100 * exact:.3g} % of what it writes by itself is right.",
        "It reads in its input what it is to predict: that is what training without a causal mask does. "
        "Switch the mask on."
        if not model.causal_mask
        else "Look at what the decoder is given: the loss says that the answer is in it.",
    )


def _vocabulary(corpus: Proportions) -> Finding | None:
    if corpus.tokens_an_entry >= RARE_ENTRY:
        return None
    fitting = max(8, round(corpus.n_pairs * corpus.tokens_a_pair / 50, -1))
    return Finding(
        "vocabulary",
        "warning",
        f"The vocabulary has {corpus.vocab_size:,} entries for {corpus.n_pairs:,} pairs: each occurs "
        f"{_number(corpus.tokens_an_entry)} times on average, too seldom to be learned.",
        f"A vocabulary of about {fitting:,.0f}, characters as tokens, or more pairs.",
    )


def _length(corpus: Proportions, model: ModelConfig) -> Finding | None:
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


def _heads(heads: Sequence[HeadHealth], model: ModelConfig, *, enough: bool) -> list[Finding | None]:
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
            f"{_counted(len(those), 'head')} of {len(heads)} {'does' if len(those) == 1 else 'do'} not depend on what "
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
                f"{_counted(len(sharp), 'head')} of {len(heads)} {'looks' if len(sharp) == 1 else 'look'} at one token "
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


def _calmer(model: ModelConfig, train: TrainConfig) -> str:
    """What makes a run steadier, the most likely cause first."""
    tries = []
    if not model.residual or model.norm == "none" or not model.scale_scores:
        parts = {
            "residual connections": model.residual,
            "layer norm": model.norm != "none",
            "scaling by 1/√d_k": model.scale_scores,
        }
        tries.append(f"give it back what it lacks ({', '.join(name for name, there in parts.items() if not there)})")
    tries.append(f"lower the learning rate (from {_number(train.learning_rate)} to {_number(train.learning_rate / 3)})")
    longer = max(100, 4 * train.warmup_steps)
    tries.append(f"warm up for {longer:,} steps instead of {train.warmup_steps:,}")
    if train.clip_norm == 0 or train.clip_norm > 1:
        tries.append("clip gradients at 1")
    return _sentence(tries)


def _livelier(curves: Curves, model: ModelConfig, train: TrainConfig) -> str:
    """What sets a run going that does not learn: a larger or a smaller rate, or the parts that it lacks."""
    tries = []
    if not model.residual or model.norm == "none":
        lacking = [*["residual connections"] * (not model.residual), *["layer norm"] * (model.norm == "none")]
        tries.append(f"give it back what it lacks ({', '.join(lacking)})")
    usual = paper_peak(model.d_model, max(train.warmup_steps, 100))
    peak = max(curves.rates, default=train.learning_rate)
    if peak < usual / 10:
        tries.append(f"raise the learning rate: {_number(peak)} is the highest so far, {_number(usual)} the paper's")
    elif peak > usual:
        tries.append(f"lower the learning rate: {_number(peak)} was reached, {_number(usual)} is the paper's")
    else:
        tries.append("try a learning rate three times as high and one a third as high")
    tries.append("look at some pairs: are source and target on the same line?")
    return _sentence(tries)


def _exact_match(curves: Curves) -> float:
    return float(curves.evaluations[-1].get("exact_match") or 0.0) if curves.evaluations else 0.0


def _sentence(tries: Sequence[str]) -> str:
    said = "; ".join(tries)
    return f"{said[:1].upper()}{said[1:]}{'' if said.endswith('?') else '.'}"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _number(value: float) -> str:
    return f"{value:.3g}".replace("e-0", "e-") if value else "0"
