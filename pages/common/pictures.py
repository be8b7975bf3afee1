"""The chosen head, drawn as a matrix, as lines between tokens, or by bertviz."""

import streamlit as st

from pages.common.bertviz_view import head_view_height, head_view_html
from pages.common.cell_panel import CELLS, chosen_cell, take_clicked_cell
from pages.common.components.scrolling_figure import scrolling_figure
from pages.common.components.token_lines import token_lines
from pages.common.controls import Scene, choose_picture
from transformer.figures import theme
from transformer.figures.attention import head_heatmap
from transformer.figures.theme import KIND_NAMES


def is_dark() -> bool:
    """Whether the visitor's theme is dark."""
    return st.context.theme.type == "dark"


def draw_head(scene: Scene) -> None:
    """The picture that the visitor chose, with a line saying what it shows."""
    attention = scene.inspection.attention(scene.view.kind)
    layer, head = scene.layer, scene.head
    is_off = (layer, head) in scene.heads_off and scene.view.picture != "bertviz"
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        shown = (
            "all layers and heads"
            if scene.view.picture == "bertviz"
            else f"layer {layer} · head {head}{' · **off**' * is_off}"
        )
        st.caption(f"{KIND_NAMES[scene.view.kind]} · {shown}{_note(scene)}", width="content")
        choose_picture(scene)
    if is_off:
        st.caption(
            "This head is off: its weights are still computed, as drawn in grey, but its output is set to zero, so "
            "nothing of what it looks at goes any further."
        )
    match scene.view.picture:
        case "matrix":
            figure = head_heatmap(
                attention.weights[layer, head],
                attention.queries,
                attention.keys,
                kind=scene.view.kind,
                mask=attention.mask[layer],
                dark=is_dark(),
                clickable=True,
                chosen=chosen_cell(scene),
            )
            if is_off:
                figure.update_traces(colorscale=theme.greys(is_dark()), selector={"showscale": None, "type": "heatmap"})
            scrolling_figure(figure, key=CELLS, on_select=take_clicked_cell, selection_mode="points")
        case "lines":
            token_lines(
                attention.keys,
                attention.queries,
                attention.weights[layer, head],
                kind=scene.view.kind,
                source_unseen=scene.unseen if scene.view.kind != "decoder_self" else {},
                source_label="keys",
                target_label="queries",
                key="head-lines",
            )
        case "bertviz":
            html = head_view_html(scene.inspection, scene.view.kind, dark=is_dark())
            st.iframe(html, height=head_view_height(scene.inspection, scene.view.kind))


def _note(scene: Scene) -> str:
    if scene.view.kind == "decoder_self" and not scene.inspection.cached:
        return " · the last whole pass, because the cache is ruled out"
    return ""
