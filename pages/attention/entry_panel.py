"""The chosen entry of the selected head's matrix, explained: a card beside the matrix, the whole sum below it."""

import numpy as np
import streamlit as st

from pages.attention.entry_choice import chosen_entry
from pages.shared import wording
from pages.shared.context import Decoded, PageContext, is_dark
from pages.shared.exhibit import exhibit, get_data
from pages.shared.explain import render_equation
from pages.shared.guard import guard
from pages.shared.scrolling_figure import scrolling_figure
from pages.shared.url.session import choose, session
from transformer.analysis.attention.entry import Entry
from transformer.figures.attention.entry import shares_figure
from transformer.figures.labels import exact
from transformer.interventions import Intervention, MaskEntry, SetAttentionRow, merged
from transformer.interventions.names import plural
from transformer.model.score_forms import SCORE_FORMS
from transformer.views.attention.entry import EntryData, EntryProducts, EntryShares

_TERMS = 4
"""The number of products that an equation writes out; the rest are summed up."""


@guard("The explanation of this weight")
def render_entry(context: Decoded) -> None:
    """Renders a card with the way to the chosen entry's weight and what can change it; nothing if none is chosen."""
    where = chosen_entry(context)
    if where is None:
        return
    query, key = where
    with st.container(border=True, gap="small", key="entry-card"):
        st.markdown(_title(context, query, key))
        try:
            data = get_data(context.decoding, _products(context, query, key))
        except ValueError:
            st.markdown(
                f"When row {query} was computed, this key **did not exist yet**: the decoder had read only "
                f"{query + 1} {plural(query + 1, 'token')}. There is no product to show; its weight is exactly 0, as "
                "the causal mask would make it."
            )
            _close()
            return
        st.markdown(_in_short(data.entry))
        _change_it(context, query, key)
        st.caption("The whole sum is below the matrix.")


@guard("The whole sum")
def render_whole_sum(context: Decoded) -> None:
    """Renders the chosen entry's whole sum; nothing if none is chosen or there is none."""
    where = chosen_entry(context)
    if where is None:
        return
    query, key = where
    subject, products = context.decoding, _products(context, query, key)
    try:
        data = get_data(subject, products)
    except ValueError:
        return  # the card says why
    st.markdown("## The whole sum")
    attention = context.inspection.attention(context.view.kind)
    weight = float(attention.weights[context.layer, context.head, query, key])
    exhibit(
        subject,
        products,
        data=data,
        draw=lambda data: _draw(context, products, data, weight),
        also={"Shares": EntryShares(**vars(products))},
        said=f"{context.view.kind.label} · layer {context.layer} · head {context.head} · query {query} "
        f"{attention.queries[query]} · key {key} {attention.keys[key]}",
    )


def _title(context: Decoded, query: int, key: int) -> str:
    attention = context.inspection.attention(context.view.kind)
    names = wording.token(attention.queries[query]), wording.token(attention.keys[key])
    title = f"**How {names[0]} (row {query}) attended to {names[1]} (column {key})**"
    return f"{title} · layer {context.layer} · head {context.head}"


def _products(context: PageContext, query: int, key: int) -> EntryProducts:
    return EntryProducts(kind=context.view.kind, layer=context.layer, head=context.head, query=query, key=key)


def _in_short(entry: Entry) -> str:
    """Returns the steps from the products to the weight, a line each."""
    lines = [f"{SCORE_FORMS[entry.score].written} = **{wording.number(entry.dot)}**"]
    if entry.divisor != 1:
        lines.append(f"divided by √{len(entry.q)}: **{wording.number(entry.scaled)}**")
    if not np.isclose(entry.scores[entry.key], entry.scaled, rtol=1e-4, atol=1e-4):
        lines.append(f"the pass continued with **{wording.number(float(entry.scores[entry.key]))}**")
    allowed = int(entry.allowed.sum())
    if entry.allowed[entry.key]:
        lines.append(f"softmax over {allowed} {plural(allowed, 'key')}: **{wording.number(entry.softmax)}**")
    else:
        lines.append("the mask forbids this key")
    lines.append(f"weight **{exact(entry.weights[entry.key])}**, share of the output **{wording.number(entry.share)}**")
    return "\n".join(f"- {line}" for line in lines)


def _draw(context: PageContext, products: EntryProducts, data: EntryData, shown: float) -> None:
    """Renders the sum, the row around the entry, and the parts of the block's output."""
    scrolling_figure(products.figure(data, dark=is_dark()), key="entry-products-numbers")
    _sum(context, data.entry)
    with st.container(key="entry-parts"):
        left, right = st.columns([5, 4], gap="medium")
    with left:
        _row(data)
    with right:
        _shares(context, data.entry)
    _same_number(context, data.entry, shown)


def _change_it(context: PageContext, query: int, key: int) -> None:
    """Renders the switches that act on this entry."""
    stack, sublayer = context.view.kind.where
    where = (stack, context.layer, sublayer)
    offered: dict[str, tuple[Intervention, str]] = {
        "Forbid this entry": (MaskEntry(*where, query, key), "In all heads of this layer"),
        "Spread this row evenly": (SetAttentionRow(*where, context.head, query, "uniform"), "In this head alone"),
        "Put all of this row's attention on this key": (
            SetAttentionRow(*where, context.head, query, key),
            "In this head alone",
        ),
    }
    with st.container(horizontal=True, gap="small"):
        _close()
        for label, (spec, reach) in offered.items():
            st.button(
                label,
                key=f"edit-{label}",
                disabled=spec in context.view.switches,
                help=reach,
                on_click=lambda spec=spec: choose(switches=merged([*session().view.switches, spec])),
            )


def _close() -> None:
    st.button("Close", key="close-entry", type="tertiary", on_click=lambda: choose(cell=None))


def _sum(context: PageContext, entry: Entry) -> None:
    render_equation(equation(entry))
    if not np.isclose(entry.scores[entry.key], entry.scaled, rtol=1e-4, atol=1e-4):
        alibi = context.lab.model.config.positions == "alibi" and context.view.kind != "cross" and entry.scores.any()
        cause = "ALiBi adds its penalty on distance" if alibi else "A switch overwrote this score"
        st.caption(f":orange[{cause}: the pass continued with {exact(entry.scores[entry.key])}.]")
    if not np.isclose(entry.weights[entry.key], entry.softmax, atol=1e-4):
        st.caption(
            f":orange[A switch overwrote this weight: the pass continued with {exact(entry.weights[entry.key])}.]"
        )


def equation(entry: Entry) -> str:
    """Returns the whole sum of an entry with its numbers, as LaTeX."""
    largest = np.argsort(-np.abs(entry.products))[:_TERMS]
    written = " ".join(_signed(float(entry.products[i])) for i in largest)
    rest = entry.dot - float(entry.products[largest].sum())
    others = len(entry.products) - len(largest)
    if others:
        written += rf" \;\underbrace{{{_signed(rest)}}}_{{{others}\ \text{{smaller ones}}}}"
    form = SCORE_FORMS[entry.score]
    terms = rf"{form.pair('q', 'k')} &= \textstyle\sum_i {form.term('', '')}"
    lines = [
        rf"{terms} = {written.removeprefix('+')} = {_plain(entry.dot)}",
        _score_line(entry),
        *_mask_and_softmax(entry),
    ]
    length, projected = float(entry.output @ entry.output), float(entry.contribution @ entry.output)
    made = rf"\alpha\, v_j W_O = {_plain(entry.weights[entry.key])}\, v_j W_O"
    if not entry.reached:
        made = r"0 \;\text{(a switch replaced } \alpha\, v_j W_O \text{)}"
    lines.append(
        rf"c &= {made},\quad \lVert c \rVert = "
        rf"{_plain(float(np.linalg.norm(entry.contribution)))},\quad \lVert o \rVert = {_plain(np.sqrt(length))}"
    )
    if length:
        lines.append(
            rf"\text{{share}} &= \frac{{c \cdot o}}{{o \cdot o}} = \frac{{{_plain(projected)}}}{{{_plain(length)}}} = "
            rf"{_plain(entry.share)}"
        )
    return r"\begin{aligned} " + r" \\ ".join(lines) + r" \end{aligned}"


def _score_line(entry: Entry) -> str:
    form = SCORE_FORMS[entry.score]
    score = rf"s &= {form.pair('q', 'k')}"
    if not form.is_divided:
        return rf"{score} = {_plain(entry.scaled)} \quad\text{{{entry.score}: nothing to divide by}}"
    if entry.divisor == 1:
        return rf"{score} = {_plain(entry.scaled)} \quad\text{{this model does not divide by }} \sqrt{{d_k}}"
    return rf"{score} \,/ \sqrt{{d_k}} = {_plain(entry.dot)} / \sqrt{{{len(entry.q)}}} = {_plain(entry.scaled)}"


def _mask_and_softmax(entry: Entry) -> list[str]:
    """Returns two lines of LaTeX: the mask added to the score that the pass went on with, and the softmax of the
    sums."""
    score = float(entry.scores[entry.key])
    numbers = rf"s' &= s + \text{{mask}} = {_plain(score)}"
    if not entry.allowed[entry.key]:
        return [numbers + r" - \infty = -\infty", r"\alpha &= 0 \quad\text{the mask forbids this key}"]
    total = _plain(entry.numerators.sum())
    above = _plain(score - float(entry.scores[entry.allowed].max()))
    return [
        numbers + rf" + 0 = {_plain(score)} \quad\text{{the mask allows this key}}",
        rf"\alpha &= \frac{{e^{{s' - s'_{{\max}}}}}}{{\sum_j e^{{s'_j - s'_{{\max}}}}}} = "
        rf"\frac{{e^{{{above}}}}}{{{total}}} = "
        rf"\frac{{{_plain(entry.numerators[entry.key])}}}{{{total}}} = {_plain(entry.softmax)}",
    ]


def _row(data: EntryData) -> None:
    entry = data.entry
    st.caption("The whole row: score, mask, softmax, and each value's share of the block's output")
    st.dataframe(
        {
            "key": [f"{i} · {token}" + ("  ◂" if i == entry.key else "") for i, token in enumerate(data.keys)],
            "score": [exact(score) for score in entry.scores],
            "mask": ["allowed" if allowed else "masked" for allowed in entry.allowed],
            "exp(s − max)": [f"{value:.4g}" for value in entry.numerators],
            "weight": [exact(weight) for weight in entry.weights],
            "share": [f"{share:+.4f}".replace("-", "−") for share in entry.shares[entry.head]],
        },
        hide_index=True,
        width="stretch",
        height=min(420, 36 * (len(data.keys) + 1)),
    )


def _shares(context: PageContext, entry: Entry) -> None:
    terms = entry.parts
    kind = context.view.kind.phrase
    st.caption(f"The output of layer {context.layer}'s {kind} at this query")
    scrolling_figure(
        shares_figure(list(terms), list(terms.values()), kind=context.view.kind, dark=is_dark()),
        key="entry-shares-bars",
    )
    if not entry.reached:
        st.caption(
            "A switch replaced this head's context or the block's output, so nothing of this entry reached the output."
        )
    if not entry.output.any():
        st.caption("The block's output is exactly 0 here, so no share can be computed.")


def _same_number(context: PageContext, entry: Entry, shown: float) -> None:
    view = context.view
    drawn = (view.show, view.combine, view.specials, view.words)
    is_drawn = drawn == ("weights", "one", "shown", False) and not view.bertviz
    whose = "as in the picture" if is_drawn else f"as in head {context.head}'s recorded weights"
    deviation = abs(entry.softmax - float(entry.weights[entry.key]))
    same = "exactly the same" if shown == float(entry.weights[entry.key]) else "not the same"
    st.caption(
        f"The decoding was repeated and recorded in more detail; the weight is {same} {whose}. Softmax, computed "
        f"again here in double precision, differs from it by {wording.number(deviation)}. The share is the "
        "contribution projected onto the output: negative where a value pulls the other way."
    )


def _plain(value: float) -> str:
    """Returns four significant digits as LaTeX."""
    text = f"{float(value):.4g}"
    if "e" not in text:
        return text
    digits, exponent = text.split("e")
    return rf"{digits} \cdot 10^{{{int(exponent)}}}"


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else '+'}{_plain(abs(value))}"
