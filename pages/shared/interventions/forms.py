"""The forms of the switch panel. Each says at its fields why a switch cannot be set, before it is."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from pages.shared import loading, wording
from pages.shared.context import Decoded, PageContext, say, sentence
from pages.shared.fields import pills
from pages.shared.interventions.fields import numbered, offer, parsed, pick, pick_attention, sublayers
from pages.shared.url.session import choose, session
from transformer.figures.labels import readable
from transformer.interventions import (
    INTERVENTIONS,
    AblateHeads,
    AblateResidual,
    AblateSublayer,
    DisableMask,
    Intervention,
    MaskKind,
    MeanAblateHeads,
    OfHeads,
    SetAttentionRow,
    merged,
)
from transformer.interventions.names import SUBLAYER_NAMES, TENSOR_NAMES
from transformer.model.mask_rules import rules_of
from transformer.model.taps import Stack, Sublayer

_PADDING: dict[MaskKind, str] = {"padding": "Padding", "cross": "Padding, in cross-attention"}
_TO: dict[type[OfHeads], str] = {AblateHeads: "zero", MeanAblateHeads: "their mean"}
_COLOURS = {("encoder", "self"): "green", ("decoder", "self"): "violet", ("decoder", "cross"): "orange"}
_AIMS = {"uniform": "Evenly", "key": "All on one key", "numbers": "Your own numbers"}
_ALL = "all"


def parts_form(context: PageContext) -> None:
    """Renders a row for each sublayer: its heads, the whole of it, and its residual connection."""
    to = _heads_go_to(context)
    with st.container(height=min(400, 41 * len(sublayers(context))), border=False, gap="xsmall"):
        for stack, layer, sublayer in sublayers(context):
            _sublayer_row(context, stack, layer, sublayer, to)
    st.caption("*Block*: its output is zero, bias included. *Residual*: nothing bypasses it.")


def _heads_go_to(context: PageContext) -> type[OfHeads]:
    """Asks whether the picked heads go to zero or to their mean, and says where the means come from."""
    to = st.segmented_control(
        "Set heads to",
        list(_TO),
        key="switch-heads-to",
        default=AblateHeads,
        required=True,
        format_func=_TO.__getitem__,
        help="A head never outputs zero by itself. Its mean over the validation set is what it adds regardless of "
        "the sentence, so with it only what the head adds for this sentence is lost.",
    )
    if to is not MeanAblateHeads:
        return AblateHeads
    try:
        with st.spinner("Taking each head's mean over the validation set"):
            means = context.lab.head_means
    except ValueError as error:
        say(sentence(str(error)))
        return AblateHeads
    how = "measured here" if means.measured else "stored in the checkpoint"
    st.caption(f"Means over {means.pairs:,} validation pairs, {how}.")
    return MeanAblateHeads


def _sublayer_row(context: PageContext, stack: Stack, layer: int, sublayer: Sublayer, to: type[OfHeads]) -> None:
    where = (stack, layer, sublayer)
    config, now = context.lab.model.config, context.view.switches
    heads = [to(*where, (head,)) for head in range(config.n_heads)] if sublayer != "ffn" else []
    options: list[Intervention] = [*heads, AblateSublayer(*where)]
    if config.residual:
        options.append(AblateResidual(*where))
    parts = [part for spec in now for part in spec.parts()]
    on = {head: kind for kind in _TO for head in range(len(heads)) if kind(*where, (head,)) in parts}
    names = {option: option.prefix for option in options}
    for head, option in enumerate(heads):
        other = on.get(head, to)
        names[option] = str(head) if other is to else f"{head} · {other.to}"
    key = f"parts-{stack}-{layer}-{sublayer}"
    chosen = [option for option in options if option in parts]

    def take(picked: Sequence[Intervention]) -> None:
        others = [part for spec in session().view.switches for part in spec.parts() if part not in options]
        choose(switches=merged([*others, *picked]))

    left, right = st.columns([2, 3], vertical_alignment="center", gap="small")
    name = f"{SUBLAYER_NAMES[stack, sublayer].capitalize()} · layer {layer}"
    colour = _COLOURS.get((stack, sublayer))
    left.markdown(f":{colour}[{name}]" if colour else name)
    with right:
        pills(name, options, chosen, take, key=key, names=names.__getitem__)


def masks_form(context: PageContext) -> None:
    """Renders each mask, lifted or not."""

    def take(picked: Sequence[MaskKind]) -> None:
        others = [spec for spec in session().view.switches if not spec.lifts]
        choose(switches=merged([*others, *map(DisableMask, picked)]))

    rules = rules_of(context.lab.model.config)
    names: dict[MaskKind, str] = {rule.name: rule.name.capitalize() for rule in rules}
    names |= _PADDING
    pills(
        "Masks off",
        list(names),
        [mask for spec in context.view.switches for mask in spec.lifts],
        take,
        key="switch-masks",
        names=names.__getitem__,
        hide_label=False,
    )
    st.caption(
        "Without the causal mask the decoder sees later tokens. A padding mask hides the empty places of a batch, of "
        "which a single sentence has none: the Masks page shows what leaks in a batch."
    )


def row_form(context: Decoded) -> None:
    """Renders the form for a row of one head's weights: even, all on one key, or the visitor's numbers."""
    kind, layer = pick_attention(context, "row")
    attention, n_heads = context.inspection.attention(kind), context.lab.model.config.n_heads
    left, middle = st.columns([1, 2])
    with left:
        head = pick("row-head", "Head", range(n_heads), context.head)
    with middle:
        query = pick(f"row-query-{kind}", "Query", range(len(attention.queries)), 0, numbered(attention.queries))
    n_keys = query + 1 if kind == "decoder_self" else len(attention.keys)
    keys = attention.keys[:n_keys]
    aim = st.segmented_control(
        "Weights", list(_AIMS), key="row-aim", default="uniform", required=True, format_func=_AIMS.__getitem__
    )
    stack, sublayer = kind.where
    spec: SetAttentionRow | None = SetAttentionRow(stack, layer, sublayer, head, query, "uniform")
    match aim:
        case "key":
            spec = replace(spec, to=pick(f"row-key-{kind}-{n_keys}", "Key", range(n_keys), 0, numbered(keys)))
        case "numbers":
            spec = _own_numbers(spec, keys, attention.weights[layer, head, query, :n_keys].tolist())
    offer(context, spec, "Overwrite this row")


def _own_numbers(row: SetAttentionRow, keys: Sequence[str], now: Sequence[float]) -> SetAttentionRow | None:
    """Renders a field for one number a key, filled with the row's own; returns None if they are no numbers."""
    written = " ".join(f"{readable(token)}" for token in keys)
    key = f"row-numbers-{row}-{len(keys)}"
    st.session_state.setdefault(key, ", ".join(f"{weight:.2g}" for weight in now))
    text = st.text_area(f"{len(keys)} numbers, one for each of: {wording.plain(written)}", key=key, height=80)
    try:
        numbers = tuple(float(part) for part in text.replace(",", " ").split())
    except ValueError:
        say("These are not numbers: write one for each key, separated by commas or spaces, like 0.5, 0.25, 0.25.")
        return None
    total = sum(numbers)
    if abs(total - 1) > 1e-9 and 0 < total < float("inf"):
        st.caption(f"They sum to {wording.number(total)}: each is divided by that sum.")
    return replace(row, to=numbers)


def copy_form(context: Decoded) -> None:
    """Renders the form for an activation out of another sentence's pass."""
    examples = [text for text in loading.examples(context.lab) if text != context.view.text]
    st.session_state.setdefault("copy-text", examples[0] if examples else context.view.text)
    text = st.text_input("From another sentence's pass", key="copy-text").strip()
    try:
        other = loading.get_inspection(context.lab, text)
    except ValueError as error:
        say(sentence(str(error)))
        return
    places = ["encoder", *sublayers(context)]
    sublayer = pick("copy-block", "Where", places, _last_ffn(context), _place_name)
    site, head = _pick_tensor(context, sublayer)
    over_source = site.startswith("encoder") or site.endswith((".cross.k", ".cross.v"))
    theirs = other.source_tokens if over_source else other.decoder_inputs
    ours = context.inspection.source_tokens if over_source else context.inspection.decoder_inputs
    differs = next((i for i, (a, b) in enumerate(zip(theirs, ours, strict=False)) if a != b), 0)
    left, right = st.columns(2)
    with left:
        offered = [_ALL, *range(len(theirs))]
        there = pick(f"copy-there-{len(theirs)}-{differs}", "From", offered, differs, numbered(theirs))
    here = there
    if there != _ALL:
        with right:
            default = min(there, len(ours) - 1)
            here = pick(f"copy-here-{len(ours)}-{there}", "Onto", range(len(ours)), default, numbered(ours))
    place = _ALL if there == _ALL else f"{there}>{here}"
    offer(context, parsed(f"copy:{site}{head}:{place}:{text}"), "Copy it")


def _pick_tensor(context: PageContext, sublayer: Any) -> tuple[str, str]:
    """Returns the address of the copied tensor of a sublayer, and its head (with its dot) if one is chosen."""
    if sublayer == "encoder":
        return "encoder.embedding", ""
    stack, layer, name = sublayer
    per_head = ("heads", "q", "k", "v")
    tensors = ["output", *(per_head if name != "ffn" else ()), "normed", "input", "residual"]
    there = {site.tensor for site in context.lab.model.sites() if (site.stack, site.layer, site.sublayer) == sublayer}
    left, right = st.columns(2)
    with left:
        offered = [tensor for tensor in tensors if tensor in there]
        tensor = pick(f"copy-tensor-{name}", "What", offered, "output", TENSOR_NAMES.__getitem__)
    head = _ALL
    if tensor in per_head:
        with right:
            head = pick("copy-head", "Head", [_ALL, *range(context.lab.model.config.n_heads)], _ALL)
    return f"{stack}.{layer}.{name}.{tensor}", "" if head == _ALL else f".{head}"


def name_form(context: PageContext) -> None:
    """Renders a field for any switch by its name, as the URL writes it."""
    typed = st.text_input("A switch by name", key="switch-typed", placeholder="forbid:decoder.0.cross:3,5").strip()
    if typed:
        offer(context, parsed(typed), "Apply")
    st.markdown("  \n".join(kind.usage for kind in INTERVENTIONS))


def _last_ffn(context: PageContext) -> tuple[Stack, int, Sublayer]:
    return "encoder", context.lab.model.config.n_encoder_layers - 1, "ffn"


def _place_name(sublayer: Any) -> str:
    if sublayer == "encoder":
        return "Encoder · word vectors"
    stack, layer, name = sublayer
    return f"{SUBLAYER_NAMES[stack, name].capitalize()} · layer {layer}"
