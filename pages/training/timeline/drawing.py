"""A run's frames as the component takes them, the loss beside them, and how each head formed."""

from collections.abc import Sequence

import numpy as np

from pages.shared.components.run_timeline import TimelineFrame, TimelineScores, run_timeline
from pages.training.timeline.frames import Frame
from pages.training.timeline.state import CHOICES, Rows, timeline
from transformer.analysis.training.progress import progress_of
from transformer.analysis.training.timeline import Jump, largest_jump, row_entropy
from transformer.figures.labels import WORD_START
from transformer.figures.training.curves import Curve
from transformer.lab import AttentionKind
from transformer.runs.run_folder import Run
from transformer.text.pairs import join_words
from transformer.text.tokenizer import load_tokenizer
from transformer.views.training.timeline import DecodedSnapshot

MAX_TOKENS = 24
"""Tokens of an output that are spelt out where the newest has no more: what an untrained model writes has no end."""


def render_timeline(run: Run, text: str, frames: Sequence[Frame], *, key: str) -> tuple[list[int], Jump | None]:
    """Draws the frames; returns their steps, and the head that formed most suddenly where all could be compared."""
    now = timeline()
    chosen, newest = CHOICES.now, frames[-1].own
    shown = [frame for frame in frames if chosen.rows == "own" or frame.forced is not None] or [frames[-1]]
    words = load_tokenizer(run.folder).kind == "words"
    scores, jump = _scores(shown, chosen.kind)
    run_timeline(
        [_frame(frame.step, pass_of(frame, chosen.rows), newest, chosen.kind, words) for frame in shown],
        name=f"{run.id} {text}",
        sources=len(newest.attention[AttentionKind.CROSS].keys),
        selected=chosen.place(run),
        at=chosen.step,
        order=now.order,
        curves=_curves(run, frames),
        scores=scores,
        key=key,
    )
    return [frame.step for frame in shown], jump


def _frame(
    step: int, decoded: DecodedSnapshot, newest: DecodedSnapshot, kind: AttentionKind, words: bool
) -> TimelineFrame:
    count = max(MAX_TOKENS, len(newest.tokens)) if newest.ended else MAX_TOKENS
    tokens = decoded.tokens[:count]
    if words:  # spaced as the tokenizer joins them
        lengths = [len(join_words(tokens[: i + 1])) for i in range(len(tokens))]
        spaces = [i > 0 and lengths[i] - lengths[i - 1] > len(token) for i, token in enumerate(tokens)]
    else:
        spaces = [token.startswith(WORD_START) for token in tokens]
    return TimelineFrame(
        step=step,
        tokens=tokens,
        length=len(decoded.tokens),
        stays=[i < len(newest.ids) and token == newest.ids[i] for i, token in enumerate(decoded.ids[:count])],
        spaces=spaces,
        ended=decoded.ended,
        attention=decoded.attention[kind],
    )


def pass_of(frame: Frame, rows: Rows) -> DecodedSnapshot:
    """The pass that a frame shows: the snapshot's own, or the one that was made to write the goal."""
    return frame.forced if rows == "forced" and frame.forced is not None else frame.own


def nearest(frames: Sequence[Frame], step: int | None) -> Frame:
    """The frame that is shown for a step."""
    return frames[-1] if step is None else min(frames, key=lambda frame: abs(frame.step - step))


def _curves(run: Run, frames: Sequence[Frame]) -> list[Curve]:
    """The loss of the run on its batches and on validation, and of this sentence."""
    progress = progress_of(run.folder)
    known = [frame for frame in frames if frame.forced is not None]
    return [
        progress.curve("train", "loss", "training loss"),
        progress.curve("validation", "loss", "validation loss"),
        Curve(
            "this sentence",
            np.array([frame.step for frame in known], dtype=np.float64),
            np.array([frame.forced.loss for frame in known if frame.forced is not None], dtype=np.float64),
        ),
    ]


def _scores(frames: Sequence[Frame], kind: AttentionKind) -> tuple[TimelineScores | None, Jump | None]:
    """The entropy of each head on the goal, which is the same words at every step."""
    passes = [frame.forced.attention[kind] if frame.forced is not None else None for frame in frames]
    known = [attention for attention in passes if attention is not None]
    if not known:
        return None, None
    shape = known[0].weights.shape[:2]
    values = np.array(
        [np.full(shape, np.nan) if a is None else row_entropy(a.weights, a.mask) for a in passes], dtype=np.float64
    )
    if np.isnan(values).all():
        return None, None
    jump = None if len(known) < len(passes) else largest_jump(values, [frame.step for frame in frames], falling=True)
    scores = TimelineScores(
        title="Entropy of each head's rows: strong colour is sharp, 0 nats",
        unit=" nats",
        values=values,
        high=float(np.nanmax(values)) or 1.0,
        falling=True,
        jump=None if jump is None else (jump.layer, jump.head, jump.first, jump.last),
    )
    return scores, jump
