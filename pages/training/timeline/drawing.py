"""What the film shows: a run's frames as the component takes them, the loss beside them, and how each head formed."""

from collections.abc import Sequence

import numpy as np

from pages.shared.components.run_timeline import TimelineFrame, TimelineScores, run_film
from pages.training.data import progress_of
from pages.training.timeline.frames import Frame, Take, Timeline
from pages.training.timeline.state import timeline
from pages.training.timeline.view import Rows
from transformer.analysis.training.timeline import Jump, largest_jump, row_entropy
from transformer.figures.labels import WORD_START
from transformer.figures.training.curves import Curve
from transformer.lab import AttentionKind
from transformer.runs.run_folder import Run
from transformer.text.pairs import join_words
from transformer.text.tokenizer import load_tokenizer

MOST_TOKENS = 24
"""Tokens of an output that are spelt out where the newest has no more: what an untrained model writes has no end."""


def draw_film(run: Run, reel: Timeline, frames: Sequence[Frame], *, key: str) -> tuple[list[int], Jump | None]:
    """Draws the film; returns its steps, and the head that formed most suddenly where every frame could be compared."""
    now = timeline()
    view, newest = now.view, frames[-1].own
    shown = [frame for frame in frames if view.rows == "own" or frame.forced is not None] or [frames[-1]]
    words = load_tokenizer(run.folder).kind == "words"
    scores, jump = _scores(shown, view.kind)
    run_film(
        [_film_frame(frame.step, take_of(frame, view.rows), newest, view.kind, words) for frame in shown],
        name=f"{run.id} {reel.text}",
        sources=len(newest.attention[AttentionKind.ENCODER_SELF].keys),
        selected=view.place(run.settings.model),
        at=view.step,
        order=now.order,
        curves=curves_of(run, frames),
        scores=scores,
        key=key,
    )
    return [frame.step for frame in shown], jump


def _film_frame(step: int, take: Take, newest: Take, kind: AttentionKind, words: bool) -> TimelineFrame:
    count = max(MOST_TOKENS, len(newest.tokens)) if newest.ended else MOST_TOKENS
    tokens = take.tokens[:count]
    if words:  # spaced as the tokenizer joins them
        lengths = [len(join_words(tokens[: i + 1])) for i in range(len(tokens))]
        spaces = [i > 0 and lengths[i] - lengths[i - 1] > len(token) for i, token in enumerate(tokens)]
    else:
        spaces = [token.startswith(WORD_START) for token in tokens]
    return TimelineFrame(
        step=step,
        tokens=tokens,
        length=len(take.tokens),
        stays=[i < len(newest.ids) and token == newest.ids[i] for i, token in enumerate(take.ids[:count])],
        spaces=spaces,
        ended=take.ended,
        attention=take.attention[kind],
    )


def take_of(frame: Frame, rows: Rows) -> Take:
    """What a frame shows: the snapshot's own translation, or the goal that it was made to write."""
    return frame.forced if rows == "forced" and frame.forced is not None else frame.own


def curves_of(run: Run, frames: Sequence[Frame]) -> list[Curve]:
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
