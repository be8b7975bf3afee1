"""The sections of the Positions page: controls, a picture, and a sentence that says what is seen."""

import numpy as np
import streamlit as st

from pages.common import wording
from pages.common.components.scrolling_figure import scrolling_figure
from pages.common.components.value_curves import ValueCurve, value_curves
from pages.common.components.value_tables import Panel, value_tables
from pages.common.controls import Scene, switch_chips
from pages.common.pictures import is_dark
from pages.common.position_choices import BASES, LONGEST, Choices, box, segments, slider, stepped
from pages.common.position_proofs import prove_alike, prove_shifts, prove_split, prove_tables
from pages.common.position_tables import Table, Tables, get_split
from pages.common.state import choose
from transformer.analysis.positions import (
    by_offset,
    concatenated,
    fit_shift,
    likeness,
    rotation,
    shift_error,
    wavelengths,
)
from transformer.analysis.score_split import PARTS
from transformer.figures.positions import (
    parts_figure,
)

STACKS = {"encoder": "Encoder", "decoder": "Decoder"}
_LAYOUTS = {"interleaved": "Interleaved", "concatenated": "Concatenated"}
_LIKENESSES = {"cosine": "Cosine", "dot": "Dot product"}
_QUIET = {"displayModeBar": False}
_FIT_PAIRS = 8
"""Pairs of positions that a map is fitted to and tested on, at the least."""

_SINUSOIDS = r"""
\begin{aligned}
PE_{(pos,\,2i)} &= \sin\!\left(pos / 10000^{2i/d_{model}}\right) \\
PE_{(pos,\,2i+1)} &= \cos\!\left(pos / 10000^{2i/d_{model}}\right)
\end{aligned}
"""
_SHIFT = r"""
\begin{pmatrix} \sin(\omega(pos+k)) \\ \cos(\omega(pos+k)) \end{pmatrix} =
\begin{pmatrix} \cos\omega k & \sin\omega k \\ -\sin\omega k & \cos\omega k \end{pmatrix}
\begin{pmatrix} \sin(\omega\,pos) \\ \cos(\omega\,pos) \end{pmatrix}
"""
OTHER_KINDS = {
    "none": "It has no positions at all: its encoder cannot tell one order of the words from another.",
    "rotary": "Its self-attention turns queries and keys by their position instead, so that a score depends on the "
    "distance between the two words. Cross-attention carries no positions.",
    "alibi": "Its self-attention lowers each score with the distance between the two words instead, alike in both "
    "directions in the encoder, to which only the end mark tells which way a sentence runs. Cross-attention carries no "
    "positions.",
}
"""What a model does that adds no positions to its embeddings."""
_SPLIT = r"""
\frac{q_i \cdot k_j}{\sqrt{d_k}} = \frac{(q^c_i + q^p_i)\cdot(k^c_j + k^p_j)}{\sqrt{d_k}}
"""
_SPLIT_UNSCALED = r"q_i \cdot k_j = (q^c_i + q^p_i)\cdot(k^c_j + k^p_j)"


def draw_table(shown: Tables) -> None:
    """Both tables on one scale, then one pair of dimensions as curves."""
    _sizes(shown)
    chosen = shown.choices
    sinusoidal = shown.sinusoidal
    laid_out = concatenated(sinusoidal) if chosen.layout == "concatenated" else sinusoidal
    values, names = [laid_out], [shown.sinusoidal_name]
    ends: list[int | None] = [None]
    if shown.learned is not None:
        values.append(shown.cut)
        names.append(shown.learned_name)
        ends.append(shown.learned.trained)
    value_tables([Panel(*one) for one in zip(values, names, ends, strict=True)], key="tables")
    prove_tables(shown, key="proof-tables")
    _say_where_it_ends(shown, " (dotted line)")
    left, right = st.columns([3, 1], gap="medium", vertical_alignment="bottom")
    with left:
        if shown.d_model > 2:
            slider("frequency", "Pair of dimensions", 0, shown.d_model // 2 - 1, chosen.frequency)
    with right:
        segments("layout", "Layout", _LAYOUTS, chosen.layout)
    i = min(chosen.frequency, shown.d_model // 2 - 1)
    lengths = wavelengths(shown.d_model, chosen.base)
    curves = [sinusoidal[:, 2 * i], sinusoidal[:, 2 * i + 1]]
    labels = [f"sinusoidal, dimension {2 * i} (sine)", f"sinusoidal, dimension {2 * i + 1} (cosine)"]
    if shown.learned is not None and 2 * i + 1 < shown.cut.shape[1]:
        curves += [shown.cut[:, 2 * i], shown.cut[:, 2 * i + 1]]
        labels += [f"learned, dimension {2 * i}", f"learned, dimension {2 * i + 1}"]
    drawn = [ValueCurve(label, np.arange(len(curve)), curve) for label, curve in zip(labels, curves, strict=True)]
    value_curves(drawn, axes=("position", "value"), key="dimensions")
    prove_tables(shown, key="proof-dimensions")
    st.markdown(
        f"Dimensions {2 * i} and {2 * i + 1} repeat every **{_length(lengths[i])}** positions. Wavelengths run "
        f"from {_length(lengths[0])} (2π) to {_length(lengths[-1])} here; as d_model grows, the last one approaches "
        f"{chosen.base:,} × 2π = {_length(chosen.base * 2 * np.pi)}."
    )
    with st.expander("What am I looking at?"):
        st.markdown(
            "Each row is what is added to the embedding of the token at that position; both tables share one scale "
            "around 0. The sinusoids follow from a formula: fast waves left, slow ones right, sine and cosine of one "
            "wave side by side (*interleaved*, as the paper writes it). *Concatenated* puts all sines first and all "
            "cosines after: the same numbers in another order, which the next matrix product undoes, so that programs "
            "(Marian, tensor2tensor) may use either; a trained model's weights fit only its own. A learned table "
            "begins as noise and its rows are trained like any weight."
        )
        st.latex(_SINUSOIDS)


def draw_distances(shown: Tables) -> None:
    """How alike positions are, in both tables."""
    _sizes(shown)
    segments("likeness", "Measure", _LIKENESSES, shown.choices.likeness)
    kind = shown.choices.likeness
    values, names = _both(shown)
    matrices = [likeness(value, kind) for value in values]
    panels = [Panel(matrix, name) for matrix, name in zip(matrices, names, strict=True)]
    value_tables(panels, axes=("position", "position"), quantity=_LIKENESSES[kind].lower(), square=True, key="likeness")
    _say_where_it_ends(shown)
    offsets = [by_offset(matrix) for matrix in matrices]
    curves = [ValueCurve(name, o.offset, o.mean, o.low, o.high) for name, o in zip(names, offsets, strict=True)]
    value_curves(curves, axes=("offset between positions", _LIKENESSES[kind].lower()), key="offsets")
    prove_alike(values, names, matrices, offsets, cosine=kind == "cosine")
    spread = [float((o.high - o.low).max()) for o in offsets]
    said = (
        "The line is the mean over all pairs of positions this far apart; the band runs from lowest to highest. "
        f"Sinusoidal: the band is {wording.number(spread[0])} wide at most, so only the distance counts."
    )
    if len(spread) > 1:
        said += f" Learned: up to {wording.number(spread[1])}, so it also matters where the two stand."
    st.markdown(said)


def draw_shifts(shown: Tables) -> None:
    """What a shift by k does: the rotation for sinusoids, the best linear map for both tables."""
    _sizes(shown)
    values, names = _both(shown, trained_only=True)
    rows = min(len(value) for value in values)
    most = rows - _FIT_PAIRS
    if most < 1:
        st.markdown(f"A map needs at least {_FIT_PAIRS} pairs of positions; the shorter table has {rows} rows to use.")
        return
    if most > 1:
        slider("k", "Shift k", 1, most, shown.choices.k)
    k = min(max(shown.choices.k, 1), most)
    turn = rotation(shown.d_model, k, shown.choices.base)
    fits = [fit_shift(value[:rows], k) for value in values]
    matrices, titles = [turn], [f"the rotation for k = {k}"]
    if len(fits) > 1:
        matrices.append(fits[1].matrix)
        titles.append(f"best linear map of the learned table, k = {k}")
    axes = ("dimension of PE(pos)", "dimension of PE(pos + k)")
    panels = [Panel(matrix, title) for matrix, title in zip(matrices, titles, strict=True)]
    value_tables(panels, axes=axes, quantity="entry", square=True, key="maps")
    exact = shift_error(values[0], turn, k)
    st.markdown(
        f"**Sinusoidal:** turning each pair of dimensions by its own angle gives PE(pos + {k}) from PE(pos) at every "
        f"position, to within {wording.number(float(exact.max()))} in the float32 table: rounding alone."
    )
    curves = [ValueCurve("sinusoidal, rotation", np.arange(len(exact)), exact)]
    for name, fit in zip(("sinusoidal", "learned"), fits, strict=False):
        curves.append(ValueCurve(f"{name}, fitted map, held out", fit.held_out, fit.error[fit.held_out]))
    axes = ("position pos", "largest error of a dimension")
    value_curves(curves, axes=axes, log=True, marks=True, key="errors")
    prove_shifts(values, k, turn, exact, fits)
    st.markdown(
        "A map fitted by least squares to every second position, and measured on those between. Of the variance of "
        f"PE(pos + {k}) it leaves unexplained:"
    )
    st.dataframe(
        {
            "table": names,
            "pairs fitted": [len(fit.fitted) for fit in fits],
            "on fitted positions": [_share(fit.unexplained_fitted) for fit in fits],
            "on held-out positions": [_share(fit.unexplained_held_out) for fit in fits],
            "held out, if PE(pos) is left as it is": [_share(fit.unexplained_standing_still) for fit in fits],
        },
        hide_index=True,
        width="stretch",
    )
    if shown.learned is not None:
        st.caption(
            f"Both maps use the first {rows} rows, those that training reached. With fewer pairs than "
            f"dimensions ({values[1].shape[1]}) a linear map can fit any table exactly, which is why only held-out "
            "positions tell: 0 is a perfect map, 1 is no better than always answering the mean."
        )
    with st.expander("What am I looking at?"):
        st.markdown(
            "The paper chose sinusoids because, for any fixed k, PE(pos + k) is a linear function of PE(pos): a model "
            "could learn to look k places away wherever it stands. Each pair (sin, cos) is a hand of a clock; k more "
            "positions turn it by the angle ω k, with ω = base^(−2i / d_model)."
        )
        st.latex(_SHIFT)


def draw_scores(scene: Scene, chosen: Choices) -> None:
    """The first layer's scores of the sentence, as a sum of four parts."""
    left, right = st.columns([2, 1], gap="medium")
    with left:
        segments("stack", "Stack", STACKS, chosen.stack)
    with right:
        head = _choose_head(scene)
    switch_chips(scene)
    try:
        split = get_split(scene, chosen.stack)
    except ValueError as error:
        st.markdown(f"**{scene.lab.name}** cannot be taken apart this way: {wording.plain(str(error))}.")
        st.markdown(OTHER_KINDS.get(scene.lab.model.config.positions, ""))
        return
    inspection = scene.inspection
    tokens = inspection.source_tokens if chosen.stack == "encoder" else inspection.decoder_inputs
    hidden = ~split.mask
    parts = [np.where(hidden, np.nan, part) for part in (*split.parts[:, head], split.scores[head])]
    figure = parts_figure(parts, [*PARTS, "sum: the score"], tokens, tokens, dark=is_dark())
    scrolling_figure(figure, key="parts")
    prove_split(split)
    shares = [float(part[split.mask].std()) for part in split.parts[:, head]]
    st.markdown(
        f"Layer 0, head {head} of the {chosen.stack}'s self-attention. How much each part varies over the cells "
        "(standard deviation): "
        + ", ".join(f"{name} **{wording.number(share)}**" for name, share in zip(PARTS, shares, strict=True))
        + "."
    )
    whose = (
        "" if chosen.stack == "encoder" else " The decoder's scores are of one teacher-forced pass over its own output."
    )
    st.caption(
        f"The parts sum to the recorded score to within {wording.number(split.largest_error)} in every head.{whose}"
    )
    with st.expander("What am I looking at?"):
        st.markdown(
            "The first layer reads embedding + position, and a score is a product of two such sums, so it is a sum of "
            "four: word meets word, word meets place, place meets word, place meets place (query first). Biases count "
            "as content. A model with pre-norm divides by the measured norm of the sum in both parts. Cells that the "
            "mask hides are left empty."
        )
        st.latex(_SPLIT if scene.lab.model.config.scale_scores else _SPLIT_UNSCALED)


def _sizes(shown: Tables) -> None:
    """The sliders of the sinusoidal table, and which learned table stands beside it."""
    chosen = shown.choices
    with st.container(key="table-sizes"):
        columns = st.columns(3, gap="medium")
        with columns[0]:
            slider("d_model", "d_model", 2, LONGEST, shown.d_model, step=2)
        with columns[1]:
            slider("length", "Length", 2, LONGEST, shown.length)
        with columns[2]:
            stepped("base", "Base", BASES, chosen.base)
    if shown.learned is None:
        st.caption("No model here has learned positions; train one with *positions: learned* to see its table beside.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        box("table", "Learned table of", shown.models, shown.learned.model)
        segments("stack", "Stack", STACKS, chosen.stack)
        steps = [str(step) for step in shown.learned.steps]
        moments = ["start", *steps, "trained"]
        now = chosen.moment if chosen.moment in moments else "trained"
        box("moment", "When", moments, now, lambda m: f"step {m}" if m.isdecimal() else _MOMENTS[m])


_MOMENTS = {"start": "before training", "trained": "trained"}


def _both(shown: Tables, *, trained_only: bool = False) -> tuple[list[Table], list[str]]:
    values, names = [shown.sinusoidal], [shown.sinusoidal_name]
    if shown.learned is not None:
        values.append(shown.cut[: shown.learned.trained] if trained_only else shown.cut)
        names.append(shown.learned_name)
    return values, names


def _say_where_it_ends(shown: Tables, line: str = "") -> None:
    if shown.learned is None:
        return
    rows, trained = len(shown.learned.rows), shown.learned.trained
    said = f"The learned table has {rows} rows and ends there."
    if trained == 0:
        said += " Training reached none of them."
    elif trained < rows:
        said += (
            f" Training reached only positions 0 to {trained - 1}: from {trained} on{line} every row is still, "
            "bit for bit, the noise it began as."
        )
    st.caption(said)


def _choose_head(scene: Scene) -> int:
    heads = list(range(scene.lab.model.config.n_heads))
    st.session_state["positions-head"] = scene.head
    st.selectbox("Head", heads, key="positions-head", on_change=lambda: choose(head=st.session_state["positions-head"]))
    return scene.head


def _length(value: float) -> str:
    return f"{value:,.2f}" if value < 1_000 else f"{value:,.0f}"


def _share(value: float) -> str:
    return f"{100 * value:.3g} %"
