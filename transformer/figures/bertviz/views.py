"""bertviz's three views as documents: its own scripts, with a few lines changed for depths, widths and colours."""

from collections.abc import Mapping
from math import ceil
from typing import Any

from jaxtyping import Float
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.bertviz.document import document
from transformer.figures.bertviz.shown import Shown, View, rounded

HEAD_LINES, MODEL_LINES, NEURON_TOKENS = 24_000, 60_000, 40
"""The most lines in the head view of one layer and in the model view of all; the most tokens in the neuron view."""

_MODEL_HEIGHT = 1_000
"""The most pixels of the model view, unless a token would have fewer than 4."""
_LINE, _LETTERS = 16, 90
"""Pixels of a line of text above a drawing, and its letters."""
_NARROWEST = 90
"""The fewest pixels of a vector in the neuron view."""
_HEAD_LEGEND = (
    "Queries left, keys right. Point at a token, or reach it with Tab and arrows, for its lines alone; click or Enter "
    "keeps them. A square is a head: click or Space hides and shows it in this drawing, double-click or Enter shows it "
    "alone."
)
_MODEL_LEGEND = (
    "Every head at once, layers from top to bottom: queries left, keys right. Click one, or reach it with Tab and "
    "press Enter, for its tokens."
)
_NEURON_LEGEND = (
    "One head from the inside: a query times each key, element by element, the sum q · k / √d, its softmax. Blue is "
    "positive, orange negative. Point at a query on the left, or reach it with Tab and arrows; minus, plus or Enter "
    "folds and unfolds."
)


def head_view(shown: Shown, *, alone: int | None = None, dark: bool = False) -> View:
    """Draws the lines of one layer at a time in the colours of its heads; `alone`: at first only this head's.

    The same arguments give the same text. Weights are rounded to four decimals.
    """
    shown = shown.within(HEAD_LINES, shown.weights.shape[1])
    layers, said = shown.layers_within(shown.weights.size)
    own = {"layer": shown.layer, "heads": None if alone is None else [alone], "include_layers": layers}
    changes = {
        "const BOXWIDTH = 110;": f"const BOXWIDTH = {shown.column};",
        "headColors = d3.scaleOrdinal(d3.schemeCategory10);": (
            "headColors = (head) => params.off.some(([a, b]) => a === config.layer && b === head) "
            "? params.grey : params.colours[head % params.colours.length];"
        ),
    }
    return _view(
        "head_view",
        shown,
        {"attention": [shown.attention(layers)], "default_filter": "0", **own},
        changes,
        height=170 + 23 * max(len(shown.queries), len(shown.keys)),
        notice=(_HEAD_LEGEND, said),
        body='<label>Layer <select id="layer"></select></label>',
        style=f"svg {{ min-width: {2 * shown.column + 115}px; }}",
        dark=dark,
    )


def model_view(shown: Shown, *, dark: bool = False) -> View:
    """Draws a small picture of every head of every layer, one of which can be enlarged."""
    n_layers, n_heads = shown.weights.shape[:2]
    shown = shown.within(MODEL_LINES, n_layers * n_heads)
    own = {
        "display_mode": "dark" if dark else "light",
        "include_layers": list(range(n_layers)),
        "include_heads": list(range(n_heads)),
        "total_heads": n_heads,
    }
    colours = theme.palette(dark)
    longest = max(len(shown.queries), len(shown.keys))
    box = max(4.0, min(14.0, 7 * 12 / n_heads, _MODEL_HEIGHT / (n_layers * longest)))
    changes = {
        "const LAYER_COLORS = d3.schemeCategory10;": "const LAYER_COLORS = window.bertviz_params.colours;",
        "LAYER_COLORS[config.layers[layer] % 10]": "LAYER_COLORS[config.layers[layer] % LAYER_COLORS.length]",
        "const DIV_WIDTH = 970;": "const DIV_WIDTH = Math.max(620, Math.min(1100, document.body.clientWidth - 4));",
        "7 * (12 / config.totalHeads)": repr(box),
        "const DETAIL_BOX_WIDTH = 80;": f"const DETAIL_BOX_WIDTH = {shown.column - 10};",
        "const DETAIL_WIDTH = 300;": f"const DETAIL_WIDTH = {2 * shown.column + 130};",
        "'highlight': '#F5F5F5'": f"'highlight': '{colours.surface}'",
        "'highlight': '#222'": f"'highlight': '{colours.surface}'",
    }
    return _view(
        "model_view",
        shown,
        {"attention": [shown.attention(range(n_layers))], "default_filter": "0", **own},
        changes | _backgrounds(dark),
        height=round(max(n_layers * (longest * box + 10) + 38, longest * 18 + 55)) + 70,
        notice=(_MODEL_LEGEND, ""),
        dark=dark,
    )


def neuron_view(
    shown: Shown,
    q: Float[ndarray, "layer head query d_head"],
    k: Float[ndarray, "layer head key d_head"],
    *,
    row: int | None = None,
    causal: bool = False,
    dark: bool = False,
) -> View:
    """Draws one query against every key, element by element, with the q and k of this very pass.

    `row` is the query that is unfolded at first. `causal`: keys after a query are not drawn.
    """
    shown = shown.limited(NEURON_TOKENS)
    n_tokens = max(len(shown.queries), len(shown.keys))
    q, k = q[:, :, : len(shown.queries)], k[:, :, : len(shown.keys)]
    layers, said = shown.layers_within(shown.weights.size + q.size + k.size)
    last = len(shown.queries) - 1
    own = {
        "bidirectional": not causal,
        "display_mode": "dark" if dark else "light",
        "layer": layers.index(shown.layer),
        "layer_names": layers,
        "head": shown.head,
        "row": last if row is None else min(last, row),
    }
    attention = shown.attention(layers) | {"queries": rounded(q[layers]), "keys": rounded(k[layers])}
    option = 'layerSelect.append($("<option />").val(i).text('
    fixed = 2 * shown.column + 170
    width = f"Math.max({_NARROWEST}, Math.min(160, (document.body.clientWidth - {fixed}) / 3))"
    unfolded = "config.bidirectional = params['bidirectional'];"
    grey = (
        'if (["attn", "connector"].includes(name) && params.off.some(([a, b]) => '
        "a === params.layer_names[config.layer] && b === config.head)) return params.grey; "
    )
    changes = {
        "const BOXWIDTH = TEXT_SIZE * 8;": f"const BOXWIDTH = {shown.column};",
        "const MATRIX_WIDTH = 200;": f"const MATRIX_WIDTH = {width};",
        "posQueries + 68": "posQueries + MATRIX_WIDTH / 2 - 36",
        "posKeys + 73": "posKeys + MATRIX_WIDTH / 2 - 26",
        "posProduct + 28": "posProduct + MATRIX_WIDTH / 2 - 22",
        "'q \\u00D7 k (elementwise)'": "'q \\u00D7 k'",
        f"{option}i));": f"{option}params.layer_names[i]));",
        "config.initialTextLength = attentionFilter.right_text.length;": f"config.initialTextLength = {n_tokens};",
        unfolded: f"config.expanded = true; {unfolded}",
        "return PALETTE[config.mode][name]": f"{grey}return PALETTE[config.mode][name]",
    }
    return _view(
        "neuron_view",
        shown,
        {"attention": {"all": attention}, "default_filter": "all", **own},
        changes | _backgrounds(dark),
        height=42 + 26 * n_tokens + 170,
        notice=(_NEURON_LEGEND, said),
        body='<label>Layer <select id="layer"></select></label> <label>Head <select id="att_head"></select></label>',
        style=f"svg {{ min-width: {3 * _NARROWEST + fixed}px; }}",
        dark=dark,
    )


def _view(
    name: str,
    shown: Shown,
    parameters: Mapping[str, Any],
    changes: Mapping[str, str],
    *,
    height: int,
    notice: tuple[str, str],
    body: str = "",
    style: str = "",
    dark: bool,
) -> View:
    """Returns the document of a view and its height; `notice` holds its legend and what was left out for its size."""
    legend, said = notice
    text = shown.notice(legend, said)
    html = document(
        name,
        {"root_div_id": "bertviz", **parameters, **shown.paints(dark)},
        changes=changes,
        keys=f"{name.removesuffix('_view')}_keys.js",
        body=body,
        notice=text,
        dark=dark,
        style=style,
    )
    return View(html, height + _LINE * ceil((len(text) - len(legend)) / _LETTERS))


def _backgrounds(dark: bool) -> dict[str, str]:
    """Returns the changes that give both of bertviz's modes the theme's background."""
    background = theme.palette(dark).background
    return {f"'background': '{colour}'": f"'background': '{background}'" for colour in ("white", "black")}
