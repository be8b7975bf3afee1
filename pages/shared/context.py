"""The context of a page: a view that fits its model, the model, and the decoding once there is one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import streamlit as st

from pages.shared import loading, wording
from pages.shared.texts.phrases import Phrases
from pages.shared.url.url_state import Problem
from pages.shared.url.view_state import View
from transformer.config import ModelConfig
from transformer.interventions import Intervention, compile_interventions, merged
from transformer.lab import Inspection, Lab
from transformer.model.seq2seq import attention_layers
from transformer.text.sentence import Sentence
from transformer.views.subjects import Decoding

REFUSALS = Phrases("library.refusals")


@dataclass(frozen=True)
class PageContext:
    """The context of a page: the view as it fits the model, and the model; `decode` adds the decoding."""

    view: View
    lab: Lab
    sentence: Sentence
    """The view's text as the model reads it."""

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


@dataclass(frozen=True)
class Decoded(PageContext):
    """The context of a page whose sentence is decoded."""

    inspection: Inspection
    """The decoding under the view's switches."""

    @property
    def decoding(self) -> Decoding:
        """Returns the decoding with its model, as the subject of views."""
        return Decoding(self.lab, self.inspection)


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
