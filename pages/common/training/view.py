"""The right side of the Train page: one run, as it stands or as it moves."""

from pathlib import Path

import streamlit as st

from pages.common.components.head_grid import head_grid
from pages.common.components.run_curve import Panel, run_curve
from pages.common.components.run_readings import run_readings
from pages.common.components.run_sentences import run_sentences
from pages.common.components.scrolling_figure import scrolling_figure
from pages.common.controls import say
from pages.common.pictures import is_dark
from pages.common.training import run_state
from pages.common.training.data import Progress, look_at, progress_of, samples_of
from pages.common.training.memory import key_of, memory, show_run
from pages.common.wording import number
from transformer import runs
from transformer.checkpoint import CheckpointError
from transformer.figures.attention import head_heatmap
from transformer.figures.curves import EXACT_MATCH_TITLE, LOSS_TITLE, X_TITLES, Curve, run_figure
from transformer.runs import Run, RunError, Status
from transformer.settings import Settings, list_checkpoints, read_settings

EVERY_S = 1.0
WHILE_STARTING_S = 0.4
_PICKED = key_of("picked")


def run_panel(run_id: str) -> None:
    """The run, redrawn every second while a trainer works on it. The others can be chosen above it."""
    before = runs.status(run_id)
    every = (EVERY_S if before.phase == "training" else WHILE_STARTING_S) if before.active else None
    st.fragment(_panel, run_every=every)(run_id, before)


def invite(corpus: str, *, others: bool) -> None:
    """What there is to see before the first run: how the shipped model of this corpus learned, where there is one.

    `others` says whether there are runs of other corpora.
    """
    none = f"No run of *{corpus}* yet" if others else "No runs yet"
    st.markdown(f"{none}. **Train** starts one with what is filled in; it shows up here at once.")
    if others:
        st.page_link("pages/runs.py", label="Your runs of other corpora", icon=":material/arrow_forward:")
    shipped = next((f for f in list_checkpoints() if f.shipped and corpus_name(f.folder) == corpus), None)
    if shipped is not None:
        settings, progress = read_settings(shipped.folder), progress_of(shipped.folder)
        st.caption(f"How the shipped model *{shipped.name}* learned this corpus")
        figure = run_figure(*curves_of(settings, progress), dark=is_dark())
        st.plotly_chart(figure, key="shipped", theme=None, width="stretch", config={"displayModeBar": False})


def corpus_name(folder: Path) -> str:
    """The corpus that the model in a folder learned; nothing where that cannot be read."""
    try:
        return read_settings(folder).corpus.name
    except CheckpointError:
        return ""


def _panel(run_id: str, before: Status) -> None:
    try:
        run = runs.get_run(run_id)
    except (RunError, CheckpointError) as error:
        if before.active:  # deleted by someone else meanwhile
            st.rerun()
        say(f"{error}.")
        return
    run_state.forget_answered(run)
    now = run.status
    if (now.active, now.phase) != (before.active, before.phase) or memory().run != run_id:
        st.rerun()  # how often this is redrawn is settled by a full run alone
    progress = progress_of(run.folder)
    _head(run, progress)
    _curves(run, progress)
    _sentences(run)
    _look(run)


def _head(run: Run, progress: Progress) -> None:
    pinned, others = run.settings.pinned, runs.list_runs()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if len(others) > 1:
            run_state.choose_run(others, run.id, key="run-on-show", on_choice=show_run)
        else:
            st.markdown(f"##### {run.id}", width="content")
        run_state.actions(run, key="run")
        if run.loadable:
            chosen = _chosen_head(run)
            run_state.look_inside(run.id, pinned[0] if pinned else "", key="run-look", layer=chosen[0], head=chosen[1])
    run_readings(
        state=run_state.state_word(run).capitalize(),
        tone=run.status.state,
        rest=run_state.state_rest(run),
        share=run_state.share_done(run),
        readings=_readings(progress),
        key="readings",
    )
    run_note(run)


def run_note(run: Run) -> None:
    """What went wrong with the run, or with what was last asked of it."""
    if memory().refusal:
        say(memory().refusal)
    if run.status.state == "failed":
        say(run_state.failure(run.status))
        if run.resumable:
            st.caption(
                "Resume goes on from its last saved state with the same settings; other settings need a new run."
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
    found += [
        (f"held out, {split}", 100 * row["exact_match"], "%")
        for split, row in progress.held_out.items()
        if row.get("exact_match") is not None
    ]
    return [
        (name, "–" if value is None else _short(value), "" if value is None else unit) for name, value, unit in found
    ]


def _curves(run: Run, progress: Progress) -> None:
    training, validation, exact = curves_of(run.settings, progress)
    if not len(training.x) and not run.status.active:
        return
    if run.status.active:
        limit = run.settings.train.max_steps if run.settings.train.max_seconds is None else 1
        run_curve(
            [
                Panel(title=LOSS_TITLE, thin=[training], main=[validation], height=190),
                Panel(title=EXACT_MATCH_TITLE, main=[exact], percent=True, height=90),
            ],
            x_title=X_TITLES["step"],
            x_least=min(limit, max(20.0, 1.25 * run.status.step)),
            key="curve",
        )
    else:
        figure = run_figure(training, validation, exact, dark=is_dark())
        st.plotly_chart(figure, key="curves", theme=None, width="stretch", config={"displayModeBar": False})


def curves_of(settings: Settings, progress: Progress) -> tuple[Curve, Curve, Curve]:
    """Training loss, validation loss and exact match, each under its full name."""
    smoothed = ", label-smoothed" if settings.train.label_smoothing else ""
    return (
        progress.curve("train", "loss", f"training loss{smoothed}"),
        progress.curve("validation", "loss", "validation loss" + (", not smoothed" if smoothed else "")),
        progress.curve("validation", "exact_match", "validation exact match"),
    )


def _sentences(run: Run) -> None:
    if run.settings.pinned:
        st.markdown("##### The sentences you follow")
        run_sentences(run.settings.pinned, samples_of(run.folder), key="sentences")


def _look(run: Run) -> None:
    """One head's cross-attention on the first pinned sentence, by the newest weights."""
    if not (run.loadable and run.settings.pinned):
        return
    try:
        look = look_at(run.id, run.folder, run.settings.pinned[0])
    except (CheckpointError, ValueError) as error:
        say(f"{error}.")
        return
    st.markdown("##### One head of cross-attention")
    layer, head = _chosen_head(run)
    config = run.settings.model
    cross = look.inspection.cross
    with st.container(key="live-look"):
        large, overview = st.columns([3, 2], gap="large")
    with overview:
        left, right = st.columns(2)
        left.selectbox("Layer", range(config.n_decoder_layers), key=key_of("layer"))
        right.selectbox("Head", range(config.n_heads), key=key_of("head"))
        picked = head_grid(cross.weights, kind="cross", selected=(layer, head), mask=cross.mask, key="live-grid")
        if picked is not None and picked != (layer, head):
            st.session_state[_PICKED] = picked
            st.rerun(scope="fragment")
    with large:
        st.caption(f"Step {look.step:,}: “{look.inspection.text}” → “{look.inspection.translation}”")
        figure = head_heatmap(
            cross.weights[layer, head], cross.queries, cross.keys, kind="cross", mask=cross.mask[layer], dark=is_dark()
        )
        scrolling_figure(figure, key="live-head")


def _chosen_head(run: Run) -> tuple[int, int]:
    """Layer and head in the boxes; the last layer's head 0 where this run lacks what was chosen."""
    config, state = run.settings.model, st.session_state
    if _PICKED in state:  # in the grid, which is drawn after the boxes
        state[key_of("layer")], state[key_of("head")] = state.pop(_PICKED)
    for name, count, default in (
        ("layer", config.n_decoder_layers, config.n_decoder_layers - 1),
        ("head", config.n_heads, 0),
    ):
        if state.get(key_of(name)) not in range(count):
            state[key_of(name)] = default
    return state[key_of("layer")], state[key_of("head")]


def _short(value: float) -> str:
    return f"{round(value):,}" if abs(value) >= 1000 else number(value)
