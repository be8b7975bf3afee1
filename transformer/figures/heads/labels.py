"""Names of heads and of what is measured of them, as figures and pages write them."""

from collections.abc import Mapping
from dataclasses import dataclass

from transformer.model.kinds import AttentionKind, KindName

_SHORT_KINDS: dict[KindName, str] = {
    "encoder_self": "encoder {}",
    "decoder_self": "decoder {} self",
    "cross": "decoder {} cross",
}
COLUMN_NAMES: Mapping[str, str] = {
    "previous": "previous token",
    "next": "next token",
    "diagonal": "diagonal: itself, or the same place",
    "anti_diagonal": "anti-diagonal: the mirror place",
    "same_token": "same token",
    "first": "first token",
    "end": "end mark",
    "punctuation": "punctuation",
    "alignment": "aligned word (gold)",
    "referent": "referent of the pronoun (gold)",
    "entropy": "entropy of the rows, nats",
    "largest": "largest weight of a row",
    "error_rate": "alignment error rate",
    "accuracy": "alignment, argmax accuracy",
    "error_rate_read": "alignment error rate, when read",
}
"""What each column of a head survey holds."""
SHORT_NAMES: Mapping[str, str] = {
    "previous": "Prev.",
    "next": "Next",
    "diagonal": "Diag.",
    "anti_diagonal": "Anti",
    "same_token": "Same",
    "first": "First",
    "end": "End",
    "punctuation": "Punct.",
    "alignment": "Aligned",
    "referent": "Referent",
    "entropy": "Entropy",
    "largest": "Largest",
    "error_rate": "AER",
    "accuracy": "Accuracy",
    "error_rate_read": "AER, read",
}
"""The same as titles of columns."""
_OBJECTS: Mapping[str, str] = {
    "previous": "the previous token",
    "next": "the next token",
    "diagonal": "the same place",
    "anti_diagonal": "the mirror place",
    "same_token": "the same token",
    "first": "the first token",
    "end": "the end mark",
    "punctuation": "punctuation",
    "alignment": "the aligned word",
    "referent": "the pronoun's referent",
}


@dataclass(frozen=True)
class Sublayer:
    """One attention block, a row of the map of heads."""

    kind: KindName
    layer: int

    @classmethod
    def of(cls, address: str) -> "Sublayer":
        """The block of an address such as "decoder.1.cross" or "decoder.1.cross.2"."""
        stack, layer, sublayer, *_ = address.split(".")
        return cls(AttentionKind.at(stack, sublayer), int(layer))

    @property
    def name(self) -> str:
        """Its short name, as in "decoder 1 cross"."""
        return _SHORT_KINDS[self.kind].format(self.layer)


def head_name(address: str) -> str:
    """The name of a head, as in "decoder 1 cross · head 2" for decoder.1.cross.2."""
    return f"{Sublayer.of(address).name} · head {address.rpartition('.')[2]}"


def looked_at(pattern: str, kind: KindName) -> str:
    """The keys of a pattern, as an object of "looks at"."""
    if pattern == "diagonal" and kind != "cross":
        return "itself"
    if pattern == "first" and kind == "decoder_self":
        return "the start mark"
    return _OBJECTS[pattern]
