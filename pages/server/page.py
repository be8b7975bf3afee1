"""The Server page, for whoever runs the server: visitors, queue, memory, disk, errors, and what will be cleared."""

import datetime

import streamlit as st

from pages.server.errors import ERRORS
from pages.server.readings import Readings, read
from pages.shared import wording
from pages.shared.guard import guarded_fragment
from transformer.access.people import acting
from transformer.files import disk_refusal
from transformer.runs.limits.retention import announced

_EVERY_S = 5.0
_STATES = {"running": "training", "waiting": "waiting", "paused": "paused", "failed": "failed", "finished": "finished"}

st.markdown("# How is this server doing?")
if not acting().is_teacher:
    st.markdown("This page is for teachers and for whoever runs the server. Your own runs stand on *Runs*.")
    st.stop()


def _day(at: float) -> str:
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def _figures(now: Readings) -> None:
    shown = {
        "Visitors": f"{now.visitors:,}",
        **{f"Runs {word}": f"{now.runs.get(state, 0):,}" for state, word in _STATES.items()},
        "Memory used": wording.size(now.memory_bytes),
        "Results held": wording.size(now.results_bytes),
        "Memory left": wording.size(now.memory_left_bytes),
        "Disk free": wording.size(now.disk_free_bytes),
        "Runs on disk": wording.size(now.runs_bytes),
        "Files of visitors": wording.size(now.uploads_bytes),
        "Errors": f"{now.errors:,}",
        "Up for": wording.duration(now.up_s),
    }
    with st.container(horizontal=True, gap="medium"):
        for label, value in shown.items():
            st.metric(label, value, width=150)


def _live() -> None:
    if refusal := disk_refusal():
        st.markdown(f":red[:material/error: {wording.plain(refusal[:1].upper() + refusal[1:])}.]")
    _figures(read())


guarded_fragment("What the server does now", _live, every=_EVERY_S)()
st.markdown("## To be cleared")
leaving = announced(datetime.datetime.now(datetime.UTC).timestamp())
if leaving:
    st.dataframe(
        [
            {"on": _day(one.due), "what": one.name, "of": ", ".join(sorted(one.owners)) or "nobody", "why": one.reason}
            for one in leaving
        ],
        hide_index=True,
    )
else:
    st.markdown("Nothing.")
st.markdown("## Errors")
if ERRORS.newest:
    st.dataframe(
        [{"time": _day(one.time), "where": one.source, "error": one.text} for one in ERRORS.newest], hide_index=True
    )
else:
    st.markdown("None since the server started.")
