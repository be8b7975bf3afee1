"""The timeline: one sentence through the training of a run. Scrub it, play it, see which head formed and when."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import streamlit as st

from pages.shared import loading, wording
from pages.shared.components.run_timeline import timeline_picks
from pages.shared.context import say, sentence
from pages.shared.exhibit import exhibit
from pages.shared.fields import box, line, segments
from pages.shared.guard import guard, guarded_fragment
from pages.shared.waiting import show_progress
from pages.training.timeline.drawing import nearest, pass_of, render_timeline
from pages.training.timeline.frames import Timeline, advance
from pages.training.timeline.state import CHOICES, Rows, follow_url, frames_of, refuse_text, timeline
from transformer.analysis.training.timeline import Jump
from transformer.checkpoints.store import CheckpointError
from transformer.data.corpora import CORPORA
from transformer.lab import AttentionKind
from transformer.model.families import count_parameters, kinds_of
from transformer.runs import run_folder
from transformer.runs.kept_weights import Snapshot, snapshots_of
from transformer.runs.run_folder import Run
from transformer.runs.status import RunError
from transformer.runs.trainer import SNAPSHOT_LIMIT
from transformer.text.tokenizer import TokenizerError, load_tokenizer
from transformer.views.training.timeline import AtStep, SnapshotAttention

COMPUTING_S, BESIDE_TRAINING_S = 0.25, 5.0
"""Seconds between two redraws while frames are missing, and beside a run at work, whose weights are always new."""
BUDGET_S, BUDGET_BESIDE_S = 0.6, 0.3
"""Seconds of computing at a time: between two such stretches a visitor's clicks are answered."""
_FRAMES = "timeline-frames"
_ROWS: dict[Rows, str] = {"own": "Its own words", "forced": "The newest output, forced"}
_SUBLAYERS: dict[AttentionKind, str] = {
    AttentionKind.ENCODER_SELF: "encoder {} self head {}",
    AttentionKind.DECODER_SELF: "decoder {} self head {}",
    AttentionKind.CROSS: "decoder {} cross head {}",
}


@guard("The timeline")
def timeline_panel(run_id: str) -> None:
    """Draws the timeline of a run that is training, paused or at its end; says why where there is none.

    It redraws itself as a fragment, once in a page, and keeps its choices in the query parameters of `Choices`.
    """
    follow_url()
    try:
        run = run_folder.get_run(run_id)
    except (RunError, CheckpointError) as error:
        say(f"{error}.")
        return
    every = _every(run, snapshots_of(run))
    guarded_fragment("The timeline", _panel, every=every)(run_id, every)


def _every(run: Run, found: Sequence[Snapshot]) -> float | None:
    """Returns the seconds between redraws, None for none; the same for all work of a run, as a change is a full run."""
    if run.status.active:
        return BESIDE_TRAINING_S
    now = timeline()
    same = (now.frames.run, now.frames.text) == (run.id, _text(run))
    return None if not found or now.held or (same and not now.frames.missing(found)) else COMPUTING_S


def _panel(run_id: str, every: float | None) -> None:
    try:
        run = run_folder.get_run(run_id)
    except (RunError, CheckpointError):  # deleted meanwhile: the page says so
        return
    found = snapshots_of(run)
    if not kinds_of(run.settings.model):
        st.caption("The timeline of a sentence shows attention, and this model has none.")
        return
    if not found:
        _render_empty(run)
    else:
        chosen, misfits = CHOICES.now.fit(run)
        CHOICES.put(chosen)
        CHOICES.tell(*misfits)
        _follow_picks(run)
        try:
            load_tokenizer(run.folder)
        except TokenizerError as error:
            say(sentence(str(error)))
            return
        _render_found(run, found)
        CHOICES.write_url()
    if _every(run, found) != every:
        st.rerun()  # how often this is redrawn is settled by a full run alone


def _render_empty(run: Run) -> None:
    if run.status.active or run.status.state == "queued":
        st.caption("The timeline opens with the first snapshot, before the first step.")
    else:
        st.caption("This run kept no weights, so it has no timeline.")


def _follow_picks(run: Run) -> None:
    """Takes over what was done in the timeline: it reports in the run itself, not through a callback."""
    now = timeline()
    picks = timeline_picks(_FRAMES, CHOICES.now.n_layers(run), run.settings.model.n_heads)
    if picks.head is not None:
        CHOICES.change(layer=picks.head[0], head=picks.head[1])
    if picks.moved not in (None, now.reported):
        now.reported = picks.moved
        CHOICES.change(step=picks.step)


def _render_found(run: Run, found: Sequence[Snapshot]) -> None:
    now = timeline()
    st.markdown("## The timeline of a sentence")
    if now.frames.run not in ("", run.id):
        _leave_run(run)
    _render_controls(run)
    computed = frames_of(run.id, _text(run))
    budget_s = BUDGET_BESIDE_S if run.status.active else BUDGET_S
    if not now.held or not computed.own:
        try:
            advance(computed, run, found, budget_s=budget_s)
        except ValueError as error:  # a sentence in a link: one that is typed is read before it is taken
            CHOICES.change(text="")
            refuse_text(computed.text, f"{sentence(str(error))} Below is a sentence of the run.")
            computed = frames_of(run.id, _text(run))
            advance(computed, run, found, budget_s=budget_s)
    say(*CHOICES.said())
    tokenizer = load_tokenizer(run.folder)
    if said := wording.unseen(tokenizer, tokenizer.sentence(computed.text)):
        st.markdown(said)
    frames = computed.shown(found)
    if not frames:
        say(*dict.fromkeys(sentence(text) for text in computed.broken.values()))
        return
    steps, jump = render_timeline(run, computed.text, frames, key=_FRAMES)
    layer, head = CHOICES.now.place(run)
    shown = pass_of(nearest(frames, CHOICES.now.step), CHOICES.now.rows)
    exhibit(AtStep(shown), SnapshotAttention(kind=CHOICES.now.kind, layer=layer, head=head), draw=lambda _: None)
    if jump is not None:
        _render_jump(jump, steps)
    elif len(steps) > 2 and not computed.missing(found):
        st.caption("No sudden change: no head sharpened far more between two snapshots than heads usually move.")
    _render_progress(computed, found)
    _render_notes(run, found, computed)


def _leave_run(run: Run) -> None:
    """Another run opens at its newest weights, with the same sentence where it knows its words."""
    now = timeline()
    text = CHOICES.now.text
    known = not load_tokenizer(run.folder).sentence(text).unseen
    CHOICES.put(replace(CHOICES.now, step=None, text=text if known else ""))
    now.draft = None


def _text(run: Run) -> str:
    """The sentence on show: the visitor's, else the run's first pinned one, else an example of its corpus."""
    return CHOICES.now.text or next(iter(_offered(run)), "a")


def _offered(run: Run) -> tuple[str, ...]:
    settings = run.settings
    if settings.pinned and settings.corpus.name not in CORPORA:
        return settings.pinned  # a file of one's own may be long to read
    offered = loading.get_examples(run.id, settings.corpus.name, settings.pinned)
    return tuple(dict.fromkeys((*settings.pinned, *offered)))


def _render_controls(run: Run) -> None:
    """The sentence; which attention, layer and head; whose words the rows are."""
    now, config = timeline(), run.settings.model
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        shown = _text(run) if now.draft is None else now.draft
        line("Any sentence", shown, partial(_show_text, run), key="timeline-text")
        with st.popover("Examples"):
            for text in _offered(run):
                label, key = wording.plain(text), f"timeline-example-{text}"
                st.button(label, key=key, type="tertiary", on_click=_show_text, args=(run, text))
    layer, head = CHOICES.now.place(run)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        segments(
            "Attention",
            tuple(kinds_of(config)),
            CHOICES.now.kind,
            CHOICES.take("kind"),
            key="timeline-kind",
            names=wording.kind_label,
        )
        layers, heads = range(CHOICES.now.n_layers(run)), range(config.n_heads)
        box("Layer", layers, layer, CHOICES.take("layer"), key="timeline-layer", width=80)
        box("Head", heads, head, CHOICES.take("head"), key="timeline-head", width=80)
    segments("What the decoder reads", _ROWS, CHOICES.now.rows, CHOICES.take("rows"), key="timeline-rows")


def _show_text(run: Run, text: str) -> None:
    """Takes a sentence where the model can read it; else leaves it in the field, with a sentence saying why."""
    now, longest, text = timeline(), run.settings.model.max_length, text.strip()
    length = len(load_tokenizer(run.folder).encode(text)) + 1
    if 1 < length <= longest:
        now.draft, now.held = None, False
        CHOICES.change(text=text)
        return
    said = (
        "Type a sentence to see it translated by every snapshot."
        if length == 1
        else f"“{text[:40]}…” has {length:,} tokens with its end mark, and the model takes {longest}: shorten it."
    )
    refuse_text(text, f"{said} The timeline below is for the previous sentence.")


def _render_jump(jump: Jump, steps: Sequence[int]) -> None:
    name = _SUBLAYERS[CHOICES.now.kind].format(jump.layer, jump.head)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(
            f"The most sudden change: **{name}** sharpened between step {steps[jump.first]:,} and "
            f"{steps[jump.last]:,}: entropy {wording.number(jump.before)} → {wording.number(jump.after)} nats.",
            width="content",
        )
        st.button(
            "Show that head",
            type="tertiary",
            icon=":material/arrow_upward:",
            key="timeline-jump",
            on_click=_go_to,
            args=(jump.layer, jump.head, steps[jump.last]),
        )


def _go_to(layer: int, head: int, step: int) -> None:
    CHOICES.change(layer=layer, head=head, step=step)
    timeline().order += 1


def _render_progress(computed: Timeline, found: Sequence[Snapshot]) -> None:
    """Says how much is computed, with a way to stop that."""
    now, missing = timeline(), len(computed.missing(found))
    if not missing:
        return
    done = len(computed.own) + len(computed.forced)
    if now.held:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.caption(f"{len(computed.own)} of {len(found)} snapshots translate this sentence.", width="content")
            st.button("Compute the rest", key="timeline-go-on", on_click=_hold, args=(False,))
        return
    doing, share = f"Translating with {len(found)} snapshots", done / (done + missing)
    show_progress(doing, share, partial(_hold, True), key="timeline-cancel", left_s=computed.left_s(found))


def _hold(held: bool) -> None:
    timeline().held = held


def _render_notes(run: Run, found: Sequence[Snapshot], computed: Timeline) -> None:
    """Says what has to be known to read the timeline."""
    notes = []
    if CHOICES.now.rows == "own" or not computed.goal:
        notes.append("What is written and the attention shown come from the same pass of that snapshot.")
    else:
        notes.append("Every snapshot is made to write the newest output (teacher-forced), so that rows stay the same.")
    if computed.goal:
        notes.append(
            f"Entropies and the loss of this sentence are measured with the output of step {computed.goal_step:,} "
            "forced, in nats per token, not smoothed."
        )
    else:
        notes.append("The newest output has a start or padding token and cannot be forced: no entropies and no loss.")
    if len(found) == 1 and found[0].newest:
        limit = f"Models with more than {SNAPSHOT_LIMIT:,} parameters keep no snapshots, which would fill the disk"
        if count_parameters(run.settings.model) > SNAPSHOT_LIMIT:
            notes = [f"This run has only its newest weights. {limit}; so there is nothing to scrub through."]
        elif not run.status.active:
            notes = ["This run has only its newest weights, so there is nothing to scrub through."]
    if computed.broken:
        notes.append(f"{len(computed.broken)} of its snapshots cannot be read and are left out.")
    st.caption(" ".join(notes))
