"""The parts that components share: their declaration, tokens, colours and arrays for scripts, and their reports."""

import base64
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import streamlit as st
from jaxtyping import Shaped
from numpy import ndarray
from streamlit.components.v2 import component

from pages.shared.texts.catalogue import Texts
from transformer.figures import theme
from transformer.figures.labels import SPECIAL_TOKENS, WORD_START, readable
from transformer.model.kinds import KindName
from transformer.text.tokenizer import SPECIALS, UNK

NONE_UNSEEN: Mapping[int, str] = MappingProxyType({})

TEXTS = Texts("components")
"""The sentences of scripts, by the scripts' names."""
_FOLDER = Path(__file__).parent
_ROOT = "<div class='root'></div>\n"

T = TypeVar("T")


@dataclass(frozen=True)
class Live:
    """The stream of a run at work that a component follows: live.js draws what comes, without the page's help."""

    address: str
    part: str
    """The name of the component's data in the stream's messages."""
    step: int
    """The step of the page's own data: older ones of the stream are not drawn."""


def declared(
    name: str, *, css: Sequence[str], js: Sequence[str], html: str = _ROOT, reports: Sequence[str] = ()
) -> Callable[..., Any]:
    """Declares a component with these files of this folder; `reports` names the values that its script reports.

    A script finds its own texts of the catalogue in `SAID`, by its name.
    """
    mount = component(f"attention_lab_{name}", html=html, css=text_of(*css), js=_said_by(js) + text_of(*js))
    return partial(mount, **{f"on_{report}_change": _rerun_only for report in reports})


def reserve(key: str, height: float) -> None:
    """Keeps room for a component, in rem: its code arrives later, and what stands below it would move."""
    name = re.sub(r"[^\w-]", "-", key.strip())
    st.html(f"<style>.st-key-{name} {{min-height: {height}rem}}</style>")


def _said_by(scripts: Sequence[str]) -> str:
    """Returns a script with the texts of others and the function that fills in values; empty where they say nothing."""
    said = {name: texts for name in map(_stem, scripts) if (texts := TEXTS.table(name))}
    return f"const SAID = {json.dumps(said, ensure_ascii=False)};\n{text_of('filled.js')}\n" if said else ""


def _stem(script: str) -> str:
    return script.removesuffix(".js")


def text_of(*names: str) -> str:
    """Returns the named files of this folder, one after the other."""
    return "\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in names)


def drawn(described: Mapping[str, Any] | None, live: Live | None = None) -> dict[str, Any]:
    """Returns the data of a component, with the stream that it follows, if any; None draws nothing before the stream
    has sent something."""
    if live is None:
        return {**(described or {})}
    return {**(described or {}), "live": asdict(live) | {"waits": described is None}}


def reported(key: str) -> Mapping[str, Any]:
    """Returns what the component with this key has reported by now."""
    state = st.session_state.get(key)
    return state if isinstance(state, dict) else {}


def picked_head(report: object, n_layers: int, n_heads: int) -> tuple[int, int] | None:
    """Returns the (layer, head) of a report; None if it does not fit the model, which may have changed since."""
    if not (isinstance(report, list) and len(report) == 2 and all(isinstance(index, int) for index in report)):
        return None
    layer, head = report
    return (layer, head) if 0 <= layer < n_layers and 0 <= head < n_heads else None


def describe_tokens(
    tokens: Sequence[str], *, changed: Collection[int] = (), unseen: Mapping[int, str] = NONE_UNSEEN
) -> list[dict[str, Any]]:
    """Describes each token for the scripts; an unseen one shows the word as typed and says what is read instead."""
    described = []
    for index, token in enumerate(tokens):
        replaced = token == SPECIALS[UNK] and index in unseen
        described.append(
            {
                "text": readable(unseen[index]) if replaced else readable(token).removeprefix(WORD_START),
                "starts_word": token.startswith(WORD_START),
                "special": token in SPECIAL_TOKENS and not replaced,
                "read_as": token if replaced else "",
                "changed": index in changed,
                "unseen": index in unseen,
            }
        )
    return described


def in_both_themes(colour: Callable[[bool], T]) -> dict[str, T]:
    """Returns what a function of `dark` gives on paper and in the dark."""
    return {"light": colour(False), "dark": colour(True)}


def colours_of(kind: KindName) -> dict[str, str]:
    """Returns the kind's colours."""
    return in_both_themes(partial(theme.kind_colour, kind))


def run_colours(index: int) -> dict[str, str]:
    """Returns the colours of the run at this place in a comparison."""
    return in_both_themes(partial(theme.run_colour, index))


def scale_colours(scale: Callable[[bool], theme.Scale]) -> dict[str, list[str]]:
    """Returns the colours of a scale from its first to its last."""
    return in_both_themes(lambda dark: [colour for _, colour in scale(dark)])


def palette_colours(name: str) -> dict[str, str]:
    """Returns the colours of this name in the palettes."""
    return in_both_themes(lambda dark: getattr(theme.palette(dark), name))


def packed(values: ndarray) -> str:
    """Returns the array's bytes, row by row, as base64: lists of numbers would be many times as long."""
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")


def packed_arrays(header: Mapping[str, Any], arrays: Sequence[ndarray]) -> bytes:
    """Returns the header's length in four bytes, the header as JSON with the arrays' `shapes`, and all values as
    float32."""
    values = [np.ascontiguousarray(array, dtype="<f4") for array in arrays]
    text = json.dumps({**header, "shapes": [list(array.shape) for array in values]}).encode()
    return len(text).to_bytes(4, "little") + text + b"".join(array.tobytes() for array in values)


def unpacked_arrays(data: bytes) -> tuple[dict[str, Any], list[ndarray]]:
    """Returns the header and the arrays of `packed_arrays`, as the browser reads them."""
    at = 4 + int.from_bytes(data[:4], "little")
    header, arrays = json.loads(data[4:at]), []
    for shape in header["shapes"]:
        count = int(np.prod(shape))
        arrays.append(np.frombuffer(data, "<f4", count, at).reshape(shape))
        at += 4 * count
    return header, arrays


def pooled(values: Shaped[ndarray, "*any row column"], side: int) -> Shaped[ndarray, "*any small_row small_column"]:
    """Returns the values with at most `side` rows and columns, each the largest of the patch that it stands for."""
    for axis in (-2, -1):
        length = values.shape[axis]
        size = min(side, length)
        values = np.maximum.reduceat(values, np.arange(size) * length // size, axis=axis)
    return values


def _rerun_only() -> None:
    """Does nothing: naming a callback tells Streamlit that the script reports a value."""
