"""Switches, and the places in a model where they act, in words: plain text, to be escaped where Markdown is read."""

from transformer.figures.labels import readable
from transformer.interventions import (
    AttentionEdit,
    BlockOff,
    CellOff,
    Copied,
    HeadsMean,
    HeadsOff,
    Intervention,
    MaskOff,
    PositionsChanged,
    ResidualOff,
    RowSet,
)
from transformer.taps import Site

BLOCK_NAMES = {
    ("encoder", "self"): "encoder self-attention",
    ("decoder", "self"): "decoder self-attention",
    ("decoder", "cross"): "cross-attention",
    ("encoder", "ffn"): "encoder feed-forward",
    ("decoder", "ffn"): "decoder feed-forward",
}
MASK_NAMES = {"causal": "causal mask", "padding": "padding mask", "cross": "cross-attention's padding mask"}


def left_out(spec: Intervention, error: Exception, where: str = "") -> str:
    """That a switch cannot be used, and why, as plain text."""
    return f"The switch “{switch_label(spec)}” is left out{where}: {str(error).rstrip('.')}."


def switch_label(spec: Intervention) -> str:
    """What a switch does, as plain text: where Markdown is read, it is still to be escaped."""
    if isinstance(spec, MaskOff):
        return f"{MASK_NAMES[spec.mask]} off"
    if isinstance(spec, BlockOff | CellOff | RowSet):
        return f"{_block(spec.stack, spec.block)} · layer {spec.layer} · {_edit(spec)}"
    if isinstance(spec, PositionsChanged):
        return f"{spec.stack} positions · {position_edit(spec)}"
    if isinstance(spec, ResidualOff):
        return f"{_block(spec.stack, spec.block)} · layer {spec.layer} · residual off"
    if isinstance(spec, Copied):
        return f"{site_name(spec.site, spec.head)} · {_copied(spec)}"
    heads = f"head{'s' * (len(spec.heads) > 1)} {', '.join(map(str, spec.heads))}"
    to = "at the mean" if isinstance(spec, HeadsMean) else "off"
    return f"{_block(spec.stack, spec.block)} · layer {spec.layer} · {heads} {to}"


def _block(stack: str, block: str) -> str:
    """A block in words; a link may name one that no model has."""
    return BLOCK_NAMES.get((stack, block), f"{stack} {block}-attention")


TENSOR_NAMES = {
    "embedding": "word vector",
    "input": "what goes in",
    "residual": "what goes around",
    "q": "queries",
    "k": "keys",
    "v": "values",
    "heads": "what the heads gathered",
    "output": "output",
    "normed": "after the norm",
}
"""What can be copied at a block, in words."""


def site_name(site: Site, head: int | None = None) -> str:
    """An activation's address in words: "encoder feed-forward · layer 1 · output"."""
    block = {"final": "last norm"}.get(site.block or "") or BLOCK_NAMES.get((site.stack, site.block or ""), site.stack)
    where = [f"{site.stack} {block}" if site.block == "final" else block]
    where += [f"layer {site.layer}"] * (site.layer is not None)
    where += [f"head {head}"] * (head is not None)
    return " · ".join([*where, TENSOR_NAMES.get(site.tensor, site.tensor)])


def _copied(spec: Copied) -> str:
    text = spec.text if len(spec.text) <= 40 else f"{spec.text[:39]}…"
    unit = "token" if spec.over_source else "step"
    places = ", ".join(f"{here} from {there}" for there, here in spec.positions)
    what = f"{unit}{'s' * (len(spec.positions) > 1)} {places}" if places else f"all {unit}s"
    return f"{what} of “{readable(text.replace(chr(10), ' '))}”"


def position_edit(spec: PositionsChanged) -> str:
    """What is done to the positions of a stack."""
    match spec.edit:
        case "remove":
            return "removed"
        case "shuffle":
            return f"shuffled, order {spec.value:g}"
        case "shift":
            return f"shifted by {spec.value:g}"
        case "scale":
            return f"times {spec.value:g}"
        case "same":
            first, *others = spec.tokens
            return f"token {', '.join(map(str, others)) or first} stands where token {first} does"


def _edit(spec: AttentionEdit) -> str:
    match spec:
        case BlockOff():
            return "output zero, bias included"
        case CellOff():
            return f"query {spec.query} may not see key {spec.key}"
        case RowSet(to="uniform"):
            return f"head {spec.head} · row {spec.query} spread evenly"
        case RowSet(to=tuple(numbers)):
            total = sum(numbers)
            divided = "" if abs(total - 1) < 1e-9 else f", divided by their sum {total:.4g}"
            return f"head {spec.head} · row {spec.query} with own numbers{divided}"
        case RowSet():
            return f"head {spec.head} · row {spec.query} all on key {spec.to}"


def head_label(spec: HeadsOff) -> str:
    """A switch of heads as a noun: "head 2 of layer 1's cross-attention"."""
    heads = " and ".join(map(str, spec.heads))
    return f"head{'s' * (len(spec.heads) > 1)} {heads} of layer {spec.layer}'s {_block(spec.stack, spec.block)}"
