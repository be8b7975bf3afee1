"""The outcome of holding a capsule against a fresh pass: before it is opened, and on its page while it is shown."""

from collections.abc import Sequence
from math import isfinite

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.shared import wording
from pages.shared.saved.opened import OpenedCapsule, close, kept
from pages.shared.saved.shown import ShownFigure, figures_shown
from transformer.capsules.comparison import Compared, compare_figure

_MAX_ROWS = 20


def render_verdict(found: OpenedCapsule, figures: Sequence[Compared] = ()) -> None:
    """Renders what agrees and what differs, and the capsule's notes and other versions."""
    said = [_said(found.rows, "A fresh pass here")] if found.rows else []
    if figures:
        said.append(_said(figures, "The figures on this page"))
    wrong = [row for row in (*found.rows, *figures) if not row.holds]
    said += map(_difference, wrong[:_MAX_ROWS])
    if len(wrong) > _MAX_ROWS:
        said.append(f"And {len(wrong) - _MAX_ROWS} more.")
    st.markdown("  \n".join(said))
    if notes := found.capsule.manifest.notes:
        st.markdown("  \n".join(["**Notes**", *map(wording.plain, notes.splitlines())]))
    if found.versions:
        st.caption(f"Versions: {wording.plain('; '.join(found.versions))}.")


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
            st.markdown(f"**Opened from a file** saved {wording.plain(made)} UTC", width="stretch")
            st.button("Close", type="tertiary", icon=":material/close:", key="capsule-close", on_click=close)
        render_verdict(found, figures)
        if left := len(found.capsule.figures) - len(figures):
            n = len(found.capsule.figures)
            st.caption(f"{left} of the {n} saved figures are not on the page as it is now, or carry no numbers.")


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
        parts.append(f"saved {wording.plain(row.saved)}, here {wording.plain(row.fresh)}")
    if isfinite(row.deviation) and row.count:
        allowed = wording.number(row.tolerance)
        parts.append(f"deviation {wording.number(row.deviation)} (allowed: {allowed})")
    return "; ".join(parts) + "."


def _said(rows: Sequence[Compared], what: str) -> str:
    numbers, failing = sum(row.count for row in rows), [row for row in rows if not row.holds]
    if failing:
        return f":red[:material/error: **{what}: {len(failing)} of {len(rows)} comparisons differ.**]"
    return f":green[:material/verified: **{what}: all {numbers:,} saved numbers agree.**]"
