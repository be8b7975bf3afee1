"""The visitor's choices as one frozen value that a URL can carry. No Streamlit here: parsing, fitting, printing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from pages.shared.interventions import intervention_names
from transformer.analysis.attention.entropy import Unit
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

Picture = Literal["matrix", "lines", "bertviz", "bertviz-model", "bertviz-neuron"]
Shown = Literal["weights", "norms", "rollout", "entropy"]
Combine = Literal["one", "mean", "max"]
Specials = Literal["shown", "hidden", "renormalised"]
Click = Literal["open", "forbid"]
Place = Literal[
    "model",
    "text",
    "kind",
    "layer",
    "head",
    "picture",
    "show",
    "unit",
    "combine",
    "over",
    "threshold",
    "specials",
    "words",
    "cell",
    "click",
    "switch",
]
"""A query parameter, which is also the control beside which a problem with it is told."""

LONGEST_IN_URL = 1_000
"""Characters of a sentence that still go into the URL."""


@dataclass(frozen=True)
class Problem:
    """A sentence about something that could not be used, and the control beside which it belongs."""

    place: Place
    sentence: str


@dataclass(frozen=True, kw_only=True)
class View:
    """Everything chosen on the pages that look at one sentence. Empty values mean "what suits best"."""

    model: str = ""
    text: str = ""
    kind: AttentionKind = AttentionKind.CROSS
    layer: int | None = None
    """None: the last layer."""
    head: int | None = None
    """None: the average of the layer's heads where a page can show that, else head 0."""
    picture: Picture = "matrix"
    show: Shown = "weights"
    """What a picture draws: weights, norms of contributions, rollout, or row entropy."""
    unit: Unit = "nats"
    """Of the entropy."""
    combine: Combine = "one"
    """The chosen head alone, or the mean or the largest value of those in `over`."""
    over: tuple[int, ...] = ()
    """The heads that are combined; none: all of the layer."""
    threshold: float = 0.0
    """Cells below it are not drawn. Of norms: as a fraction of the largest."""
    specials: Specials = "shown"
    """Rows and columns of start and end marks: shown, left out, or left out with rows scaled to sum to 1 again."""
    words: bool = False
    """Whether the pieces of a word are merged into one row and one column."""
    cell: tuple[int, int] | None = None
    """The query and the key whose cell is taken apart; None: no cell."""
    click: Click = "open"
    """What a click on a cell does: it takes the cell apart, or forbids it and allows it again."""
    switches: tuple[Intervention, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", AttentionKind(self.kind))  # links and controls give its name

    @property
    def forbids(self) -> bool:
        """Tells whether a click masks an entry: in a matrix whose cells are one query and one key each."""
        cells = self.picture == "matrix" and self.show in ("weights", "norms") and not self.words
        return self.click == "forbid" and cells

    def parameters(self) -> dict[str, str | list[str]]:
        """The query parameters that `read` turns into this view again; defaults are left out."""
        found: dict[str, str | list[str]] = {"model": self.model}
        if len(self.text) <= LONGEST_IN_URL:
            found["text"] = self.text
        for name in ("kind", "layer", "head", "picture", "show", "unit", "combine", "specials", "click"):
            if getattr(self, name) != getattr(_DEFAULT, name):
                found[name] = str(getattr(self, name))
        if self.over:
            found["over"] = ",".join(map(str, self.over))
        if self.threshold:
            found["threshold"] = f"{self.threshold:g}"
        if self.words:
            found["words"] = "merged"
        if self.cell is not None:
            found["cell"] = f"{self.cell[0]},{self.cell[1]}"
        if self.switches:
            found["switch"] = [str(spec) for spec in self.switches]
        return found

    def without(self, spec: Intervention) -> "View":
        """Returns the view without one switch."""
        return replace(self, switches=tuple(s for s in self.switches if s != spec))

    def at_head(self, kind: AttentionKind, layer: int | None, head: int | None) -> "View":
        """Returns the view with the same sentence and switches that shows the plain weights of one head."""
        plain = replace(self, picture="matrix", show="weights", combine="one", cell=None)
        return replace(plain, kind=kind, layer=layer, head=head)

    def heads_off(self, stack: str, layer: int, sublayer: str) -> frozenset[int]:
        """The heads of one attention block that are off."""
        return frozenset(
            head for *where, head in heads_set_to(self.switches, ("zero",)) if where == [stack, layer, sublayer]
        )


_DEFAULT = View()
PARAMETERS: tuple[str, ...] = get_args(Place)


@dataclass
class _Reader:
    parameters: Mapping[str, Sequence[str]]
    problems: list[Problem] = field(default_factory=list)

    def one(self, name: Place, parse: Callable[[str], object | None], expected: str) -> dict[str, object]:
        values = self.parameters.get(name, ())
        if not values:
            return {}
        value = parse(values[-1])
        if value is None:
            self.problems.append(Problem(name, f"The link asks for {name} “{_short(values[-1])}”; {expected}."))
            return {}
        return {name: value}

    def word(self, name: Place, words: Sequence[str], expected: str) -> dict[str, object]:
        return self.one(name, lambda v: v if v in words else None, f"{expected} {_listed(words)}")


def read(parameters: Mapping[str, Sequence[str]]) -> tuple[View, tuple[Problem, ...]]:
    """The view that these query parameters describe, and a sentence for each that makes no sense."""
    reader = _Reader(parameters)
    found = (
        reader.one("model", str, "")
        | reader.one("text", str, "")
        | reader.word("kind", tuple(AttentionKind), "the kinds are")
        | reader.one("layer", _number, "layers are numbered from 0")
        | reader.one("head", _number, "heads are numbered from 0")
        | reader.word("picture", get_args(Picture), "the pictures are")
        | reader.word("show", get_args(Shown), "what can be shown is")
        | reader.word("unit", get_args(Unit), "the units are")
        | reader.word("combine", get_args(Combine), "the ways are")
        | reader.one("over", _numbers, "heads are numbers with commas, like 0,2")
        | reader.one("threshold", _fraction, "a threshold lies between 0 and 1")
        | reader.word("specials", get_args(Specials), "the choices are")
        | reader.one("words", lambda v: True if v == "merged" else None, "words are merged or not named at all")
        | reader.one("cell", _cell, "a cell is its row and its column, like 2,5")
        | reader.word("click", get_args(Click), "a click can")
    )
    switches: list[Intervention] = []
    for text in parameters.get("switch", ()):
        try:
            switches.append(parse_intervention(text))
        except ValueError:
            sentence = (
                f"The link has a switch “{_short(text)}” that cannot be read, so it is left out; "
                "one looks like off:decoder.0.cross:1,3 or mask:causal or positions:encoder:remove."
            )
            reader.problems.append(Problem("switch", sentence))
    reader.problems += [Problem("switch", note) for note in superseded_notes(switches)]
    return View(**found, switches=merged(switches)), tuple(reader.problems)  # type: ignore[arg-type]


def fit(view: View, lab: Lab) -> tuple[View, tuple[Problem, ...]]:
    """The nearest view that this model can show, and a sentence for each thing that had to give way."""
    problems: list[Problem] = []
    config = lab.model.config
    stack, n_layers = view.kind.stack, view.kind.n_layers(config)
    layer, head = view.layer, view.head
    if layer is not None and layer >= n_layers:
        layer = n_layers - 1
        problems.append(
            Problem(
                "layer",
                f"Layer {view.layer} does not exist: the {stack} of {lab.name} has layers 0 to {n_layers - 1}. "
                f"Layer {n_layers - 1} is shown.",
            )
        )
    if head is not None and head >= config.n_heads:
        head = None
        problems.append(
            Problem(
                "head",
                f"Head {view.head} does not exist: {lab.name} has heads 0 to {config.n_heads - 1} in every layer.",
            )
        )
    over = tuple(h for h in view.over if h < config.n_heads)
    if over != view.over:
        problems.append(
            Problem(
                "over",
                f"Of the heads {_listed(list(map(str, view.over)))} only those that exist are combined: {lab.name} has "
                f"heads 0 to {config.n_heads - 1} in every layer.",
            )
        )
    kept: list[Intervention] = []
    for spec in view.switches:
        try:
            spec.sites(lab.model)
            kept.append(spec)
        except ValueError as error:
            problems.append(Problem("switch", intervention_names.left_out(spec, error)))
    return replace(view, layer=layer, head=head, over=over, switches=merged(kept)), tuple(problems)


def with_heads(view: View, stack: str, layer: int, sublayer: str, off: frozenset[int]) -> View:
    """Returns the view with exactly these heads of one sublayer off."""
    others = [
        part
        for spec in view.switches
        for part in spec.parts()
        if not any(where == [stack, layer, sublayer] for *where, _ in heads_set_to([part], ("zero",)))
    ]
    if off:
        others.append(AblateHeads(stack, layer, sublayer, tuple(sorted(off))))  # type: ignore[arg-type]
    return replace(view, switches=merged(others))


def with_cell(view: View, layer: int, query: int, key: int) -> View:
    """Returns the view with this entry of the chosen kind masked, or allowed again if a switch masks it."""
    stack, sublayer = view.kind.where
    spec = MaskEntry(stack, layer, sublayer, query, key)
    return view.without(spec) if spec in view.switches else replace(view, switches=merged([*view.switches, spec]))


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else None


def _numbers(text: str) -> tuple[int, ...] | None:
    numbers = {_number(part) for part in text.split(",")}
    return None if None in numbers else tuple(sorted(numbers))  # type: ignore[type-var, return-value]


def _fraction(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return round(value, 4) if 0 <= value <= 1 else None


def _cell(text: str) -> tuple[int, int] | None:
    numbers = [_number(part) for part in text.split(",")]
    return (numbers[0], numbers[1]) if len(numbers) == 2 and None not in numbers else None  # type: ignore[return-value]


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"
