"""Positions that a stack adds to its embeddings, changed."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from transformer.interventions.protocol import Applied, Intervention, are_whole_numbers
from transformer.model.positions import LearnedPositions, SinusoidalPositions, sinusoidal_table
from transformer.model.seq2seq import Seq2Seq
from transformer.model.taps import Site, Stack
from transformer.model.transformer import Transformer

PositionEdit = Literal["remove", "shuffle", "shift", "scale", "same"]
LARGEST_SCALE = 100


@dataclass(frozen=True)
class EditPositions(Intervention):
    """Changes what is added to the embeddings of one stack to say where each token stands.

    Prints `positions:encoder:remove`, `positions:encoder:shuffle:7` (a seed), `positions:encoder:shift:3`,
    `positions:decoder:scale:0.5` or `positions:encoder:same:2,5`.
    """

    stack: Stack
    edit: PositionEdit
    value: int | float = 0
    """The number of positions of a shift, the factor of a scale, or the seed of a shuffle."""
    tokens: tuple[int, ...] = ()
    """The two tokens that get the position of the first of them (`same`)."""

    prefix = "positions"
    usage = "`positions:encoder:remove`; `:shuffle:7` (a seed), `:shift:3`, `:scale:0.5`, `:same:2,5` (in one place)"

    @classmethod
    def parse(cls, text: str) -> "EditPositions | None":
        match text.split(":"):
            case [_, ("encoder" | "decoder") as stack, "remove"]:
                return cls(stack, "remove")
            case [_, ("encoder" | "decoder") as stack, "same", tokens] if are_whole_numbers(tokens):
                return cls(stack, "same", tokens=tuple(sorted({int(n) for n in tokens.split(",")})))
            case [_, ("encoder" | "decoder") as stack, ("shuffle" | "shift") as edit, n] if are_whole_numbers(n):
                return None if "," in n else cls(stack, edit, int(n))
            case [_, ("encoder" | "decoder") as stack, "scale", factor]:
                try:
                    value = float(factor)
                except ValueError:
                    return None
                return cls(stack, "scale", value) if math.isfinite(value) else None
        return None

    @classmethod
    def among(cls, specs: Iterable[Intervention]) -> "list[EditPositions]":
        """Returns those of these interventions that change positions, for a form that shows how."""
        return [spec for spec in specs if isinstance(spec, cls)]

    def __str__(self) -> str:
        value = str(int(self.value)) if self.value == int(self.value) else repr(self.value)
        value = ",".join(map(str, self.tokens)) if self.edit == "same" else value
        return f"positions:{self.stack}:{self.edit}" + ("" if self.edit == "remove" else f":{value}")

    @property
    def needs_recomputation(self) -> bool:
        """True where a row depends on its place: a cached decoder sees its newest position alone."""
        return self.stack == "decoder" and self.edit in ("shift", "same")

    def sites(self, model: Seq2Seq) -> tuple[Site, ...]:
        """Returns the site of the positions; ValueError where the model adds none or nothing would change."""
        site = Site(self.stack, None, None, "positions")
        if site not in model.sites():
            kind = f": it has {model.config.positions} positions" if isinstance(model, Transformer) else ""
            raise ValueError(f"this model adds no positions to its embeddings{kind}")
        rows = model.config.max_length
        match self.edit:
            case "shuffle" if self.stack == "decoder":
                raise ValueError("the decoder's positions cannot be shuffled: its length is known only at the end")
            case "shift" if not (1 <= self.value < rows and self.value == int(self.value)):
                raise ValueError(f"a shift ({self.value:g}) must be a whole number from 1 to {rows - 1}")
            case "scale" if not 0 < self.value <= LARGEST_SCALE or self.value == 1:
                raise ValueError(f"a scale ({self.value:g}) must lie above 0, at most at {LARGEST_SCALE}, and not be 1")
            case "same" if len(set(self.tokens)) != 2 or not all(0 <= token < rows for token in self.tokens):
                raise ValueError(f"{self} must name two different tokens from 0 to {rows - 1}")
        return (site,)

    def bound(self, model: Seq2Seq, others: Sequence[Intervention] = ()) -> Applied:
        """The spec with what it needs of the model: the table, whose rows a shift looks up."""
        assert isinstance(model, Transformer), "only Transformers add positions"
        positions = (model.encoder if self.stack == "encoder" else model.decoder).embedding.positions
        assert isinstance(positions, LearnedPositions | SinusoidalPositions)
        return _PositionsOf(self, positions.table.detach(), isinstance(positions, LearnedPositions))

    def check_source(self, n_tokens: int) -> None:
        if self.edit == "same" and self.stack == "encoder" and max(self.tokens) >= n_tokens:
            raise ValueError(f"the sentence has tokens 0 to {n_tokens - 1}")

    def check_with(self, others: Sequence[Intervention]) -> None:
        if any(self.replaces(other) for other in others):
            raise ValueError(f"{self} changes positions of the {self.stack} that another switch changes already")

    def replaces(self, other: Intervention) -> bool:
        return isinstance(other, EditPositions) and other.stack == self.stack

    def apply(self, site: Site, rows: Tensor, /) -> Tensor:
        """The rows [batch length d_model], from position 0 on, changed; a shift needs `bound` first."""
        match self.edit:
            case "remove":
                return torch.zeros_like(rows)
            case "scale":
                return rows * self.value
            case "shuffle":
                return rows[:, shuffled(rows.size(1), int(self.value))]
            case "same":
                return self._same(rows)
            case "shift":
                raise AssertionError("a shift is applied through `bound`")

    @property
    def steps(self) -> frozenset[int]:
        return frozenset(self.tokens if self.stack == "decoder" and self.edit == "same" else ())

    def label(self) -> str:
        return f"{self.stack} positions · {self._edit_in_words}"

    @property
    def _edit_in_words(self) -> str:
        match self.edit:
            case "remove":
                return "removed"
            case "shuffle":
                return f"shuffled, order {self.value:g}"
            case "shift":
                return f"shifted by {self.value:g}"
            case "scale":
                return f"times {self.value:g}"
            case "same":
                first, *others = self.tokens
                return f"token {', '.join(map(str, others)) or first} stands where token {first} does"

    @property
    def notes(self) -> tuple[str, ...]:
        found = []
        if self.needs_recomputation:
            found.append(
                "What is added to a decoder token depends on its place here, so each step passes the whole prefix "
                "again, without the key/value cache. The decoder self-attention shown is the last of these passes."
            )
        if self.edit == "shift":
            found.append(
                "Shifted sinusoids follow their formula to any position. A learned table ends: what would stand past "
                "its end takes its last row."
            )
        return tuple(found)

    def _same(self, rows: Tensor) -> Tensor:
        first, second = sorted(self.tokens)
        if second >= rows.size(1):
            if self.stack == "decoder":  # not written yet
                return rows
            raise ValueError(f"token {second} does not exist: the sentence has tokens 0 to {rows.size(1) - 1}")
        rows = rows.clone()
        rows[:, second] = rows[:, first]
        return rows


def shuffled(length: int, seed: int) -> list[int]:
    """A random order of so many positions, never the one that they have (but for a single one)."""
    order = torch.randperm(length, generator=torch.Generator().manual_seed(seed)).tolist()
    return order if order != sorted(order) else order[1:] + order[:1]


@dataclass(frozen=True)
class _PositionsOf:
    spec: EditPositions
    table: Tensor
    learned: bool

    def apply(self, site: Site, rows: Tensor) -> Tensor:
        if self.spec.edit != "shift":
            return self.spec.apply(site, rows)
        k, length = int(self.spec.value), rows.size(1)
        if self.learned:  # a learned table ends: what stands past it takes its last row
            shifted = self.table[torch.arange(k, k + length, device=self.table.device).clamp(max=len(self.table) - 1)]
        else:
            shifted = sinusoidal_table(k + length, rows.size(-1), dtype=rows.dtype)[k:].to(rows.device)
        return shifted.expand_as(rows)
