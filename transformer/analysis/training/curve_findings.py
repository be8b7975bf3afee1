"""Findings from the curves of a training run: divergence, standstill, over-fitting, an answer that it could see."""

from collections.abc import Sequence

from transformer.analysis.training.curves import Curves, relapses, rise, stall, still_falling, turn
from transformer.analysis.training.findings import Finding, number
from transformer.config import AnyModelConfig, ModelConfig, RecurrentConfig, TrainConfig
from transformer.training.schedule import paper_peak

MAX_EXACT_OF_A_READER = 0.2
"""The exact match up to which a model that can read the answer in its input has learned little else."""


def not_a_number(curves: Curves, model: AnyModelConfig, train: TrainConfig, error: str) -> Finding | None:
    """Finds a loss or a gradient that is not a number."""
    if "no longer a finite number" not in error and curves.broken is None:
        return None
    before = ""
    if curves.steps:
        before = (
            f" At step {curves.steps[-1]:,}, just before, the loss was {number(curves.losses[-1])}, the gradient norm "
            f"{number(curves.norms[-1])} and the learning rate {number(curves.rates[-1])}."
        )
    what = (
        f"{error[:1].upper()}{error[1:]}".split(":")[0]
        if error
        else f"The loss is not a number at step {curves.broken:,}"
    )
    return Finding("not_a_number", "serious", f"{what}.{before}", _calmer(model, train))


def course_of_the_loss(
    curves: Curves, model: AnyModelConfig, train: TrainConfig, *, over: bool, enough: bool
) -> list[Finding | None]:
    """Finds divergence, a loss that never fell, unsteadiness, a plateau or an early end, the gravest alone."""
    if (found := rise(curves)) is not None:
        sentence = (
            f"The training loss is {number(found.now)} nats; it was {number(found.lowest)} at step {found.at:,} and "
            "did not come back: the run has diverged."
            if not found.back
            else f"The training loss rose from {number(found.lowest)} nats at step {found.at:,} to "
            f"{number(found.highest)} at step {found.highest_at:,}, and has only come back to {number(found.now)}: the "
            "run has diverged."
        )
        return [Finding("divergence", "serious", sentence, _calmer(model, train))]
    fell = curves.first - min(curves.medians[-2:])
    if fell < max(0.1, 0.05 * curves.first) and curves.first > 0.5:
        sentence = (
            f"The training loss fell by {number(max(fell, 0))} nats in {len(curves.steps):,} steps, from "
            f"{number(curves.first)} to {number(min(curves.medians[-2:]))}: the model has learned next to nothing."
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
                f"{step:,} (by {number(size)}); the peak learning rate is {number(train.learning_rate)}.",
                _calmer(model, train),
            )
        )
    if (stuck := stall(curves)) is not None:
        found.append(
            Finding(
                "plateau",
                "warning",
                f"The validation loss has not fallen since step {stuck.since:,}: it was {number(stuck.before)} nats, "
                f"the best of the {stuck.evaluations} evaluations since is {number(stuck.now)}. Training stands still "
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
                f"The training loss was still falling when the run ended: by {number(falling[0])} nats in the last "
                f"fifth of its steps, of {number(falling[1])} in all.",
                f"Raise the learning rate ({number(train.learning_rate)} is low for d_model {model.d_model})."
                if low
                else "Continue it with more steps, or raise the learning rate.",
            )
        )
    return found


def over_fitting(curves: Curves, train: TrainConfig) -> Finding | None:
    """Finds a validation loss that rises while the training loss falls."""
    found = turn(curves)
    if found is None:
        return None
    better = found.score_now > found.score_then
    score = {"exact_match": "exact match", "bleu": "BLEU", "chrf": "chrF"}[found.score]
    scale = 100 if found.score == "exact_match" else 1
    unit = " %" if scale == 100 else ""
    then, now = (f"{scale * value:.3g}{unit}" for value in (found.score_then, found.score_now))
    sentence = (
        f"The validation loss was lowest at step {found.at:,} ({number(found.lowest)} nats) and is "
        f"{number(found.now)} at step {found.step:,}, while the training loss fell from "
        f"{number(found.train_then)} to {number(found.train_now)}: the model memorises its training pairs."
    )
    sentence += (
        f" Its translations still got better ({score} {then}, now {now})."
        if better
        else f" {score[:1].upper()}{score[1:]} was {then} then and is {now} now."
    )
    advice = "More pairs, a smaller model, or more dropout"
    advice += "; keep the best weights by ending after some evaluations without gain (patience)."
    return Finding("over_fitting", "note" if better else "warning", sentence, advice)


def answer_seen(curves: Curves, model: AnyModelConfig) -> Finding | None:
    """Finds a model that learned to read the answer in its input and cannot write without it.

    Without a causal mask it can be read, so a poor score is enough to say so; with one, only a loss near 0 says so.
    """
    last = curves.evaluations[-1]
    exact = last.get("exact_match")
    if exact is None or exact > MAX_EXACT_OF_A_READER or (model.causal_mask and last["loss"] > 0.1):
        return None
    measured = (
        f"With the right answer before it the model's loss is {number(last['loss'])} nats, yet only "
        f"{100 * exact:.3g} % of what it writes by itself is right"
    )
    if model.causal_mask:
        advice = "Look at what the decoder is given: the loss says that the answer is in it."
        return Finding("answer_seen", "warning", f"{measured}.", advice)
    return Finding(
        "answer_seen",
        "serious",
        f"{measured}: it was trained without a causal mask, on teacher-forced tokens that it could see ahead.",
        "In training it can read in its input the token that it is to predict, and when it writes that token is not "
        "there yet. Train it with the causal mask on.",
    )


def all_wrong(curves: Curves, train: TrainConfig, *, over: bool) -> Finding | None:
    """Finds a run that ended without a single right output, whatever its loss did."""
    last = curves.evaluations[-1] if curves.evaluations else {}
    if not over or last.get("exact_match") != 0 or any(last.get(score) for score in ("bleu", "chrf")):
        return None
    return Finding(
        "all_wrong",
        "warning",
        f"At the last evaluation, step {last['step']:,}, not one output is right (exact match 0 %), at a validation "
        f"loss of {number(last['loss'])} nats.",
        "Read some of its outputs. Train longer if the loss is still falling; else try "
        f"{'another learning rate' if train.warmup_steps else 'a warm-up, another learning rate'} or a larger model.",
    )


def one_vector(curves: Curves, model: AnyModelConfig) -> Finding | None:
    """Finds a decoder that knows a sentence by one vector alone, in a run that has not succeeded with it."""
    if not isinstance(model, RecurrentConfig) or model.attention != "none":
        return None
    right = curves.evaluations[-1].get("exact_match")
    scored = "" if right is None else f"; at the last evaluation {100 * right:.3g} % of its outputs were right"
    return Finding(
        "one_vector",
        "note",
        f"This model has no attention: its decoder knows a sentence only through one vector of {model.d_model} "
        f"numbers{scored}. Long sentences do not fit into it.",
        "See which tokens the vector keeps, or train the same model with attention.",
    )


def _calmer(model: AnyModelConfig, train: TrainConfig) -> str:
    """Returns advice that makes a run steadier, the most likely cause first."""
    scaled = not isinstance(model, ModelConfig) or model.scale_scores
    tries = _missing_parts({"scaling by 1/√d_k": scaled}, model)
    tries.append(f"lower the learning rate (from {number(train.learning_rate)} to {number(train.learning_rate / 3)})")
    longer = max(100, 4 * train.warmup_steps)
    tries.append(f"warm up for {longer:,} steps instead of {train.warmup_steps:,}")
    if train.clip_norm == 0 or train.clip_norm > 1:
        tries.append("clip gradients at 1")
    return _sentence(tries)


def _livelier(curves: Curves, model: AnyModelConfig, train: TrainConfig) -> str:
    """Returns advice for a run that does not learn: another learning rate, or the parts that it lacks."""
    tries = _missing_parts({}, model)
    usual = paper_peak(model.d_model, max(train.warmup_steps, 100))
    peak = max(curves.rates, default=train.learning_rate)
    if peak < usual / 10:
        tries.append(f"raise the learning rate: {number(peak)} is the highest so far, {number(usual)} the paper's")
    elif peak > usual:
        tries.append(f"lower the learning rate: {number(peak)} was reached, {number(usual)} is the paper's")
    else:
        tries.append("try a learning rate three times as high and one a third as high")
    tries.append("look at some pairs: are source and target on the same line?")
    return _sentence(tries)


def _missing_parts(others: dict[str, bool], model: AnyModelConfig) -> list[str]:
    """Returns the advice to give a model the parts that it lacks; empty if it has all, the `others` among them."""
    parts = others
    if isinstance(model, ModelConfig):
        parts = {"residual connections": model.residual, "layer norm": model.norm != "none"} | others
    missing = [name for name, is_there in parts.items() if not is_there]
    return [f"give it back what it lacks ({', '.join(missing)})"] if missing else []


def _sentence(tries: Sequence[str]) -> str:
    text = "; ".join(tries)
    end = "" if text.endswith("?") else "."
    return f"{text[:1].upper()}{text[1:]}{end}"
