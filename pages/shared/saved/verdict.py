"""The outcome of holding a capsule against a fresh pass: before it is opened, and on its page while it is shown."""

from collections.abc import Sequence
from math import isfinite

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.shared import wording
from pages.shared.saved.opened import OpenedCapsule, close, kept
from pages.shared.saved.shown import ShownFigure, figures_shown
from pages.shared.texts.catalogue import Texts
from transformer.capsules.comparison import Compared, compare_figure

TEXTS = Texts("page_end.verdict")
_MAX_ROWS = 20


def render_verdict(found: OpenedCapsule, figures: Sequence[Compared] = ()) -> None:
    """Renders what agrees and what differs, and the capsule's notes and other versions."""
    said = [_said(found.rows, TEXTS("pass"))] if found.rows else []
    if figures:
        said.append(_said(figures, TEXTS("figures")))
    wrong = [row for row in (*found.rows, *figures) if not row.holds]
    said += map(_difference, wrong[:_MAX_ROWS])
    if len(wrong) > _MAX_ROWS:
        said.append(TEXTS("more", total=len(wrong) - _MAX_ROWS))
    st.markdown("  \n".join(said))
    if notes := found.capsule.manifest.notes:
        st.markdown("  \n".join([f"**{TEXTS('notes')}**", *map(wording.plain, notes.splitlines())]))
    if found.versions:
        st.caption(TEXTS("versions", versions=wording.plain("; ".join(found.versions))))


def place_verdict(page: str) -> DeltaGenerator | None:
    """Makes room at the top of a capsule's page for what `fill_verdict` says once its figures are drawn."""
    found = kept()
    return st.container(key="capsule-verdict") if found is not None and found.rows and _is_of(found, page) else None


def fill_verdict(place: DeltaGenerator | None) -> None:
    """Says at the top of a capsule's page whether its numbers are those that the page shows."""
    found = kept()
    if place is None or found is None:
        return
    manifest = found.capsule.manifest
    figures = tuple(_compared(found, figures_shown()))
    with place, st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            made = manifest.created.replace("T", " ").split("+")[0]
            st.markdown(TEXTS("opened", at=wording.plain(made)), width="stretch")
            st.button(TEXTS("close"), type="tertiary", icon=":material/close:", key="capsule-close", on_click=close)
        render_verdict(found, figures)
        if left := len(found.capsule.figures) - len(figures):
            st.caption(TEXTS("left", left=left, total=len(found.capsule.figures)))


def _is_of(found: OpenedCapsule, page: str) -> bool:
    return found.capsule.manifest.page == page


def _compared(found: OpenedCapsule, shown: Sequence[ShownFigure]) -> Sequence[Compared]:
    """Compares each saved figure with the one of its key, where that is drawn with the same options."""
    by_key = {figure.key: figure for figure in shown}
    return [
        compare_figure(saved, now.tables)
        for saved in found.capsule.figures
        if saved.tables and (now := by_key.get(saved.key)) is not None and repr(now.view) == saved.view
    ]


def _difference(row: Compared) -> str:
    """Says what differs, where, and by how much."""
    parts = [f":red[:material/close:] **{wording.plain(row.what)}**: {wording.plain(row.where)}"]
    if row.saved or row.fresh:
        parts.append(TEXTS("values", saved=wording.plain(row.saved), fresh=wording.plain(row.fresh)))
    if isfinite(row.deviation) and row.count:
        deviation, allowed = wording.number(row.deviation), wording.number(row.tolerance)
        parts.append(TEXTS("deviation", deviation=deviation, allowed=allowed))
    return "; ".join(parts) + "."


def _said(rows: Sequence[Compared], what: str) -> str:
    numbers, failing = sum(row.count for row in rows), [row for row in rows if not row.holds]
    if failing:
        return f":red[:material/error: **{TEXTS('differ', what=what, failing=len(failing), total=len(rows))}**]"
    return f":green[:material/verified: **{TEXTS('agree', what=what, total=numbers)}**]"
