"""The choices on the timeline and a visitor's session of it, kept equal to the URL."""

from dataclasses import dataclass, field
from typing import Literal, get_args

import streamlit as st

from pages.shared.url.page_state import UrlPart
from pages.shared.url.url_state import Problem, UrlState, param, text, whole, words
from pages.training.timeline.frames import Timeline
from transformer.lab import AttentionKind
from transformer.model.families import kinds_of
from transformer.runs.run_folder import Run

Rows = Literal["own", "forced"]
"""Whose tokens the decoder reads: those it wrote itself, or those of the newest output, the same at every step."""
MAX_URL_TEXT = 1_000
_KEY = "attention-lab-timeline"
_ANY = whole(0, 99_999_999)


@dataclass(frozen=True, kw_only=True)
class Choices(UrlState):
    """Everything chosen on the timeline. None and empty values mean what suits best."""

    text: str = param("", text(MAX_URL_TEXT), name="film")
    """Empty: the run's first pinned sentence, or an example of its corpus."""
    kind: AttentionKind = param(
        AttentionKind.CROSS,
        words(*AttentionKind),
        name="film_kind",
        offered=lambda _, run: tuple(kinds_of(run.settings.model)) or tuple(AttentionKind),
        absent="kind_of_run",
    )
    layer: int | None = param(
        None,
        _ANY,
        name="film_layer",
        offered=lambda state, run: range(state.n_layers(run)),
        absent="layer_of_run",
    )
    """None: the last layer of the stack."""
    head: int | None = param(
        None,
        _ANY,
        name="film_head",
        offered=lambda _, run: range(run.settings.model.n_heads),
        absent="head_of_run",
    )
    """None: head 0."""
    step: int | None = param(None, _ANY, name="film_step")
    """None: the newest weights, whatever step they are of."""
    rows: Rows = param("own", words(*get_args(Rows)), name="film_rows")

    def n_layers(self, run: Run) -> int:
        """Layers of the stack that holds the chosen kind of attention."""
        return kinds_of(run.settings.model).get(AttentionKind(self.kind), 1)

    def place(self, run: Run) -> tuple[int, int]:
        """Layer and head, those that suit best where none was chosen."""
        return (self.n_layers(run) - 1 if self.layer is None else self.layer), self.head or 0


CHOICES = UrlPart(Choices, key=f"{_KEY}-choices")


@dataclass
class TimelineState:
    """The rest of one visitor's timeline."""

    frames: Timeline = field(default_factory=Timeline)
    draft: str | None = None
    """The text in the sentence field where it is no sentence that can be shown."""
    order: int = 0
    """Counts how often the step was set by a link rather than by the slider."""
    reported: int | None = None
    """The last of the slider's reports that was taken over."""
    held: bool = False
    """True if the visitor stopped the computing of these frames."""


def timeline() -> TimelineState:
    """This session's timeline."""
    return st.session_state.setdefault(_KEY, TimelineState())


def refuse_text(text: str, sentence: str) -> None:
    """Leaves a text in the field that cannot be shown, with a sentence saying why."""
    timeline().draft = text
    CHOICES.tell(Problem("film", sentence))


def frames_of(run_id: str, text: str) -> Timeline:
    """The frames of this run and sentence: those at hand, or none yet."""
    now = timeline()
    if (now.frames.run, now.frames.text) != (run_id, text):
        now.frames, now.held = Timeline(run=run_id, text=text), False
    return now.frames


def follow_url() -> None:
    """Takes over the timeline from the URL where someone else wrote it: a link, a reload, the back button."""
    now, before = timeline(), CHOICES.now
    if CHOICES.follow_url() is not before:
        now.draft = None
        now.order += 1
