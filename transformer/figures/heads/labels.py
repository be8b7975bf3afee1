"""Names of heads and of their measurements, for figures and pages."""

from collections.abc import Mapping
from dataclasses import dataclass

from transformer.model.kinds import AttentionKind, KindName

_SHORT_KINDS: dict[KindName, str] = {
    "encoder_self": "encoder {}",
    "decoder_self": "decoder {} self",
    "cross": "decoder {} cross",
}
_COLUMNS: Mapping[str, tuple[str, str]] = {
    "previous": ("previous token", "Prev."),
    "next": ("next token", "Next"),
    "diagonal": ("diagonal: itself, or the same position", "Diag."),
    "anti_diagonal": ("anti-diagonal: the mirrored position", "Anti"),
    "same_token": ("same token", "Same"),
    "first": ("first token", "First"),
    "end": ("end mark", "End"),
    "punctuation": ("punctuation", "Punct."),
    "alignment": ("aligned word (gold)", "Aligned"),
    "referent": ("referent of the pronoun (gold)", "Referent"),
    "entropy": ("entropy of the rows, nats", "Entropy"),
    "largest": ("largest weight of a row", "Largest"),
    "error_rate": ("alignment error rate", "AER"),
    "accuracy": ("alignment, argmax accuracy", "Accuracy"),
    "error_rate_read": ("alignment error rate, when read", "AER, read"),
}
COLUMN_NAMES: Mapping[str, str] = {column: name for column, (name, _) in _COLUMNS.items()}
"""The name of each column of a head survey."""
SHORT_NAMES: Mapping[str, str] = {column: short for column, (_, short) in _COLUMNS.items()}
"""The same as titles of columns."""
_OBJECTS: Mapping[str, str] = {
    "diagonal": "the same position",
    "anti_diagonal": "the mirrored position",
    "punctuation": "punctuation",
    "alignment": "the aligned word",
    "referent": "the pronoun's referent",
}
"""The keys of a pattern as an object of "looks at", unless it is just "the" with the column's name."""


@dataclass(frozen=True)
class Sublayer:
    """One attention sublayer, a row of the map of heads."""

    kind: KindName
    layer: int

    @classmethod
    def of(cls, address: str) -> "Sublayer":
        """Returns the sublayer of an address such as "decoder.1.cross" or "decoder.1.cross.2"."""
        stack, layer, sublayer, *_ = address.split(".")
        return cls(AttentionKind.at(stack, sublayer), int(layer))

    @property
    def name(self) -> str:
        """Its short name, as in "decoder 1 cross"."""
        return _SHORT_KINDS[self.kind].format(self.layer)


def head_name(address: str) -> str:
    """Returns the name of a head, as in "decoder 1 cross · head 2" for decoder.1.cross.2."""
    return f"{Sublayer.of(address).name} · head {address.rpartition('.')[2]}"


def looked_at(pattern: str, kind: KindName) -> str:
    """Returns the keys of a pattern, as an object of "looks at"."""
    if pattern == "diagonal" and kind != "cross":
        return "itself"
    if pattern == "first" and kind == "decoder_self":
        return "the start mark"
    return _OBJECTS.get(pattern, f"the {COLUMN_NAMES[pattern]}")
