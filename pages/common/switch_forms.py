"""The forms of the switch panel. Each says at its fields why a switch cannot be set, before it is."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from pages.common import loading, wording
from pages.common.fields import pills
from pages.common.scene import Scene, say, sentence
from pages.common.state import choose, visit
from pages.common.switch_fields import blocks, numbered, offer, parsed, pick, pick_attention
from pages.common.view import merged
from transformer.figures.labels import readable
from transformer.interventions import (
    INTERVENTIONS,
    BlockOff,
    HeadsMean,
    HeadsOff,
    Intervention,
    MaskKind,
    MaskOff,
    OfHeads,
    ResidualOff,
    RowSet,
)
from transformer.interventions.names import BLOCK_NAMES, TENSOR_NAMES
from transformer.lab import KIND_SITES
from transformer.taps import Block, Stack

_MASKS: dict[MaskKind, str] = {"causal": "Causal", "padding": "Padding", "cross": "Padding, in cross-attention"}
_TO: dict[type[OfHeads], str] = {HeadsOff: "zero", HeadsMean: "their mean"}
_COLOURS = {("encoder", "self"): "green", ("decoder", "self"): "violet", ("decoder", "cross"): "orange"}
_AIMS = {"uniform": "Evenly", "key": "All on one key", "numbers": "Own numbers"}
_ALL = "all"


def parts_form(scene: Scene) -> None:
    """Every block in a row: its heads, the whole of it, and the way around it."""
    to = _heads_go_to(scene)
    with st.container(height=min(400, 41 * len(blocks(scene))), border=False, gap="xsmall"):
        for stack, layer, block in blocks(scene):
            _block_row(scene, stack, layer, block, to)
    st.caption("*Block*: its output is zero, bias included. *Residual*: nothing goes around it.")


def _heads_go_to(scene: Scene) -> type[OfHeads]:
    """Whether the heads that are picked go to zero or to their mean, and where the means come from."""
    to = st.segmented_control(
        "Heads go to",
        list(_TO),
        key="switch-heads-to",
        default=HeadsOff,
        required=True,
        format_func=_TO.__getitem__,
        help="Zero is something that a head never says. At its mean over the validation set it says what it says "
        "whatever the sentence, so that only what it makes of this one is lost.",
    )
    if to is not HeadsMean:
        return HeadsOff
    try:
        with st.spinner("Taking each head's mean over the validation set"):
            means = scene.lab.head_means
    except ValueError as error:
        say(sentence(str(error)))
        return HeadsOff
    how = "measured here" if means.measured else "carried by the checkpoint"
    st.caption(f"Means over {means.pairs:,} validation pairs, {how}.")
    return HeadsMean


def _block_row(scene: Scene, stack: Stack, layer: int, block: Block, to: type[OfHeads]) -> None:
    where = (stack, layer, block)
    config, now = scene.lab.model.config, scene.view.switches
    heads = [to(*where, (head,)) for head in range(config.n_heads)] if block != "ffn" else []
    options: list[Intervention] = [*heads, BlockOff(*where)]
    if config.residual:
        options.append(ResidualOff(*where))
    parts = [part for spec in now for part in spec.parts()]
    on = {head: kind for kind in _TO for head in range(len(heads)) if kind(*where, (head,)) in parts}
    names = {option: option.prefix for option in options}
    for head, option in enumerate(heads):
        other = on.get(head, to)
        names[option] = str(head) if other is to else f"{head} · {other.to}"
    key = f"parts-{stack}-{layer}-{block}"
    chosen = [option for option in options if option in parts]

    def take(picked: Sequence[Intervention]) -> None:
        others = [part for spec in visit().view.switches for part in spec.parts() if part not in options]
        choose(switches=merged([*others, *picked]))

    left, right = st.columns([2, 3], vertical_alignment="center", gap="small")
    name = f"{BLOCK_NAMES[stack, block].capitalize()} · layer {layer}"
    colour = _COLOURS.get((stack, block))
    left.markdown(f":{colour}[{name}]" if colour else name)
    with right:
        pills(name, options, chosen, take, key=key, names=names.__getitem__)


def masks_form(scene: Scene) -> None:
    """Each mask, lifted or not."""

    def take(picked: Sequence[MaskKind]) -> None:
        others = [spec for spec in visit().view.switches if not spec.lifts]
        choose(switches=merged([*others, *map(MaskOff, picked)]))

    pills(
        "Masks off",
        [mask for mask in _MASKS if mask != "causal" or scene.lab.model.config.causal_mask],
        [mask for spec in scene.view.switches for mask in spec.lifts],
        take,
        key="switch-masks",
        names=_MASKS.__getitem__,
        hide_label=False,
    )
    st.caption(
        "Without the causal mask the decoder sees later tokens. A padding mask hides the empty places of a batch, of "
        "which a single sentence has none: the Masks page shows what leaks in a batch."
    )


def row_form(scene: Scene) -> None:
    """A row of one head's weights: evenly, all on one key, or with own numbers."""
    kind, layer = pick_attention(scene, "row")
    attention, n_heads = scene.inspection.attention(kind), scene.lab.model.config.n_heads
    left, middle = st.columns([1, 2])
    with left:
        head = pick("row-head", "Head", range(n_heads), scene.head)
    with middle:
        query = pick(f"row-query-{kind}", "Query", range(len(attention.queries)), 0, numbered(attention.queries))
    n_keys = query + 1 if kind == "decoder_self" else len(attention.keys)
    keys = attention.keys[:n_keys]
    aim = st.segmented_control(
        "Weights", list(_AIMS), key="row-aim", default="uniform", required=True, format_func=_AIMS.__getitem__
    )
    stack, block = KIND_SITES[kind]
    spec: RowSet | None = RowSet(stack, layer, block, head, query, "uniform")
    match aim:
        case "key":
            spec = replace(spec, to=pick(f"row-key-{kind}-{n_keys}", "Key", range(n_keys), 0, numbered(keys)))
        case "numbers":
            spec = _own_numbers(spec, keys, attention.weights[layer, head, query, :n_keys].tolist())
    offer(scene, spec, "Overwrite this row")


def _own_numbers(row: RowSet, keys: Sequence[str], now: Sequence[float]) -> RowSet | None:
    """The field for one number a key, filled with what the row has; None where they are no numbers."""
    written = " ".join(f"{readable(token)}" for token in keys)
    key = f"row-numbers-{row}-{len(keys)}"
    st.session_state.setdefault(key, ", ".join(f"{weight:.2g}" for weight in now))
    text = st.text_area(f"{len(keys)} numbers, one for each of: {wording.plain(written)}", key=key, height=80)
    try:
        numbers = tuple(float(part) for part in text.replace(",", " ").split())
    except ValueError:
        say("These are not numbers: write one for each key, with commas or spaces between, like 0.5, 0.25, 0.25.")
        return None
    total = sum(numbers)
    if abs(total - 1) > 1e-9 and 0 < total < float("inf"):
        st.caption(f"They sum to {wording.number(total)}: each is divided by it.")
    return replace(row, to=numbers)


def copy_form(scene: Scene) -> None:
    """An activation out of another sentence's pass."""
    examples = [text for text in loading.examples(scene.lab) if text != scene.view.text]
    st.session_state.setdefault("copy-text", examples[0] if examples else scene.view.text)
    text = st.text_input("Out of the pass of another sentence", key="copy-text").strip()
    try:
        other = loading.get_inspection(scene.lab, text)
    except ValueError as error:
        say(sentence(str(error)))
        return
    places = ["encoder", *blocks(scene)]
    block = pick("copy-block", "Where", places, _last_ffn(scene), _place_name)
    site, head = _pick_tensor(scene, block)
    over_source = site.startswith("encoder") or site.endswith((".cross.k", ".cross.v"))
    theirs = other.source_tokens if over_source else other.decoder_inputs
    ours = scene.inspection.source_tokens if over_source else scene.inspection.decoder_inputs
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
    offer(scene, parsed(f"copy:{site}{head}:{place}:{text}"), "Copy it")


def _pick_tensor(scene: Scene, block: Any) -> tuple[str, str]:
    """The address of what is copied at a block, and the head of it (with its dot) where one is chosen."""
    if block == "encoder":
        return "encoder.embedding", ""
    stack, layer, name = block
    per_head = ("heads", "q", "k", "v")
    tensors = ["output", *(per_head if name != "ffn" else ()), "normed", "input", "residual"]
    there = {site.tensor for site in scene.lab.model.sites() if (site.stack, site.layer, site.block) == block}
    left, right = st.columns(2)
    with left:
        offered = [tensor for tensor in tensors if tensor in there]
        tensor = pick(f"copy-tensor-{name}", "What", offered, "output", TENSOR_NAMES.__getitem__)
    head = _ALL
    if tensor in per_head:
        with right:
            head = pick("copy-head", "Head", [_ALL, *range(scene.lab.model.config.n_heads)], _ALL)
    return f"{stack}.{layer}.{name}.{tensor}", "" if head == _ALL else f".{head}"


def name_form(scene: Scene) -> None:
    """Any switch by its name, as it stands in the URL."""
    typed = st.text_input("A switch by its name", key="switch-typed", placeholder="forbid:decoder.0.cross:3,5").strip()
    if typed:
        offer(scene, parsed(typed), "Switch it")
    st.markdown("  \n".join(kind.usage for kind in INTERVENTIONS))


def _last_ffn(scene: Scene) -> tuple[Stack, int, Block]:
    return "encoder", scene.lab.model.config.n_encoder_layers - 1, "ffn"


def _place_name(block: Any) -> str:
    if block == "encoder":
        return "Encoder · word vectors"
    stack, layer, name = block
    return f"{BLOCK_NAMES[stack, name].capitalize()} · layer {layer}"
