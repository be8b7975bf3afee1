"""One sentence through the training of a run: played and scrubbed in the browser, from frames sent once.

A slider over the snapshots; above it what each wrote and where its heads looked; below it, over the same steps, the
loss and one line of colour a head.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st
from jaxtyping import Float
from numpy import ndarray
from streamlit.components.v2 import component

from pages.shared.components.frontend import colours_of, describe_tokens, packed, text_of
from pages.shared.components.packed_arrays import pooled
from transformer.figures import theme
from transformer.figures.training.curves import Curve, thinned
from transformer.lab import Attention

THUMBNAIL = 24
"""Most rows and columns of a thumbnail; larger heads are drawn by the largest weight of each patch."""
MASKED = 255
"""The level of a thumbnail's cell that the pass was not allowed to use; 0..254 is the weight."""
MAX_POINTS = 240
"""Of a curve below the frames; a longer one is thinned."""

_component = component(
    "attention_lab_run_timeline",
    html="<div class='root'></div>\n",
    css=text_of("tokens.css", "run_timeline.css"),
    js=text_of("tokens.js", "run_timeline_pictures.js", "run_timeline_strips.js", "run_timeline.js"),
)


@dataclass(frozen=True, kw_only=True)
class TimelineFrame:
    """The timeline at one step."""

    step: int
    tokens: Sequence[str]
    """What was written, or the beginning of it."""
    length: int
    """How many tokens were written."""
    stays: Sequence[bool]
    """Which of them stand at this place in the newest output too."""
    spaces: Sequence[bool]
    """Which of them have a space before them."""
    ended: bool
    attention: Attention
    """Of the kind on show."""


@dataclass(frozen=True, kw_only=True)
class TimelineScores:
    """One score a snapshot and head."""

    title: str
    unit: str
    values: Float[ndarray, "frame layer head"]
    """NaN where it is not computed yet."""
    high: float
    """The largest value there can be."""
    falling: bool
    """Whether a low score means a sharp head."""
    jump: tuple[int, int, int, int] | None
    """Layer, head, and the indices of the frames between which it changed most."""


@dataclass(frozen=True)
class Picks:
    """The visitor's actions on the timeline since the last run."""

    step: int | None
    """Where the slider stands; None at the newest weights."""
    moved: int | None
    """Which report of `step` this is; None before the first."""
    head: tuple[int, int] | None
    """A head that was just picked, once."""


def timeline_picks(key: str, n_layers: int, n_heads: int) -> Picks:
    """The report of the timeline under this key in this run."""
    state = st.session_state.get(key)
    found: Mapping[str, Any] = state if isinstance(state, dict) else {}
    at = found.get("at")
    step, moved = (at.get("step"), at.get("report")) if isinstance(at, dict) else (None, None)
    head = _head(found.get("picked"), n_layers, n_heads)
    return Picks(step if isinstance(step, int) else None, moved if isinstance(moved, int) else None, head)


def _head(picked: object, n_layers: int, n_heads: int) -> tuple[int, int] | None:
    """The pick, if it fits the model at hand: another may be on show since."""
    if not (isinstance(picked, list) and len(picked) == 2 and all(isinstance(index, int) for index in picked)):
        return None
    layer, head = picked
    return (layer, head) if 0 <= layer < n_layers and 0 <= head < n_heads else None


def run_timeline(
    frames: Sequence[TimelineFrame],
    *,
    name: str,
    sources: int,
    selected: tuple[int, int],
    at: int | None,
    order: int,
    curves: Sequence[Curve],
    scores: TimelineScores | None,
    key: str,
) -> None:
    """Draws the timeline at the step `at` (None: the newest).

    `name` changes with the run and the sentence: another timeline is shown from `at` on. `sources` counts the
    sentence's tokens. `order` counts how often someone else than the slider has set `at`. Of the curves the first is
    drawn thin, the second heavy, the third dotted.
    """
    layer, head = selected
    kind = frames[-1].attention.kind
    table: dict[str, int] = {}

    def indices(tokens: Sequence[str]) -> list[int]:
        return [table.setdefault(token, len(table)) for token in tokens]

    described = [
        {
            "step": frame.step,
            "written": indices(frame.tokens),
            "length": frame.length,
            "stays": [int(stays) for stays in frame.stays],
            "spaces": [int(space) for space in frame.spaces],
            "ended": frame.ended,
            "rows": indices(frame.attention.queries),
            "columns": indices(frame.attention.keys),
            "small": list(_pooled_shape(frame.attention)),
        }
        for frame in frames
    ]
    _component(
        key=key,
        on_at_change=lambda: None,
        on_picked_change=lambda: None,
        data={
            "name": name,
            "at": at,
            "order": order,
            "heads": list(frames[-1].attention.weights.shape[:2]),
            "selected": [int(layer), int(head)],
            "kind": kind,
            "label": kind.label,
            "frames": described,
            "sources": sources,
            "tokens": describe_tokens(list(table)),
            "thumbs": packed(np.concatenate([_levels(frame.attention).ravel() for frame in frames])),
            "large": packed(np.concatenate([_allowed(frame.attention)[layer, head].ravel() for frame in frames])),
            "curves": [_described(curve) for curve in curves],
            "scores": None if scores is None else _scores(scores),
            "colours": colours_of(kind),
            "scales": {
                "light": [colour for _, colour in theme.sequential()],
                "dark": [colour for _, colour in theme.sequential(dark=True)],
            },
            "masked": {"light": theme.LIGHT.masked, "dark": theme.DARK.masked},
        },
    )


def _allowed(attention: Attention) -> Float[ndarray, "layer head query key"]:
    """The weights as they are; NaN where the pass was not allowed to look."""
    return np.where(attention.mask[:, None], attention.weights, np.float32("nan")).astype(np.float32)


def _levels(attention: Attention) -> ndarray:
    """uint8 levels of every head, patches of a large one drawn by their largest weight."""
    weights = pooled(np.where(attention.mask[:, None], attention.weights, -1.0), THUMBNAIL)
    return np.where(weights < 0, MASKED, np.round(np.clip(weights, 0, 1) * (MASKED - 1))).astype(np.uint8)


def _pooled_shape(attention: Attention) -> tuple[int, int]:
    return min(THUMBNAIL, len(attention.queries)), min(THUMBNAIL, len(attention.keys))


def _drawn(curve: Curve) -> Curve:
    """The points that the browser gets of a curve: those above 0 of the thinned line, as its axis is logarithmic."""
    shown = thinned(curve, MAX_POINTS)
    kept = np.isfinite(shown.y) & (shown.y > 0)
    return Curve(curve.name, shown.x[kept], np.array([float(f"{value:.4g}") for value in shown.y[kept]]))


def _described(curve: Curve) -> dict[str, Any]:
    shown = _drawn(curve)
    return {"name": curve.name, "x": shown.x.astype(int).tolist(), "y": shown.y.tolist()}


def _scores(scores: TimelineScores) -> dict[str, Any]:
    values = scores.values.reshape(len(scores.values), -1).T  # -> [layer*head frame]
    return {
        "title": scores.title,
        "unit": scores.unit,
        "values": [[None if np.isnan(value) else float(f"{value:.4g}") for value in row] for row in values],
        "high": float(scores.high),
        "falling": scores.falling,
        "jump": None if scores.jump is None else list(scores.jump),
    }
