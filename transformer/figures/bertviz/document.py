"""A drawing of bertviz as one HTML document that needs no network.

The drawing is bertviz's own script with a few lines changed. Its Python half is not used: that asks a CDN for
libraries, lets a token end the script it is written in, and takes an encoder and a decoder for equally deep.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from transformer.figures import theme

_STATIC = Path(__file__).parents[3] / "static"
_LIBRARIES = ("jquery-2.2.4.min.js", "d3-5.16.0.min.js")
# bertviz loads its libraries through require.js; here both are already on the page.
_SHIM = "window.require = { config() {} }; window.requirejs = (names, run) => run(window.jQuery, window.d3);"


def document(
    view: str,
    parameters: Mapping[str, Any],
    *,
    changes: Mapping[str, str],
    keys: str,
    body: str,
    notice: str,
    dark: bool,
    style: str = "",
) -> str:
    """Returns bertviz's `view` ("head_view", "model_view", "neuron_view") with its parameters, offline.

    `changes` replaces lines of its script; `keys` is a script of this folder that gives the drawing a keyboard; `body`
    is the HTML around the drawing. No token can end the script, since every "<" is written as an escape.
    """
    text = json.dumps(parameters, allow_nan=False).replace("<", "\\u003c")
    script = _script(view)
    for old, new in changes.items():
        assert old in script, f"bertviz is pinned; {view} of this version has no {old!r}"
        script = script.replace(old, new)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>bertviz {view.replace("_", " ")}</title>'
        f"<style>{_style(dark)}{style}</style>{_libraries()}</head><body><p>{notice}</p>"
        f'<div id="bertviz">{body}<div id="vis"></div></div>'
        f"<script>window.bertviz_params = {text};</script><script>{script}</script>"
        f"<script>{_text(keys)}</script></body></html>"
    )


@cache
def _script(view: str) -> str:
    package = find_spec("bertviz")
    assert package and package.origin, "bertviz is among the requirements"
    script = Path(package.origin).with_name(f"{view}.js").read_text(encoding="utf-8")
    addresses = script[script.index("require.config(") : script.index("requirejs(")]
    script = script.replace(addresses, "").replace("PYTHON_PARAMS; // HACK", "window.bertviz_params; // HACK")
    return script.replace("PYTHON_PARAMS is a template", "this is a template")


@cache
def _libraries() -> str:
    texts = ((_STATIC / name).read_text(encoding="utf-8") for name in _LIBRARIES)
    return "".join(f"<script>{text}</script>" for text in (*texts, _SHIM))


@cache
def _text(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _style(dark: bool) -> str:
    colours = theme.palette(dark)
    return f"""
:root {{ color-scheme: {"dark" if dark else "light"}; }}
body {{ margin: 0; background: {colours.background}; color: {colours.text}; font: 14px {theme.FONT}; }}
p {{ margin: 0 0 12px; color: {colours.quiet}; font-size: 13px; }}
select {{ font: inherit; }}
label {{ margin-right: 16px; }}
#bertviz {{ background: transparent !important; }}
#vis {{ margin-top: 12px; overflow-x: auto; }}
svg text {{ fill: {colours.text} !important; font-family: {theme.MONOSPACE}; }}
svg .background {{ fill: {colours.line}; }}
select:focus-visible, svg :focus-visible {{ outline: 2px solid {colours.accent}; }}
svg rect:focus-visible {{ outline-offset: -3px; }}
"""
