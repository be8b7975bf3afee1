"""bertviz's head view as one HTML document that needs no network. Show it with `st.iframe`.

The drawing is bertviz's own script. Its Python half is not used: that asks a CDN for libraries, lets a token end the
script it is written in, and takes an encoder and a decoder for equally deep.
"""

import json
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from transformer.figures import theme
from transformer.figures.labels import readable
from transformer.lab import Attention, AttentionKind, Inspection

MAX_TOKENS = 64
"""Rows and columns shown at most: the view draws a line for every weight of every head."""

_STATIC = Path(__file__).parents[2] / "static"
_LIBRARIES = ("jquery-2.2.4.min.js", "d3-5.16.0.min.js")
_KEYS = Path(__file__).with_name("bertviz_keys.js")
# bertviz loads its libraries through require.js; here both are already on the page.
_SHIM = "window.require = { config() {} }; window.requirejs = (names, run) => run(window.jQuery, window.d3);"
_COLUMN = "const BOXWIDTH = 110;"
_CHARACTER_WIDTH = 9.2
_LEGEND = (
    "Queries left, keys right. Point at a token, or reach it with Tab and arrows, for its lines alone. A square is a "
    "head: click or Space hides and shows it in this drawing, double-click or Enter shows it alone."
)


def head_view_html(
    inspection: Inspection, kind: AttentionKind, *, layer: int = 0, head: int | None = None, dark: bool = False
) -> str:
    """bertviz's head view of one kind of attention: every layer to choose from, at first `layer` with one head or all.

    The same arguments give the same text. Weights are rounded to four decimals; sentences are cut to `MAX_TOKENS`,
    and the document says so. It is `head_view_height` pixels high.
    """
    attention = inspection.attention(kind)
    queries, keys = ([readable(token) for token in tokens[:MAX_TOKENS]] for tokens in _sides(attention))
    weights = attention.weights[:, :, : len(queries), : len(keys)].astype(float).round(4)
    parameters = {
        "attention": [{"name": None, "attn": weights.tolist(), "left_text": queries, "right_text": keys}],
        "default_filter": "0",
        "root_div_id": "bertviz",
        "layer": layer,
        "heads": None if head is None else [head],
        "include_layers": list(range(len(weights))),
    }
    column = max(110, round(16 + _CHARACTER_WIDTH * max(map(len, queries + keys))))
    return _document(_script(parameters, column), _notice(attention), dark)


def head_view_height(inspection: Inspection, kind: AttentionKind) -> int:
    """The pixels that the document of `head_view_html` needs."""
    longest = max(map(len, _sides(inspection.attention(kind))))
    return 190 + 23 * min(MAX_TOKENS, longest)


def _sides(attention: Attention) -> tuple[Sequence[str], Sequence[str]]:
    return attention.queries, attention.keys


def _notice(attention: Attention) -> str:
    longest = max(map(len, _sides(attention)))
    return f"Shown: the first {MAX_TOKENS} of {longest} tokens. " if longest > MAX_TOKENS else ""


def _script(parameters: dict[str, Any], column: int) -> str:
    """bertviz's script with its parameters; no token can end it, since every "<" is written as an escape."""
    text = json.dumps(parameters, allow_nan=False).replace("<", "\\u003c")
    return _drawing().replace("PYTHON_PARAMS;", f"{text};", 1).replace(_COLUMN, f"const BOXWIDTH = {column};", 1)


@cache
def _drawing() -> str:
    package = find_spec("bertviz")
    assert package and package.origin, "bertviz is among the requirements"
    script = Path(package.origin).with_name("head_view.js").read_text(encoding="utf-8")
    assert "PYTHON_PARAMS;" in script and _COLUMN in script, "bertviz is pinned; this is another version of it"
    addresses = script[script.index("require.config(") : script.index("requirejs(")]
    return script.replace(addresses, "").replace("PYTHON_PARAMS is a template", "this is a template")


@cache
def _libraries() -> str:
    texts = ((_STATIC / name).read_text(encoding="utf-8") for name in _LIBRARIES)
    return "".join(f"<script>{text}</script>" for text in (*texts, _SHIM))


def _document(script: str, notice: str, dark: bool) -> str:
    keys = _KEYS.read_text(encoding="utf-8")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>bertviz head view</title>'
        f"<style>{_style(dark)}</style>{_libraries()}</head><body><p>{notice}{_LEGEND}</p>"
        '<div id="bertviz"><label>Layer <select id="layer"></select></label><div id="vis"></div></div>'
        f"<script>{script}</script><script>{keys}</script></body></html>"
    )


def _style(dark: bool) -> str:
    colours = theme.palette(dark)
    return f"""
:root {{ color-scheme: {"dark" if dark else "light"}; }}
body {{ margin: 0; background: {colours.background}; color: {colours.text}; font: 14px {theme.FONT}; }}
p {{ margin: 0 0 12px; color: {colours.quiet}; font-size: 13px; }}
select {{ font: inherit; }}
#vis {{ margin-top: 12px; overflow-x: auto; }}
svg {{ min-width: 480px; }}
svg text {{ fill: {colours.text}; font-family: {theme.MONOSPACE}; }}
svg .background {{ fill: {colours.line}; }}
select:focus-visible, svg :focus-visible {{ outline: 2px solid {colours.accent}; }}
svg rect:focus-visible {{ outline-offset: -3px; }}
"""
