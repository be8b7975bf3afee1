"""Importance of each head, on the Heads page: each removed in turn, for this translation and over many pairs."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from pages.heads.choices import Choices, segments
from pages.heads.data import choose_data
from pages.heads.patterns import (
    OPENS,
    chosen_head,
    clickable_map,
    open_link,
    render_head_table,
    render_sample,
    survey_of,
    two_columns,
)
from pages.heads.work import result_of
from pages.shared.cache import cached, lab_key
from pages.shared.components.head_table import Cell, Column
from pages.shared.context import Decoded, PageContext
from pages.shared.exhibit import exhibit
from pages.shared.waiting import give_way
from pages.shared.wording import NEGLIGIBLE, moved, number, token
from transformer.analysis.heads.addresses import HeadAt, Tell
from transformer.analysis.heads.importance import OutputEffect, output_effects
from transformer.analysis.heads.pair_sample import PairSample
from transformer.analysis.heads.statistics import HeadMeans
from transformer.analysis.heads.validation_importance import (
    LEVEL,
    RESAMPLES,
    Change,
    ValidationImportance,
    validation_importance,
)
from transformer.figures.heads.labels import head_name
from transformer.interventions import AblateHeads, merged
from transformer.lab import Inspection, Lab
from transformer.views.heads.importance import (
    OutputImportance,
    OutputImportanceData,
    OutputRanking,
    RankingData,
    ValidationData,
    ValidationImportanceMap,
    ValidationRanking,
)
from transformer.views.heads.subjects import Removal, Removed, RemovedOverPairs, Surveyed, means_of
from transformer.views.heads.survey import HeadProfile, PatternTable, PatternTableData

_MEASURES = {
    "sentence": "This translation",
    "loss": "Loss on the pairs",
    "exact_match": "Exact matches on the pairs",
}
_REMOVALS = {"zero": "Zero", "mean": "Its mean"}


def render_importance(context: Decoded, chosen: Choices) -> None:
    """Renders the whole section."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        segments("measured_by", "Measured by", _MEASURES, chosen.measured_by)
        segments("removal", "A removed head is set to", _REMOVALS, chosen.removal)
    if chosen.removal == "mean" and not _render_means(context):
        return
    sample = choose_data(context, chosen)
    surveyed = sample and survey_of(context, sample)
    if chosen.measured_by == "sentence":
        _render_output(context, chosen, surveyed)
    elif sample is not None and surveyed is not None:
        found = _over_pairs(context, sample, chosen.removal)
        if found is None:
            return
        render_sample(surveyed, context)
        _render_pairs(context, chosen, found, surveyed)


def _render_means(context: PageContext) -> bool:
    """Says what the means of the heads were taken over, or why there are none; returns whether there are."""
    lab = context.lab
    key = ("means", lab_key(lab))
    found: HeadMeans | None = result_of(
        "means", key, lambda tell: lab.head_means, "Taking each head's mean over validation pairs"
    )
    if found is None:
        return False
    source = "measured just now" if found.measured else "as stored with the model"
    st.caption(f"Means over {found.pairs:,} validation pairs, {source}.")
    return True


@cached(max_entries=64, spinner="Removing each head in turn")
def _output_effects(lab: Lab, seen: Inspection, removal: Removal) -> tuple[OutputEffect, ...]:
    means = means_of(lab, removal)
    return output_effects(lab.model, seen.source_ids, seen.target_ids, seen.interventions, means=means, tell=give_way)


def _over_pairs(context: PageContext, sample: PairSample, removal: Removal) -> RemovedOverPairs | None:
    lab = context.lab

    def compute(tell: Tell) -> ValidationImportance:
        return validation_importance(lab.model, sample.pairs, lab.tokenizer, means=means_of(lab, removal), tell=tell)

    key = ("importance", removal, lab_key(lab), sample.digest)
    found = result_of("importance", key, compute, f"Removing each head in turn, on {sample.description}")
    return None if found is None else RemovedOverPairs(lab, sample, removal, found)


def _render_output(context: Decoded, chosen: Choices, surveyed: Surveyed | None) -> None:
    """This translation without each head."""
    effects = _output_effects(context.lab, context.inspection, chosen.removal)
    subject = Removed(context.lab, context.inspection, chosen.removal, effects)
    if effects:
        _render_output_text(context, effects)
    view = OutputImportance(chosen=str(chosen_head(context)))
    data = _render_figures(context, subject, view, OutputRanking(), surveyed)
    if data is not None:
        _render_output_table(context, chosen, data, surveyed)


def _render_pairs(context: PageContext, chosen: Choices, subject: RemovedOverPairs, surveyed: Surveyed) -> None:
    """Returns what the pairs lose without each head."""
    assert chosen.measured_by != "sentence"
    view = ValidationImportanceMap(measure=chosen.measured_by, chosen=str(chosen_head(context)))
    _render_pairs_text(chosen, subject)
    data = _render_figures(context, subject, view, ValidationRanking(measure=chosen.measured_by), surveyed)
    if data is not None:
        _render_pairs_table(context, chosen, data, surveyed)


def _render_figures(context: PageContext, subject: Any, view: Any, ranking: Any, surveyed: Surveyed | None) -> Any:
    """Renders the map, the selected head and the ranking; returns the map's data."""
    at = chosen_head(context)
    left, right = two_columns(3, 4)
    with left:
        draw, explain = partial(clickable_map, context, view), partial(_explain, context)
        data = exhibit(subject, view, draw=draw, explain=explain, width=640)
        if data is None:
            return None
        if surveyed is not None:
            st.caption(f"Mean attention of {head_name(str(at))}: where its weight goes. Ticks: a uniform head.")
            exhibit(surveyed, HeadProfile(head=str(at)), width=640)
        open_link(context, at)
        _link_without(context, at)
    with right:
        ranked: RankingData | None = exhibit(subject, ranking, width=720)
        if ranked is not None and len(ranked.heads) < ranked.n_heads:
            shown = len(ranked.heads)
            st.caption(f"The {shown} heads whose removal costs most, of {ranked.n_heads}; all are in the table.")
    return data


def _render_output_text(context: Decoded, effects: Sequence[OutputEffect]) -> None:
    """Says how many heads the output needs, and which one it needs most."""
    changing = [effect for effect in effects if effect.instead is not None]
    effect, n = min(effects, key=lambda effect: effect.log_prob), len(effects)
    if changing:
        verb = "change" if len(changing) > 1 else "changes"
        said = f"**{len(changing)} of {n} heads {verb} the output when removed alone**"
        same = n - len(changing)
        said += f"; without any one of the other {same}, every token stays the same." if same else "."
    else:
        said = f"**None of the {n} heads changes the output when removed alone**."
    written = context.inspection.target_tokens[effect.step]
    said += f" {_lowest(effect.at, effect.log_prob)}"
    if effect.instead is not None:
        instead = context.lab.tokenizer.piece(effect.instead)
        said += f", and {token(instead)} is written in place of {token(written)}."
    else:
        said += f"; {token(written)} moves most, {moved(effect.before, effect.after)}."
    st.markdown(said)
    note = "Log-probability of the output above, summed over its tokens, given the same words before each."
    if context.view.switches:
        note += " Your switches hold throughout; heads that are off already are left out."
    st.caption(note)


def _lowest(at: HeadAt, change: float) -> str:
    """Names the head without which the output's log-probability is lowest; only a loss means that it is needed."""
    by = f"{number(change, signed=True)} nats"
    head = head_name(str(at))
    if change < -NEGLIGIBLE:
        return f"Most needed: without {head} this output's log-probability changes by {by}"
    but = ", but for rounding" if change < 0 else ""
    return f"No removal lowers this output's log-probability{but}: its lowest change is {by}, without {head}"


def _render_pairs_text(chosen: Choices, subject: RemovedOverPairs) -> None:
    found, sample, is_loss = subject.found, subject.sample, chosen.measured_by == "loss"
    changes: list[Change] = [head.loss if is_loss else head.exact_match for head in found.heads]
    clear = sum(change.is_clear for change in changes)
    whole = f"loss {number(found.loss)}" if is_loss else f"exact match {number(found.exact_match)}"
    st.markdown(
        f"With all heads: {whole} on {sample.description}. **For {clear} of {len(changes)} heads the "
        f"{LEVEL:.0%} interval of the change excludes 0.**"
    )
    reference = "the model's own translation" if sample.own_output else "the reference"
    how = (
        f"Cross-entropy of {reference} in nats per token, not smoothed."
        if is_loss
        else f"A match: greedy decoding writes {reference} token for token."
    )
    st.caption(
        f"Intervals: percentile bootstrap over the {found.n_pairs:,} pairs, {RESAMPLES:,} samples, a fixed seed. {how}"
    )


def _link_without(context: PageContext, at: HeadAt) -> None:
    """Links to the Attention page with this head off, unless it is off already."""
    off = AblateHeads(at.stack, at.layer, at.sublayer, (at.head,))
    switches = merged([*context.view.switches, off])
    if switches != context.view.switches:
        view = replace(context.view.at_head(at.kind, at.layer, at.head), switches=switches)
        label = "Switch it off and see what happens to the output"
        st.page_link("pages/attention/page.py", label=label, icon=OPENS, query_params=view.parameters())


def _render_output_table(
    context: Decoded, chosen: Choices, data: OutputImportanceData, surveyed: Surveyed | None
) -> None:
    log_probs = dict(zip(data.map.heads(), data.map.values.ravel().tolist(), strict=True))
    columns = [
        Column("log_prob", "This translation", "Change of the output's log-probability in nats, without the head."),
        Column("instead", "Then written", "The first token that greedy decoding writes differently.", text=True),
    ]

    def cells(at: HeadAt) -> list[Cell | None]:
        if str(at) not in data.heads:
            return [None, Cell("already switched", quiet=True)]
        index, log_prob = data.heads.index(str(at)), log_probs[str(at)]
        value = Cell(f"{log_prob:+.2f}".replace("-", "−"), log_prob)
        step, instead = int(data.step[index]), int(data.instead[index])
        if instead < 0:
            return [value, Cell("the same", quiet=True)]
        pieces = context.inspection.target_tokens[step], context.lab.tokenizer.piece(instead)
        before, after = (piece.strip("▁") or piece for piece in pieces)
        return [value, Cell(f"{before} → {after}", note=f"At step {step}, the first that changes.")]

    _render_table(context, chosen, columns, cells, data.map.heads(), surveyed)


def _render_pairs_table(context: PageContext, chosen: Choices, data: ValidationData, surveyed: Surveyed) -> None:
    columns = [
        Column("loss", "Loss", f"Change of the loss in nats per token, with its {LEVEL:.0%} interval."),
        Column("exact_match", "Exact match", f"Change of the share of exact matches, with its {LEVEL:.0%} interval."),
    ]

    def cells(at: HeadAt) -> list[Cell | None]:
        row = data.heads.index(str(at))
        return [_change_cell(Change(*ends[row].tolist())) for ends in (data.loss, data.exact_match)]

    _render_table(context, chosen, columns, cells, data.heads, surveyed)


def _render_table(
    context: PageContext,
    chosen: Choices,
    columns: Sequence[Column],
    cells: Any,
    heads: Sequence[str],
    surveyed: Surveyed | None,
) -> None:
    """Renders a table of the heads with these columns and, if they were surveyed, where they look."""
    usual = {"sentence": "log_prob", "loss": "-loss", "exact_match": "exact_match"}[chosen.measured_by]
    if surveyed is None:
        render_head_table(context, columns, cells, heads, sort=chosen.sort, usual=usual)
        return

    def draw(data: PatternTableData) -> None:
        def more(at: HeadAt) -> list[Cell | None]:
            row = data.heads.index(str(at))
            largest = float(data.values[row, 0])
            quiet = str(at) not in data.clear
            return [
                *cells(at),
                Cell(f"{largest:.2f}", largest, largest),
                Cell(data.patterns[row], quiet=quiet),
            ]

        own = [
            *columns,
            Column("largest", "Mean attention", "The largest weight of a row, on average (Voita et al.: confidence)."),
            Column("role", "Looks mostly at", text=True),
        ]
        render_head_table(context, own, more, heads, sort=chosen.sort, usual=usual)

    exhibit(surveyed, PatternTable(columns=("largest",)), draw=draw)


def _change_cell(change: Change) -> Cell:
    value, low, high = (f"{v:+.3f}".replace("-", "−") for v in (change.value, change.low, change.high))
    return Cell(f"{value}  [{low}, {high}]", change.value, quiet=not change.is_clear)


def _explain(context: PageContext) -> None:
    st.markdown(
        "Removing a head means setting its context before $W^O$ (section 3.2.2) to zero, or to its mean over "
        "validation pairs: what it looked at then has no effect, and all other heads stay as they are. Zero is a "
        "value the head never produces; its mean is what it adds regardless of the sentence. Each head is removed "
        "alone. Heads are redundant: where another one carries the same, a single removal does nothing, although "
        "both together may be needed. *Minimal set* looks for such sets. A head with large weights is not "
        "necessarily one that matters: compare *Mean attention* with the changes beside it."
    )
    if not context.lab.model.config.causal_mask:
        st.markdown(
            "Loss and exact match are not measured for this model: they would come from teacher-forced passes, in "
            "which a model without a causal mask sees the words that it has to predict. The output above is read "
            "step by step, each step from the words before it only."
        )
        return
    st.markdown(
        "Loss and exact match come from one teacher-forced pass per head: greedy decoding writes the reference "
        "exactly where each of its tokens is the most probable one after the tokens before it. The intervals are "
        "percentile bootstraps (Efron and Tibshirani, 1993) over pairs, drawn together for all heads, so that "
        "the differences are paired (Koehn, 2004). Faint numbers have an interval that contains 0."
        f"{' Your switches are not used in them.' if context.view.switches else ''}"
    )
