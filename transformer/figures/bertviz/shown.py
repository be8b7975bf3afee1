"""The attention that a view of bertviz is given, its limits, and the document that comes out.

bertviz makes an element of the page for every weight that it draws, so each view has a limit, and says when it bites.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.labels import readable

MAX_TOKENS = 64
"""The most rows and columns."""
MAX_NUMBERS = 80_000
"""The most numbers in one document; where there are more, it holds only the chosen layer."""

_CHARACTER_WIDTH = 9.2
_HEAD_COLOURS = (
    *("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd"),
    *("#8c564b", "#e377c2", "#bcbd22", "#17becf"),
)
"""The usual ten without grey, which means that a head is off."""


@dataclass(frozen=True)
class Shown:
    """The input of a view: attention of all heads, the tokens at its sides, and a notice."""

    weights: Float[ndarray, "layer head query key"]
    queries: Sequence[str]
    keys: Sequence[str]
    layer: int = 0
    """The layer that is shown first, or alone."""
    head: int = 0
    off: frozenset[tuple[int, int]] = frozenset()
    """(layer, head) of the heads that are switched off: drawn in grey."""
    at_mean: frozenset[tuple[int, int]] = frozenset()
    """(layer, head) of the heads at their mean over the validation set: in grey, too."""
    said: str = ""

    def limited(self, n_tokens: int) -> "Shown":
        """Returns the same with at most so many rows and columns."""
        longest = max(len(self.queries), len(self.keys))
        if longest <= n_tokens:
            return self
        return replace(
            self,
            weights=self.weights[:, :, :n_tokens, :n_tokens],
            queries=self.queries[:n_tokens],
            keys=self.keys[:n_tokens],
            said=f"Shown: the first {n_tokens} of {longest} tokens. {self.said}".strip(),
        )

    def within(self, lines: int, n_heads: int) -> "Shown":
        """Returns the same with as many rows and columns as so many heads can draw with at most so many lines."""
        n_queries, n_keys = len(self.queries), len(self.keys)
        fitting = (n for n in range(2, MAX_TOKENS + 1) if n_heads * min(n, n_queries) * min(n, n_keys) <= lines)
        return self.limited(max(fitting, default=1))

    def layers_within(self, numbers: int) -> tuple[list[int], str]:
        """Returns all layers, or the chosen one if all would be too much, with a sentence that says so."""
        if numbers <= MAX_NUMBERS:
            return list(range(len(self.weights))), ""
        return [self.layer], f"Only layer {self.layer} fits in one drawing; choose another above."

    def attention(self, layers: Sequence[int]) -> dict[str, Any]:
        """Returns these layers in the form that bertviz's script reads. Weights are rounded to four decimals."""
        return {
            "name": None,
            "attn": rounded(self.weights[list(layers)]),
            "left_text": [readable(token) for token in self.queries],
            "right_text": [readable(token) for token in self.keys],
        }

    def paints(self, dark: bool) -> dict[str, Any]:
        """Returns the colours of heads, which of them are grey ("off"), and which of these are at their mean."""
        return {
            "off": sorted([layer, head] for layer, head in self.off | self.at_mean),
            "at_mean": sorted([layer, head] for layer, head in self.at_mean),
            "grey": theme.palette(dark).quiet,
            "colours": _HEAD_COLOURS,
        }

    @property
    def column(self) -> int:
        """The pixels that the longest token needs."""
        longest = max(len(readable(token)) for token in (*self.queries, *self.keys))
        return max(110, round(16 + _CHARACTER_WIDTH * longest))

    def notice(self, legend: str, first: str = "") -> str:
        """Returns the text above a drawing: what is left out of it, what is grey in it, and how to use it."""
        grey = (
            _grey("switched off, so its output is not used", self.off),
            _grey("at its mean over the validation set, so its attention is not used", self.at_mean),
        )
        return " ".join(filter(None, (first, self.said, *grey, legend)))


@dataclass(frozen=True)
class View:
    """A document and its height in pixels."""

    html: str
    height: int

    def parameters(self) -> dict[str, Any]:
        """Returns the parameters of bertviz's script in it, read as a browser reads them."""
        found = re.search(r"window.bertviz_params = (\{.*?\});</script>", self.html)
        assert found, "every document has its parameters"
        return json.loads(found[1])

    def attention(self) -> dict[str, Any]:
        """Returns weights ("attn"), tokens ("left_text", "right_text"), and the neuron view's "queries" and "keys"."""
        found = self.parameters()["attention"]
        return found["all"] if isinstance(found, dict) else found[0]


def rounded(values: ndarray) -> list:
    """Returns nested lists of four decimals; NaN becomes 0."""
    return np.nan_to_num(values.astype(float)).round(4).tolist()


def _grey(why: str, heads: frozenset[tuple[int, int]]) -> str:
    named = ", ".join(f"{layer} · {head}" for layer, head in sorted(heads))
    return f"Grey: {why} (layer · head {named})." if heads else ""
