"""Attention against effect, on the Heads page: each source token erased in turn, against what every head looks at."""

import math

import numpy as np
import streamlit as st
from jaxtyping import Float
from numpy import ndarray

from pages.heads.checks import check_correlations, check_dots, check_erased
from pages.heads.choices import TABLE, Choices, segments
from pages.heads.export_effects import erasure_map, evidence_dots
from pages.heads.head_text import head_name
from pages.heads.patterns import chosen_head, open_link, opens, two_columns
from pages.shared.cache import cached
from pages.shared.components.head_table import Cell, Column, Row, head_table
from pages.shared.context import is_dark
from pages.shared.controls import PageContext
from pages.shared.exports import take_away
from pages.shared.scrolling_figure import scrolling_figure
from pages.shared.wording import number, plain, token
from transformer.analysis.heads.addresses import HeadAt, heads_of
from transformer.analysis.heads.leave_one_out import FEWEST, Faithfulness, Hiding, faithfulness, leave_one_out, received
from transformer.figures.heads.bars import weight_against_effect
from transformer.figures.heads.tables import effect_map
from transformer.lab import Inspection, Lab

_ERASE: dict[Hiding, str] = {"hidden": "Hidden from everything", "cross": "Hidden from cross-attention alone"}
_SAID: dict[Hiding, str] = {
    "hidden": "No query of the encoder or of cross-attention may see the token, as if it were padding; the others keep "
    "their places. That is a state the model knows from training, and nothing is put in the token's place.",
    "cross": "Cross-attention may not see the token; what the encoder has carried from it to other tokens stays. That "
    "measures the very thing that a head of cross-attention can look at.",
}


def draw_evidence(context: PageContext, chosen: Choices) -> None:
    """The whole section."""
    segments("erase", "An erased token is", _ERASE, chosen.erase)
    seen = context.inspection
    effect = _erasure(context.lab, seen, chosen.erase)
    found = _agreements(context, effect)
    at = _in_hand(context, found)
    weights = seen.cross.weights[at.layer, at.head]
    left, right = two_columns(3, 2)
    with left:
        figure = effect_map(effect, seen.target_tokens, seen.source_tokens, dark=is_dark())
        scrolling_figure(figure, key="heads-erasure")
        st.caption("Rows: how much log-probability each output token loses when a source token is erased.")
        figures = {
            "Effects": lambda: erasure_map(context, chosen.erase, effect),
            "Weight against effect": lambda: evidence_dots(context, chosen.erase, at, effect),
        }
        with st.container(horizontal=True, gap="small"):
            check_erased(context, chosen.erase, effect)
            take_away(context, "heads", figures, key="take-heads")
    with right:
        _say(context, effect, found, at)
        st.caption(f"Each dot is a cell of {head_name(at)}: its weight, and what erasing that source token costs.")
        scrolling_figure(
            weight_against_effect(
                weights, effect, seen.target_tokens, seen.source_tokens, kind="cross", dark=is_dark()
            ),
            key="heads-scatter",
        )
        check_dots(context, at, effect, found[at])
        open_link(context, at)
    _draw_table(context, chosen, effect, found, at)
    _explain(context, chosen)


@cached(max_entries=64, spinner="Hiding each source token in turn")
def _erasure(lab: Lab, seen: Inspection, how: Hiding) -> Float[ndarray, "target source"]:
    return leave_one_out(lab.model, seen.source_ids, seen.target_ids, how, seen.interventions)


def _agreements(context: PageContext, effect: Float[ndarray, "target source"]) -> dict[HeadAt, Faithfulness]:
    weights = context.inspection.cross.weights.astype(np.float64)
    cross = [at for at in heads_of(context.lab.model) if at.kind == "cross"]
    return {at: faithfulness(weights[at.layer, at.head], effect) for at in cross}


def _in_hand(context: PageContext, found: dict[HeadAt, Faithfulness]) -> HeadAt:
    """The chosen head of cross-attention; where another kind is chosen, the one that agrees best."""
    if context.view.kind == "cross" and context.view.head is not None:
        return chosen_head(context)
    return max(found, key=lambda at: -2.0 if math.isnan(found[at].per_token) else found[at].per_token)


def _say(
    context: PageContext, effect: Float[ndarray, "target source"], found: dict[HeadAt, Faithfulness], at: HeadAt
) -> None:
    seen = context.inspection
    if len(seen.source_tokens) < FEWEST:
        st.markdown(f"A rank correlation needs {FEWEST} source tokens, its end mark included: take a longer sentence.")
        return
    ranked = {at: a for at, a in found.items() if not math.isnan(a.per_token)}
    if ranked:
        best = max(ranked, key=lambda at: ranked[at].per_token)
        mean = float(np.mean([a.per_token for a in ranked.values()]))
        st.markdown(
            f"**{head_name(at)}: ρ = {_rho(found[at].per_token)}**, the rank correlation of weights and effects "
            f"within an output token, over {found[at].n_tokens} of them. The best of {len(found)} heads of "
            f"cross-attention is {head_name(best)} ({_rho(ranked[best].per_token)}); their mean is {_rho(mean)}. "
            "1 would be: a token is looked at the more, the more it is needed."
        )
    else:
        st.markdown("No head's weights can be ranked against these effects: on one side all are equal.")
    if not (effect > 0).any():
        zero = " Every effect is exactly 0." * (not effect.any())
        st.markdown(f"No output token loses anything by an erased source token.{zero}")
        return
    row, column = np.unravel_index(int(effect.argmax()), effect.shape)
    most_seen = int(seen.cross.weights[at.layer, at.head, row].argmax())
    looks = "which is also where" if most_seen == column else f"while {token(seen.source_tokens[most_seen])} is where"
    st.markdown(
        f"The largest effect: without {token(seen.source_tokens[column])}, {token(seen.target_tokens[row])} loses "
        f"{number(float(effect[row, column]))} nats, {looks} this head looks most while writing it."
    )


def _draw_table(
    context: PageContext,
    chosen: Choices,
    effect: Float[ndarray, "target source"],
    found: dict[HeadAt, Faithfulness],
    at: HeadAt,
) -> None:
    columns = [
        Column("per_token", "ρ within a token", "Mean of the rank correlations within each output token."),
        Column("tokens", "Tokens", "Output tokens whose weights and effects could be ranked."),
        Column("pooled", "ρ over all cells", "Rank correlation over all cells of the head together."),
        Column("received", "ρ of the sums", "What each source token gets of a head on average, against all that the "
               "output loses by it."),
    ]  # fmt: skip
    rows, sums = [], {}
    for head in heads_of(context.lab.model):
        if head.kind == "decoder_self":  # looks at no source token
            continue
        weights = context.inspection.attention(head.kind).weights[head.layer, head.head].astype(np.float64)
        sums[head] = received(weights, effect)
        summed = _cell(sums[head])
        if head.kind == "cross":
            own = found[head]
            count = Cell(str(own.n_tokens), float(own.n_tokens))
            cells: tuple[Cell | None, ...] = (_cell(own.per_token), count, _cell(own.pooled), summed)
        else:
            cells = (None, None, None, summed)
        rows.append(Row(str(head), head_name(head), head.kind, opens(context, head), cells))
    names = {"head", *(column.name for column in columns)}
    sort = chosen.sort if chosen.sort.removeprefix("-") in names else "-per_token"
    head_table(rows, columns, sort=sort, chosen=str(at), page="attention", key=TABLE)
    check_correlations(context, effect, found, sums)


def _cell(rho: float) -> Cell | None:
    return (
        None
        if math.isnan(rho)
        else Cell(_rho(rho), rho, (rho + 1) / 2, start=0.5, mark=0.5, note="The tick stands at 0.")
    )


def _rho(rho: float) -> str:
    return "none" if math.isnan(rho) else f"{rho:+.2f}".replace("-", "−")


def _kept(context: PageContext, how: Hiding) -> str:
    """Which rows look at an erased token all the same, as switches overwrite them behind the mask."""
    rows = [s for s in context.view.switches if any(not row.is_even for row in s.overwritten)]
    rows = [s for s in rows if s.acts_in("decoder", "cross") or (how == "hidden" and s.acts_in("encoder", "self"))]
    if not rows:
        return ""
    named = ", ".join(spec.label() for spec in rows)
    return f" But a row that a switch overwrites keeps the weights it is given, an erased token's too: {plain(named)}."


def _explain(context: PageContext, chosen: Choices) -> None:
    with st.expander("What am I looking at?"):
        st.markdown(
            "Does a head look most at what is needed most? Every source token is erased in turn and the same output "
            "is forced, so that each output token's log-probability can be compared (erasure: Li, Monroe and Jurafsky, "
            f"2016). *{_ERASE[chosen.erase]}*: {_SAID[chosen.erase]}{_kept(context, chosen.erase)}"
        )
        st.markdown(
            "ρ is Spearman's rank correlation, ties at their mean rank, of a head's weights on the source tokens with "
            "what erasing each of them costs (as attention is set against leaving tokens out by Jain and Wallace, "
            "2019). Output tokens whose weights or effects are all equal cannot be ranked and are left out. Heads of "
            "the encoder have no output token of their own: for them, what each source token gets of the head, "
            "averaged over all queries, is ranked against what the whole output loses. Your switches hold throughout."
        )
