"""What a visitor chose on the timeline, as one frozen value that a URL can carry. No Streamlit here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from transformer.config import ModelConfig
from transformer.lab import AttentionKind

Rows = Literal["own", "forced"]
"""Whose tokens the decoder reads: those it wrote itself, or those of the newest output, the same at every step."""
PARAMETERS = ("film", "film_kind", "film_layer", "film_head", "film_step", "film_rows")
LONGEST_IN_URL = 1_000


@dataclass(frozen=True, kw_only=True)
class TimelineView:
    """Everything chosen on the timeline. None and empty values mean what suits best."""

    text: str = ""
    """Empty: the run's first pinned sentence, or an example of its corpus."""
    kind: AttentionKind = AttentionKind.CROSS
    layer: int | None = None
    """None: the last layer of the stack."""
    head: int | None = None
    """None: head 0."""
    step: int | None = None
    """None: the newest weights, whatever step they are of."""
    rows: Rows = "own"

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", AttentionKind(self.kind))  # links and controls give its name

    def parameters(self) -> dict[str, str]:
        """The query parameters that `read` turns into this view again; defaults are left out."""
        values = {
            "film": self.text if len(self.text) <= LONGEST_IN_URL else "",
            "film_kind": self.kind if self.kind != "cross" else "",
            "film_layer": self.layer,
            "film_head": self.head,
            "film_step": self.step,
            "film_rows": self.rows if self.rows != "own" else "",
        }
        return {name: str(value) for name, value in values.items() if value not in (None, "")}

    def n_layers(self, config: ModelConfig) -> int:
        """Layers of the stack in which the chosen kind of attention stands."""
        return self.kind.n_layers(config)

    def place(self, config: ModelConfig) -> tuple[int, int]:
        """Layer and head, those that suit best where none was chosen."""
        return (self.n_layers(config) - 1 if self.layer is None else self.layer), self.head or 0


def read(parameters: Mapping[str, Sequence[str]]) -> tuple[TimelineView, tuple[str, ...]]:
    """The view that these query parameters describe, and a sentence for each that makes no sense."""
    problems: list[str] = []
    kinds, rows = tuple(AttentionKind), get_args(Rows)

    def one(name: str, parse: Callable[[str], object | None], expected: str) -> object | None:
        values = parameters.get(name, ())
        value = parse(values[-1]) if values else None
        if values and value is None:
            problems.append(f"The link asks for {name.replace('_', ' ')} “{values[-1][:40]}”; {expected}.")
        return value

    found = {
        "text": one("film", str.strip, ""),
        "kind": one("film_kind", lambda v: v if v in kinds else None, f"the kinds are {', '.join(kinds)}"),
        "layer": one("film_layer", _number, "layers are numbered from 0"),
        "head": one("film_head", _number, "heads are numbered from 0"),
        "step": one("film_step", _number, "a step is a whole number"),
        "rows": one("film_rows", lambda v: v if v in rows else None, f"rows are {' or '.join(rows)}"),
    }
    chosen = {name: value for name, value in found.items() if value is not None}
    return TimelineView(**chosen), tuple(problems)  # type: ignore[arg-type]


def fit(view: TimelineView, config: ModelConfig, run_id: str) -> tuple[TimelineView, tuple[str, ...]]:
    """The nearest view that this model can show, and a sentence for each thing that had to give way."""
    problems: list[str] = []
    n_layers = view.n_layers(config)
    if view.layer is not None and view.layer >= n_layers:
        stack = view.kind.stack
        problems.append(
            f"Layer {view.layer} does not exist: the {stack} of {run_id} has layers 0 to {n_layers - 1}. "
            f"Layer {n_layers - 1} is shown."
        )
        view = replace(view, layer=None)
    if view.head is not None and view.head >= config.n_heads:
        problems.append(
            f"Head {view.head} does not exist: {run_id} has heads 0 to {config.n_heads - 1} in every layer. "
            "Head 0 is shown."
        )
        view = replace(view, head=None)
    return view, tuple(problems)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else None
