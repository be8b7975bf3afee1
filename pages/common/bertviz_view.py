"""bertviz's head view as one HTML document that needs no network. Show it with `st.iframe`."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import torch

from transformer.figures import theme
from transformer.figures.labels import readable
from transformer.lab import Attention, AttentionKind, Inspection

MAX_TOKENS = 64
"""Rows and columns shown at most: the view draws a line for every weight of every head."""

_STATIC = Path(__file__).parents[2] / "static"
_SCRIPTS = ("jquery-2.2.4.min.js", "d3-5.16.0.min.js")
_REQUIRE = re.compile(r'<script src="https://cdnjs[^"]+require[^"]+"></script>')
_CDN_PATHS = re.compile(r"require\.config\(\{.*?\}\);", re.DOTALL)
_RANDOM_ID = re.compile(r"bertviz-[0-9a-f]{32}")
_TITLED_SELECT = re.compile(r'Layer: (<select id="layer"></select>)')
# bertviz loads its libraries through require.js; here both are already on the page.
_SHIM = "window.requirejs = (names, run) => run(window.jQuery, window.d3);"
# bertviz writes the tokens into a script element, where "</script>" would end it. So "<" travels as a character that
# `readable` lets no token hold, and is put back as JavaScript's own escape.
_LESS_THAN = "\ue000"
_CHARACTER_WIDTH = 9.2


def head_view_html(inspection: Inspection, kind: AttentionKind, *, dark: bool = False) -> str:
    """bertviz's head view of one kind of attention in every layer, queries left and keys right.

    The same inspection gives the same text, so it can be cached. Weights are rounded to four decimals; sentences
    are cut to `MAX_TOKENS`, and the document says so. Its height is `head_view_height`.
    """
    from bertviz import head_view  # half a second, and only this page's visitors need it

    attention = inspection.attention(kind)
    queries, keys = _labels(attention.queries), _labels(attention.keys)
    weights = attention.weights[:, :, : len(queries), : len(keys)]
    layers = [torch.tensor(layer)[None].double().round(decimals=4) for layer in weights]
    options = {"html_action": "return", "prettify_tokens": False}
    if kind == "cross":
        view = head_view(cross_attention=layers, encoder_tokens=keys, decoder_tokens=queries, **options)
    else:
        view = head_view(attention=layers, tokens=keys, **options)
    return _document(view.data, _cut_notice(attention), _column_width(queries + keys), dark)


def head_view_height(inspection: Inspection, kind: AttentionKind) -> int:
    """The pixels that the document of `head_view_html` needs."""
    attention = inspection.attention(kind)
    rows = min(MAX_TOKENS, max(len(attention.queries), len(attention.keys)))
    return 150 + 23 * rows


def _labels(tokens: Sequence[str]) -> list[str]:
    return [readable(token).replace("<", _LESS_THAN) for token in tokens[:MAX_TOKENS]]


def _column_width(labels: Sequence[str]) -> int:
    """bertviz's columns are 110 pixels wide, and cut longer tokens off at the window's edge."""
    return max(110, round(16 + _CHARACTER_WIDTH * max(map(len, labels))))


def _cut_notice(attention: Attention) -> str:
    longest = max(len(attention.queries), len(attention.keys))
    if longest <= MAX_TOKENS:
        return ""
    return f"<p>Shown: the first {MAX_TOKENS} of {longest} tokens.</p>"


def _document(view: str, notice: str, column_width: int, dark: bool) -> str:
    view = _REQUIRE.sub("", view)
    view = _CDN_PATHS.sub("", view)
    view = _RANDOM_ID.sub("bertviz", view)
    view = _TITLED_SELECT.sub(r"<label>Layer \1</label>", view)
    view = view.replace("const BOXWIDTH = 110;", f"const BOXWIDTH = {column_width};")
    view = view.replace("\\ue000", "\\u003c")
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>bertviz head view</title>'
        f"<style>{_style(dark)}</style>{_libraries()}<body>{notice}{view}</body></html>"
    )


@cache
def _libraries() -> str:
    texts = [(_STATIC / name).read_text(encoding="utf-8") for name in _SCRIPTS]
    return "".join(f"<script>{text}</script>" for text in (*texts, _SHIM))


def _style(dark: bool) -> str:
    colours = theme.palette(dark)
    return f"""
:root {{ color-scheme: {"dark" if dark else "light"}; }}
body {{ margin: 0; background: {colours.background}; color: {colours.text}; font: 14px {theme.FONT}; }}
#bertviz {{ font-family: {theme.FONT} !important; }}
#vis {{ margin-top: 16px; }}
p {{ color: {colours.quiet}; }}
svg text {{ fill: {colours.text}; font-family: {theme.MONOSPACE}; }}
.background {{ fill: {colours.line}; }}
select {{ font: inherit; }}
select:focus-visible {{ outline: 2px solid {colours.accent}; }}
"""
