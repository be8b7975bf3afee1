"""The sections for teachers: models that stand first, quotas, and the audit log."""

import datetime

import streamlit as st

from pages.shared.fields import several
from pages.shared.model_picker import is_for_the_class
from transformer.access import audit
from transformer.access.classroom import Quota, classroom, quota_of, set_classroom, set_quota
from transformer.access.ownership import is_pinned, owner_of
from transformer.checkpoints.settings import list_checkpoints
from transformer.runs.run_folder import list_runs
from transformer.runs.sharing import pin

_EVERYBODY = "everybody"
_SHOWN = 200
_WHO, _MEGABYTES, _MINUTES = "class-quota-who", "class-quota-mb", "class-quota-minutes"
_COLUMNS = ("time", "who", "as", "did", "run", "owner")


def render_teaching() -> None:
    """Renders the sections that teachers alone see."""
    _models()
    _quotas()
    _log()


def _models() -> None:
    st.markdown("## For the class")
    found = list_checkpoints()
    chosen = [model.name for model in found if is_for_the_class(model)]
    several("Models that stand first for everybody", [model.name for model in found], chosen, _pin, key="class-models")
    st.caption("A pinned run can be looked at by everybody. A lesson is pinned on Lessons. Runs of all stand on Runs.")


def _pin(names: list[str]) -> None:
    found = list_checkpoints()
    set_classroom(models=tuple(model.name for model in found if model.shipped and model.name in names))
    for model in found:
        if not model.shipped and (model.name in names) != is_pinned(model.folder):
            pin(model.name, pinned=model.name in names)


def _quotas() -> None:
    st.markdown("## Quotas")
    owners = sorted({owner_of(run.folder) for run in list_runs()} - {""})
    who = st.selectbox("For whom", [_EVERYBODY, *owners], key=_WHO, width=320)
    now = classroom().quota if who == _EVERYBODY else quota_of(who)
    with st.form("class-quota", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        limits = {"min_value": 0.0, "placeholder": "the server's", "width": 200}
        st.number_input("Megabytes of runs", value=now.megabytes, key=f"{_MEGABYTES}-{who}", **limits)
        st.number_input("Minutes of training a day", value=now.minutes, key=f"{_MINUTES}-{who}", **limits)
        st.form_submit_button("Set", on_click=_set_quota, args=(who,))


def _set_quota(who: str) -> None:
    quota = Quota(
        megabytes=st.session_state[f"{_MEGABYTES}-{who}"],
        minutes=st.session_state[f"{_MINUTES}-{who}"],
    )
    if who == _EVERYBODY:
        set_classroom(quota=quota)
    else:
        set_quota(who, quota)


def _log() -> None:
    st.markdown("## What was done")
    rows = [
        {name: str(row.get(name, "")) for name in _COLUMNS} | {"time": _clock(row.get("time"))}
        for row in audit.latest(_SHOWN)
    ]
    if rows:
        st.dataframe(rows, hide_index=True, column_order=_COLUMNS)
    else:
        st.markdown("Nothing yet.")


def _clock(at: object) -> str:
    try:
        return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError, OSError):  # no number, or one that no calendar holds
        return ""
