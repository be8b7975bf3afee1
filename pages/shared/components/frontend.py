"""Code that the components share: reading their files, describing tokens, and colours by kind of attention."""

import base64
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy import ndarray

from transformer.figures.labels import SPECIAL_TOKENS, WORD_START, readable
from transformer.figures.theme import kind_colour
from transformer.model.kinds import KindName
from transformer.text.tokenizer import SPECIALS, UNK

NONE_UNSEEN: Mapping[int, str] = MappingProxyType({})

_FOLDER = Path(__file__).parent


def text_of(*names: str) -> str:
    """The named files of this folder, one after the other."""
    return "\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in names)


def describe_tokens(
    tokens: Sequence[str], *, changed: Collection[int] = (), unseen: Mapping[int, str] = NONE_UNSEEN
) -> list[dict[str, Any]]:
    """Describes each token for the scripts; an unseen one shows the word as typed and says what is read instead."""
    return [
        {
            "text": readable(unseen[index]) if _hidden(index, token, unseen) else _without_mark(readable(token)),
            "starts_word": _starts_word(token),
            "special": token in SPECIAL_TOKENS and not _hidden(index, token, unseen),
            "read_as": token if _hidden(index, token, unseen) else "",
            "changed": index in changed,
            "unseen": index in unseen,
        }
        for index, token in enumerate(tokens)
    ]


def packed(values: ndarray) -> str:
    """The array's bytes, row by row, as base64: lists of numbers would be many times as long."""
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")


def colours_of(kind: KindName) -> dict[str, str]:
    """The kind's colour on paper and in the dark."""
    return {"light": kind_colour(kind), "dark": kind_colour(kind, dark=True)}


def _hidden(index: int, token: str, unseen: Mapping[int, str]) -> bool:
    """Tells whether the token hides the word that was typed."""
    return token == SPECIALS[UNK] and index in unseen


def _starts_word(token: str) -> bool:
    return token.startswith(WORD_START)


def _without_mark(token: str) -> str:
    return token[len(WORD_START) :] if _starts_word(token) else token
