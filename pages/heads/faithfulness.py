"""Attention against effect, on the Heads page: each source token hidden in turn, against what every head looks at."""

import math
from functools import partial

import numpy as np
import streamlit as st
from jaxtyping import Float
from numpy import ndarray

from pages.heads.choices import Choices, segments
from pages.heads.patterns import chosen_head, open_link, render_head_table, two_columns
from pages.shared.cache import cached
from pages.shared.components.head_table import Cell, Column
from pages.shared.context import Decoded, PageContext
from pages.shared.exhibit import exhibit, get_data
from pages.shared.wording import number, plain, token
from transformer.analysis.heads.addresses import HeadAt
from transformer.analysis.heads.leave_one_out import FEWEST, Hiding, leave_one_out
from transformer.figures.heads.labels import head_name
from transformer.lab import Inspection, Lab
from transformer.views.heads.leave_one_out import FaithfulnessData, FaithfulnessTable, LeaveOneOut, WeightAgainstEffect
from transformer.views.heads.subjects import Hidden

_HIDING: dict[Hiding, str] = {"hidden": "Hidden from everything", "cross": "Hidden from cross-attention only"}
_EXPLAINED: dict[Hiding, str] = {
    "hidden": "No query of the encoder or of cross-attention may see the token, as if it were padding; the others keep "
    "their places. The model knows this state from training, and nothing is put in the token's place.",
    "cross": "Cross-attention may not see the token; what the encoder has carried from it to other tokens stays. That "
    "measures exactly what a head of cross-attention can look at.",
}


def render_faithfulness(context: Decoded, chosen: Choices) -> None:
    """Renders the whole section."""
    segments("hiding", "A hidden token is", _HIDING, chosen.hiding)
    seen = context.inspection
    effect = _effect(context.lab, seen, chosen.hiding)
    subject = Hidden(context.lab, seen, chosen.hiding, effect)
    found = get_data(subject, FaithfulnessTable())
    at = _selected(context, found)
    left, right = two_columns(3, 2)
    with left:
        exhibit(subject, LeaveOneOut(), explain=partial(_explain, context, chosen), width=760)
        st.caption("Rows: how much log-probability each output token loses when a source token is hidden.")
    with right:
        _render_text(context, effect, found, at)
        name = head_name(str(at))
        st.caption(f"Each dot is a weight of {name}, against what hiding that source token costs.")
        exhibit(subject, WeightAgainstEffect(head=str(at)), width=640)
        open_link(context, at)
    exhibit(subject, FaithfulnessTable(), data=found, draw=partial(_render_table, context, chosen, at))


@cached(max_entries=64, spinner="Hiding each source token in turn")
def _effect(lab: Lab, seen: Inspection, how: Hiding) -> Float[ndarray, "target source"]:
    return leave_one_out(lab.model, seen.source_ids, seen.target_ids, how, seen.interventions)


def _selected(context: PageContext, found: FaithfulnessData) -> HeadAt:
    """Returns the selected head of cross-attention; if another kind is selected, the head that agrees best."""
    if context.view.kind == "cross" and context.view.head is not None:
        return chosen_head(context)
    ranked = _ranked(found)
    cross = [HeadAt.parse(head) for head in found.heads if HeadAt.parse(head).kind == "cross"]
    return max(cross, key=lambda at: ranked.get(at, (-2.0, 0))[0])


def _ranked(found: FaithfulnessData) -> dict[HeadAt, tuple[float, int]]:
    """Renders the heads whose weights could be ranked: the correlation, and over how many output tokens."""
    rows = zip(found.heads, found.values.tolist(), strict=True)
    return {HeadAt.parse(head): (row[0], int(row[1])) for head, row in rows if not math.isnan(row[0])}


def _render_text(
    context: Decoded, effect: Float[ndarray, "target source"], found: FaithfulnessData, at: HeadAt
) -> None:
    seen = context.inspection
    if len(seen.source_tokens) < FEWEST:
        st.markdown(f"A rank correlation needs {FEWEST} source tokens, its end mark included: take a longer sentence.")
        return
    ranked = _ranked(found)
    if ranked:
        best = max(ranked, key=lambda at: ranked[at][0])
        mean = float(np.mean([rho for rho, _ in ranked.values()]))
        own, n_tokens = ranked.get(at, (math.nan, 0))
        n_heads = sum(HeadAt.parse(head).kind == "cross" for head in found.heads)
        st.markdown(
            f"**{head_name(str(at))}: ρ = {_rho(own)}**, the rank correlation of weights and effects within an "
            f"output token, averaged over {n_tokens} of them. The best of {n_heads} heads of cross-attention is "
            f"{head_name(str(best))} ({_rho(ranked[best][0])}); their mean is {_rho(mean)}. At 1, the more a token is "
            "needed, the more the head looks at it."
        )
    else:
        st.markdown("No head's weights can be ranked against these effects: one side has only equal values.")
    if not (effect > 0).any():
        zero = "" if effect.any() else " Every effect is exactly 0."
        st.markdown(f"No output token loses anything when a source token is hidden.{zero}")
        return
    row, column = np.unravel_index(int(effect.argmax()), effect.shape)
    most_seen = int(seen.cross.weights[at.layer, at.head, row].argmax())
    looks = "which is also where" if most_seen == column else f"while {token(seen.source_tokens[most_seen])} is where"
    st.markdown(
        f"The largest effect: without {token(seen.source_tokens[column])}, {token(seen.target_tokens[row])} loses "
        f"{number(float(effect[row, column]))} nats, {looks} this head looks most while writing it."
    )


def _render_table(context: PageContext, chosen: Choices, at: HeadAt, data: FaithfulnessData) -> None:
    columns = [
        Column("per_token", "ρ within a token", "Mean of the rank correlations within each output token."),
        Column("tokens", "Tokens", "Output tokens whose weights and effects could be ranked."),
        Column("pooled", "ρ over all cells", "Rank correlation over all cells of the head together."),
        Column("received", "ρ of the sums", "The mean weight on each source token, against its whole effect."),
    ]

    def cells(head: HeadAt) -> list[Cell | None]:
        per_token, tokens, pooled, sums = data.values[data.heads.index(str(head))].tolist()
        count = None if math.isnan(tokens) else Cell(f"{tokens:.0f}", tokens)
        return [_cell(per_token), count, _cell(pooled), _cell(sums)]

    render_head_table(context, columns, cells, data.heads, sort=chosen.sort, usual="-per_token", chosen=at)


def _cell(rho: float) -> Cell | None:
    if math.isnan(rho):
        return None
    return Cell(_rho(rho), rho, (rho + 1) / 2, start=0.5, mark=0.5, note="The tick is at 0.")


def _rho(rho: float) -> str:
    return "none" if math.isnan(rho) else f"{rho:+.2f}".replace("-", "−")


def _kept(context: PageContext, how: Hiding) -> str:
    """Names the rows that look at a hidden token all the same, because a switch overwrites them behind the mask."""
    rows = [s for s in context.view.switches if any(not row.is_even for row in s.overwritten)]
    rows = [s for s in rows if s.acts_in("decoder", "cross") or (how == "hidden" and s.acts_in("encoder", "self"))]
    if not rows:
        return ""
    named = ", ".join(spec.label() for spec in rows)
    return f" But a row that a switch overwrites keeps the weights it is given, even on a hidden token: {plain(named)}."


def _explain(context: PageContext, chosen: Choices) -> None:
    st.markdown(
        "Does a head look most at what is needed most? Every source token is hidden in turn and the same output "
        "is forced, so that each output token's log-probability can be compared (erasure: Li, Monroe and Jurafsky, "
        f"2016). *{_HIDING[chosen.hiding]}*: {_EXPLAINED[chosen.hiding]}{_kept(context, chosen.hiding)}"
    )
    st.markdown(
        "ρ is Spearman's rank correlation, ties at their mean rank, of a head's weights on the source tokens with "
        "what erasing each of them costs (as attention is set against leaving tokens out by Jain and Wallace, "
        "2019). Output tokens whose weights or effects are all equal cannot be ranked and are left out. Heads of "
        "the encoder have no output token of their own: for them, the mean weight on each source token, "
        "over all queries, is ranked against what the whole output loses. Your switches hold throughout."
    )
