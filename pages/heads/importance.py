"""What each head is worth, on the Heads page: each removed in turn, for this translation and over many pairs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import streamlit as st

from pages.heads.checks import check_profile, check_ranking, check_worth
from pages.heads.choices import Choices, Removal, segments
from pages.heads.data import Measured, choose_data, means_of
from pages.heads.export_effects import bar_of, worth_map, worth_ranking
from pages.heads.export_survey import head_profile
from pages.heads.head_text import head_name
from pages.heads.importance_table import Importances, draw_worth_table
from pages.heads.patterns import (
    OPENS,
    chosen_head,
    clickable_map,
    draw_profile,
    open_link,
    said_of,
    say_measured,
    survey_of,
    two_columns,
)
from pages.heads.work import result_of
from pages.shared import loading
from pages.shared.cache import cached, lab_key
from pages.shared.context import is_dark
from pages.shared.controls import PageContext, say
from pages.shared.exports import take_away
from pages.shared.scrolling_figure import scrolling_figure
from pages.shared.url.view_state import merged
from pages.shared.wording import NEGLIGIBLE, moved, number, token
from transformer.analysis.heads.addresses import HeadAt, Tell
from transformer.analysis.heads.importance import OutputEffect, output_effects
from transformer.analysis.heads.statistics import HeadMeans
from transformer.analysis.heads.validation_importance import (
    LEVEL,
    RESAMPLES,
    Change,
    ValidationImportance,
    validation_importance,
)
from transformer.figures.heads.bars import ranking
from transformer.interventions import AblateHeads, Intervention
from transformer.lab import Lab

MOST_RANKED = 24
_WORTHS = {
    "sentence": "This translation",
    "loss": "Loss on the pairs",
    "exact_match": "Exact matches on the pairs",
}
_REMOVALS = {"zero": "Zero", "mean": "Its mean"}
_QUANTITIES = {
    "sentence": "change of log-probability, nats",
    "loss": "change of loss, nats per token",
    "exact_match": "change of exact match",
}


def draw_worth(context: PageContext, chosen: Choices) -> None:
    """The whole section."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        segments("worth", "Measured by", _WORTHS, chosen.worth)
        segments("removal", "A removed head is set to", _REMOVALS, chosen.removal)
    if chosen.removal == "mean" and not _say_means(context):
        return
    effects = _sentence_effects(context, chosen.removal)
    measured = choose_data(context, chosen)
    found = measured and survey_of(context, measured)
    over_pairs = _over_pairs(context, measured, chosen.removal) if measured is not None and found is not None else None
    if chosen.worth == "sentence":
        values = {at: effect.log_prob for at, effect in effects.items()}
        changes = {}
        if not effects:
            say(
                "No head is left to remove: your switches have taken out every one. Take one of them back, or measure "
                "on the pairs, where they play no part."
            )
            return
        _say_sentence(context, effects)
    elif measured is None or found is None or over_pairs is None:
        return
    else:
        changes = {worth.at: getattr(worth, chosen.worth) for worth in over_pairs.heads}
        values = {at: change.value for at, change in changes.items()}
        say_measured(found, measured, context)
        _say_pairs(chosen, over_pairs, changes, measured)
    worths = Importances(chosen, effects, over_pairs, values, changes, measured, found)
    _draw(context, worths)
    draw_worth_table(context, worths)
    _explain(context)


def _say_means(context: PageContext) -> bool:
    """Whether the means of the heads are there; what they were taken over is said, or why there are none."""
    lab = context.lab
    key = ("means", lab_key(lab))
    found: HeadMeans | None = result_of(
        "means", key, lambda tell: lab.head_means, "Taking each head's mean over validation pairs"
    )
    if found is None:
        return False
    source = "taken just now" if found.measured else "as the model carries them"
    st.caption(f"Means over {found.pairs:,} validation pairs, {source}.")
    return True


def _sentence_effects(context: PageContext, removal: Removal) -> Mapping[HeadAt, OutputEffect]:
    """What becomes of the output in sight without each head, the switches in force."""
    found = _output_effects(context.lab, context.view.text, context.view.switches, removal)
    return {effect.at: effect for effect in found}


@cached(max_entries=64, spinner="Removing each head in turn")
def _output_effects(
    lab: Lab, text: str, switches: Sequence[Intervention], removal: Removal
) -> tuple[OutputEffect, ...]:
    seen = loading.get_inspection(lab, text, switches)
    means = means_of(lab, removal)
    return output_effects(lab.model, seen.source_ids, seen.target_ids, seen.interventions, means=means)


def _over_pairs(context: PageContext, measured: Measured, removal: Removal) -> ValidationImportance | None:
    lab = context.lab

    def compute(tell: Tell) -> ValidationImportance:
        return validation_importance(lab.model, measured.pairs, lab.tokenizer, means=means_of(lab, removal), tell=tell)

    key = ("worth", removal, lab_key(lab), measured.key)
    return result_of("worth", key, compute, f"Removing each head in turn, on {measured.said}")


def _say_sentence(context: PageContext, effects: Mapping[HeadAt, OutputEffect]) -> None:
    """How many heads the output needs, and the one that it needs most."""
    changing = [at for at, effect in effects.items() if effect.instead is not None]
    worst = min(effects, key=lambda at: effects[at].log_prob)
    effect, n = effects[worst], len(effects)
    same = n - len(changing)
    said = (
        f"**{len(changing)} of {n} heads {'change' if len(changing) > 1 else 'changes'} what is written when removed "
        "alone**"
        if changing
        else f"**None of the {n} heads changes what is written when it alone is removed**"
    )
    said += f"; without any other one ({same}) every token stays." if changing and same else "."
    written = context.inspection.target_tokens[effect.step]
    said += f" {_lowest(worst, effect.log_prob)}"
    if effect.instead is not None:
        instead = context.lab.tokenizer.piece(effect.instead)
        said += f", and {token(instead)} is written in place of {token(written)}."
    else:
        said += f"; {token(written)} moves most, {moved(effect.before, effect.after)}."
    st.markdown(said)
    note = (
        "Log-probability of the output in sight, summed over its tokens, the same words before each (teacher-forced)."
    )
    if context.view.switches:
        note += " Your switches hold throughout; heads that are off already are left out."
    st.caption(note)


def _lowest(at: HeadAt, change: float) -> str:
    """The head without which the output's log-probability is lowest; it is needed only where that is a loss."""
    by = f"{number(change, signed=True)} nats"
    if change < -NEGLIGIBLE:
        return f"Most needed: without {head_name(at)} this output's log-probability changes by {by}"
    but = ", but for rounding" * (change < 0)
    return f"No removal lowers this output's log-probability{but}: its lowest change is {by}, without {head_name(at)}"


def _say_pairs(
    chosen: Choices, found: ValidationImportance, changes: Mapping[HeadAt, Change], measured: Measured
) -> None:
    clear = sum(change.is_clear for change in changes.values())
    whole = (
        f"exact match {number(found.exact_match)}" if chosen.worth == "exact_match" else f"loss {number(found.loss)}"
    )
    st.markdown(
        f"With all heads: {whole} on {measured.said}. **For {clear} of {len(changes)} heads the "
        f"{LEVEL:.0%} interval of the change leaves out 0.**"
    )
    reference = "the model's own translation" if measured.own_output else "the reference"
    st.caption(
        f"Intervals: percentile bootstrap over the {found.n_pairs:,} pairs, {RESAMPLES:,} samples, a fixed seed. "
        + (
            f"A match: greedy decoding writes {reference} token for token."
            if chosen.worth == "exact_match"
            else f"Cross-entropy of {reference} in nats per token, not smoothed."
        )
    )


def _draw(context: PageContext, worths: Importances) -> None:
    left, right = two_columns(2, 3)
    at, found = chosen_head(context), worths.survey
    with left:
        _draw_map(context, worths, at)
        if found is not None and worths.measured is not None:
            st.caption(f"Mean attention of {head_name(at)}: where its weight goes. Ticks: a head that looks evenly.")
            draw_profile(found, at)
            check_profile(context, worths.measured, found, at)
        open_link(context, at)
        _link_without(context, at)
    with right:
        _draw_ranking(context, worths)


def _link_without(context: PageContext, at: HeadAt) -> None:
    """The Attention page with this head off, where it is not off already."""
    off = AblateHeads(at.stack, at.layer, at.sublayer, (at.head,))
    switches = merged([*context.view.switches, off])
    if switches != context.view.switches:
        view = replace(context.view.at_head(at.kind, at.layer, at.head), switches=switches)
        label = "Switch it off and see what becomes of the output"
        st.page_link("pages/attention/page.py", label=label, icon=OPENS, query_params=view.parameters())


def _draw_map(context: PageContext, worths: Importances, at: HeadAt) -> None:
    chosen, values = worths.choices, worths.values
    reach = max(map(abs, values.values()), default=1.0) or 1.0
    said = {at: _said(value, worths.changes.get(at)) for at, value in values.items()}
    quantity = _QUANTITIES[chosen.worth].split(",")[-1].strip() if chosen.worth != "exact_match" else "change"
    clickable_map(context, {**values}, said, quantity=quantity, limits=(-reach, reach), diverging=True)
    of_pairs = worths.of_pairs
    figures = {
        "Map": lambda: worth_map(context, chosen.removal, chosen.worth, of_pairs and of_pairs[0], values, quantity),
        "Ranking": lambda: worth_ranking(
            context, chosen.removal, chosen.worth, of_pairs and of_pairs[0], values, worths.changes,
            _QUANTITIES[chosen.worth],
        ),
    }  # fmt: skip
    if worths.survey is not None and worths.measured is not None:
        measured, found = worths.measured, worths.survey
        figures["Mean attention"] = lambda: head_profile(context, measured, found, at)
    with st.container(horizontal=True, gap="small"):
        check_worth(context, chosen.removal, tuple(worths.effects.values()), of_pairs, at)
        said = said_of(context, of_pairs[0]) if of_pairs else ""
        take_away(context, "heads", figures, key="take-heads", said=said)


def _draw_ranking(context: PageContext, worths: Importances) -> None:
    values, worth = worths.values, worths.choices.worth
    harmful = sorted(values, key=lambda at: -values[at] if worth == "loss" else values[at])
    shown = harmful[:MOST_RANKED]
    bars = [bar_of(at, values[at], worths.changes.get(at)) for at in shown]
    scrolling_figure(ranking(bars, quantity=_QUANTITIES[worth], dark=is_dark()), key="heads-ranking")
    if len(harmful) > len(shown):
        st.caption(f"The {len(shown)} heads whose removal costs most, of {len(harmful)}; all are in the table.")
    check_ranking([bar.value for bar in bars], worths.over_pairs if worths.changes else None, rising=worth != "loss")


def _said(value: float, change: Change | None) -> str:
    interval = "" if change is None else f"<br>{number(change.low, signed=True)} to {number(change.high, signed=True)}"
    return number(value, signed=True) + interval


def _explain(context: PageContext) -> None:
    with st.expander("What am I looking at?"):
        st.markdown(
            "To remove a head is to set its context before $W^O$ (section 3.2.2) to zero, or to its mean over "
            "validation pairs: what it looked at then goes nowhere, and all other heads stay as they are. At zero it "
            "says something that it never said; at its mean, what it says whatever the sentence. Each head is removed "
            "alone. Heads are redundant: where "
            "another one carries the same, a single removal does nothing, although both together may be needed. *The "
            "smallest set* looks for such sets. A head with large weights need not be one that matters: compare *Mean "
            "attention* with the changes beside it."
        )
        if not context.lab.model.config.causal_mask:
            st.markdown(
                "Loss and exact match are not measured for this model: they would come from teacher-forced passes, in "
                "which a model without a causal mask sees the words that it is to predict. The output above is read "
                "step by step, each from the words before it alone."
            )
            return
        st.markdown(
            "Loss and exact match come from one teacher-forced pass per head: greedy decoding writes the reference "
            "exactly where each of its tokens is the most probable one after the tokens before it. The intervals are "
            "percentile bootstraps (Efron and Tibshirani, 1993) over pairs, drawn together for all heads, so that "
            "the differences are paired (Koehn, 2004). Quiet numbers have an interval that holds 0."
            + " Your switches play no part in them."
            * bool(context.view.switches)
        )
