"""bertviz's head, model and neuron view of this model's own attention: what each is given, and how much of it.

bertviz makes an element of the page for every weight that it draws, so each view has a limit, and says when it bites.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st
from jaxtyping import Float
from numpy import ndarray

from pages.common.bertviz_document import document
from pages.common.picture_data import Source, all_heads
from pages.common.picture_loading import get_vectors
from pages.common.picture_rollout import CannotDraw
from transformer.figures import theme
from transformer.figures.labels import readable

MAX_TOKENS = 64
"""Rows and columns shown at most."""
HEAD_LINES, MODEL_LINES, NEURON_TOKENS = 24_000, 60_000, 40
"""Lines that the head view draws of one layer and the model view of all; rows and columns of the neuron view."""
MAX_NUMBERS = 80_000
"""Numbers in one document; of more, only the chosen layer goes in."""

_CHARACTER_WIDTH = 9.2
_MODEL_HEIGHT = 1_000
"""Pixels of the model view, as long as a token has 4 of them."""
_NARROWEST = 90
"""Pixels of a vector in the neuron view."""
_HEAD_COLOURS = (
    *("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd"),
    *("#8c564b", "#e377c2", "#bcbd22", "#17becf"),
)
"""The usual ten without grey, which means that a head is off."""
_HEAD_LEGEND = (
    "Queries left, keys right. Point at a token, or reach it with Tab and arrows, for its lines alone. A square is a "
    "head: click or Space hides and shows it in this drawing, double-click or Enter shows it alone."
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


@dataclass(frozen=True)
class Shown:
    """What a view is given: attention of all heads, what stands at its sides, and what is to be said of it."""

    weights: Float[ndarray, "layer head query key"]
    queries: Sequence[str]
    keys: Sequence[str]
    layer: int = 0
    """The layer that is shown first, or alone."""
    head: int = 0
    off: frozenset[tuple[int, int]] = frozenset()
    """(layer, head) of the heads of which nothing goes any further: drawn in grey."""
    said: str = ""

    def limited(self, n_tokens: int) -> "Shown":
        """The same with at most so many rows and columns."""
        longest = max(len(self.queries), len(self.keys))
        if longest <= n_tokens:
            return self
        return Shown(
            self.weights[:, :, :n_tokens, :n_tokens],
            self.queries[:n_tokens],
            self.keys[:n_tokens],
            self.layer,
            self.head,
            self.off,
            f"Shown: the first {n_tokens} of {longest} tokens. {self.said}",
        )

    @property
    def column(self) -> int:
        """Pixels that the longest token needs."""
        longest = max(len(readable(token)) for token in (*self.queries, *self.keys))
        return max(110, round(16 + _CHARACTER_WIDTH * longest))

    @property
    def off_said(self) -> str:
        named = ", ".join(f"{layer} · {head}" for layer, head in sorted(self.off))
        return f"Grey: switched off, so nothing of it goes any further (layer · head {named}). " * bool(self.off)


@dataclass(frozen=True)
class View:
    """A document and the pixels that it needs."""

    html: str
    height: int


def show_bertviz(source: Source, *, dark: bool) -> None:
    """The view that was chosen, and a line for all that was done to its weights."""
    picture = source.view.picture
    try:
        weights, rows, columns, said = all_heads(source)
    except CannotDraw as reason:
        st.markdown(str(reason))
        return
    if picture == "bertviz-neuron":
        attention = source.attention
        weights, labels, said = attention.weights, (attention.queries, attention.keys), ()
    else:
        labels = rows.labels, columns.labels
    shown = Shown(weights, *labels, layer=source.layer, head=source.head, off=source.off)
    if said:
        st.caption(" ".join(said))
    match picture:
        case "bertviz-model":
            drawn = model_view(shown, dark=dark)
        case "bertviz-neuron":
            vectors = get_vectors(source.lab, source.inspection, source.view.kind)
            drawn = neuron_view(
                shown,
                vectors.q,
                vectors.k,
                row=source.view.cell and source.view.cell[0],
                dark=dark,
                causal=_causal(source),
            )
            _say_what_differs(source)
        case _:
            drawn = head_view(shown, dark=dark)
    st.iframe(drawn.html, height=drawn.height)
    st.download_button(
        "Save this drawing",
        drawn.html,
        file_name=f"{source.lab.name}-{source.view.kind}-{picture}.html",
        mime="text/html",
        key="save-bertviz",
        type="tertiary",
        icon=":material/download:",
        on_click="ignore",
        help="One HTML file that opens without a network and can be used as here.",
    )


def head_view(shown: Shown, *, alone: int | None = None, dark: bool = False) -> View:
    """The lines of one layer at a time in the colours of its heads; `alone`: at first only this head's.

    The same arguments give the same text. Weights are rounded to four decimals.
    """
    shown = shown.limited(min(MAX_TOKENS, _tokens_within(HEAD_LINES, shown.weights.shape[1], shown)))
    layers, said = _layers_within(shown, shown.weights.size)
    parameters = {
        "attention": [_attention(shown, layers)],
        "default_filter": "0",
        "root_div_id": "bertviz",
        "layer": shown.layer,
        "heads": None if alone is None else [alone],
        "include_layers": layers,
        **_off(shown, dark),
    }
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
        keys="bertviz_keys.js",
        body='<label>Layer <select id="layer"></select></label>',
        notice=f"{said}{shown.said}{shown.off_said}{_HEAD_LEGEND}",
        dark=dark,
        style=f"svg {{ min-width: {2 * shown.column + 115}px; }}",
    )
    return View(html, 170 + 23 * max(len(shown.queries), len(shown.keys)))


def model_view(shown: Shown, *, dark: bool = False) -> View:
    """A small picture of every head of every layer, one of which can be enlarged."""
    n_layers, n_heads = shown.weights.shape[:2]
    shown = shown.limited(min(MAX_TOKENS, _tokens_within(MODEL_LINES, n_layers * n_heads, shown)))
    parameters = {
        "attention": [_attention(shown, range(n_layers))],
        "default_filter": "0",
        "root_div_id": "bertviz",
        "display_mode": "dark" if dark else "light",
        "include_layers": list(range(n_layers)),
        "include_heads": list(range(n_heads)),
        "total_heads": n_heads,
        **_off(shown, dark),
    }
    colours = theme.palette(dark)
    longest = max(len(shown.queries), len(shown.keys))
    box = max(4.0, min(14.0, 7 * 12 / n_heads, _MODEL_HEIGHT / (n_layers * longest)))
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
        keys="bertviz_model_keys.js",
        body="",
        notice=f"{shown.said}{shown.off_said}{_MODEL_LEGEND}",
        dark=dark,
    )
    needed = max(n_layers * (longest * box + 10) + 38, longest * 18 + 55)
    return View(html, round(needed) + 70)


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
    layers, said = _layers_within(shown, shown.weights.size + q.size + k.size)
    attention = _attention(shown, layers) | {"queries": _rounded(q[layers]), "keys": _rounded(k[layers])}
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
        **_off(shown, dark),
    }
    colours, option = theme.palette(dark), 'layerSelect.append($("<option />").val(i).text('
    fixed = 2 * shown.column + 170
    width = f"Math.max({_NARROWEST}, Math.min(160, (document.body.clientWidth - {fixed}) / 3))"
    unfolded = "config.bidirectional = params['bidirectional'];"
    grey = (
        'if (["attn", "connector"].includes(name) && params.off.some(([a, b]) => '
        "a === params.layer_names[config.layer] && b === config.head)) return params.grey; "
    )
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
        keys="bertviz_neuron_keys.js",
        body=('<label>Layer <select id="layer"></select></label> <label>Head <select id="att_head"></select></label>'),
        notice=f"{said}{shown.said}{shown.off_said}{_NEURON_LEGEND}",
        dark=dark,
        style=f"svg {{ min-width: {3 * _NARROWEST + fixed}px; }}",
    )
    return View(html, 42 + 26 * n_tokens + 170)


def _say_what_differs(source: Source) -> None:
    """Where the scores that the neuron view computes from q and k are not those of the pass."""
    config = source.lab.model.config
    view = source.view
    ignored = [
        *["words are not merged"] * view.words,
        *["start and end marks stay"] * (view.specials != "shown"),
        *["weak cells stay"] * bool(view.threshold),
    ]
    if ignored:
        st.caption(
            f"Here {', '.join(ignored)}: a query and a key belong to one token of the pass, a merged word has none, "
            "and the softmax is over all keys, so that leaving some out would draw one that was never computed."
        )
    if not config.scale_scores:
        st.caption("This model does not divide q · k by √d: its own scores are √d times those drawn here.")
    if config.positions == "alibi" and source.view.kind != "cross":
        st.caption("ALiBi lowers a score by the distance after q · k, which is not drawn here; the softmax has it.")


def _causal(source: Source) -> bool:
    return source.view.kind == "decoder_self" and bool((~source.attention.mask).any())


def _attention(shown: Shown, layers: Sequence[int]) -> dict[str, Any]:
    return {
        "name": None,
        "attn": _rounded(shown.weights[list(layers)]),
        "left_text": [readable(token) for token in shown.queries],
        "right_text": [readable(token) for token in shown.keys],
    }


def _rounded(values: ndarray) -> list:
    return np.nan_to_num(values.astype(float)).round(4).tolist()


def _off(shown: Shown, dark: bool) -> dict[str, Any]:
    return {
        "off": sorted([layer, head] for layer, head in shown.off),
        "grey": theme.palette(dark).quiet,
        "colours": _HEAD_COLOURS,
    }


def _tokens_within(lines: int, n_heads: int, shown: Shown) -> int:
    """The most rows and columns of which so many heads draw no more than so many lines."""
    n_queries, n_keys = len(shown.queries), len(shown.keys)
    return max(n for n in range(1, MAX_TOKENS + 1) if n == 1 or n_heads * min(n, n_queries) * min(n, n_keys) <= lines)


def _layers_within(shown: Shown, numbers: int) -> tuple[list[int], str]:
    """All layers, or the chosen one where they would be too much, and a sentence that says so."""
    if numbers <= MAX_NUMBERS:
        return list(range(len(shown.weights))), ""
    return [shown.layer], f"Only layer {shown.layer}, for the size of it: another one is chosen above. "
