"""The right half of Walkthrough: one step with its words, its equation, its numbers and its source."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from pages.shared import fields, wording
from pages.shared.cache import cached
from pages.shared.components.matrix_product import matrix_product
from pages.shared.context import Decoded, PageContext, is_dark, is_transformer
from pages.shared.exhibit import exhibit
from pages.shared.explain import render_equation
from pages.shared.scrolling_figure import scrolling_figure
from pages.shared.url.session import choose
from pages.walkthrough.choices import PAGE, Place, go_to
from transformer.analysis.trace.step import Step, StepRecord, Value, sublayers_in_layers
from transformer.analysis.trace.steps import sublayer_name
from transformer.analysis.trace.trace import Trace, sees_later
from transformer.inspection.inspection import Inspection
from transformer.interventions.names import plural
from transformer.lab import Lab
from transformer.views.subjects import Traced
from transformer.views.trace import Side, StepData, StepNumbers

SIDES: dict[Side, str] = {"out": "Comes out", "all": "All tokens", "in": "Comes in"}
OF_THE_SENTENCE = ("vector", "start")
"""The steps that have one row for the whole sentence, so that no token is followed."""
_ARROW = ":material/arrow_forward:"


def get_subject(context: Decoded, position: int) -> Traced:
    """Returns the recorded pass over the page's sentence and its output; the pass of the step at `position` of the
    decoding, where each step has a pass of its own. Read-only, shared."""
    seen = context.inspection
    step = position if sees_later(context.lab.model, seen.interventions) else None
    return Traced(context.lab, seen, _trace(context.lab, seen, step))


@cached(max_entries=16, spinner="Recording one pass", shared=True)
def _trace(lab: Lab, seen: Inspection, step: int | None) -> Trace:
    return lab.trace(seen, step)


def choose_place(context: Decoded, place: Place) -> None:
    """Renders the controls for layer, head and the followed token, as far as the step has them."""
    step, seen, model = place.step, context.inspection, context.lab.model
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        if step.in_layer and step.n_layers > 1:
            layers = range(step.n_layers)
            fields.box(
                "Layer", layers, place.layer, lambda layer: go_to(context, step, layer), key="walk-layer", width=84
            )
        if step.per_head and model.config.n_heads > 1:
            heads = range(model.config.n_heads)
            fields.box("Head", heads, place.head, lambda head: choose(head=head), key="walk-head", width=84)
        if step.name in OF_THE_SENTENCE:
            return
        encoder = step.stack == "encoder"
        tokens = seen.source_tokens if encoder else seen.target_tokens
        fields.box(
            "Follow the token" if encoder else "Follow the step",
            range(len(tokens)),
            place.row,
            PAGE.take("token" if encoder else "step"),
            key="walk-token",
            width=250,
            names=lambda i: f"{i} · {tokens[i]}" if encoder else position_text(seen, i),
        )


def render_walk(context: PageContext, place: Place, *, where: str) -> None:
    """Shows the buttons to the step before and after."""
    before = place.order[place.index - 1] if place.index else None
    after = place.order[place.index + 1] if place.index + 1 < len(place.order) else None
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.button(
            "Back" if before is None else f"Back: {before.label}",
            key=f"walk-back-{where}",
            type="tertiary",
            icon=":material/arrow_back:",
            disabled=before is None,
            on_click=lambda: go_to(context, before or place.step, place.layer),
        )
        st.caption(f"{place.index + 1} of {len(place.order)}", width="content")
        st.button(
            "Back to the start" if after is None else f"Next: {after.label}",
            key=f"walk-next-{where}",
            type="primary" if where == "below" else "secondary",
            icon=_ARROW,
            icon_position="right",
            on_click=lambda: go_to(context, after or place.order[0], place.layer),
        )


def render_step(context: Decoded, traced: Traced, place: Place) -> None:
    """Shows what happens at the chosen step, with its real numbers."""
    step, trace = place.step, traced.trace
    st.caption(_where_text(place, masked=not trace.sees_later))
    _render_pass(place, trace)
    view = StepNumbers(step=str(step), layer=place.layer, head=place.head, row=place.row)
    others = {name: replace(view, side=side) for side, name in SIDES.items() if side in _other_sides(step)}
    exhibit(traced, view, draw=lambda data: _render_numbers(context, traced, place, view, data), also=others)
    _render_source(step)
    if step.kind is not None:
        link = context.view.at_head(step.kind, place.layer, place.head)
        label = f"This head among all others: Attention, layer {place.layer}, head {place.head}"
        if not is_transformer(context.lab):
            label = "All its weights: Attention"
        st.page_link("pages/attention/page.py", label=label, icon=_ARROW, query_params=link.parameters())


def _render_numbers(context: Decoded, traced: Traced, place: Place, view: StepNumbers, data: StepData) -> None:
    """Shows the words, what comes in, the equation, and what comes out for the followed token and for all."""
    step, opened, seen = place.step, data.opened, context.inspection
    words = step.words(StepRecord(step, traced.trace, place.layer))
    st.markdown(f"## {words.title}")
    st.markdown(words.says)
    sides, product = view.sides(data), view.product(data) if step.is_product else None
    if product is not None:
        st.caption(f"Comes in · {_shapes_text(opened.comes_in)}")
        label = f"{product.names[0]} times {product.names[1]}, head {place.head}"
        matrix_product(product, row=place.row, kind=step.kind, label=label, key="walk-product")
    elif "in" in sides:
        st.caption(f"Comes in · {_shapes_text(opened.comes_in)}")
        _render_side(replace(view, side="in"), data)
    render_equation(words.equation)
    st.caption(_origin(words.paper))
    kept = step.name == "ids" or any(shown.recorded for shown in opened.comes_out)
    note = "" if kept else " · computed here, not kept by the pass"
    st.caption(f"Comes out · {_shapes_text(opened.comes_out)}{note}")
    _render_side(view, data)
    if step.name == "probabilities":
        p = float(opened.comes_out[0].values[place.position, seen.target_ids[place.position]])
        written = wording.token(seen.target_tokens[place.position])
        st.markdown(f"It writes {written}, with probability **{wording.number(p)}**.")
    if "all" in sides and product is None:
        of_head = f", head {place.head}" if step.per_head and step.model.config.n_heads > 1 else ""
        st.caption(f"All tokens{of_head} · the followed one is framed")
        _render_side(replace(view, side="all"), data)
    for moved in opened.moved:
        label, by = wording.plain(moved.spec.label()), wording.number(moved.by)
        change = f"numbers here moved by up to **{by}**" if moved.by else "no number here changed (measured: 0)"
        st.markdown(f":orange[:material/tune:] **{label}**: {change}.")


def _origin(paper: str) -> str:
    """Says where an equation is from: a section of the paper, or another source."""
    return f"In the paper: s{paper[1:]}" if paper.startswith("Section") else f"From: {paper}"


def _other_sides(step: Step) -> tuple[Side, ...]:
    """Returns the sides of a step that its export offers beside what comes out."""
    if step.name == "ids":
        return ()
    return ("in",) if step.name in ("logits", "probabilities") else ("all", "in")


def _render_side(view: StepNumbers, data: StepData) -> None:
    scrolling_figure(view.figure(data, dark=is_dark()), key=f"walk-{view.side}")


def _shapes_text(values: Sequence[Value]) -> str:
    """Returns the arrays with their shapes: scores 4 heads × 14 × 14."""
    named: dict[str, str] = {}
    for shown in values:
        sizes = shown.values.shape
        heads = f"{sizes[0]} {plural(sizes[0], 'head')} × " if shown.values.ndim == 3 else ""
        named[shown.name] = f"{heads}{sizes[-2]} × {sizes[-1]:,}"
    if len(named) > 3 and len(set(named.values())) == 1:
        return f"{len(named)} times {next(iter(named.values()))}"
    return " · ".join(f"**{name}** {shape}" for name, shape in named.items())


def position_text(seen: Inspection, position: int) -> str:
    """Returns what the decoder reads and writes at a position."""
    return f"{position} · reads {seen.decoder_inputs[position]}, writes {seen.target_tokens[position]}"


def _render_pass(place: Place, trace: Trace) -> None:
    """Says which pass is shown, where every step of the decoding has one of its own."""
    if trace.sees_later and place.step.stack == "decoder":
        n = trace.last
        before = f"the {n} {plural(n, 'token')} written before it, none after" if n else "the start mark alone"
        st.markdown(
            f":orange[:material/layers:] **Step {n}’s own pass**: {before}. As later tokens are visible here, no "
            "other step has these numbers."
        )


def _where_text(place: Place, *, masked: bool) -> str:
    step = place.step
    parts = [step.stack.capitalize()]
    if step.in_layer:
        layer = [f"layer {place.layer}"] if step.sublayer in sublayers_in_layers(step.model, step.stack) else []
        parts += [*layer, sublayer_name(step, masked=masked)]
    if step.per_head and step.model.config.n_heads > 1:
        parts.append(f"head {place.head}")
    return " · ".join(parts)


def _render_source(step: Step) -> None:
    st.caption("The code that computed it")
    for snippet in step.source:
        lines = f"line {snippet.first}" if snippet.first == snippet.last else f"lines {snippet.first}–{snippet.last}"
        st.code(f"# {snippet.file}, {snippet.function}, {lines}\n{snippet.text}", language="python", wrap_lines=True)
