"""Warnings on Runs about the visitor's runs and files that will soon be cleared, with a button that keeps a run."""

import datetime
import time

import streamlit as st

from pages.runs.actions import refusal_kept
from pages.shared import wording
from transformer.access.people import acting
from transformer.runs.labels import keep
from transformer.runs.limits.retention import announced

_SHOWN = 3


def say_what_will_be_cleared() -> None:
    """Renders a line for each of the visitor's things that will be cleared, the first to go first."""
    mine = [one for one in announced(time.time()) if acting().id in one.owners]
    for one in mine[:_SHOWN]:
        day = datetime.datetime.fromtimestamp(one.due, datetime.UTC).strftime("%-d %B %Y")
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(
                f":orange[:material/schedule:] **{wording.plain(one.name)}** will be cleared on {day}: {one.reason}.",
                width="content",
            )
            if one.is_run:
                st.button("Keep it", key=f"keep-{one.name}", type="tertiary", on_click=_keep, args=(one.name,))
    if len(mine) > _SHOWN:
        st.caption(f"And {len(mine) - _SHOWN} more.")


def _keep(run_id: str) -> None:
    with refusal_kept():
        keep(run_id)
