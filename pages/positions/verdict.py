"""The results of the paired study in a table, its settings in words, and what the paper measured."""

from statistics import median_low

import numpy as np
import streamlit as st
from numpy import ndarray

from pages.positions.choices import Choices
from pages.shared.exhibit import exhibit
from transformer.experiments.plan import EVALUATE_EVERY, LENGTH_TASKS, TARGET, Study, StudyPlan
from transformer.experiments.verdict import JUST_BEYOND
from transformer.interventions.names import plural
from transformer.views.study.verdict import StudyVerdict, VerdictData
from transformer.views.subjects import PairedStudy

THE_PAPER = (
    "The paper's own comparison (Table 3, row E): a learned table in place of the sinusoids gave **25.7 BLEU against "
    "25.8** and the same perplexity, 4.92. That was its base model (6 + 6 layers, d_model 512, 65 million parameters) "
    "after 100,000 steps on WMT 2014 English-German, measured once on newstest2013. It says of longer sentences only "
    "that sinusoids *may* allow the model to extrapolate to them. Here, a far smaller model learns a far smaller task, "
    "with three more kinds that the paper did not try: no positions, rotary, ALiBi."
)
LATER_KINDS = (
    "Rotary and ALiBi came after the paper (both in 2021). Here they act in self-attention alone: cross-attention "
    "carries no positions, because positions in source and target are not comparable. ALiBi was published for "
    "decoders, which only look back; in this encoder its penalty is symmetric in |i − j| and does not say which of "
    "two tokens comes first. Reverse all tokens, and their states are the same in reverse: only the end mark, always "
    "last, tells the directions apart. The ALiBi results here are for that variant, not for ALiBi as published."
)


def render_verdict(found: Study, corpus: str, chosen: Choices) -> None:
    """Renders a row for each kind of positions, and what its numbers mean."""
    plan = found.plan
    view = StudyVerdict(corpus=corpus, past=chosen.past)
    data = exhibit(PairedStudy(found), view, draw=lambda data: _render_rows(plan, data))
    if data is None:
        return
    tested = not np.isnan(data.beyond).all()
    text = (
        f"{len(plan.seeds)} {plural(len(plan.seeds), 'seed')} per kind, {plan.steps:,} steps each, none stopped early; "
        f"exact match is measured every {EVALUATE_EVERY} steps. In brackets: the lowest and the highest of the seeds. "
    )
    if tested:
        text += "Beyond the trained length all seeds are counted together, with Wilson's 95 % interval. "
        if "learned" in data.kinds:
            text += f"There, a learned table is {_PAST[chosen.past]}. "
    st.caption(text)


def _render_rows(plan: StudyPlan, data: VerdictData) -> None:
    table: dict[str, list[str]] = {
        "positions": list(data.kinds),
        f"steps to {TARGET}": [_steps_text(*row) for row in zip(data.steps_to_target, data.n_runs, strict=True)],
        "exact match, held out": [_spread_text(100 * row, ".1f", " %") for row in data.exact_match],
    }
    if not np.isnan(data.bleu).all():
        table["BLEU"] = [_spread_text(row, ".1f") for row in data.bleu]
    if not np.isnan(data.beyond).all():
        near = min(plan.trained_to + JUST_BEYOND, plan.tested_to)
        table[f"lengths {plan.trained_to + 1} to {near}"] = [_share_text(row) for row in data.near]
        table[f"lengths {plan.trained_to + 1} to {plan.tested_to}"] = [_share_text(row) for row in data.beyond]
    table["parameters"] = [f"{count:,}" for count in data.parameters]
    table["tokens/s"] = [_spread_text(row, ",.0f") for row in data.tokens_per_s]
    st.dataframe(table, hide_index=True, width="stretch")


_PAST = {
    "refuse": "refused, so it answers nothing",
    "noise": "used as it is, with its untrained rows",
    "clamp": "extended by repeating its last trained row",
    "interpolate": "extended by stretching its trained rows over the whole sentence",
}


def settings_text(found: Study) -> str:
    """Describes what was measured here, to be compared with the paper's description."""
    plan, lines = found.plan, []
    for corpus in plan.corpora:
        model, train, _ = plan.configs(corpus, plan.positions[0], plan.seeds[0])
        lengths = f" of 1 to {plan.trained_to} symbols" if corpus in LENGTH_TASKS else ""
        lines.append(
            f"**Here** *{corpus}*{lengths}: {model.n_encoder_layers} + {model.n_decoder_layers} layers, d_model "
            f"{model.d_model}, {model.n_heads} heads, d_ff {model.d_ff}, {plan.steps:,} steps of "
            f"{train.batch_tokens:,} tokens, {train.schedule} schedule with peak {train.learning_rate:g} after "
            f"{train.warmup_steps} steps of warm-up, label smoothing {train.label_smoothing:g}, dropout "
            f"{model.dropout:g}, float32; {len(plan.seeds)} {plural(len(plan.seeds), 'seed')}, the same for every "
            "kind."
        )
    return "  \n".join(lines)


def _steps_text(steps: ndarray, n_runs: int) -> str:
    reached = [int(n) for n in steps if not np.isnan(n)]
    if not reached:
        return "never"
    if len(reached) < n_runs:
        return f"{len(reached)} of {n_runs} seeds: {', '.join(f'{n:,}' for n in reached)}"
    middle = f"{median_low(reached):,}"
    return f"{middle} ({min(reached):,}–{max(reached):,})" if n_runs > 1 else middle


def _spread_text(spread: ndarray, form: str, unit: str = "") -> str:
    if np.isnan(spread).any():
        return ""
    middle, low, high = (f"{value:{form}}" for value in spread)
    return f"{middle}{unit}" if low == high else f"{middle}{unit} ({low}–{high})"


def _share_text(share: ndarray) -> str:
    right, count, low, high = share.tolist()
    if np.isnan(count):
        return "–"
    if not count:
        return "refused"
    return f"{100 * right / count:.1f} % ({100 * low:.1f}–{100 * high:.1f}), {right:,.0f} of {count:,.0f}"
