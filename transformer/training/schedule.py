"""The learning rate as a pure function of the step (section 5.3)."""

import math
from typing import assert_never

from transformer.config import WSD_DECAY, ScheduleKind


def learning_rate(step: int, *, kind: ScheduleKind, peak: float, warmup_steps: int, max_steps: int) -> float:
    """The rate of optimiser step `step` (the first is 1): a linear warm-up to `peak`, then the kind's course.

    `paper`: peak * sqrt(warmup / step), the paper's inverse square root; `paper_peak` gives the paper's own height.
    `constant`: the peak. `cosine`: half a cosine from the peak to 0 at max_steps. `wsd` (warm-up, stable, decay):
    the peak, then a straight line to 0 over the last 60 % of max_steps. ValueError for a step below 1.
    """
    if step < 1:
        raise ValueError(f"step ({step}) must be at least 1")
    if step < warmup_steps:
        return peak * step / warmup_steps
    match kind:
        case "paper":
            return peak * math.sqrt(max(warmup_steps, 1) / step)
        case "constant":
            return peak
        case "cosine":
            share = (step - warmup_steps) / max(1, max_steps - warmup_steps)
            return peak * 0.5 * (1 + math.cos(math.pi * min(1.0, share)))
        case "wsd":
            return peak * min(1.0, max(0, max_steps - step) / max(1.0, WSD_DECAY * max_steps))
    assert_never(kind)


def paper_peak(d_model: int, warmup_steps: int) -> float:
    """The peak at which `paper` is exactly eq. 3, d_model^-0.5 * min(step^-0.5, step * warmup^-1.5).

    At step = warmup both terms meet in (d_model * warmup)^-0.5: 7.0e-4 for the base model with 4,000 warm-up steps.
    """
    return (d_model * warmup_steps) ** -0.5
