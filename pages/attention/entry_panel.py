"""One entry of the selected head's matrix, explained: chosen by a click or in two boxes, shown with its numbers."""

import numpy as np
import streamlit as st

from pages.shared import wording
from pages.shared.context import PageContext, is_dark, say
from pages.shared.exhibit import exhibit, get_data
from pages.shared.fields import box, segments
from pages.shared.interventions.fields import numbered
from pages.shared.scrolling_figure import scrolling_figure
from pages.shared.url.session import choose, problems, session
from pages.shared.url.view_state import Click
from transformer.analysis.attention.entry import Entry
from transformer.figures.attention.entry import products_figure, shares_figure
from transformer.figures.labels import exact
from transformer.interventions import Intervention, MaskEntry, SetAttentionRow, merged
from transformer.interventions.names import plural
from transformer.views.attention.entry import EntryData, EntryProducts, EntryShares

_QUERY, _KEY = "choose-query", "choose-key"
_CLICKS: dict[Click, str] = {"open": "Explain it", "forbid": "Forbid it"}
_TERMS = 4
"""The number of products that an equation writes out; the rest are summed up."""


def chosen_entry(context: PageContext) -> tuple[int, int] | None:
    """Returns the chosen query and key; None if this picture has no such entry."""
    attention, entry = context.inspection.attention(context.view.kind), context.view.cell
    if entry is None or entry[0] >= len(attention.queries) or entry[1] >= len(attention.keys):
        return None
    return entry


def choose_entry(context: PageContext) -> None:
    """Renders one row: what a click on an entry does, and two boxes that choose an entry as such a click does."""
    attention = context.inspection.attention(context.view.kind)
    query, key = chosen_entry(context) or (None, None)

    def take(_: int | None) -> None:
        row, column = st.session_state[_QUERY], st.session_state[_KEY]
        if (
            (row is None and column is None)
            or (row is None and query is not None)
            or (column is None and key is not None)
        ):
            choose(cell=None)
        else:
            row = 0 if row is None else row
            weights = attention.weights[context.layer, context.head, row]
            choose(cell=(row, int(weights.argmax()) if column is None else column))

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        _choose_click(context)
        for name, label, value, tokens in (
            (_QUERY, "Query", query, attention.queries),
            (_KEY, "Key", key, attention.keys),
        ):
            box(
                label if _clicked(context) else f"Explain a weight: {label.lower()}",
                [None, *range(len(tokens))],
                value,
                take,
                key=name,
                names=lambda i, tokens=tokens: "none" if i is None else numbered(tokens)(i),
                width=140 if _clicked(context) else 190,
                placeholder="click an entry" if _clicked(context) and not context.view.forbids else "choose",
            )
    _say_click(context)
    say(*problems("click", "cell"))
    if context.view.cell is not None and chosen_entry(context) is None:
        row, column = context.view.cell
        say(
            f"There is no entry {row},{column}: this picture has rows 0 to {len(attention.queries) - 1} "
            f"and columns 0 to {len(attention.keys) - 1}."
        )


def _clicked(context: PageContext) -> bool:
    """Tells whether the picture is a matrix whose entries can be clicked."""
    return context.view.picture == "matrix" and context.view.show != "rollout"


def _choose_click(context: PageContext) -> None:
    if _clicked(context):
        segments(
            "A click on an entry",
            _CLICKS,
            context.view.click,
            lambda click: choose(click=click),
            key="choose-click",
            hide_label=False,
        )


def _say_click(context: PageContext) -> None:
    """Says what a click means where it forbids, cannot forbid, or does nothing."""
    if context.view.picture == "matrix" and context.view.show == "rollout":
        st.caption("A click does nothing here: a rollout's entry is a sum over many paths, not one weight.")
    if not _clicked(context):
        return
    if context.view.forbids:
        st.caption(
            f"Click an entry, or press Enter on it, to forbid it in all heads of layer {context.layer}; do it again "
            "to allow it. The effect is shown above."
        )
    elif context.view.click == "forbid":
        st.caption("Here an entry is not one query and one key, so it cannot be forbidden: a click explains it.")


def render_entry(context: PageContext) -> None:
    """Renders the chosen entry's whole sum; nothing if none is chosen."""
    where = chosen_entry(context)
    if where is None:
        return
    attention = context.inspection.attention(context.view.kind)
    query, key = where
    st.divider()
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        names = wording.token(attention.queries[query]), wording.token(attention.keys[key])
        title = f"##### How {names[0]} (row {query}) attended to {names[1]} (column {key})"
        st.markdown(f"{title} · layer {context.layer} · head {context.head}", width="content")
        st.button("Close", key="close-entry", type="tertiary", on_click=lambda: choose(cell=None))
    place = {"kind": context.view.kind, "layer": context.layer, "head": context.head, "query": query, "key": key}
    subject, products = context.decoding, EntryProducts(**place)
    try:
        data = get_data(subject, products)
    except ValueError:
        st.markdown(
            f"When row {query} was computed, this key **did not exist yet**: the decoder had read only "
            f"{query + 1} {plural(query + 1, 'token')}. There is no product to show; its weight is exactly 0, as the "
            "causal mask would make it."
        )
        return
    _change_it(context, query, key)
    exhibit(
        subject,
        products,
        data=data,
        draw=lambda data: _draw(context, data, float(attention.weights[context.layer, context.head, query, key])),
        also={"Shares": EntryShares(**place)},
        said=f"{context.view.kind.label} · layer {context.layer} · head {context.head} · query {query} "
        f"{attention.queries[query]} · key {key} {attention.keys[key]}",
    )


def _draw(context: PageContext, data: EntryData, shown: float) -> None:
    """Renders the sum, the row around the entry, and the parts of the block's output."""
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
        "All of this row on this key": (SetAttentionRow(*where, context.head, query, key), "In this head alone"),
    }
    with st.container(horizontal=True, gap="small"):
        for label, (spec, reach) in offered.items():
            st.button(
                label,
                key=f"edit-{label}",
                disabled=spec in context.view.switches,
                help=reach,
                on_click=lambda spec=spec: choose(switches=merged([*session().view.switches, spec])),
            )


def _sum(context: PageContext, entry: Entry) -> None:
    terms = None if entry.is_dot_product else entry.products
    figure = products_figure(entry.q, entry.k, terms, kind=context.view.kind, dark=is_dark())
    scrolling_figure(figure, key="entry-products-numbers")
    st.latex(equation(entry))
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
    terms = r"q \cdot k &= \textstyle\sum_i q_i k_i"
    if not entry.is_dot_product:
        terms = r"v \cdot \tanh(q + k) &= \textstyle\sum_i v_i \tanh(q_i + k_i)"
    lines = [
        rf"{terms} = {written.removeprefix('+')} = {_plain(entry.dot)}",
        _score_line(entry),
        *_mask_and_softmax(entry),
    ]
    length, projected = float(entry.output @ entry.output), float(entry.contribution @ entry.output)
    made = rf"\alpha\, v W_O = {_plain(entry.weights[entry.key])}\, v W_O"
    if not entry.reached:
        made = r"0 \;\text{(a switch replaced } \alpha\, v W_O \text{)}"
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
    if not entry.is_dot_product:
        return rf"s &= v \cdot \tanh(q + k) = {_plain(entry.scaled)} \quad\text{{additive: nothing to divide by}}"
    if entry.divisor == 1:
        return rf"s &= q \cdot k = {_plain(entry.scaled)} \quad\text{{this model does not divide by }} \sqrt{{d_k}}"
    return rf"s &= q \cdot k \,/ \sqrt{{d_k}} = {_plain(entry.dot)} / \sqrt{{{len(entry.q)}}} = {_plain(entry.scaled)}"


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
    kind = context.view.kind.label.lower()
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
