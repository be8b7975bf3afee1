"""The output of a run's newest weights for a text, as a line that follows the run."""

import streamlit as st

from pages.shared.components.tokens import draw_chips
from pages.shared.context import say, sentence
from pages.shared.live.watches import LivePart
from pages.shared.texts.catalogue import Texts
from pages.training.live.clearest import output_of
from pages.training.live.parts import described_output, live_part
from pages.training.timeline.frames import decoded_with
from transformer.checkpoints.settings import CheckpointError
from transformer.runs.kept_weights import snapshots_of
from transformer.runs.run_folder import Run
from transformer.views.training.timeline import DecodedSnapshot

TEXTS = Texts("live.output")


def decoded(run: Run | None, text: str) -> DecodedSnapshot | None:
    """Returns a text decoded with the newest weights; None without a text, where there are no weights yet, or where it
    cannot be decoded, which it says."""
    if not text or run is None or not (found := snapshots_of(run)):
        return None
    try:
        return decoded_with(run, found[-1], text)
    except (CheckpointError, OSError):  # replaced by newer weights a moment ago
        return None
    except ValueError as error:
        say(sentence(str(error)))
        return None


def render_output(
    run: Run | None,
    text: str,
    snapshot: DecodedSnapshot | None,
    *,
    parts: tuple[LivePart, ...] | None = None,
    key: str,
) -> None:
    """Renders the output for a text, which then follows the run; a dash where there is no text that it can read."""
    if not text:
        st.caption("–")
        return
    live = live_part(run, text, "output", -1 if snapshot is None else snapshot.step, parts=parts)
    if snapshot is None and live is None:
        st.caption(TEXTS("here"))
        return
    described = None if snapshot is None else described_output(output_of(snapshot))
    draw_chips(described, live=live, key=f"{key}-chips")
