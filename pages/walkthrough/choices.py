"""The Walkthrough page's own choices: the step of the pass and the tokens that are followed. They are kept in the URL.

Layer and head are shared by all pages.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import streamlit as st

from pages.shared import loading, wording
from pages.shared.context import Decoded, PageContext
from pages.shared.url.page_state import PageState
from pages.shared.url.session import choose, session
from pages.shared.url.url_state import UrlState, param, text, whole, words
from transformer.analysis.trace.step import SUBLAYERS, Step, n_layers
from transformer.analysis.trace.steps import find_step, steps
from transformer.lab import Inspection
from transformer.model.recurrent import RecurrentModel

Show = Literal["step", "overview"]
MAP = "walkthrough-map"
"""The key of the drawing whose steps can be clicked."""
_MAX_NAME = 1_000
"""The largest number of characters of a step's name in a link."""


@dataclass(frozen=True, kw_only=True)
class Choices(UrlState):
    """The visitor's choices; empty and None take what suits the model best."""

    show: Show = param("step", words(*get_args(Show)))
    """One step with its numbers, or three tokens from input to output."""
    pass_step: str = param(
        "",
        text(_MAX_NAME),
        name="station",
        offered=lambda _, context: [str(step) for step in steps(context.lab.model)],
        usual=lambda _, context: str(steps(context.lab.model)[0]),
        absent="place",
    )
    """The name of the step: encoder.self.weights."""
    recurrent_layer: int = param(
        0,
        whole(0, 9),
        name="recurrent-layer",
        offered=lambda _, context: range(max(n_layers(context.lab.model, stack) for stack in SUBLAYERS)),
        nearest=True,
        absent="recurrent_layer",
    )
    """The layer of LSTMs or GRUs; the layer that all pages share is that of an attention."""
    token: int | None = param(
        None,
        whole(0, 9_999),
        offered=lambda _, context: range(len(context.inspection.source_tokens)),
        usual=lambda _, context: followed(context.inspection)[0],
        resets=("model", "text"),
    )
    """The source token that is followed through the encoder."""
    step: int | None = param(
        None,
        whole(0, 9_999),
        offered=lambda _, context: range(len(context.inspection.target_tokens)),
        usual=lambda _, context: followed(context.inspection)[1],
        resets=("model", "text"),
    )
    """The step of the decoding, hence the decoder's token, that is followed through the decoder."""


PAGE = PageState(Choices, key="walkthrough-page")


@dataclass(frozen=True)
class Place:
    """The chosen step as this model has it, with the tokens as this sentence has them."""

    step: Step
    order: tuple[Step, ...]
    """The steps of this model."""
    layer: int
    head: int
    token: int
    position: int
    """The step of the decoding whose token is followed through the decoder."""

    @property
    def row(self) -> int:
        """Returns the followed token's row at this step."""
        return self.token if self.step.stack == "encoder" else self.position

    @property
    def index(self) -> int:
        """Returns the step's place in the order."""
        return self.order.index(self.step)


def follow_picks() -> None:
    """Takes over a click on the map, which reports in the run itself, not through a callback."""
    state = st.session_state.get(MAP)
    picked = state.get("picked") if isinstance(state, dict) else None
    if isinstance(picked, list) and len(picked) == 2 and isinstance(picked[0], str) and isinstance(picked[1], int):
        _stand_at(picked[0], max(0, picked[1]))


def place(context: Decoded) -> tuple[Place, tuple[str, ...]]:
    """Returns where the visitor stands in this model and sentence, and a sentence for each choice that was replaced."""
    chosen, problems = PAGE.settle(context.view).fit(context)
    assert chosen.token is not None and chosen.step is not None
    model = context.lab.model
    step = find_step(model, chosen.pass_step)
    layer = chosen.recurrent_layer if isinstance(model, RecurrentModel) else context.view.layer or 0
    layer = min(layer, (step.n_layers if step.in_layer else n_layers(model, step.stack)) - 1)
    said = (*PAGE.said(), *(problem.sentence for problem in problems))
    return Place(step, steps(model), layer, context.head, chosen.token, chosen.step), said


def followed(inspection: Inspection) -> tuple[int, int]:
    """Returns the token and the decoding step to follow at first: the pronoun where there is one, else the middle."""
    step = wording.pronoun_step(inspection)
    it = [i for i, piece in enumerate(inspection.source_tokens) if wording.bare(piece) == "it"]
    return (
        it[0] if it else _middle(inspection.source_tokens),
        _middle(inspection.target_tokens) if step is None else step,
    )


def go_to(context: PageContext, step: Step, layer: int) -> None:
    """Opens a step of a layer, of the last one where its stack has fewer; for callbacks."""
    _stand_at(str(step), min(layer, n_layers(context.lab.model, step.stack) - 1))


def _stand_at(step: str, layer: int) -> None:
    """Opens a step; its layer is counted in its own stack, which a Transformer's kind of attention names."""
    PAGE.change(pass_step=step)
    if isinstance(loading.get_lab(session().view.model).model, RecurrentModel):
        if ".recurrent." in step:
            PAGE.change(recurrent_layer=layer)
        return
    kind = session().view.kind
    if step.startswith("encoder"):
        kind = "encoder_self"
    elif step.startswith("decoder.cross"):
        kind = "cross"
    elif step.startswith("decoder.self") or kind == "encoder_self":
        kind = "decoder_self"
    choose(kind=kind, layer=layer)


def _middle(tokens: Sequence[str]) -> int:
    return max(0, (len(tokens) - 1) // 2)
