"""A badge at each figure that opens its own check: claims about what is drawn, measured when asked for."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from pages.shared import wording
from transformer.analysis.checks import Check
from transformer.analysis.figure_checks import check_output
from transformer.inspection.inspection import Inspection
from transformer.lab import Lab

Run = Callable[[], Iterable[Check]]


def badge(run: Run, *, key: str) -> None:
    """A quiet button under a figure; opened, it runs the proofs and shows what each measured, a failing one in red."""
    with st.popover("Prove it", icon=":material/verified:", type="tertiary", key=key, on_change="rerun") as box:
        if box.open:
            with st.container(width=520):
                _show(tuple(run()))


def _show(checks: Sequence[Check]) -> None:
    failing = sum(not check.holds for check in checks)
    if failing:
        st.markdown(f":red[:material/error: **{failing} of {len(checks)} checks fail.**]")
    else:
        n = len(checks)
        said = "1 check, run just now: it holds." if n == 1 else f"{n} checks, run just now: all hold."
        st.markdown(f":green[:material/verified: **{said}**]")
    for check in checks:
        icon = ":green[:material/check:]" if check.holds else ":red[:material/close:]"
        claim = f"**{wording.plain(check.claim)}.**" if check.holds else f":red[**{wording.plain(check.claim)}.**]"
        how = wording.plain(f"{check.how[:1].upper()}{check.how[1:]}")
        measured, allowed = wording.number(check.measured), wording.number(check.tolerance)
        st.markdown(f"{icon} {claim} {how}: **{measured}** (allowed: {allowed}).")


def check_road(lab: Lab, *roads: Inspection, key: str) -> None:
    """Of an output and the roads forced beside it: the probability under each of their tokens."""

    def run() -> Iterable[Check]:
        for index, road in enumerate(roads):
            own = road.log_probs[np.arange(len(road.target_ids)), list(road.target_ids)]
            whose = f"Road {index}: " if index else ""
            for check in check_output(lab.model, road.source_ids, road.target_ids, road.interventions, own):
                yield replace(check, claim=f"{whose}{check.claim}")

    badge(run, key=key)
