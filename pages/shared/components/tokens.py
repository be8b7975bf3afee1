"""Tokens as chips: in a line, in two lines that are aligned, and in two rows with a line for every weight between."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st
from jaxtyping import Float
from numpy import ndarray
from streamlit.delta_generator import DeltaGenerator

from pages.shared.components.frontend import (
    NONE_UNSEEN,
    Live,
    colours_of,
    declared,
    describe_tokens,
    drawn,
    packed,
    reserve,
)
from transformer.inspection.token_alignment import Aligned
from transformer.model.kinds import KindName

_chips = declared("token_chips", css=("tokens.css", "token_chips.css"), js=("live.js", "tokens.js", "token_chips.js"))
_aligned = declared(
    "aligned_tokens",
    css=("tokens.css", "token_chips.css", "aligned_tokens.css"),
    js=("tokens.js", "aligned_tokens.js"),
)
_lines = declared("token_lines", css=("tokens.css", "token_lines.css"), js=("tokens.js", "token_lines.js"))

Line = tuple[Sequence[str], Sequence[float]]
"""Tokens, and the probability of each when it was written."""
_MANY, _ROOM = 80, 240
"""Chips that stand as they are, and pixels for more."""


def room_for(n_tokens: int) -> DeltaGenerator:
    """Returns a container for chips: many scroll within a frame, so that what follows stays near."""
    many = n_tokens > _MANY
    return st.container(height=_ROOM if many else "content", border=many)


def token_chips(
    tokens: Sequence[str],
    *,
    label: str,
    changed: Collection[int] = (),
    note: str = "",
    unseen: Mapping[int, str] = NONE_UNSEEN,
    probabilities: Sequence[float] | None = None,
    kind: KindName = "cross",
    scrolls: bool = False,
    key: str,
) -> None:
    """Draws the tokens as a labelled line of chips, each with its probability if there are any.

    The line wraps, or scrolls sideways where its height must not change as the tokens do. `changed` holds indices, and
    `note` says what has changed there if that is not the output; `unseen` has the words at indices that were never
    seen.
    """
    described = described_chips(
        tokens,
        label=label,
        changed=changed,
        note=note,
        unseen=unseen,
        probabilities=probabilities,
        kind=kind,
        scrolls=scrolls,
    )
    draw_chips(described, numbered=probabilities is not None, key=key)


def draw_chips(
    described: Mapping[str, Any] | None, *, numbered: bool = True, live: Live | None = None, key: str
) -> None:
    """Draws what `described_chips` returns, or nothing before the stream of a run at work has sent something.

    `numbered` chips have room for a probability each.
    """
    reserve(key, 3.9375 if numbered else 3.25)  # one line
    _chips(key=key, data=drawn(described, live))


def described_chips(
    tokens: Sequence[str],
    *,
    label: str,
    changed: Collection[int] = (),
    note: str = "",
    unseen: Mapping[int, str] = NONE_UNSEEN,
    probabilities: Sequence[float] | None = None,
    kind: KindName = "cross",
    scrolls: bool = False,
) -> dict[str, Any]:
    """Returns a line of chips as the script draws it; the arguments are those of `token_chips`."""
    if probabilities is not None and len(probabilities) != len(tokens):
        raise ValueError(f"{len(tokens)} tokens need as many probabilities, not {len(probabilities)}")
    return {
        "label": label,
        "tokens": [
            token | ({"note": note} if note and token["changed"] else {})
            for token in describe_tokens(tokens, changed=changed, unseen=unseen)
        ],
        "probabilities": None if probabilities is None else [float(p) for p in probabilities],
        "colours": colours_of(kind),
        "scrolls": scrolls,
    }


def aligned_tokens(
    above: Line, below: Line, alignment: Aligned, *, labels: tuple[str, str], kind: KindName = "cross", key: str
) -> None:
    """Draws two outputs in columns that wrap together: what differs is marked, and what one lacks is a gap.

    Long ones scroll within a frame.
    """
    for tokens, probabilities in (above, below):
        if len(tokens) != len(probabilities):
            raise ValueError(f"{len(tokens)} tokens need as many probabilities, not {len(probabilities)}")
    (a, p), (b, q) = above, below
    same = [(i, j) for i, j in alignment if i is not None and j is not None and a[i] == b[j]]
    first = describe_tokens(a, changed=set(range(len(a))) - {i for i, _ in same})
    second = describe_tokens(b, changed=set(range(len(b))) - {j for _, j in same})
    columns = [
        [
            None if i is None else {**first[i], "probability": float(p[i])},
            None if j is None else {**second[j], "probability": float(q[j])},
        ]
        for i, j in alignment
    ]
    with room_for(2 * len(columns)):
        _aligned(key=key, data={"labels": list(labels), "columns": columns, "colours": colours_of(kind)})


def token_lines(
    source: Sequence[str],
    target: Sequence[str],
    weights: Float[ndarray, "target source"],
    *,
    kind: KindName = "cross",
    source_unseen: Mapping[int, str] = NONE_UNSEEN,
    target_unseen: Mapping[int, str] = NONE_UNSEEN,
    source_changed: Collection[int] = (),
    target_changed: Collection[int] = (),
    source_label: str = "source",
    target_label: str = "target",
    top: float = 1.0,
    off: bool = False,
    key: str,
) -> None:
    """Draws source tokens above, target tokens below, and a line for each weight, whose opacity it is.

    Pointing at a token, or moving to it with Tab and arrows, leaves only its lines, shades the tokens at their other
    ends and writes the weights beside them; Enter or a click keeps it so. The indices count tokens; `source_unseen`
    and `target_unseen` give the words that were typed where the model never saw them. A weight of `top` has the
    strongest line; lines of a head that is `off` are grey.
    """
    if weights.shape != (len(target), len(source)):
        raise ValueError(
            f"weights of shape {weights.shape} do not fit {len(target)} target and {len(source)} source tokens"
        )
    _lines(
        key=key,
        data={
            "source": describe_tokens(source, changed=source_changed, unseen=source_unseen),
            "target": describe_tokens(target, changed=target_changed, unseen=target_unseen),
            "weights": packed(weights.astype(np.float32)),
            "labels": {"source": source_label, "target": target_label},
            "top": float(top),
            "off": off,
            "colours": colours_of(kind),
        },
    )
