"""Labels of tokens and numbers: every character visible, every float32 exact, nothing taken for markup."""

import unicodedata
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from jaxtyping import Float
from numpy import ndarray

WORD_START = "▁"
"""The mark of sentencepiece for "a word begins here"."""
SPECIAL_TOKENS = frozenset({"<pad>", "<s>", "</s>", "<unk>"})

LONGEST_LABEL = 18
"""The most characters on an axis; hovering gives the whole token."""

_INVISIBLE = {0x7F: "␡", 0x200B: "⟨ZWSP⟩", 0x200E: "⟨LRM⟩", 0x200F: "⟨RLM⟩", 0xFEFF: "⟨BOM⟩"}


@lru_cache(maxsize=4096)
def readable(token: str) -> str:
    """Returns the token with control and direction characters drawn as signs, so that it cannot disturb its neighbours.

    Joiners stay: emoji and several scripts are written with them.
    """
    return "".join(map(_visible, token)) or "⟨empty⟩"


def axis_labels(tokens: Iterable[str], *, quiet: str, faint: str) -> list[str]:
    """Returns a Plotly label for each token: markup escaped, long ones cut; special tokens quiet, word starts faint."""
    return [_axis_label(_cut(readable(token)), quiet, faint) for token in tokens]


def label_width(tokens: Iterable[str]) -> int:
    """Returns how many characters the widest label takes in monospace; wide ones (emoji, ideographs) count two."""
    return max((sum(map(_columns, _cut(readable(token)))) for token in tokens), default=0)


def hover_label(token: str) -> str:
    """Returns the token for a Plotly hover box, markup escaped."""
    return _escape(readable(token))


def typeset(number: str) -> str:
    """Returns the number with a minus sign in place of its hyphen."""
    return number.replace("-", "−")


def exact(value: Float[ndarray, ""] | np.float32) -> str:
    """Returns the shortest digits that read back as this very float32."""
    return str(np.float32(value))


def _visible(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code in _INVISIBLE:
        return _INVISIBLE[code]
    if unicodedata.category(character) in ("Cc", "Co", "Cs", "Zl", "Zp") or unicodedata.bidirectional(character) in (
        *("LRE", "RLE", "LRO", "RLO", "PDF"),
        *("LRI", "RLI", "FSI", "PDI"),
    ):
        return f"⟨U+{code:04X}⟩"
    return character


def _cut(label: str) -> str:
    return label if len(label) <= LONGEST_LABEL else label[: LONGEST_LABEL - 1] + "…"


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _axis_label(token: str, quiet: str, faint: str) -> str:
    if token in SPECIAL_TOKENS:
        return _coloured(_escape(token), quiet)
    if token.startswith(WORD_START):
        return _coloured(WORD_START, faint) + _escape(token[len(WORD_START) :])
    return _escape(token)


def _coloured(text: str, colour: str) -> str:
    return f'<span style="color:{colour}">{text}</span>'


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
