"""Code that the forms of the switch panel share: boxes that keep their choice, and the button that sets a switch."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import fields
from typing import Any

import streamlit as st

from pages.shared.context import Decoded, PageContext, say, sentence, usable
from pages.shared.url.session import choose, session
from transformer.figures.labels import readable
from transformer.interventions import Intervention, merged, parse_intervention
from transformer.interventions.names import SUBLAYER_NAMES
from transformer.lab import AttentionKind
from transformer.model.taps import Stack, Sublayer


def offer(context: PageContext, spec: Intervention | None, label: str) -> None:
    """Renders a button that applies the switch; if it cannot be applied, says why and disables the button."""
    if spec is not None:
        others = [other for other in merged([*context.view.switches, spec]) if other != spec]
        try:
            usable(spec, context.lab, context.view.text, others)
        except ValueError as error:
            say(sentence(str(error)))
            spec = None
    is_on = spec is not None and spec in context.view.switches
    st.button(
        label if not is_on else "Applied",
        key="switch-offer",
        type="primary",
        disabled=spec is None or is_on,
        on_click=lambda: choose(switches=merged([*session().view.switches, spec] if spec else session().view.switches)),
    )


def fields_form(kind: type[Intervention]) -> Callable[[Decoded], None]:
    """Returns the form of an intervention in one attention sublayer, made from the fields of its class."""

    def form(context: Decoded) -> None:
        name = kind.title.lower()
        attention, layer = pick_attention(context, name)
        stack, sublayer = attention.where
        chosen: dict[str, Any] = {"stack": stack, "layer": layer, "sublayer": sublayer}
        own = {field.name: field for field in fields(kind) if field.name not in chosen and field.init}  # type: ignore[arg-type]
        if {"query", "key"} <= own.keys():
            chosen["query"], chosen["key"] = pick_cell(context, attention, name)
        heads = range(context.lab.model.config.n_heads)
        if "head" in own:
            chosen["head"] = pick(f"{name}-head", "Head", heads, context.head)
        if "heads" in own:
            picked = st.pills("Heads", heads, selection_mode="multi", default=[context.head], key=f"{name}-heads")
            chosen["heads"] = tuple(sorted(picked))
        for field in own.values():
            if "slider" in field.metadata:
                least, most, first, step = field.metadata["slider"]
                label = field.name.capitalize()
                chosen[field.name] = st.slider(label, least, most, first, step, key=f"{name}-{field.name}")
        offer(context, kind(**chosen), kind.action)
        st.caption(kind.hint)

    return form


def parsed(text: str) -> Intervention | None:
    try:
        return parse_intervention(text)
    except ValueError as error:
        say(sentence(str(error)))
        return None


def pick_attention(context: PageContext, form: str) -> tuple[AttentionKind, int]:
    """Renders the choice of an attention sublayer; at first the one that the page shows."""
    kinds = {kind.where: kind for kind in AttentionKind}
    offered = [(kinds[stack, sublayer], layer) for stack, layer, sublayer in sublayers(context) if sublayer != "ffn"]  # type: ignore[index]
    shown = (context.view.kind, context.layer)
    return pick(f"{form}-block-{shown}", "Attention", offered, shown, lambda chosen: attention_name(*chosen))


def pick_cell(context: Decoded, kind: AttentionKind, form: str) -> tuple[int, int]:
    attention, cell = context.inspection.attention(kind), context.view.cell
    query, key = cell if cell and kind == context.view.kind else (0, 0)
    left, right = st.columns(2)
    with left:
        query = pick(f"{form}-query-{kind}", "Query", range(len(attention.queries)), query, numbered(attention.queries))
    with right:
        key = pick(f"{form}-key-{kind}", "Key", range(len(attention.keys)), key, numbered(attention.keys))
    return query, key


def pick(
    key: str, label: str, options: Sequence[Any], default: Hashable, format_func: Callable[[Any], str] = str
) -> Any:
    """Renders a box that keeps its choice as long as there is such an option."""
    if key in st.session_state and st.session_state[key] not in options:
        del st.session_state[key]
    index = list(options).index(default) if default in options else 0
    return st.selectbox(label, options, index=index, key=key, format_func=format_func)


def sublayers(context: PageContext) -> list[tuple[Stack, int, Sublayer]]:
    """Returns every sublayer of the model, in the order of a pass."""
    return [
        (site.stack, site.layer, site.sublayer)
        for site in context.lab.model.sites()
        if site.tensor == "output" and site.layer is not None and site.sublayer is not None
    ]


def attention_name(kind: AttentionKind, layer: int) -> str:
    return f"{SUBLAYER_NAMES[kind.where].capitalize()} · layer {layer}"


def numbered(tokens: Sequence[str]) -> Callable[[int | str], str]:
    return lambda i: f"{i} · {readable(tokens[i])}" if isinstance(i, int) else i
