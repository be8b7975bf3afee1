"""One sentence through the training of a run: played and scrubbed in the browser, from frames sent once.

A slider over the snapshots; above it what each wrote and where its heads looked; below it, over the same steps, the
loss and one line of colour a head.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from pages.shared.components.frontend import (
    colours_of,
    declared,
    describe_tokens,
    packed,
    palette_colours,
    picked_head,
    pooled,
    reported,
    scale_colours,
)
from pages.shared.components.run_progress import drawn_curve
from transformer.figures import theme
from transformer.figures.training.curves import Curve
from transformer.lab import Attention

THUMBNAIL = 24
"""The most rows and columns of a thumbnail; larger heads are drawn by the largest weight of each patch."""
MASKED = 255
"""The level of a thumbnail's masked cell; 0..254 is the weight."""
MAX_POINTS = 240
"""The most points of a curve below the frames; a longer one is thinned."""

_component = declared(
    "run_timeline",
    css=("tokens.css", "run_timeline.css"),
    js=("tokens.js", "run_timeline_pictures.js", "run_timeline_strips.js", "run_timeline.js"),
    reports=("at", "picked"),
)


@dataclass(frozen=True, kw_only=True)
class TimelineFrame:
    """The timeline at one step."""

    step: int
    tokens: Sequence[str]
    """The tokens that were written, or the first of them."""
    length: int
    """The number of tokens that were written."""
    stays: Sequence[bool]
    """True for each token that the newest output has at the same place."""
    spaces: Sequence[bool]
    """True for each token that follows a space."""
    ended: bool
    attention: Attention
    """The attention of the kind on show."""


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
    """A low score means a sharp head."""
    jump: tuple[int, int, int, int] | None
    """Layer, head, and the indices of the frames between which it changed most."""


@dataclass(frozen=True)
class Picks:
    """The visitor's actions on the timeline since the last run."""

    step: int | None
    """The step of the slider; None at the newest weights."""
    moved: int | None
    """The number of this report of `step`; None before the first."""
    head: tuple[int, int] | None
    """A head that was just picked, once."""


def timeline_picks(key: str, n_layers: int, n_heads: int) -> Picks:
    """Returns the report of the timeline with this key in this run."""
    found = reported(key)
    at = found.get("at")
    step, moved = (at.get("step"), at.get("report")) if isinstance(at, dict) else (None, None)
    head = picked_head(found.get("picked"), n_layers, n_heads)
    return Picks(step if isinstance(step, int) else None, moved if isinstance(moved, int) else None, head)


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
            "scales": scale_colours(theme.sequential),
            "masked": palette_colours("masked"),
        },
    )


def _allowed(attention: Attention) -> Float[ndarray, "layer head query key"]:
    """Returns the weights, NaN where a mask forbids attention."""
    return np.where(attention.mask[:, None], attention.weights, np.float32("nan")).astype(np.float32)


def _levels(attention: Attention) -> ndarray:
    """Returns uint8 levels of every head, patches of a large one drawn by their largest weight."""
    weights = pooled(np.where(attention.mask[:, None], attention.weights, -1.0), THUMBNAIL)
    return np.where(weights < 0, MASKED, np.round(np.clip(weights, 0, 1) * (MASKED - 1))).astype(np.uint8)


def _pooled_shape(attention: Attention) -> tuple[int, int]:
    return min(THUMBNAIL, len(attention.queries)), min(THUMBNAIL, len(attention.keys))


def _described(curve: Curve) -> dict[str, Any]:
    """Returns a curve for a logarithmic axis, which has no place for 0."""
    shown = drawn_curve(curve, most=MAX_POINTS)
    kept = shown.y > 0
    return {"name": curve.name, "x": shown.x[kept].astype(int).tolist(), "y": shown.y[kept].tolist()}


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
