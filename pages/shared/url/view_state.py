"""The choices on the pages that look at one sentence, as one frozen value that a URL carries. No Streamlit here."""

from dataclasses import dataclass, replace
from typing import Literal, Self, get_args

from pages.shared.url.url_state import (
    TEXTS,
    Form,
    Parameters,
    Problem,
    Refused,
    UrlState,
    decimal,
    flag,
    param,
    several,
    whole,
)
from pages.shared.url.url_state import words as one_of
from transformer.analysis.attention.aggregation import Unit
from transformer.config import ModelConfig
from transformer.interventions import (
    AblateHeads,
    Intervention,
    MaskEntry,
    heads_set_to,
    merged,
    parse_intervention,
    superseded_notes,
)
from transformer.lab import AttentionKind, Lab
from transformer.model.seq2seq import attention_layers
from transformer.text.pairs import clean_text

Picture = Literal["matrix", "lines", "bertviz", "bertviz-model", "bertviz-neuron"]
Shown = Literal["weights", "norms", "rollout", "entropy"]
OF_ANY_MODEL: tuple[Shown, ...] = ("weights", "entropy")
"""The quantities that can be shown of every model with attention; the others need a Transformer's sublayers."""
Combine = Literal["one", "mean", "max"]
Specials = Literal["shown", "hidden", "renormalised"]
Click = Literal["open", "forbid"]

LONGEST_IN_URL = 1_000
"""Characters of a sentence that still go into the URL."""
_INDEX = whole(0, 99_999)


def _read_cell(text: str) -> tuple[int, int]:
    row, _, column = text.partition(",")
    try:
        return _INDEX.read(row), _INDEX.read(column)
    except Refused:
        raise Refused(TEXTS("expected.cell")) from None


def _read_switch(text: str) -> Intervention:
    try:
        return parse_intervention(text)
    except ValueError as error:
        raise Refused(str(error)) from error


def _pictures(_: object, lab: Lab) -> tuple[Picture, ...]:
    return get_args(Picture) if isinstance(lab.model.config, ModelConfig) else ("matrix", "lines", "bertviz")


def _quantities(_: object, lab: Lab) -> tuple[Shown, ...]:
    return get_args(Shown) if isinstance(lab.model.config, ModelConfig) else OF_ANY_MODEL


@dataclass(frozen=True, kw_only=True)
class View(UrlState):
    """Everything chosen on the pages that look at one sentence. Empty values mean "what suits best"."""

    model: str = param("", Form(str), always=True)
    text: str = param("", Form(clean_text, lambda text: text if len(text) <= LONGEST_IN_URL else None), always=True)
    kind: AttentionKind = param(
        AttentionKind.CROSS,
        one_of(*AttentionKind),
        offered=lambda _, lab: tuple(attention_layers(lab.model)) or tuple(AttentionKind),
        absent="kind",
    )
    layer: int | None = param(
        None,
        _INDEX,
        resets=("model",),
        offered=lambda view, lab: range(attention_layers(lab.model).get(view.kind, 1)),
        nearest=True,
        absent="layer",
    )
    """The layer; None for the last one. Which head does what depends on the model, so another one starts anew."""
    head: int | None = param(
        None,
        _INDEX,
        resets=("model",),
        offered=lambda _, lab: range(lab.model.config.n_heads),
        absent="head",
    )
    """The head; None for the average of the layer's heads where a page can show that, else head 0."""
    picture: Picture = param("matrix", one_of(*get_args(Picture)), offered=_pictures, absent="picture")
    show: Shown = param("weights", one_of(*get_args(Shown)), offered=_quantities, absent="quantity")
    """The quantity that a picture draws: weights, norms of contributions, rollout, or row entropy."""
    unit: Unit = param("nats", one_of(*get_args(Unit)))
    """The unit of the entropy."""
    combine: Combine = param("one", one_of(*get_args(Combine)), resets=("head",))
    """The chosen head alone, or the mean or the largest value of those in `over`."""
    over: tuple[int, ...] = param(
        (),
        several(_INDEX),
        offered=lambda _, lab: range(lab.model.config.n_heads),
        absent="heads",
    )
    """The heads that are combined; none: all of the layer."""
    threshold: float = param(0.0, decimal(0, 1))
    """Entries below it are not drawn. For norms: a fraction of the largest."""
    specials: Specials = param("shown", one_of(*get_args(Specials)))
    """Rows and columns of start and end marks: shown, left out, or left out with rows scaled to sum to 1 again."""
    words: bool = param(False, flag("merged"))
    """True if the pieces of a word are merged into one row and one column."""
    cell: tuple[int, int] | None = param(
        None, Form(_read_cell, lambda cell: f"{cell[0]},{cell[1]}"), resets=("model", "text", "kind")
    )
    """The query and the key of the entry that is explained; None: no entry."""
    click: Click = param("open", one_of(*get_args(Click)))
    """The effect of a click on an entry: explains it, or forbids it and allows it again."""
    switches: tuple[Intervention, ...] = param((), Form(_read_switch), name="switch", many=tuple, nonsense="switch")

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", AttentionKind(self.kind))  # links and controls give its name

    @classmethod
    def read(cls, parameters: Parameters, base: UrlState | None = None) -> tuple[Self, tuple[Problem, ...]]:
        """Returns the view with its switches merged, and a problem for each value that could not be taken."""
        view, problems = super().read(parameters, base)
        notes = tuple(Problem("switch", note) for note in superseded_notes(view.switches))
        return replace(view, switches=merged(view.switches)), problems + notes

    @property
    def bertviz(self) -> bool:
        """Tells whether bertviz draws the picture."""
        return self.picture.startswith("bertviz")

    @property
    def forbids(self) -> bool:
        """Tells whether a click masks an entry: in a matrix whose cells are one query and one key each."""
        cells = self.picture == "matrix" and self.show in ("weights", "norms") and not self.words
        return self.click == "forbid" and cells

    def without(self, spec: Intervention) -> Self:
        """Returns the view without one switch."""
        return replace(self, switches=tuple(s for s in self.switches if s != spec))

    def at_head(self, kind: AttentionKind, layer: int | None, head: int | None) -> Self:
        """Returns the view with the same sentence and switches that shows the plain weights of one head."""
        plain = replace(self, picture="matrix", show="weights", combine="one", cell=None)
        return replace(plain, kind=kind, layer=layer, head=head)

    def heads_off(self, stack: str, layer: int, sublayer: str) -> frozenset[int]:
        """Returns the heads of one attention sublayer that are off."""
        return frozenset(
            head for *where, head in heads_set_to(self.switches, ("zero",)) if where == [stack, layer, sublayer]
        )

    def with_heads_off(self, stack: str, layer: int, sublayer: str, off: frozenset[int]) -> Self:
        """Returns the view with exactly these heads of one sublayer off."""
        others = [
            part
            for spec in self.switches
            for part in spec.parts()
            if not any(where == [stack, layer, sublayer] for *where, _ in heads_set_to([part], ("zero",)))
        ]
        if off:
            others.append(AblateHeads(stack, layer, sublayer, tuple(sorted(off))))  # type: ignore[arg-type]
        return replace(self, switches=merged(others))

    def with_entry_flipped(self, layer: int, query: int, key: int) -> Self:
        """Returns the view with this entry of the chosen kind masked, or allowed again if a switch masks it."""
        stack, sublayer = self.kind.where
        spec = MaskEntry(stack, layer, sublayer, query, key)
        return self.without(spec) if spec in self.switches else replace(self, switches=merged([*self.switches, spec]))
