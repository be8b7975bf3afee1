"""An example of every view for tests/test_views.py: the options, the subject, and what is deliberately not proved."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from transformer.interventions import Intervention, parse_intervention
from transformer.lab import Lab, load
from transformer.views import (
    AllHeads,
    AttentionEntropy,
    AttentionRollout,
    BatchTokens,
    Bertviz,
    EmptyAttentionRow,
    EntryProducts,
    EntryShares,
    HeadMatrix,
    MaskLeak,
    SentenceMasks,
    TeacherForcing,
    TokenLines,
)
from transformer.views.subjects import Batch, Decoding
from transformer.views.view import Subject, View

TEXT, SHORT = "a b c", "d e"


@dataclass(frozen=True)
class Example:
    """A view of a subject."""

    view: View[Any]
    subject: Callable[[], Subject]
    unproved: Mapping[str, str] = field(default_factory=dict)
    """Paths into the data, as in `parts.0.mask`, of numbers that no check covers, each with its reason. A path covers
    all below it."""
    derived: Mapping[str, str] = field(default_factory=dict)
    """Names of tables with numbers that are not in the data as they stand, each with its reason."""


@cache
def lab() -> Lab:
    """The shipped model of symbols."""
    return load("reverse")


def switches(names: Sequence[str]) -> list[Intervention]:
    """The interventions of these names."""
    return [parse_intervention(name) for name in names]


def decoding(text: str = TEXT, *names: str) -> Callable[[], Decoding]:
    """A sentence decoded under the switches of these names."""
    return cache(lambda: Decoding(lab(), lab().inspect(text, switches(names))))


def batch(*off: str) -> Callable[[], Batch]:
    """Two sentences of different lengths, without the masks of these names."""
    return cache(lambda: Batch(lab(), lab().leak((TEXT, SHORT), switches(off))))  # type: ignore[arg-type]


SWITCHED = ("off:decoder.0.cross:1", "forbid:decoder.0.cross:2,1", "mean:decoder.1.cross:0")
AT = {"layer": 0, "head": 2, "query": 2, "key": 1}

OF_SHARES = {"share": "shares of several entries together", "row": "the softmax before it is divided"}

EXAMPLES = [
    Example(HeadMatrix(kind="cross", layer=0, heads=(1,)), decoding(TEXT, *SWITCHED)),
    Example(HeadMatrix(kind="cross", layer=0, heads=(0, 2), how="max", framed=(2, 1)), decoding(TEXT, *SWITCHED)),
    Example(HeadMatrix(kind="encoder_self", layer=1, heads=(0, 3), marks="renormalised", words=True), decoding()),
    Example(HeadMatrix(kind="decoder_self", layer=0, heads=(2,), shows="norms", threshold=0.3), decoding()),
    Example(AttentionRollout(kind="encoder_self", layer=1), decoding(TEXT, "off:encoder.0.self:1")),
    Example(AttentionRollout(kind="decoder_self", layer=0, words=True, threshold=0.1), decoding()),
    Example(AttentionRollout(kind="cross", layer=1, marks="hidden"), decoding(TEXT, *SWITCHED)),
    Example(AttentionEntropy(kind="decoder_self", unit="bits", framed=(1, 0, 2)), decoding()),
    Example(AttentionEntropy(kind="cross", marks="hidden"), decoding(TEXT, *SWITCHED)),
    Example(TokenLines(of=HeadMatrix(kind="cross", layer=1, heads=(0, 1, 2, 3))), decoding()),
    Example(AllHeads(kind="cross"), decoding(TEXT, *SWITCHED)),
    Example(Bertviz(kind="cross", marks="renormalised", words=True), decoding(TEXT, *SWITCHED)),
    Example(Bertviz(kind="encoder_self", picture="model", threshold=0.1), decoding()),
    Example(Bertviz(kind="decoder_self", picture="neuron", layer=1, head=2, query=1), decoding()),
    Example(EntryProducts(kind="cross", **AT), decoding(TEXT, *SWITCHED), derived={"products": "q times k"}),
    Example(EntryShares(kind="decoder_self", **AT), decoding(), derived=OF_SHARES),
    Example(BatchTokens(), batch()),
    Example(SentenceMasks(kind="encoder_self", row=1), batch()),
    Example(SentenceMasks(kind="cross", row=1), batch("mask:cross")),
    Example(SentenceMasks(kind="decoder_self", row=1), batch("mask:padding")),
    Example(SentenceMasks(kind="decoder_self", row=0), batch("mask:causal")),
    Example(MaskLeak(), batch()),
    Example(MaskLeak(), batch("mask:padding", "mask:causal", "mask:cross")),
    Example(TeacherForcing(), decoding()),
    Example(EmptyAttentionRow(), decoding()),
]
