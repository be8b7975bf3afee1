"""The choice of one entry of the selected head's matrix: by a click, whose meaning is chosen too, or in two boxes."""

import streamlit as st

from pages.shared.context import Decoded, PageContext, say
from pages.shared.fields import box, segments
from pages.shared.interventions.fields import numbered
from pages.shared.url.session import choose
from pages.shared.url.view_state import Click

_QUERY, _KEY = "choose-query", "choose-key"
_CLICKS: dict[Click, str] = {"open": "Explain it", "forbid": "Forbid it"}


def chosen_entry(context: Decoded) -> tuple[int, int] | None:
    """Returns the chosen query and key; None if this picture has no such entry."""
    attention, entry = context.inspection.attention(context.view.kind), context.view.cell
    if entry is None or entry[0] >= len(attention.queries) or entry[1] >= len(attention.keys):
        return None
    return entry


def choose_entry(context: Decoded) -> None:
    """Renders what a click on an entry does, and two boxes that choose an entry as such a click does."""
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


def say_click(context: Decoded) -> None:
    """Says what a click means where it forbids, cannot forbid, or does nothing; and that there is no such entry."""
    attention = context.inspection.attention(context.view.kind)
    if context.view.cell is not None and chosen_entry(context) is None:
        row, column = context.view.cell
        say(
            f"There is no entry {row},{column}: this picture has rows 0 to {len(attention.queries) - 1} "
            f"and columns 0 to {len(attention.keys) - 1}."
        )
    if context.view.picture == "matrix" and context.view.show == "rollout":
        st.caption(
            "A click does nothing here: a rollout's entry is a sum over many paths, with no single q · k behind it."
        )
    if not _clicked(context):
        return
    if context.view.forbids:
        st.caption(
            f"Click an entry, or press Enter on it, to forbid it in all heads of layer {context.layer}; do it again "
            "to allow it. The effect is shown beside."
        )
    elif context.view.click == "forbid":
        st.caption("Here an entry is not one query and one key, so it cannot be forbidden: a click explains it.")
