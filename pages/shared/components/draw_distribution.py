"""A step's distribution with the sliders that reshape it: drawn anew in the browser at every movement.

The browser has the log-probabilities of the whole vocabulary; the server gets the settings when a slider is released.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from jaxtyping import Float
from numpy import ndarray

from pages.shared.components.frontend import declared, describe_tokens, packed_arrays, reported

_component = declared(
    "draw_distribution",
    css=("value_axes.css", "tokens.css", "draw_distribution.css"),
    js=("value_axes.js", "tokens.js", "draw_rule.js", "draw_distribution.js"),
)


@dataclass(frozen=True, kw_only=True)
class Slider:
    """One setting of `sampling.reshaped` and its limits."""

    name: str
    label: str
    low: float
    high: float
    step: float


def draw_distribution(
    log_probs: Float[ndarray, " vocab"],
    tokens: Mapping[int, str],
    sliders: Sequence[Slider],
    settings: Mapping[str, float],
    take: Callable[[Mapping[str, Any]], None],
    *,
    usual: Float[ndarray, " vocab"] | None = None,
    never: int,
    label: str,
    key: str,
) -> None:
    """Draws bars of these `tokens` (their ids in order), and a row for all others.

    `usual`: the step's log-probabilities without the switches, as marks. The token `never` cannot be drawn. `take` is
    called with the settings as the browser sends them, before the page runs again.
    """

    def taken() -> None:
        if settings_now := _settings(key):
            take(settings_now)

    header = {
        "ids": list(tokens),
        "tokens": describe_tokens(list(tokens.values())),
        "sliders": [asdict(slider) for slider in sliders],
        "settings": dict(settings),
        "report": _settings(key).get("report"),
        "never": never,
        "label": label,
    }
    arrays = [log_probs] if usual is None else [log_probs, usual]
    _component(key=key, on_settings_change=taken, data=packed_arrays(header, arrays))


def _settings(key: str) -> Mapping[str, Any]:
    """Returns the last message from the sliders with this key."""
    settings = reported(key).get("settings")
    return settings if isinstance(settings, dict) else {}
