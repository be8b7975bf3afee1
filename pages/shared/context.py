"""The context of a page: a view that fits its model, the model, and the decoding under the view's switches."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import parse_qs

import streamlit as st

from pages.shared import loading, wording
from pages.shared.background import Stopped, Watcher, Work
from pages.shared.texts.catalogue import Texts
from pages.shared.texts.phrases import Phrases
from pages.shared.url.packed_link import PARAMETER, unpack
from pages.shared.url.url_state import Problem
from pages.shared.url.view_state import View
from pages.shared.waiting import give_way, session_watcher
from transformer.checkpoints.settings import CheckpointError
from transformer.config import ModelConfig
from transformer.interventions import Intervention, compile_interventions, merged
from transformer.lab import Inspection, Lab
from transformer.model.seq2seq import attention_layers
from transformer.text.sentence import Sentence
from transformer.views.subjects import Decoding

TEXTS = Texts("frame")
REFUSALS = Phrases("library.refusals")
_FIRST_S, _EVERY_S, _WORTH_S = 0.1, 2.0, 0.6
"""The seconds before a decoding is first drawn and between two drawings, and those that the rest must take at least."""


@dataclass(frozen=True)
class PageContext:
    """The context of a page: the view as it fits the model, the model, and the decoding under the view's switches."""

    view: View
    lab: Lab
    sentence: Sentence
    """The view's text as the model reads it."""
    meanwhile: Callable[[Inspection], None] | None = None
    """Draws as much as is written of a decoding that takes longer."""

    @cached_property
    def inspection(self) -> Inspection:
        """Returns the decoding under the view's switches, made on first use: the browser paints what the page has
        drawn before that meanwhile."""
        with st.spinner(TEXTS("decoding")):  # seen after half a second
            work, patience, next_s = self._begin_decoding(), 0.0, _FIRST_S
            while not work.over.wait(patience):
                give_way()
                so_far, left_s, patience = work.so_far, work.left_s, _FIRST_S
                if self.meanwhile and so_far and left_s and work.since_s > next_s and left_s > _WORTH_S:
                    self.meanwhile(so_far())
                    next_s = work.since_s + _EVERY_S
            if work.stopped:  # by this visitor's page of a moment ago
                work = self._begin_decoding()
            return work.result()

    def _begin_decoding(self) -> Work[Inspection]:
        return loading.decoding(self.lab, self.view.text, self.view.switches, session_watcher())

    @property
    def decoding(self) -> Decoding:
        """Returns the decoding with its model, as the subject of views."""
        return Decoding(self.lab, self.inspection)

    @property
    def layer(self) -> int:
        """Returns the chosen layer, the last one if none was chosen."""
        return (
            attention_layers(self.lab.model).get(self.view.kind, 1) - 1 if self.view.layer is None else self.view.layer
        )

    @property
    def head(self) -> int:
        """Returns the chosen head, 0 if none was chosen."""
        return self.view.head or 0


def decode_ahead(query: str) -> None:
    """Decodes the sentence that a link's query names, or the first that is shown, for the page to find it done.

    Without the link's switches: under these the page decodes itself. It stops where no page joins it within a moment.
    """
    nobody = Watcher(lambda: False)
    with contextlib.suppress(ValueError, CheckpointError, Stopped):  # the page will find the same, and say it
        asked = parse_qs(query)
        view, _ = View.read(unpack(asked[PARAMETER][0]) if PARAMETER in asked else asked)
        if found := loading.models():
            lab = loading.get_lab(view.model or loading.first_choice(found))
            loading.decoding(lab, view.text or next(iter(loading.examples(lab)), "a"), (), nobody).result()


def is_transformer(lab: Lab) -> bool:
    """Tells whether a model is a Transformer: all others are shown as far as their sites go."""
    return isinstance(lab.model.config, ModelConfig)


def is_dark() -> bool:
    """Tells whether the visitor's theme is dark."""
    return st.context.theme.type == "dark"


def say(*sentences: str) -> None:
    """Renders a sentence in red for each thing that could not be done."""
    if sentences:
        st.markdown("  \n".join(f":red[:material/error: {wording.plain(sentence)}]" for sentence in sentences))


def sentence(text: str) -> str:
    """Returns a message of the library as a sentence: with a full stop, and a capital unless it begins with the name
    of a file; in the server's language where the catalogue has it."""
    text = text.strip().rstrip(".")
    first, _, _ = text.partition(" ")
    said = text if "." in first else f"{text[:1].upper()}{text[1:]}"
    return f"{REFUSALS(said)}."


def with_usable_switches(view: View, lab: Lab) -> tuple[View, tuple[Problem, ...]]:
    """Returns the view with the switches that fit its model, sentence and one another, and a problem for each other."""
    kept: list[Intervention] = []
    misfits: list[Problem] = []
    for spec in view.switches:
        try:
            kept.append(usable(spec, lab, view.text, kept))
        except ValueError as error:
            misfits.append(Problem("switch", left_out_text(spec, error)))
    return replace(view, switches=merged(kept)), tuple(misfits)


def usable(spec: Intervention, lab: Lab, text: str, others: Sequence[Intervention] = ()) -> Intervention:
    """Returns the switch with all that it needs; ValueError if model, sentence or other switches rule it out."""
    compile_interventions([*others, spec], lab.model)
    n_tokens = len(loading.get_sentence(lab, text).ids)
    spec.check_source(n_tokens)
    (complete,) = loading.get_resolved(lab, [spec])
    complete.check_source(n_tokens)
    return complete


def left_out_text(spec: Intervention, error: Exception, where: str = "") -> str:
    """Says that a switch cannot be used, and why, as plain text."""
    return f"The switch “{spec.label()}” is left out{where}: {str(error).rstrip('.')}."
