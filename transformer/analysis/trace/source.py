"""The lines of this project that computed a station, read from the source at run time so that they never go stale."""

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from transformer.analysis.trace.steps import Station
from transformer.data import batches
from transformer.decoding import greedy
from transformer.model import attention, positions
from transformer.model import transformer as transformer_module
from transformer.model.attention import MultiHeadAttention
from transformer.model.layers import AddNorm, FeedForward
from transformer.model.transformer import Decoder, Embedding, Encoder, Transformer

_ROOT = Path(__file__).resolve().parents[3]
LONGEST = 9
"""Lines that still are a few."""


@dataclass(frozen=True)
class Snippet:
    """Some lines of a function."""

    file: str
    """As seen from the project's root."""
    function: str
    first: int
    """The number of its first line in the file."""
    text: str

    @property
    def last(self) -> int:
        """The number of its last line in the file."""
        return self.first + self.text.count("\n")


@cache
def lines_of(function: Callable[..., Any], begins: str, ends: str = "") -> Snippet:
    """From the first line of a function that holds `begins` to the next one that holds `ends` (none: one line).

    ValueError where there is no such line, so that a test notices when the source moved on.
    """
    function = inspect.unwrap(function)
    lines, number = inspect.getsourcelines(function)
    name = function.__qualname__
    start = next((i for i, line in enumerate(lines) if begins in line), None)
    if start is None:
        raise ValueError(f"{name} has no line with {begins!r} any more")
    stop = start if not ends else next((i for i in range(start, len(lines)) if ends in lines[i]), None)
    if stop is None:
        raise ValueError(f"{name} has no line with {ends!r} after {begins!r} any more")
    file = Path(inspect.getsourcefile(function) or "").resolve().relative_to(_ROOT)
    text = textwrap.dedent("".join(lines[start : stop + 1])).rstrip("\n")
    return Snippet(file.as_posix(), name, number + start, text)


def snippets_of(station: Station, model: Transformer) -> tuple[Snippet, ...]:
    """The lines that computed this station in this model."""
    if station.sublayer == "ffn" and station.name in ("hidden", "output"):
        return (lines_of(FeedForward.forward, "return self.outer"),)
    norm, kind = model.config.norm, model.config.positions
    forward, explicit = MultiHeadAttention.forward, attention.explicit_attention
    match station.name:
        case "ids" if station.stack == "encoder":
            return (
                lines_of(batches.encode_sources, "tokenizer.encode"),
                lines_of(batches.encode_sources, "return _padded"),
            )
        case "ids":
            begins = lines_of(greedy.token_by_token, "model.config.bos_id")
            return (begins, lines_of(greedy.token_by_token, "prefix = torch.cat"))
        case "embedding":
            return (lines_of(Embedding.forward, '"embedding"'),)
        case "positions":
            added = lines_of(Embedding.forward, "if self.positions is not None", "x = x +")
            return (added, *_table(kind))
        case "norm" | "add":
            return (lines_of(AddNorm.forward, *_ADD_NORM[norm, station.name]), *_norm_line(station, norm))
        case "qkv":
            return (*_projections(station), *[_rotation()] * (kind == "rotary" and station.sublayer == "self"))
        case "products":
            return (lines_of(explicit, "products = "),)
        case "scaled":
            return (lines_of(explicit, "scores = products"),)
        case "penalty":
            return (lines_of(positions.AlibiPositions.forward, "key =", "return"), lines_of(explicit, '"scores"'))
        case "masked":
            rule = lines_of(Transformer._target_mask, "if not", "return combine")
            where = lines_of(attention.masked_softmax, "floor =", "return")
            return (*[rule] * (station.stack == "decoder" and station.sublayer == "self"), where)
        case "weights":
            return (lines_of(explicit, "weights = masked"), lines_of(attention.masked_softmax, "return"))
        case "context":
            return (lines_of(explicit, "return offer"),)
        case "concat" | "output":
            return (lines_of(forward, "return self.output"),)
        case "layers":
            stack = Encoder if station.stack == "encoder" else Decoder
            return (lines_of(stack.forward, "for layer", "x = layer"),)
        case "final":
            return (lines_of(transformer_module._final, "return"),)
        case "logits":
            return (lines_of(Transformer.project, "return"), *_tied(model))
        case "probabilities":
            return (lines_of(greedy.Step.row_log_probs.func, "return"),)
        case _:
            raise AssertionError(f"{station} has no lines")


def _projections(station: Station) -> tuple[Snippet, ...]:
    asked, split = MultiHeadAttention._queries_keys_values, lines_of(MultiHeadAttention._split, "return x")
    if station.sublayer == "self":
        return (lines_of(asked, "joined = ", "return self._turned"), split)
    return (lines_of(asked, "q = self._split(self.query"), lines_of(asked, "k, v = map"), split)


def _rotation() -> Snippet:
    return lines_of(positions.RotaryPositions.forward, "even, odd", "turned =")


_ADD_NORM = {
    ("pre", "norm"): ('if self.placement == "pre"',),
    ("pre", "add"): ("x = self.dropout", "x = x if residual"),
    ("none", "add"): ("x = self.dropout", "x = x if residual"),
    ("post", "add"): ("x = self.dropout", "return"),
}


def _norm_line(station: Station, norm: str) -> tuple[Snippet, ...]:
    return () if norm == "none" or (norm, station.name) == ("pre", "add") else (lines_of(AddNorm._normed, "return"),)


def _table(kind: str) -> tuple[Snippet, ...]:
    if kind == "learned":
        return (lines_of(positions.LearnedPositions.forward, "return"),)
    return (lines_of(positions.sinusoidal_table, "position = ", "return"),)


def _tied(model: Transformer) -> tuple[Snippet, ...]:
    tied = model.config.tie_output
    return (lines_of(Transformer.__init__, "if config.tie_output:", "self.projection.weight"),) if tied else ()
