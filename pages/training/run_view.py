"""The right side of the Train page: one run, at rest or in progress."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import streamlit as st

from pages.shared.components.frontend import Live
from pages.shared.components.run_progress import described_sentences, draw_curve, draw_readings, draw_sentences
from pages.shared.context import say
from pages.shared.exhibit import exhibit
from pages.shared.fields import pills
from pages.shared.guard import guarded_fragment
from pages.shared.url.page_state import UrlPart
from pages.shared.url.url_state import UrlState, param, words
from pages.shared.wording import built_without, plain
from pages.training import run_status
from pages.training.doctor import doctor_panel
from pages.training.live.parts import live_part
from pages.training.live.run_parts import Curves, described_run, parts_of, step_of
from pages.training.live.short_runs import find
from pages.training.timeline.panel import timeline_panel
from pages.training.timeline.state import CHOICES
from pages.training.train_state import CHOSEN, memory, show_run
from transformer.analysis.training.progress import Progress, progress_of, samples_of
from transformer.checkpoints.settings import list_checkpoints, read_settings
from transformer.checkpoints.store import CheckpointError
from transformer.runs import run_folder
from transformer.runs.kept_weights import newest_step
from transformer.runs.run_folder import Run
from transformer.runs.status import RunError
from transformer.views.subjects import Runs
from transformer.views.training.runs import PANELS, QUANTITIES, SCORES, RunCurves

EVERY_S, WHILE_STARTING_S = 5.0, 0.4
"""The seconds between two looks at a run at work, and at one that has no model to look into yet: what moves comes by
its stream, and its end is reported at once."""
FIRST, NONE = RunCurves.panels, "none"
_Follow = Callable[[str, int], Live | None]
"""Returns where a part of the page follows the run, from a step on; None for a run that is not at work."""


@dataclass(frozen=True, kw_only=True)
class Shown(UrlState):
    """The quantities that are drawn over a run's steps."""

    curves: tuple[str, ...] = param(FIRST, words(*PANELS, NONE), name="curve", many=lambda found: tuple(found) or FIRST)
    """The curves to draw, where the run has them; NONE alone where the visitor left none."""


SHOWN = UrlPart(Shown, key="run-curves-shown")


def run_panel(run_id: str) -> None:
    """Renders the run; while a trainer works on it, its components follow it. The others can be chosen above it."""
    SHOWN.follow_url()
    every = _every(find(run_id))
    guarded_fragment("The run", _panel, every=every)(run_id, every)
    doctor_panel(run_id)
    timeline_panel(run_id)


def invite(corpus: str, *, others: bool) -> None:
    """Renders the panel before the first run: the curves of the shipped model of this corpus, where there is one.

    `others` says whether there are runs of other corpora.
    """
    none = f"No run of *{plain(corpus)}* yet" if others else "No runs yet"
    st.markdown(f"{none}. **Train** starts one with what is filled in; it appears here at once.")
    if others:
        st.page_link("pages/runs/page.py", label="Your runs of other corpora", icon=":material/arrow_forward:")
    shipped = next((f for f in list_checkpoints() if f.shipped and corpus_name(f.folder) == corpus), None)
    if shipped is not None:
        st.caption(f"How the shipped model *{shipped.name}* learned this corpus")
        exhibit(Runs((shipped.folder,)), RunCurves(), key="shipped")


def corpus_name(folder: Path) -> str:
    """Returns the corpus that the model in a folder learned; nothing where that cannot be read."""
    try:
        return read_settings(folder).corpus.name
    except CheckpointError:
        return ""


def _every(run: Run | None) -> float | None:
    """Returns the seconds between two looks at a run, None for none: what moves comes by its stream."""
    if run is None or not run.status.active:
        return None
    return EVERY_S if run.loadable or run.status.waiting else WHILE_STARTING_S


def _panel(run_id: str, every: float | None) -> None:
    try:
        run = run_folder.get_run(run_id)
    except (RunError, CheckpointError) as error:
        if every is not None:  # deleted by someone else meanwhile
            st.rerun()
        say(f"{error}.")
        return
    if _every(run) != every or CHOSEN.now.run != run_id:
        st.rerun()  # how often this is redrawn is settled by a full run alone
    progress = progress_of(run.folder)
    live = partial(live_part, run, "", parts=parts_of(run, _chosen(progress)))
    _render_head(run, progress, live)
    render_curves(run, progress, live)
    _render_sentences(run, live)


def _render_head(run: Run, progress: Progress, live: _Follow) -> None:
    pinned, others = run.settings.pinned, run_status.runs_here()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if len(others) > 1:
            run_status.choose_run(others, run.id, key="run-on-show", on_choice=show_run)
        else:
            st.markdown(f"## {run.id}", width="content")
        with st.container(horizontal=True, vertical_alignment="center", gap="small", width="content"):
            run_status.actions(run, key="run")
            chosen, text = CHOICES.now, pinned[0] if pinned else ""
            layer, head = chosen.place(run)
            step = newest_step(run) if run.loadable else None
            run_status.look_inside(
                run.id,
                chosen.text or text,
                run.settings.model,
                kind=chosen.kind,
                layer=layer,
                head=head,
                step=step,
                disabled=not run.loadable,
            )
    draw_readings(described_run(run, progress), live=live("state", step_of(run, progress)), key="readings")
    run_note(run)


def run_note(run: Run) -> None:
    """Renders the parts that the run's model lacks, and the errors of the run and of the last request."""
    if said := built_without(run.settings.model):
        st.caption(f":material/build: {plain(said)}")
    if memory().refusal:
        say(memory().refusal)
    if run.status.state == "failed":
        say(run_status.failure(run.status))
        if run.resumable:
            st.caption(
                "Resume continues from its last saved state with the same settings; other settings need a new run."
            )


def _render_sentences(run: Run, live: _Follow) -> None:
    if run.settings.pinned:
        st.markdown("## The sentences you follow")
        samples = samples_of(run.folder)
        step = max((rows[-1].step for rows in samples.values()), default=-1)
        draw_sentences(described_sentences(run.settings.pinned, samples), live=live("sentences", step), key="sentences")


def render_curves(run: Run, progress: Progress, live: _Follow | None = None) -> None:
    """Renders the choice of quantities, and a panel for each, over one axis of steps."""
    if progress.last("train", "loss") is None and not run.status.active:
        return
    view = _chosen(progress)
    pills("Curves", _offered(progress), view.panels, _choose_curves, key="curves-shown")
    say(*SHOWN.said())
    SHOWN.write_url()
    if not view.panels:
        st.caption("Choose what to see over the steps.")
        return
    curves = Curves(view)
    exhibit(
        Runs((run.folder,)),
        view,
        draw=lambda data: draw_curve(
            curves.described(run, data), live=live and live("curves", curves.step(data)), key="curve"
        ),
        live=run.status.active,
    )


def _chosen(progress: Progress) -> RunCurves:
    return RunCurves(panels=tuple(name for name in _offered(progress) if name in SHOWN.now.curves))


def _offered(progress: Progress) -> list[str]:
    return [name for name in PANELS if name not in SCORES or _has(progress, name)]


def _has(progress: Progress, name: str) -> bool:
    value = progress.last("validation", QUANTITIES[name].column)
    return value is not None and value == value


def _choose_curves(names: list[str]) -> None:
    SHOWN.change(curves=FIRST if sorted(names) == sorted(FIRST) else tuple(names) or (NONE,))
