"""bertviz's three views as documents: its own scripts, with a few lines changed for depths, widths and colours."""

from math import ceil

from jaxtyping import Float
from numpy import ndarray

from transformer.figures import theme
from transformer.figures.bertviz.document import document
from transformer.figures.bertviz.shown import Shown, View, rounded

HEAD_LINES, MODEL_LINES, NEURON_TOKENS = 24_000, 60_000, 40
"""Lines that the head view draws of one layer and the model view of all; rows and columns of the neuron view."""

_MODEL_HEIGHT = 1_000
"""Pixels of the model view, as long as a token has 4 of them."""
_LINE, _LETTERS = 16, 90
"""Pixels of a line above a drawing, and the letters in it."""
_NARROWEST = 90
"""Pixels of a vector in the neuron view."""
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
    """The lines of one layer at a time in the colours of its heads; `alone`: at first only this head's.

    The same arguments give the same text. Weights are rounded to four decimals.
    """
    shown = shown.within(HEAD_LINES, shown.weights.shape[1])
    layers, said = shown.layers_within(shown.weights.size)
    parameters = {
        "attention": [shown.attention(layers)],
        "default_filter": "0",
        "root_div_id": "bertviz",
        "layer": shown.layer,
        "heads": None if alone is None else [alone],
        "include_layers": layers,
        **shown.paints(dark),
    }
    notice = shown.notice(_HEAD_LEGEND, said)
    html = document(
        "head_view",
        parameters,
        changes={
            "const BOXWIDTH = 110;": f"const BOXWIDTH = {shown.column};",
            "headColors = d3.scaleOrdinal(d3.schemeCategory10);": (
                "headColors = (head) => params.off.some(([a, b]) => a === config.layer && b === head) "
                "? params.grey : params.colours[head % params.colours.length];"
            ),
        },
        keys="head_keys.js",
        body='<label>Layer <select id="layer"></select></label>',
        notice=notice,
        dark=dark,
        style=f"svg {{ min-width: {2 * shown.column + 115}px; }}",
    )
    return View(html, 170 + 23 * max(len(shown.queries), len(shown.keys)) + _more_lines(notice, _HEAD_LEGEND))


def model_view(shown: Shown, *, dark: bool = False) -> View:
    """A small picture of every head of every layer, one of which can be enlarged."""
    n_layers, n_heads = shown.weights.shape[:2]
    shown = shown.within(MODEL_LINES, n_layers * n_heads)
    parameters = {
        "attention": [shown.attention(range(n_layers))],
        "default_filter": "0",
        "root_div_id": "bertviz",
        "display_mode": "dark" if dark else "light",
        "include_layers": list(range(n_layers)),
        "include_heads": list(range(n_heads)),
        "total_heads": n_heads,
        **shown.paints(dark),
    }
    colours = theme.palette(dark)
    longest = max(len(shown.queries), len(shown.keys))
    box = max(4.0, min(14.0, 7 * 12 / n_heads, _MODEL_HEIGHT / (n_layers * longest)))
    notice = shown.notice(_MODEL_LEGEND)
    html = document(
        "model_view",
        parameters,
        changes={
            "const LAYER_COLORS = d3.schemeCategory10;": "const LAYER_COLORS = window.bertviz_params.colours;",
            "LAYER_COLORS[config.layers[layer] % 10]": "LAYER_COLORS[config.layers[layer] % LAYER_COLORS.length]",
            "const DIV_WIDTH = 970;": "const DIV_WIDTH = Math.max(620, Math.min(1100, document.body.clientWidth - 4));",
            "7 * (12 / config.totalHeads)": repr(box),
            "const DETAIL_BOX_WIDTH = 80;": f"const DETAIL_BOX_WIDTH = {shown.column - 10};",
            "const DETAIL_WIDTH = 300;": f"const DETAIL_WIDTH = {2 * shown.column + 130};",
            "'background': 'white'": f"'background': '{colours.background}'",
            "'background': 'black'": f"'background': '{colours.background}'",
            "'highlight': '#F5F5F5'": f"'highlight': '{colours.surface}'",
            "'highlight': '#222'": f"'highlight': '{colours.surface}'",
        },
        keys="model_keys.js",
        body="",
        notice=notice,
        dark=dark,
    )
    needed = max(n_layers * (longest * box + 10) + 38, longest * 18 + 55)
    return View(html, round(needed) + 70 + _more_lines(notice, _MODEL_LEGEND))


def neuron_view(
    shown: Shown,
    q: Float[ndarray, "layer head query d_head"],
    k: Float[ndarray, "layer head key d_head"],
    *,
    row: int | None = None,
    causal: bool = False,
    dark: bool = False,
) -> View:
    """How one query meets every key, element by element, with the q and k of this very pass.

    `row` is the query that is unfolded at first. `causal`: keys after a query are not drawn.
    """
    shown = shown.limited(NEURON_TOKENS)
    n_tokens = max(len(shown.queries), len(shown.keys))
    q, k = q[:, :, : len(shown.queries)], k[:, :, : len(shown.keys)]
    layers, said = shown.layers_within(shown.weights.size + q.size + k.size)
    attention = shown.attention(layers) | {"queries": rounded(q[layers]), "keys": rounded(k[layers])}
    parameters = {
        "attention": {"all": attention},
        "default_filter": "all",
        "root_div_id": "bertviz",
        "bidirectional": not causal,
        "display_mode": "dark" if dark else "light",
        "layer": layers.index(shown.layer),
        "layer_names": layers,
        "head": shown.head,
        "row": min(len(shown.queries) - 1, len(shown.queries) - 1 if row is None else row),
        **shown.paints(dark),
    }
    colours, option = theme.palette(dark), 'layerSelect.append($("<option />").val(i).text('
    fixed = 2 * shown.column + 170
    width = f"Math.max({_NARROWEST}, Math.min(160, (document.body.clientWidth - {fixed}) / 3))"
    unfolded = "config.bidirectional = params['bidirectional'];"
    grey = (
        'if (["attn", "connector"].includes(name) && params.off.some(([a, b]) => '
        "a === params.layer_names[config.layer] && b === config.head)) return params.grey; "
    )
    notice = shown.notice(_NEURON_LEGEND, said)
    html = document(
        "neuron_view",
        parameters,
        changes={
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
            "'background': 'white'": f"'background': '{colours.background}'",
            "'background': 'black'": f"'background': '{colours.background}'",
        },
        keys="neuron_keys.js",
        body=('<label>Layer <select id="layer"></select></label> <label>Head <select id="att_head"></select></label>'),
        notice=notice,
        dark=dark,
        style=f"svg {{ min-width: {3 * _NARROWEST + fixed}px; }}",
    )
    return View(html, 42 + 26 * n_tokens + 170 + _more_lines(notice, _NEURON_LEGEND))


def _more_lines(notice: str, legend: str) -> int:
    """Pixels of what is said above a drawing beside its legend, where it is narrow."""
    return _LINE * ceil((len(notice) - len(legend)) / _LETTERS)
