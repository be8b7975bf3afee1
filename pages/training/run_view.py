"""The right side of the Train page: one run, at rest or in progress."""

from pathlib import Path

import streamlit as st

from pages.shared.components.run_progress import run_curve, run_readings, run_sentences
from pages.shared.context import say
from pages.shared.exhibit import exhibit
from pages.shared.explain import explain_curves
from pages.shared.fields import pills
from pages.shared.guard import guarded_fragment
from pages.shared.url.session import note_url
from pages.shared.wording import built_without, number, plain
from pages.training import run_status
from pages.training.doctor import doctor_panel
from pages.training.timeline.panel import timeline_panel
from pages.training.timeline.state import CHOICES
from pages.training.train_state import CHOSEN, memory, show_run
from transformer.analysis.training.progress import Progress, progress_of, samples_of
from transformer.checkpoints.settings import list_checkpoints, read_settings
from transformer.checkpoints.store import CheckpointError
from transformer.figures.training.curves import X_TITLES
from transformer.runs import run_folder
from transformer.runs.kept_weights import newest_step
from transformer.runs.run_folder import Run
from transformer.runs.status import RunError, Status, status
from transformer.views.subjects import Runs
from transformer.views.training.runs import PANELS, QUANTITIES, SCORES, RunCurves

EVERY_S = 1.0
WHILE_STARTING_S = 0.4
PARAMETER = "curve"
FIRST = RunCurves.panels


def run_panel(run_id: str) -> None:
    """Renders the run, every second while a trainer works on it. The others can be chosen above it."""
    before = status(run_id)
    every = (EVERY_S if before.phase == "training" else WHILE_STARTING_S) if before.active else None
    guarded_fragment("The run", _panel, every=every)(run_id, before)
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


def _panel(run_id: str, before: Status) -> None:
    try:
        run = run_folder.get_run(run_id)
    except (RunError, CheckpointError) as error:
        if before.active:  # deleted by someone else meanwhile
            st.rerun()
        say(f"{error}.")
        return
    run_status.forget_answered(run)
    now = run.status
    if (now.active, now.phase) != (before.active, before.phase) or CHOSEN.now.run != run_id:
        st.rerun()  # how often this is redrawn is settled by a full run alone
    progress = progress_of(run.folder)
    _head(run, progress)
    render_curves(run, progress)
    _sentences(run)


def _head(run: Run, progress: Progress) -> None:
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
    run_readings(
        state=run_status.state_word(run).capitalize(),
        tone=run.status.state,
        rest=run_status.state_rest(run),
        share=run_status.share_done(run),
        readings=_readings(progress),
        key="readings",
    )
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


def _readings(progress: Progress) -> list[tuple[str, str, str]]:
    exact = progress.last("validation", "exact_match")
    found = [
        ("training loss", progress.last("train", "loss"), "nats"),
        ("validation loss", progress.last("validation", "loss"), "nats"),
        ("exact match", None if exact is None else 100 * exact, "%"),
        ("learning rate", progress.last("train", "learning_rate"), ""),
        ("speed", progress.last("train", "tokens_per_s"), "tokens/s"),
    ]
    bleu, chrf = progress.last("validation", "bleu"), progress.last("validation", "chrf")
    found += [
        ("perplexity", progress.last("validation", "perplexity"), ""),
        ("gradient norm", progress.last("train", "gradient_norm"), ""),
        *(
            (name, value, "")
            for name, value in (("BLEU", bleu), ("chrF", chrf))
            if value is not None and value == value
        ),
    ]
    found += [
        (f"held out, {split}", 100 * row["exact_match"], "%")
        for split, row in progress.held_out.items()
        if row.get("exact_match") is not None
    ]
    return [
        (name, "–" if value is None else _short(value), "" if value is None else unit) for name, value, unit in found
    ]


def _sentences(run: Run) -> None:
    if run.settings.pinned:
        st.markdown("## The sentences you follow")
        run_sentences(run.settings.pinned, samples_of(run.folder), key="sentences")


def _short(value: float) -> str:
    return f"{round(value):,}" if abs(value) >= 1000 else number(value)


def render_curves(run: Run, progress: Progress) -> None:
    """Renders the choice of quantities, and a panel for each, over one axis of steps."""
    if progress.last("train", "loss") is None and not run.status.active:
        return
    offered = [name for name in PANELS if name not in SCORES or _has(progress, name)]
    asked = st.query_params.get_all(PARAMETER)
    known = [name for name in asked if name in (*PANELS, "none")] or FIRST
    chosen = tuple(name for name in offered if name in known)
    pills("Curves", offered, chosen, _choose_curves, key="curves-shown")
    if not chosen:
        st.caption("Choose what to see over the steps.")
        return
    limit = run.settings.train.max_steps if run.settings.train.max_seconds is None else 1
    least = min(limit, max(20.0, 1.25 * run.status.step)) if run.status.active else 1
    view = RunCurves(panels=chosen)
    exhibit(
        Runs((run.folder,)),
        view,
        draw=lambda data: run_curve(view.drawn(data), x_title=X_TITLES["step"], x_least=least, key="curve"),
        explain=explain_curves,
        live=run.status.active,
    )


def _has(progress: Progress, name: str) -> bool:
    value = progress.last("validation", QUANTITIES[name].column)
    return value is not None and value == value


def _choose_curves(names: list[str]) -> None:
    if sorted(names) == sorted(FIRST):
        st.query_params.pop(PARAMETER, None)
    else:
        st.query_params[PARAMETER] = names or ["none"]
    note_url(PARAMETER)
