"""A run's state in words, its buttons, the picker of runs, and the bars of runs in progress."""

from collections.abc import Callable, Sequence

import streamlit as st

from pages.shared.context import sentence
from pages.shared.fields import box
from pages.shared.guard import guarded_fragment
from pages.shared.texts.catalogue import Texts
from pages.training import durations
from pages.training.train_state import memory
from transformer.access.ownership import may_change
from transformer.config import AnyModelConfig
from transformer.model.families import kinds_of
from transformer.runs import run_folder
from transformer.runs.queue import start_waiting
from transformer.runs.run_folder import Run, list_runs
from transformer.runs.status import RunError, Status

TEXTS = Texts("live.run")
EVERY_S = 5.0
"""The seconds between two looks at the runs in progress."""


def runs_here() -> list[Run]:
    """Returns all runs, the newest first; none if the place of runs is no folder, which a start refuses."""
    try:
        return list_runs()
    except RunError:
        return []


def state_word(run: Run) -> str:
    """Returns the state in a word or two: "training", "pausing", "paused", "scoring held-out pairs"."""
    status = run.status
    if status.active:
        return phase(run.asked or status.phase or "training")
    return phase(status.state)


def phase(name: str) -> str:
    """Returns the word for what a run does, or is asked to do; the trainer's own where the catalogue has none."""
    return TEXTS.table("phases").get(name.replace(" ", "_"), name)


def brief(step: int, took: str) -> str:
    """Returns where a run stands in a few words."""
    return TEXTS("brief", step=step, took=took)


def state_rest(run: Run) -> str:
    """Describes a run beside its state: the step, the time, the reason."""
    status, train = run.status, run.settings.train
    if run.place:
        continues = [TEXTS("continues", step=status.step)] if status.step else []
        return " · ".join([TEXTS("queue", place=run.place), *continues])
    took = durations.duration(status.elapsed_s)
    ended = durations.compared(run.folder, train, step=status.step, elapsed_s=status.elapsed_s) or TEXTS(
        "took", took=took
    )
    parts = [_step(run), TEXTS("so_far", took=took) if status.active else ended]
    if status.active and status.phase == "training":
        left = durations.time_left(train, step=status.step, elapsed_s=status.elapsed_s)
        about = "at_most" if train.target_exact_match is not None else "about"
        parts += [] if left is None else [TEXTS(f"left.{about}", left=durations.duration(left))]
    elif status.reason and status.state != "failed":
        parts.append(TEXTS.table("reasons").get(status.reason, status.reason))
    return " · ".join(parts)


def _step(run: Run) -> str:
    """Returns the step, and the last one unless the clock ends the run."""
    train = run.settings.train
    return TEXTS("step" if train.max_seconds is not None else "step_of", step=run.status.step, steps=train.max_steps)


def share_done(run: Run) -> float:
    """Returns the share of the run that is done, 0..1."""
    if run.status.state == "finished":
        return 1.0
    return durations.share_done(run.settings.train, step=run.status.step, elapsed_s=run.status.elapsed_s)


def failure(status: Status) -> str:
    """Returns the error of a failed run as a sentence."""
    return sentence(status.error or TEXTS("no_message"))


def act(run_id: str, request: str) -> None:
    """Pauses, resumes or stops a run for a visitor, and remembers why it cannot be; for callbacks."""
    now = memory()
    now.refusal = ""
    try:
        match request:
            case "pause":
                run_folder.pause(run_id)
            case "resume":
                run_folder.resume(run_id)
            case "stop":
                run_folder.stop(run_id)
    except (RunError, OSError) as error:
        now.refusal = f"{error}."


def actions(run: Run, *, key: str) -> None:
    """Renders Pause or Resume, and Stop or Cancel: both always there and each in its place, whatever the run's state.

    A button that went, came or moved between press and release, as the state changed, would lose the click.
    """
    status, is_asked = run.status, run.asked is not None
    if not may_change(run.folder):
        st.caption(TEXTS("shared"))
        return
    if run.resumable or (status.state == "queued" and not status.active):
        label = TEXTS("resume" if run.resumable else "start")
        _button(label, "resume", run, f"{key}-primary", icon=":material/play_arrow:")
    else:
        _button(
            TEXTS("pause"),
            "pause",
            run,
            f"{key}-primary",
            disabled=is_asked or not status.active,
            icon=":material/pause:",
        )
    label, icon = (TEXTS("cancel"), ":material/close:") if status.waiting else (TEXTS("stop"), ":material/stop:")
    _button(
        label,
        "stop",
        run,
        f"{key}-second",
        disabled=is_asked or not (status.active or status.state == "paused"),
        icon=icon,
    )


def look_inside(
    run_id: str,
    text: str,
    model: AnyModelConfig,
    *,
    kind: str = "cross",
    layer: int | None = None,
    head: int | None = None,
    step: int | None = None,
    disabled: bool = False,
) -> None:
    """Renders the link that opens Attention on this model, or Before attention where it has none.

    `step` is that of its weights, None if unknown.

    A link and no button with `st.switch_page`: the browser stops the timers of the page that is left when the link is
    followed; a tick of the old page that arrives while the new one runs would leave that empty.
    """
    parameters: dict[str, object] = {"model": run_id} | ({"text": text} if text else {})
    page, title = "pages/before/page.py", TEXTS("look.before")
    if kinds_of(model):
        page, title = "pages/attention/page.py", TEXTS("look.attention")
        parameters |= {"layer": layer, "head": head, "kind": None if kind == "cross" else kind}
    opens = TEXTS("look.newest", page=title) if step is None else TEXTS("look.of_step", page=title, step=step)
    st.page_link(
        page,
        label=TEXTS("look.label"),
        icon=":material/search:",
        help=TEXTS("look.none_yet") if disabled else opens,
        disabled=disabled,
        query_params={k: str(v) for k, v in parameters.items() if v is not None},
    )


def choose_run(found: Sequence[Run], chosen: str, *, key: str, on_choice: Callable[[str], None]) -> None:
    """Renders the box to choose a run by name."""
    box(TEXTS("run"), [run.id for run in found], chosen, on_choice, key=key, hide_label=True)


def _button(label: str, request: str, run: Run, key: str, *, icon: str, disabled: bool = False) -> None:
    st.button(label, key=key, icon=icon, width=104, disabled=disabled, on_click=act, args=(run.id, request))


def runs_in_progress() -> None:
    """Renders a bar for each run that trains or waits; without any, nothing is drawn and nothing polls."""
    try:
        busy = any(run.status.active for run in list_runs())
    except RunError:  # said where a run is to be started
        return
    if busy:
        guarded_fragment("The progress of runs", _bars, every=EVERY_S)()


def _bars() -> None:
    start_waiting()
    for run in list_runs():
        if run.status.active:
            st.progress(share_done(run), text=f"{run.id} · {_stand_text(run)}")


def _stand_text(run: Run) -> str:
    """Returns the step, and the last one unless the clock ends the run; of a waiting run its place in the queue."""
    return TEXTS("waiting", place=run.place) if run.place else _step(run)
