"""The places of a model in words, as labels of interventions and forms name them: plain text."""

from transformer.model.kinds import AttentionKind
from transformer.model.taps import Site

SUBLAYER_NAMES: dict[tuple[str, str], str] = {
    **{kind.where: kind.phrase for kind in AttentionKind},
    ("encoder", "ffn"): "encoder feed-forward",
    ("decoder", "ffn"): "decoder feed-forward",
}
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
"""The tensors that can be copied, in words."""


def sublayer_name(stack: str, sublayer: str) -> str:
    """A block in words; a link may name one that no model has."""
    return SUBLAYER_NAMES.get((stack, sublayer), f"{stack} {sublayer}-attention")


def site_name(site: Site, head: int | None = None) -> str:
    """An activation's address in words: "encoder feed-forward · layer 1 · output"."""
    sublayer = {"final": "last norm"}.get(site.sublayer or "") or SUBLAYER_NAMES.get(
        (site.stack, site.sublayer or ""), site.stack
    )
    where = [f"{site.stack} {sublayer}" if site.sublayer == "final" else sublayer]
    if site.layer is not None:
        where.append(f"layer {site.layer}")
    if head is not None:
        where.append(f"head {head}")
    return " · ".join([*where, TENSOR_NAMES.get(site.tensor, site.tensor)])


def plural(n: int, noun: str) -> str:
    """The noun as it stands after a number, which is not repeated: "head" or "heads"."""
    return noun if n == 1 else f"{noun}s"
