"""Three tokens on their way from input to output, on one screen."""

import streamlit as st

from pages.shared import fields
from pages.shared.context import Decoded
from pages.shared.exhibit import exhibit
from pages.walkthrough.choices import PAGE, Place
from pages.walkthrough.step_section import position_text
from transformer.analysis.trace.overview import most_attended
from transformer.inspection.inspection import Inspection
from transformer.model.kinds import AttentionKind
from transformer.views.subjects import Traced
from transformer.views.trace_overview import TraceOverview

_SHOWN = 3
"""The tokens of each stack that are shown."""


def choose_followed(context: Decoded, place: Place) -> None:
    """Renders the controls for the followed token and step."""
    seen = context.inspection
    tokens, steps = range(len(seen.source_tokens)), range(len(seen.target_tokens))
    names = [f"{i} · {token}" for i, token in enumerate(seen.source_tokens)]
    options = dict(zip(tokens, names, strict=True))
    fields.box("Follow the token", options, place.token, PAGE.take("token"), key="walk-token", width=200)
    fields.box(
        "Follow the step",
        steps,
        place.position,
        PAGE.take("step"),
        key="walk-position",
        width=250,
        names=lambda i: position_text(seen, i),
    )


def render_overview(context: Decoded, traced: Traced, place: Place) -> None:
    """Shows the followed token and step, each with the two that it attended to most."""
    seen = context.inspection
    exhibit(traced, TraceOverview(tokens=_tokens(seen, place), steps=_steps(seen, place)))
    lines = "A line is as thick as the attention weight, the mean of all heads. " if seen.attentions else ""
    st.caption(
        "From the bottom up: each strip is a token's vector after one part of a layer, on its row's own scale. "
        f"{lines}Shown are {_shown_text(seen)}."
    )


def _tokens(seen: Inspection, place: Place) -> tuple[int, ...]:
    """Returns the followed token and two others: those that it attended to most, or that the followed step did, or its
    neighbours where nothing attends to anything."""
    if AttentionKind.ENCODER_SELF in seen.attentions:
        return most_attended(seen.attention(AttentionKind.ENCODER_SELF).weights, place.token, _SHOWN)
    if AttentionKind.CROSS in seen.attentions:
        return most_attended(seen.attention(AttentionKind.CROSS).weights, place.position, _SHOWN, kept=place.token)
    return _neighbours(place.token, len(seen.source_tokens))


def _steps(seen: Inspection, place: Place) -> tuple[int, ...]:
    """Returns the followed step and the two that it attended to most, or its neighbours where it attends to none."""
    if AttentionKind.DECODER_SELF in seen.attentions:
        return most_attended(seen.attention(AttentionKind.DECODER_SELF).weights, place.position, _SHOWN)
    return _neighbours(place.position, len(seen.target_tokens))


def _neighbours(row: int, n: int) -> tuple[int, ...]:
    first = max(0, min(row - 1, n - _SHOWN))
    return tuple(range(first, min(n, first + _SHOWN)))


def _shown_text(seen: Inspection) -> str:
    if AttentionKind.ENCODER_SELF in seen.attentions:
        return "the followed token and step, each with the two that it attended to most"
    if seen.attentions:
        return "the followed step with its neighbours, and the followed token with those that the step attended to most"
    return "the followed token and step, each with its neighbours"
